"""A promise is held against new rows: alarms are rare while nothing changes, and come when the risk doubles."""

from __future__ import annotations

import json
from dataclasses import replace
from math import inf, isnan

import numpy as np
import pytest
from conftest import gaussian_predictions
from scipy.stats import binom

from assay import Outcomes, Predictions, choose_threshold, cli, examples, files, maps
from assay._core.arrays import InputError
from assay.calibrators import temperature
from assay.checking import check_promise
from assay.rechecking import accepted_needed, confidence_drift, recheck
from assay.report.jsons import write_json
from assay.thresholds import Threshold, choose_positive_threshold, load_threshold


def drawn(n, rng, *, worse=1.0, sharper=1.0):
    """Calibrated confidences, unless the errors are `worse` times as many or the log-odds `sharper`."""
    odds = rng.normal(3, 2, n)
    confidence = 1 / (1 + np.exp(-np.abs(odds)))
    claimed = 1 / (1 + np.exp(-sharper * np.abs(odds)))
    return Outcomes.from_scores(claimed, rng.uniform(size=n) >= worse * (1 - confidence))


def test_an_alarm_about_a_promise_that_just_holds_comes_at_most_one_time_in_twenty():
    """Exact: of all numbers of errors, those that raise the alarm have at most that chance together."""
    for n, risk in ((50, 0.05), (400, 0.01), (2000, 0.01)):
        promise = Threshold(-inf, risk, 0.95, 1000, 1000, 0)
        alarm = [recheck(errors(n, k), promise).promise == "broken" for k in range(min(n, int(4 * n * risk) + 9))]
        assert alarm == sorted(alarm)
        assert binom.sf(alarm.index(True) - 1, n, risk) <= 0.05 < binom.sf(alarm.index(True) - 2, n, risk)


def errors(n, wrong):
    return Outcomes.from_scores(np.full(n, 0.9), np.arange(n) >= wrong, is_probability=False)


@pytest.mark.parametrize("risk", [0.01, 0.05, 0.2])
def test_the_rows_needed_notice_a_doubled_risk_four_times_in_five(risk):
    n = accepted_needed(risk)
    for size, enough in ((n, True), (n - 1, False)):
        most = binom.isf(0.05, size, risk)
        assert (binom.sf(most, size, 2 * risk) >= 0.8) == enough


