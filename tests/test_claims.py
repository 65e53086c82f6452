"""Claims: what is kept of runs, and the verdicts that follow from it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit
from scipy.stats import binom

from assay import Outcomes, Predictions, evaluate
from assay._core.arrays import InputError
from assay._core.variants import parse_variant
from assay.claims import (
    Claim,
    Evidence,
    Side,
    best_or_tied,
    has_evidence,
    judge,
    markdown,
    read_claims,
    read_evidence,
    write_evidence,
)
from assay.claims._advice import accepted, advice
from assay.claims._evidence import corrected, pack, printed, unpack
from assay.claims._report import _severities, both_axes
from assay.claims._verdicts import LEVEL, _interval, _more, _training, _word
from assay.cli import main
from assay.metrics.inference import Estimate, Interval
from assay.study import execute, expand, read_study

ROOT = Path(__file__).parent.parent
CLAIMS = ROOT / "docs" / "claims.toml"
SEEDS = range(3)
STUDY = """
name = "toy"
data = ["synthetic"]
networks = ["mlp"]
recipes = ["cross_entropy", "label_smoothing"]
seeds = [0, 1]
epochs = 2
n_train = [200]
held_out = 0
metrics = ["accuracy", "ece", "auroc", "aurc"]
record = { figures = ["auroc"], on = ["test"] }
"""
TWO = """
[[claim]]
id = "ranks"
says = "Label smoothing ranks worse."
regime = ["toy"]
method = "label_smoothing"
against = "cross_entropy"
calibrator = "temperature"
metric = "auroc"
expects = "lower"
margin = 0.0