def alarms(draws, seed, **change):
    """Shares of draws that find a broken promise, a drift, and a reason to recalibrate."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(draws):
        chosen = choose_threshold(drawn(2000, rng), risk=0.05)
        seen = recheck(drawn(2000, rng, **change), chosen)
        found.append((seen.promise == "broken", seen.drift.found, seen.recalibrate))
    return np.mean(found, 0)


def test_a_doubled_risk_is_noticed_on_2000_rows_and_drift_is_told_from_it():
    promise, drift, refit = alarms(40, 1, worse=2.0)
    assert promise >= 0.8
    assert refit >= 0.8
    assert drift <= 0.2
    promise, drift, refit = alarms(40, 2, sharper=2.0)
    assert min(drift, refit) >= 0.8


@pytest.mark.long
def test_alarms_are_rare_while_nothing_changes():
    assert (alarms(2000, 3) <= 0.055).all()


def test_a_promise_is_shown_to_hold_where_the_bound_is_below_it():
    promise = Threshold(0.5, 0.05, 0.95, 1000, 900, 30)
    assert recheck(errors(1000, 20), promise).promise == "shown to hold"
    assert recheck(errors(1000, 45), promise).promise == "not refuted"
    assert recheck(errors(1000, 80), promise).promise == "broken"
    assert recheck(errors(1000, 80), promise).refit.p_value is None  # a mere score


def rare(n, rng, *, worse=0.0):
    """Probabilities of a class of a tenth; where they are `worse`, rows of class 1 look like others."""
    odds = rng.normal(-3, 2, n)
    labels = rng.uniform(size=n) < 1 / (1 + np.exp(-odds))
    odds = np.where(rng.uniform(size=n) < worse, rng.permutation(odds), odds)
    return Predictions.from_binary_logits(odds, labels.astype(int))


@pytest.mark.parametrize(("goal", "asked"), [("precision", 0.7), ("recall", 0.8)])
def test_a_promise_about_class_1_is_checked_on_the_rows_that_it_is_about(goal, asked):
    rng = np.random.default_rng(0)
    chosen = choose_positive_threshold(rare(5000, rng), **{goal: asked})
    new = rare(4000, rng)
    found, p = recheck(new, chosen), new.probabilities[:, 1]
    flagged, positive = p >= chosen.value, new.labels == 1
    assert found.judged == (flagged if goal == "precision" else positive).sum()
    assert 1 - found.wrong / found.judged == pytest.approx((flagged & positive).sum() / found.judged)
    assert found.p_value == pytest.approx(binom.sf(found.wrong - 1, found.judged, 1 - asked))
    assert found.promise != "broken"
    assert not found.drift.found
    assert f"{goal} " in str(found)
    assert recheck(rare(4000, rng, worse=0.5), chosen).promise == "broken"
    assert check_promise(new, chosen).passed
    assert not check_promise(rare(4000, rng, worse=0.5), chosen).passed


def test_alarms_about_class_1_are_rare_while_nothing_changes():
    rng = np.random.default_rng(1)
    for goal, asked in (("precision", 0.6), ("recall", 0.8)):
        pairs = [(choose_positive_threshold(rare(2000, rng), **{goal: asked}), rare(2000, rng)) for _ in range(60)]
        broken = [recheck(new, chosen).promise == "broken" for chosen, new in pairs if chosen.accepted]
        assert len(broken) > 30
        assert np.mean(broken) <= 0.055


def test_a_bound_on_the_cost_is_not_tested():
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="choose the threshold again"):
        recheck(rare(500, rng), choose_positive_threshold(rare(500, rng), costs=[[0, 1], [20, 0]]))
    with pytest.raises(InputError, match="needs predictions of two classes"):
        recheck(drawn(500, rng), choose_positive_threshold(rare(5000, rng), recall=0.8))


def test_a_row_that_no_temperature_mends_leaves_the_promise_to_check():
    rows = Predictions.from_binary_probabilities(np.tile([0.0, 0.2, 0.9, 1.0], 50), np.tile([1, 0, 1, 1], 50))
    found = recheck(rows, choose_threshold(rows, coverage=1.0))
    assert "cannot be told: the true class 1 has probability 0, which no temperature can mend" in str(found)
    assert found.promise == "shown to hold"


def test_the_command_checks_a_promise_about_class_1(tmp_path, capsys):
    rng = np.random.default_rng(0)
    chosen = choose_positive_threshold(rare(5000, rng), recall=0.8)
    write_json(chosen, tmp_path / "t.json")
    assert replace(load_threshold(tmp_path / "t.json"), cost=0.0) == replace(chosen, cost=0.0)  # there is none, nan
    for name, worse in (("same", 0.0), ("worse", 0.5)):
        files.write(rare(4000, rng, worse=worse), tmp_path / f"{name}.npz")
        with pytest.raises(SystemExit, match="0"):
            cli.main(["recheck", str(tmp_path / f"{name}.npz"), "--threshold", str(tmp_path / "t.json")])
    same, worse = capsys.readouterr().out.split("The promise is ")[1:]
    assert "--recall" not in same
    assert worse.startswith("broken: recall ")
    assert "--recall 0.8 --level 0.95" in " ".join(worse.split())
    without = ["recheck", str(tmp_path / "same.npz"), "--threshold", str(tmp_path / "t.json"), "--unlabelled"]
    with pytest.raises(SystemExit, match="0"):
        cli.main(without)
    unlabelled = " ".join(capsys.readouterr().out.split())
    assert unlabelled.startswith("No sign of drift in the probability of class 1: ")
    assert "estimates the share of class 1 only without shift" in unlabelled


@pytest.mark.parametrize("draws", [60, pytest.param(600, marks=pytest.mark.long)])
def test_rows_in_clusters_raise_no_more_false_alarms(draws):
    """Clusters of ten whose answers share their luck and their confidence: as the promise says, and as accepted before.

    Counted one by one, these rows would break a promise that is kept one time in five.
    """
    rng, alarms = np.random.default_rng(0), np.zeros(2)
    before = Threshold(0.5, 0.2, 0.95, 2000, 1000, 200)
    for _ in range(draws):
        c, luck = (np.repeat(rng.random(100), 10) for _ in range(2))
        found = recheck(Outcomes.from_scores(c, luck < 0.2 + 0.8 * c, cluster=np.arange(1000) // 10), before)
        alarms += found.promise == "broken", found.drift.found
    assert (alarms <= 0.05 * draws + 2.5 * np.sqrt(0.0475 * draws)).all(), alarms


@pytest.mark.parametrize("clusters", [5, 10, 30])
def test_few_clusters_raise_no_more_false_alarms_of_drift(clusters):
    """Counted one by one, the rows of five clusters would show a drift that is none two times in three."""
    rng, alarms, draws = np.random.default_rng(clusters), 0, 100
    before = Threshold(0.0, 0.2, 0.95, 4000, 2000, 100)
    for _ in range(draws):
        score = np.repeat(rng.normal(size=clusters), 40) + rng.normal(size=clusters * 40)
        rows = Outcomes.from_scores(score, score > 9, cluster=np.arange(len(score)) // 40, is_probability=False)
        alarms += confidence_drift(rows, before).found
    assert alarms <= 0.05 * draws + 2.5 * np.sqrt(0.0475 * draws)


def test_drift_of_fewer_than_five_clusters_cannot_be_told(tmp_path, capsys):
    rows = Outcomes.from_scores(np.full(400, 0.9), np.ones(400), cluster=np.arange(400) // 100)
    before = Threshold(0.5, 0.2, 0.95, 4000, 2000, 100)
    found = recheck(rows, before)
    assert isnan(found.drift.p_value)
    assert not found.drift.found
    assert "cannot be told: only 4 clusters, at least 5 are needed; 100.0% of 400 inputs accepted" in str(found)
    assert confidence_drift(replace(rows, cluster=None), before).found
    write_json(before, tmp_path / "t.json")
    files.write(rows, tmp_path / "rows.npz")
    words = ["recheck", str(tmp_path / "rows.npz"), "--threshold", str(tmp_path / "t.json"), "--unlabelled"]
    assert "only 4 clusters" in printed(capsys, *words)


def test_clusters_of_one_row_are_rechecked_as_rows():
    rows = examples.load()[5000:].outcomes()
    chosen = choose_threshold(examples.load()[:5000], risk=0.1)
    alone, plain = recheck(replace(rows, cluster=np.arange(len(rows))), chosen), recheck(rows, chosen)
    assert (alone.p_value, alone.bound, alone.drift.p_value) == (plain.p_value, plain.bound, plain.drift.p_value)


def test_what_cannot_be_checked_is_refused():
    with pytest.raises(InputError, match="accepts nothing"):
        confidence_drift(Outcomes.from_scores([0.9], [1]), Threshold(inf, 0.01, 0.95, 100, 0, 0))
    weighted = Outcomes.from_scores([0.9, 0.8], [1, 0], weights=[1, 2])
    with pytest.raises(InputError, match="no test is known for a promise on weighted rows"):
        recheck(weighted, Threshold(0.5, 0.01, 0.95, 100, 90, 0))
    with pytest.raises(InputError, match="no rows"):
        confidence_drift(weighted[:0], Threshold(0.5, 0.01, 0.95, 100, 90, 0))
    with pytest.raises(InputError, match="no test is known for a promise on weighted rows"):
        confidence_drift(weighted, Threshold(0.5, 0.01, 0.95, 100, 90, 0))
    alike = replace(weighted, weights=np.ones(2))
    assert recheck(alike, Threshold(0.5, 0.01, 0.95, 100, 90, 0)).judged == 2


def test_a_threshold_chosen_under_another_map_is_refused(shipped, capsys):
    words, _, _ = shipped
    with pytest.raises(SystemExit):
        cli.main([*words[:2], *words[4:]])
    assert "its promise does not hold" in capsys.readouterr().err


def test_rows_under_another_map_than_the_threshold_are_refused(predictions):
    mapped = maps.apply(temperature(predictions), predictions)
    for chosen_on, new in ((mapped, predictions), (predictions, mapped)):
        chosen = choose_threshold(chosen_on, risk=0.1)
        assert recheck(chosen_on, chosen).promise != "broken"
        with pytest.raises(InputError, match="chosen under another map than these predictions have"):
            recheck(new, chosen)


@pytest.fixture
def shipped(tmp_path, predictions):
    """The words of a recheck with a map and a threshold, the new rows, and the folder."""
    mapping = temperature(predictions)
    maps.save(mapping, tmp_path / "map.json")
    other = gaussian_predictions(2000, 10, seed=1)
    write_json(choose_threshold(maps.apply(mapping, other), risk=0.1), tmp_path / "threshold.json")
    new = gaussian_predictions(2000, 10, seed=2)
    files.write(new, tmp_path / "new.npz")
    given = ["--map", tmp_path / "map.json", "--threshold", tmp_path / "threshold.json"]
    return ["recheck", *map(str, [tmp_path / "new.npz", *given])], new, tmp_path


def printed(capsys, *words):
    """What the command prints, on one line; it must succeed."""
    with pytest.raises(SystemExit) as stop:
        cli.main(list(words))
    assert not stop.value.code
    return " ".join(capsys.readouterr().out.split())


def test_the_command_answers_all_three_questions(shipped, capsys):
    words, _, folder = shipped
    out = printed(capsys, *words, "--json", str(folder / "found.json"))
    assert all(part in out for part in ("The promise is", "No sign of drift", "No reason to recalibrate"))
    found = json.loads((folder / "found.json").read_text())
    assert found["promise"] in ("not refuted", "shown to hold")
    assert not found["recalibrate"]


def test_a_broken_promise_comes_with_the_next_command(shipped, capsys):
    words, new, folder = shipped
    rng = np.random.default_rng(0)
    labels = np.where(rng.uniform(size=len(new)) < 0.2, (new.labels + 1) % 10, new.labels)
    files.write(Predictions.from_logits(new.values, labels), folder / "new.npz")
    out = printed(capsys, *words)
    assert "The promise is broken" in out
    assert f"next: assay calibrate {folder}/new.npz --save new_map.json" in out
    assert "--map new_map.json --risk 0.1 --level 0.95 --json threshold.json" in out


def test_unlabelled_rows_show_drift_alone(shipped, capsys):
    words, new, folder = shipped
    np.savez(folder / "new.npz", logits=new.values)
    out = printed(capsys, *words, "--unlabelled")
    assert all(part in out for part in ("No sign of drift", "only without shift"))
    assert "promise" not in out
    np.savez(folder / "new.npz", logits=new.values / 2)
    assert "has drifted" in printed(capsys, *words, "--unlabelled")


def test_unlabelled_rows_are_those_of_the_labelled_file(tmp_path):
    rows = Predictions.from_probabilities([[0.2, 0.8], [0.7, 0.3]], [0, 1])
    for name in ("a.npz", "a.csv", "a.parquet"):
        files.write(rows, tmp_path / name)
        assert files.read_unlabelled(tmp_path / name).values == pytest.approx(np.log([[0.2, 0.8], [0.7, 0.3]]))
    (tmp_path / "b.csv").write_text("confidence\n0.5\n0.75\n")
    assert files.read_unlabelled(tmp_path / "b.csv").values.tolist() == [0.5, 0.75]
    (tmp_path / "c.csv").write_text("p_cat,p_dog\n0.5,0.5\n")
    named = files.read_unlabelled(tmp_path / "c.csv", files.Columns(probabilities="p_*"))
    assert named.classes == ("cat", "dog")


def test_rows_that_the_map_was_fitted_on_are_refused(shipped, capsys, predictions):
    words, _, folder = shipped
    files.write(predictions, folder / "held_out.npz")
    printed(capsys, "calibrate", str(folder / "held_out.npz"), "--save", str(folder / "map.json"))
    with pytest.raises(SystemExit):
        cli.main(["recheck", str(folder / "held_out.npz"), *words[2:]])
    assert "fitted on these very rows" in capsys.readouterr().err