[[claim]]
id = "late"
says = "AUROC falls late."
regime = ["toy"]
method = "cross_entropy"
epochs = "last_less_middle"
metric = "auroc"
expects = "lower"
margin = 0.0
"""


def claim(**changed: object) -> Claim:
    known = {"id": "it", "says": "It is so.", "regime": ["here"], "method": "b", "against": "a", "metric": "auroc"}
    return Claim(**{**known, "expects": "higher", "margin": 0.01, **changed})  # type: ignore[arg-type]


def answers(rng: np.random.Generator, n: int, knows: float) -> Outcomes:
    """Answers of which one in five is wrong, and less confident by `knows` standard deviations."""
    correct = rng.random(n) < 0.8
    odds = 2 + rng.normal(size=n) - knows * ~correct
    return Outcomes.from_scores(1 / (1 + np.exp(-odds)), correct)


def evidence(rng: np.random.Generator, n: int = 1000, **knows: float) -> Evidence:
    """Three seeds of each recipe on the same kind of samples."""
    samples = {(Side(name), seed): answers(rng, n, more) for name, more in knows.items() for seed in SEEDS}
    numbers = [
        {"recipe": name, "method": name, "n_train": None, "seed": seed, "split": "test", "calibrator": "none"}
        | {"name": key, "epoch": None, "value": value}
        for (side, seed), o in samples.items()
        for name in [side.recipe]
        for key, value in evaluate(o, ["accuracy", "ece", "auroc", "aurc"]).items()
    ]
    return Evidence(samples, numbers)


@given(st.floats(-36, 36))
def test_a_kept_confidence_has_the_same_odds_within_a_step(odds):
    kept = logit(unpack(pack(expit(np.array([odds])))))[0]
    own = logit(expit(odds))
    assert abs(kept - own) <= np.hypot(own, 4) / 21_800 + np.spacing(1) / (2 * expit(-abs(odds)))


def test_a_network_whose_confidence_is_next_to_1_ranks_as_before_it_was_kept():
    """As on 20 Newsgroups, where 37 % of the confidences of cross-entropy are beyond 1 - 1e-7."""
    rng = np.random.default_rng(0)
    correct = rng.random(3000) < 0.75
    confidence = expit(rng.gamma(2, 6, 3000) * np.where(correct, 1.5, 0.5))
    before, after = (
        evaluate(Outcomes.from_scores(c, correct), ["auroc", "aurc", "fpr95", "ece"])
        for c in (confidence, unpack(pack(confidence)))
    )
    assert after == pytest.approx(before, abs=1e-5)


def test_what_is_kept_gives_the_same_numbers(tmp_path):
    known = evidence(np.random.default_rng(0), a=1.0, b=1.5)
    write_evidence(known, tmp_path, "here")
    again = read_evidence(tmp_path, "here")
    assert again.numbers == known.numbers
    for key, o in known.samples.items():
        np.testing.assert_array_equal(again.samples[key].correct, o.correct)
        before, after = (evaluate(x, ["ece", "auroc", "aurc", "s99"]) for x in (o, again.samples[key]))
        assert after == pytest.approx(before, abs=2e-4)


@pytest.mark.parametrize(
    ("expects", "effect", "low", "high", "word"),
    [
        ("higher", 0.05, 0.01, 0.09, "confirmed"),
        ("higher", 0.005, 0.001, 0.009, "inconclusive"),  # shown, but below the margin
        ("higher", 0.05, -0.01, 0.11, "inconclusive"),
        ("higher", -0.05, -0.09, -0.01, "contradicted"),
        ("lower", -0.05, -0.09, -0.01, "confirmed"),
        ("lower", 0.05, 0.01, 0.09, "contradicted"),
        ("not_higher", 0.005, -0.001, 0.009, "confirmed"),
        ("not_higher", 0.005, -0.02, 0.02, "inconclusive"),
        ("not_higher", 0.05, 0.02, 0.09, "contradicted"),
        ("not_lower", -0.005, -0.009, 0.02, "confirmed"),
        ("not_lower", -0.05, -0.09, -0.02, "contradicted"),
    ],
)
def test_the_word_follows_from_interval_and_margin(expects, effect, low, high, word):
    assert _word(claim(expects=expects), effect, Interval(low, high)) == word


@pytest.mark.parametrize(
    ("expects", "effect", "low", "high", "more"),
    [
        ("higher", 0.02, -0.02, 0.06, 4.0),
        ("lower", -0.02, -0.03, 0.02, 4.0),  # whichever side is the wider one
        ("not_lower", 0.0, -0.03, 0.03, 9.0),
        ("higher", 0.005, 0.001, 0.009, np.inf),  # shown, and too small to count
        ("higher", 0.0, -0.01, 0.01, np.inf),
        ("higher", 0.05, 0.01, 0.09, np.nan),  # decided
    ],
)
def test_how_much_more_would_decide(expects, effect, low, high, more):
    interval, about = Interval(low, high), claim(expects=expects)
    found = _more(about, effect, interval, _word(about, effect, interval))
    assert found == pytest.approx(more, nan_ok=True)


def test_a_better_judge_is_confirmed_and_its_opposite_contradicted():
    kept = {"here": evidence(np.random.default_rng(1), a=0.5, b=1.5)}
    words = [judge([claim(expects=expects)], kept)[0].word for expects in ("higher", "lower", "not_lower")]
    assert words == ["confirmed", "contradicted", "confirmed"]


def test_against_several_a_claim_must_hold_against_each():
    kept = {"here": evidence(np.random.default_rng(2), a=0.5, b=1.5, c=2.5)}
    [found] = judge([claim(against=["a", "c"])], kept)
    assert [comparison.word for comparison in found.comparisons] == ["confirmed", "contradicted"]
    assert (found.word, found.weakest.against) == ("contradicted", "c")
    assert [c.against for c in judge([claim(against="*")], kept)[0].comparisons] == ["a", "c"]


def test_equal_methods_are_rarely_told_apart():
    rng = np.random.default_rng(3)
    claims = [claim(id=metric, metric=metric, margin=0.0) for metric in ("auroc", "accuracy", "ece", "s99")]
    families = [judge(claims, {"here": evidence(rng, 400, a=1.0, b=1.0)}) for _ in range(60)]
    wrong = sum(any(found.word != "inconclusive" for found in family) for family in families)
    assert wrong <= 7  # of 60 at 5 %: more has a chance of 1 %


@pytest.mark.parametrize("draws", [60, pytest.param(1000, marks=pytest.mark.long)])
@pytest.mark.parametrize(
    ("recipes", "spread", "of_samples", "wild"),
    [(7, 0.5, 0.0, []), (7, 1.0, 0.3, []), (14, 0.5, 0.6, []), (12, 0.0, 0.3, [-1]), (12, 0.5, 0.3, [0])],
)
def test_methods_of_unlike_training_noise_are_rarely_told_apart(recipes, spread, of_samples, wild, draws):
    """Each against the first, together at 5 %; standard deviations between seeds differ by factors of e^spread.

    Those of `wild` recipes are ten times as large.
    """
    rng, wrong = np.random.default_rng(8), 0
    names, level = [str(i) for i in range(recipes)], 1 - LEVEL / 2 / (recipes - 1)
    for _ in range(draws):
        values = np.exp(spread * rng.normal(size=recipes))[:, None] * rng.normal(size=(recipes, 3))
        values[wild] *= 10
        values += of_samples * rng.normal(size=(recipes, 1))
        known = {
            Side(name): dict(zip(SEEDS, row, strict=True)) for name, row in zip(names, values.tolist(), strict=True)
        }
        noise = [_training(names, Side(name), Side("0"), SEEDS, known.__getitem__) for name in names[1:]]
        samples = Estimate(0.0, of_samples * 2**0.5, 500)
        effects = values[1:].mean(1) - values[0].mean()
        found = [_interval(x, (each, samples), level) for x, each in zip(effects, noise, strict=True)]
        wrong += any(0 not in interval for interval in found)
    assert wrong <= binom.ppf(0.999, draws, 0.055)


def test_the_same_runs_corrected_in_two_ways_are_compared_run_by_run():
    """Seeds that differ by far more than the correction changes do not hide it."""
    rng = np.random.default_rng(4)
    samples = {}
    for seed in SEEDS:
        o = answers(rng, 2000, 1.0)
        right = rng.random(2000) < 0.5 + 0.2 * seed  # seeds of very different accuracy
        samples[Side("b"), seed] = Outcomes.from_scores(o.confidence, right)
        samples[Side("b", "temperature"), seed] = Outcomes.from_scores(o.confidence**0.5, right)
    about = claim(calibrator="temperature", against="b", against_calibrator="none", metric="overconfidence", margin=0.0)
    [found] = judge([about], {"here": Evidence(samples, [])})
    assert found.word == "confirmed"


def test_the_best_recipe_stands_with_those_that_are_not_shown_to_be_worse():
    known = evidence(np.random.default_rng(9), 4000, a=0.5, b=1.5, c=1.5)
    assert best_or_tied(known, "auroc")[1:] in (["b"], ["c"])
    assert "a" not in best_or_tied(known, "auroc")
    surer = {
        key: o if key[0] != Side("a") else replace(o, confidence=o.confidence**0.1) for key, o in known.samples.items()
    }
    assert set(best_or_tied(Evidence(surer, known.numbers), "calibration_part")) == {"b", "c"}
    two = Evidence({key: o for key, o in known.samples.items() if key[1] < 2}, known.numbers)
    assert best_or_tied(two, "auroc") == []
    assert "error AUROC" in markdown([], {"here": known})


def test_a_regime_advises_what_is_best_on_both_axes_and_keeps_the_baseline_where_nothing_is():
    better = evidence(np.random.default_rng(9), 4000, cross_entropy=0.5, focal=1.5)
    train, accept = advice(better)
    assert "error AUROC focal; " in train
    least = evidence(np.random.default_rng(9), 4000, cross_entropy=1.0, focal=1.0)
    assert "Nothing is shown to be better than cross_entropy" in advice(least)[0]
    assert "at most 10% errors" in accept  # one answer in five is wrong
    share, errors = accepted(better, "focal", 0.1)
    assert f"with focal, {share:.1%}, cross_entropy " in accept
    assert errors <= 0.1
    assert advice(Evidence({key: o for key, o in better.samples.items() if key[1] < 2}, better.numbers)) == []


def test_errors_accepted_are_those_of_the_half_that_the_threshold_was_not_chosen_on():
    """Wrong answers of the first half are the least sure, those of the second the surest."""
    sure, wrong = np.linspace(0.5, 1, 1000), np.arange(1000) < 200
    o = Outcomes.from_scores(sure, ~wrong) + Outcomes.from_scores(sure, ~wrong[::-1])
    found = Evidence({(Side("a"), 0): o}, [])
    share, errors = accepted(found, "a", 0.05)
    assert errors == pytest.approx(200 / (share * 2000))  # the promise of the second half is kept by accepting nothing


def test_printed_figures_stand_beside_those_of_the_same_recipe():
    study = read_study(ROOT / "studies" / "prove" / "sst.toml")
    found = {str(run.method): {n["name"]: n["value"] for n in printed(study, run)} for run in expand(study)}
    assert found["cross_entropy@mukhoti2020_sst"]["ece"] == 0.0737  # mukhoti2020, table 1
    assert found["flsd53@mukhoti2020_sst"]["ece"] == 0.0919
    assert found["label_smoothing@mukhoti2020_sst"] == {}
    kept = read_evidence(ROOT / "studies" / "prove" / "kept", "sst")
    row = next(row for row in both_axes(kept).rows if row[0].text == "flsd53")
    assert "printed 9.19%" in [field.under for field in row]


def test_fewer_than_three_seeds_give_no_verdict():
    known = evidence(np.random.default_rng(5), a=1.0, b=1.0)
    two = Evidence({key: o for key, o in known.samples.items() if key[1] < 2}, known.numbers)
    [found] = judge([claim()], {"here": two})
    assert found.word == "not run"
    assert "not run (2 of at least 3 seeds)" in markdown([found], {"here": two})


def test_without_held_out_samples_each_half_is_corrected_by_the_other():
    rng = np.random.default_rng(6)
    logits = rng.normal(size=(4000, 5))
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(1)
    scale = np.repeat([2.0, 0.5], 2000)[:, None]  # the halves have temperatures of 2 and 1/2
    test = Predictions.from_logits(logits * scale, labels)
    first, second = [t for _, t in corrected(parse_variant("temperature"), test, test, None)]
    assert (first, second) == (pytest.approx(0.5, rel=0.1), pytest.approx(2.0, rel=0.1))


def test_the_claims_of_the_papers_name_studies_and_their_recipes():
    for each in read_claims(CLAIMS):
        for regime in each.regime:
            study = read_study(ROOT / "studies" / "prove" / f"{regime}.toml")
            recipes = [method.name for method in study.methods]
            assert {side.recipe for side in each.sides(recipes)} <= {*recipes}, (each.id, regime)
            assert each.split == "test" or study.shifts, each.id


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[[claim]]\nid = 'x'", "is no file of claims"),
        ("nothing = 1", "is no file of claims"),
        (TWO.replace('"lower"', '"more"'), "expects"),
    ],
)
def test_a_file_that_is_no_file_of_claims_is_refused(tmp_path, text, problem):
    (tmp_path / "claims.toml").write_text(text)
    with pytest.raises(InputError, match=problem):
        read_claims(tmp_path / "claims.toml")


@pytest.mark.parametrize("name", ["samples", "numbers"])
def test_what_is_kept_and_damaged_is_named(tmp_path, name):
    write_evidence(evidence(np.random.default_rng(0), a=1.0), tmp_path, "here")
    file = tmp_path / f"here.{name}.parquet"
    content = file.read_bytes()
    middle = pq.read_metadata(file).row_group(0).column(3)
    start = middle.dictionary_page_offset or middle.data_page_offset
    last, kind = start + middle.total_compressed_size - 1, middle.data_page_offset + 1
    flipped = [content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :] for place in (last, kind)]
    for other in (content[: len(content) // 2], b"", *flipped):
        file.write_bytes(other)
        with pytest.raises(InputError, match=rf"here\.{name}\.parquet: cannot be read: "):
            read_evidence(tmp_path, "here")
    file.unlink()
    with pytest.raises(InputError, match=rf"here\.{name}\.parquet: no such file; nothing is kept"):
        read_evidence(tmp_path, "here")


def test_answers_that_do_not_fit_together_are_named(tmp_path):
    write_evidence(evidence(np.random.default_rng(0), a=1.0), tmp_path, "here")
    file = tmp_path / "here.samples.parquet"
    table = pq.read_table(file)
    for odd in (b"odd", b"", None):
        column = pa.array([odd] * len(table), table.schema.field("packed").type)
        pq.write_table(table.set_column(table.column_names.index("packed"), "packed", column), file)
        with pytest.raises(InputError, match=r"here\.samples\.parquet: cannot be read: "):
            read_evidence(tmp_path, "here")


def test_a_claim_on_a_temperature_names_its_calibrator():
    kept = {"here": evidence(np.random.default_rng(0), a=1.0, b=1.0)}
    with pytest.raises(InputError, match="'x' is on a temperature: name the calibrator"):
        judge([claim(id="x", metric="temperature_distance")], kept)


def test_a_metric_without_a_test_of_known_level_decides_nothing():
    kept = {"here": evidence(np.random.default_rng(7), a=1.0, b=1.0)}
    with pytest.raises(InputError, match="no test of known level"):
        judge([claim(metric="mce")], kept)
    with pytest.raises(InputError, match="the claim 'it' is on 'auro', which is no metric"):
        judge([claim(metric="auro")], kept)


def test_from_runs_to_a_page(tmp_path, capsys):
    study, claims, kept = tmp_path / "toy.toml", tmp_path / "claims.toml", tmp_path / "kept"
    study.write_text(STUDY)
    claims.write_text(TWO)
    for run in expand(read_study(study)):
        execute(read_study(study), run, tmp_path / "runs")
    keep = ["study", "keep", study, "--claims", claims, "--out", tmp_path / "runs", "--to", kept]
    tell = ["claims", claims, "--kept", kept, "--to", tmp_path / "c.md", "--html", tmp_path / "c.html"]
    for words in (keep, tell):
        with pytest.raises(SystemExit, match=r"^0$"):
            main(list(map(str, words)))
    assert "4 of 4 runs kept" in capsys.readouterr().out
    assert "2 claims, 2 verdicts" in (tmp_path / "c.md").read_text()
    assert "Label smoothing ranks worse." in (tmp_path / "c.html").read_text()


def test_the_verdicts_in_the_documentation_follow_from_what_is_kept():
    claims, kept = read_claims(CLAIMS), ROOT / "studies" / "prove" / "kept"
    regimes = dict.fromkeys(name for each in claims for name in each.regime)
    found = {name: read_evidence(kept, name) for name in regimes if has_evidence(kept, name)}
    assert markdown(judge(claims, found), found) == (ROOT / "docs" / "results" / "claims.md").read_text()


@pytest.mark.parametrize("regime", ["fine_tuned", "from_scratch", "newsgroups", "sst"])
def test_the_answers_that_are_kept_rank_as_the_numbers_that_were_measured_on_the_run(regime):
    kept = read_evidence(ROOT / "studies" / "prove" / "kept", regime)
    for recipe in kept.recipes:
        for seed, [measured] in kept.number("auroc", recipe=recipe, split="test", calibrator="none").items():
            assert evaluate(kept.samples[Side(recipe), seed], ["auroc"])["auroc"] == pytest.approx(measured, abs=2e-4)


def test_the_course_over_severities_is_the_mean_over_kinds_and_seeds():
    common = {"recipe": "a", "method": "a", "n_train": None, "calibrator": "none", "epoch": None, "name": "ece"}
    worse = {"fog": 1, "snow": 3}
    values = {"test": 0.1} | {f"{kind}_{by}": worse[kind] * by for kind in worse for by in range(1, 6)}
    numbers = [common | {"seed": s, "split": name, "value": x + s} for name, x in values.items() for s in (0, 1)]
    numbers.append(common | {"seed": 0, "split": "fog_1", "value": 9.0, "calibrator": "temperature"})
    [found] = _severities(Evidence({}, numbers))
    assert (found["title"], found["axis"], found["first"]) == ("ECE", "severity", 0)
    assert found["means"]["a"] == pytest.approx([0.6, 2.5, 4.5, 6.5, 8.5, 10.5])


def test_runs_of_two_machines_are_kept_together_and_not_trained_again(tmp_path, capsys):
    study, claims = tmp_path / "toy.toml", tmp_path / "claims.toml"
    study.write_text(STUDY)
    claims.write_text(TWO)
    runs = expand(read_study(study))

    def assay(*words: object) -> str:
        with pytest.raises(SystemExit, match=r"^0$"):
            main(["study", words[0], str(study), *map(str, words[1:])])
        return capsys.readouterr().out

    for machine, own in (("one", runs), ("here", runs[:1]), ("there", runs[1:3])):
        for run in own:
            execute(read_study(study), run, tmp_path / machine)
    for machine, to in (("one", "whole"), ("here", "parts"), ("there", "parts")):
        said = assay("keep", "--claims", claims, "--out", tmp_path / machine, "--to", tmp_path / to)
    assert "3 of 4 runs kept" in said
    said = assay("run", "--kept", tmp_path / "parts", "--out", tmp_path / "last")
    assert "3 runs are kept" in said
    assert "1 runs done" in said
    assay("keep", "--claims", claims, "--out", tmp_path / "last", "--to", tmp_path / "parts")
    whole, parts = (read_evidence(tmp_path / to, "toy") for to in ("whole", "parts"))
    assert parts.numbers == whole.numbers
    assert parts.samples.keys() == whole.samples.keys()
    for key, o in parts.samples.items():
        assert evaluate(o) == evaluate(whole.samples[key])
    assert "4 runs are kept" in assay("run", "--kept", tmp_path / "parts", "--out", tmp_path / "never")
    assert not (tmp_path / "never").exists()
