"""The page: its data are the statistics, names are never markup, and a real browser shows it without a network."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from math import nextafter
from pathlib import Path
from statistics import mean, stdev
from urllib.parse import unquote

import numpy as np
import pytest

from assay import Outcomes, Predictions, audit, compare, examples, files, metrics
from assay._core import loops
from assay.boards import Board, Sheet, board
from assay.cli.audit import audit_command
from assay.cli.compare import compare_command
from assay.metrics import _tables
from assay.published import Figure
from assay.report.page import (
    audit_page,
    board_page,
    compare_page,
    correction_page,
    shown_by,
    study_page,
    threshold_page,
)
from assay.report.page._epochs import room
from assay.report.page._mistakes import answers, mistakes
from assay.report.page._tables import RISKS
from assay.report.page._thresholds import between
from assay.report.page._verdict import overall, words
from assay.scale import Filling, Joint, Tally
from assay.study import (
    Run,
    SeedSummary,
    Study,
    StudyCell,
    StudyLine,
    StudyTable,
    Variant,
    expand,
    read_rows,
    tabulate,
    write_rows,
)
from assay.thresholds import choose_threshold, risk_bound, spelled

DRAWN = """return [...document.querySelectorAll(".chart")].filter((chart) => chart.offsetParent)
    .every((chart) => chart.querySelector(".trace"))"""
EVIL = '</script><script>document.title="pwned"</script><b>"bold" & \'quoted\''
PAGE = Path(audit_page.__code__.co_filename).parent


@pytest.fixture(scope="module")
def predictions() -> Predictions:
    """The embedded example with ids, and groups one of which is called by a script."""
    found = examples.load()
    ids = np.array([f"img-{row}" for row in range(len(found))])
    return replace(found, ids=ids, group=np.array(["day", EVIL])[np.arange(len(found)) % 2])


@pytest.fixture(scope="module")
def folder(predictions, tmp_path_factory) -> Path:
    """Pages of two models audited and compared, of twenty models, of two studies, and of one that has not begun."""
    folder = tmp_path_factory.mktemp("pages")
    models = {"cross_entropy": predictions, EVIL: replace(examples.load("label_smoothing"), ids=predictions.ids)}
    audit_page(models, {name: audit(rows) for name, rows in models.items()}, folder / "audit.html")
    compare_page(models, compare(*models.values()), folder / "compare.html")
    twenty = {f"model {i}": predictions[slice(400 * i, 400 * i + 800)] for i in range(20)}
    audits = {name: audit(rows, draws=10) for name, rows in twenty.items()}
    audit_page(twenty, audits, folder / "twenty.html")
    study_page(*studied(folder / "runs"), folder / "study.html")
    study_page(*two_scores(folder / "scored"), folder / "scores.html")
    study_page(STUDY, RUNS, folder / "nowhere", [], folder / "empty.html")
    return folder


STUDY = Study(
    name=f"study {EVIL}",
    question=f"Which is it? {EVIL}",
    data=["digits"],
    networks=["mlp"],
    recipes=["cross_entropy", "focal"],
    seeds=[0, 1],
    calibrators=["none", "temperature", "histogram"],
    shifts=["fog_3"],
    metrics=["accuracy", "ece", "auroc", "aurc", "e_aurc"],
    assumed=[EVIL],
)
RUNS = [*expand(STUDY), *(Run("digits", "mlp", Variant(EVIL), seed) for seed in (0, 1))]
LOST, FAILING = RUNS[-2:]


def studied(root: Path) -> tuple[Study, list[Run], Path, list[StudyTable]]:
    """Runs as they would be left, one of them failed and one not begun; a method is called by a script."""
    rng = np.random.default_rng(0)
    for run in [run for run in RUNS if run not in (LOST, FAILING)] + [replace(LOST, seed=2)]:
        leave(STUDY, run, root / run.folder, rng)
    (root / FAILING.folder).mkdir(parents=True)
    said = {"ended": "exit code 1", "log": ["Traceback", f"ValueError: {EVIL}", ""]}
    (root / FAILING.folder / "failed.json").write_text(json.dumps(said))
    (root / RUNS[0].folder / "audit.html").write_text("an audit")

    def beside(point, method, calibrator, score, metric):
        names = (point["data"], point["network"], method, calibrator, score, "none", metric)
        there = (method, calibrator, metric) == ("cross_entropy", "none", "ece")
        return Figure("zhu2022", "2", *names, 0.05, None, "") if there else None

    runs = [*RUNS, replace(LOST, seed=2)]
    rows = read_rows(STUDY, [root / run.folder for run in runs])
    return STUDY, runs, root, tabulate(rows, baseline="cross_entropy", metrics=STUDY.metrics, beside=beside)


def leave(study: Study, run: Run, folder: Path, rng: np.random.Generator) -> None:
    """What a run leaves in its folder."""
    folder.mkdir(parents=True)
    for split in ("held_out", "test", *study.shifts):
        labels = rng.integers(0, 4, 200)
        logits = rng.normal(size=(200, 4)) + (2 + (run.method == Variant("focal"))) * np.eye(4)[labels]
        files.write(Predictions.from_logits(logits, labels), folder / f"{split}.npz")
    write_rows(study, run, folder)
    epochs = [{"epoch": e, "loss": 1 / (1 + e + run.seed), "held_out_ece": 0.1 + 0.01 * e} for e in range(150)]
    (folder / "history.json").write_text(json.dumps({"epochs": epochs, "reliability": {}}))


TWO_SCORES = STUDY.model_copy(
    update={
        "scores": ["max_probability", "energy"],
        "calibrators": ["none"],
        "shifts": [],
        "metrics": ["temperature", "accuracy", "ece", "auroc", "aurc"],
    }
)


def two_scores(root: Path) -> tuple[Study, list[Run], Path, list[StudyTable]]:
    """A study that has no temperature, and of the energy no calibration error either."""
    rng, runs = np.random.default_rng(0), expand(TWO_SCORES)
    for run in runs:
        leave(TWO_SCORES, run, root / run.folder, rng)
    rows = read_rows(TWO_SCORES, [root / run.folder for run in runs])
    return TWO_SCORES, runs, root, tabulate(rows, baseline="cross_entropy", metrics=TWO_SCORES.metrics)


def data(page: Path):
    """What the page holds for its scripts."""
    [found] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', page.read_text(), re.DOTALL)
    return json.loads(found)


@pytest.fixture(scope="module")
def model(folder):
    return data(folder / "audit.html")["models"][0]


def test_reliability_on_the_page_is_that_of_the_bins(model, predictions):
    bins = metrics.equal_width(predictions.outcomes())
    assert model["reliability"]["count"] == bins.count.tolist()
    assert model["reliability"]["accuracy"] == pytest.approx(bins.accuracy.tolist(), rel=1e-4)


def test_the_verdict_says_both_axes_and_what_to_accept(model, predictions):
    assert model["verdict"][0] == str(audit(predictions))
    assert re.fullmatch(
        r"Accept answers of at least 0\.9999999\d+: at most 1% errors on 6\.2% of inputs, at 95% confidence\.",
        model["verdict"][1],
    )


def test_of_two_classes_the_page_judges_the_positive_one_too(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.random(3000)
    rows = Predictions.from_binary_probabilities(p, rng.random(3000) < p**1.5)
    audit_page({"two": rows}, {"two": audit(rows)}, tmp_path / "two.html")
    [found] = data(tmp_path / "two.html")["models"]
    assert found["verdict"][0].startswith("The probability of class 1 is too high by")
    [tile] = [tile for tile in found["tiles"] if tile["title"] == "ECE of class 1"]
    bins = metrics.equal_width(metrics.positive_class(rows))
    assert found["positive"]["count"] == bins.count.tolist()
    assert found["positive"]["accuracy"] == pytest.approx(bins.accuracy.tolist(), rel=1e-4)
    assert "noise floor" in tile["under"]


def test_the_comparison_says_how_rows_were_paired(folder, tmp_path):
    assert data(folder / "compare.html")["pairing"] == ""
    two = {name: replace(examples.load(name), ids=None) for name in examples.MODELS}
    compare_page(two, compare(*two.values()), tmp_path / "bare.html")
    assert "paired in order" in data(tmp_path / "bare.html")["pairing"]


def test_of_weighted_rows_the_coverage_at_a_promise_is_by_weight(tmp_path):
    rows = examples.load()[:2000]
    weighted = replace(rows, weights=1.0 + np.arange(2000) % 3)
    compare_page({"A": weighted, "B": weighted}, compare(weighted, weighted), tmp_path / "weighted.html")
    found = data(tmp_path / "weighted.html")["coverages"]["rows"][-1]
    assert found[1]["value"] == found[2]["value"] == choose_threshold(weighted, risk=0.2).coverage > 0


def test_a_promise_that_cannot_be_kept_is_not_made(tmp_path):
    few = Outcomes.from_scores([0.9, 0.8, 0.7], [1, 1, 0])
    audit_page({"few": few}, {"few": audit(few)}, tmp_path / "few.html")
    [found] = data(tmp_path / "few.html")["models"]
    assert found["verdict"][1].startswith("No threshold promises at most 1% errors: even without an error")
    assert found["tiles"][-1] == {
        "title": "inputs at ≤ 1% errors",
        "text": "none",
        "under": "nothing can be promised at 95 % confidence",
    }
    assert found["decisions"]["start"] == 2
    assert found["decisions"]["kept"] == [1, 2, 3]


def test_who_takes_the_threshold_of_a_step_accepts_what_it_counts(model, predictions):
    confidence, steps = predictions.outcomes().confidence, model["decisions"]
    for threshold, kept in zip(steps["threshold"][:-1], steps["kept"][:-1], strict=True):
        assert int((confidence >= float(threshold)).sum()) == kept
    for row in (row for row in model["promises"]["rows"] if row[2]["text"]):
        assert f"{(confidence >= float(row[1]['text'])).mean():.2%}" == row[2]["text"]


@pytest.mark.parametrize(
    ("lower", "upper", "shortest"),
    [
        (0.98391, 0.98417, "0.984"),
        (0.28, 0.29, "0.29"),
        (nextafter(0.9, 0), 0.9, "0.9"),
        (nextafter(1, 0), 1.0, "1"),
        (-0.2, -0.1, "-0.1"),
        (-0.3, 0.0, "0"),
        (120.0, 180.0, "180"),
        (0.9, nextafter(0.9, 1), "0.9000000000000001"),
    ],
)
def test_a_threshold_is_the_shortest_number_between_two_scores(lower, upper, shortest):
    assert between(lower, upper) == shortest


def test_each_step_of_the_slider_counts_what_it_accepts(model, predictions):
    steps, confidence = model["decisions"], predictions.outcomes().confidence
    order = np.argsort(-confidence)
    for step in (0, 17, 100):
        first = order[: steps["kept"][step]]
        assert steps["wrong"][step] == int((~predictions.outcomes().correct[first]).sum())
        assert 1 - float(steps["threshold"][step]) == pytest.approx(1 - float(confidence[first[-1]]), rel=0.02)
    assert (steps["threshold"][-1], steps["kept"][-1], steps["wrong"][-1]) == ("anything", 10_000, 2_410)
    bounds = risk_bound(steps["wrong"], steps["kept"], 0.95)
    assert steps["bound"] == pytest.approx(bounds.tolist(), rel=1e-4)


def test_the_bound_of_the_curve_is_above_it_and_at_each_tie_that_of_the_slider(tmp_path):
    rng = np.random.default_rng(0)
    tied = Outcomes.from_scores(rng.integers(1, 4, 600) / 4, rng.random(600) < 0.7)
    audit_page({"tied": tied}, {"tied": audit(tied, draws=10)}, tmp_path / "tied.html")
    [found] = data(tmp_path / "tied.html")["models"]
    curve, steps = found["selective"], found["decisions"]
    assert np.all(np.array(steps["boundOfCurve"]) > curve["risk"])
    coverage = np.array(steps["kept"]) / 600
    assert steps["bound"] == pytest.approx(np.interp(coverage, curve["coverage"], steps["boundOfCurve"]), rel=1e-3)


def test_every_promise_is_a_step_of_the_slider(model, predictions):
    promised = [choose_threshold(predictions, risk=risk).accepted for risk in RISKS]
    assert set(promised) <= set(model["decisions"]["kept"])
    assert model["decisions"]["kept"][model["decisions"]["start"]] == promised[0]


@pytest.mark.parametrize("step", [30, -1])
def test_the_confusion_of_a_step_is_that_of_the_rows_it_accepts(step, model, predictions):
    steps, cells = model["decisions"]["confusion"]["steps"], np.zeros(100, dtype=int)
    last = range(len(steps))[step]
    for added in steps[: last + 1]:
        np.add.at(cells, added[::2], added[1::2])
    most = model["decisions"]["kept"][last]
    rows = np.argsort(-predictions.outcomes().confidence)[:most]
    expected = np.zeros((10, 10), dtype=int)
    np.add.at(expected, (predictions.labels[rows], predictions.values[rows].argmax(1)), 1)
    assert cells.reshape(10, 10).tolist() == expected.tolist()


def test_many_classes_have_no_confusion(tmp_path):
    rng = np.random.default_rng(0)
    many = Predictions.from_logits(rng.normal(size=(100, 21)), rng.integers(0, 21, 100))
    audit_page({"many": many}, {"many": audit(many)}, tmp_path / "many.html")
    assert data(tmp_path / "many.html")["models"][0]["decisions"]["confusion"] is None


def test_mistakes_come_by_their_ids_the_most_confident_first(model, predictions):
    outcomes = predictions.outcomes()
    wrong = np.flatnonzero(~outcomes.correct)
    worst = int(wrong[outcomes.confidence[wrong].argmax()])
    first = model["mistakes"]["rows"][0]
    assert [cell["text"] for cell in first[2:4]] == [
        str(int(predictions.values[worst].argmax())),
        str(int(predictions.labels[worst])),
    ]
    assert first[0]["text"] == f"img-{worst}"
    confidences = [row[1]["value"] for row in model["mistakes"]["rows"]]
    assert confidences == sorted(confidences, reverse=True)


def in_cells(rows: Predictions | Outcomes) -> Tally:
    """As if there were more distinct confidences than a tally keeps."""
    filling = Filling(on_grid=True)
    filling.add(rows)
    return filling.tally()


def page_of(rows, folder: Path):
    audit_page({"model": rows}, {"model": audit(rows, draws=50)}, folder / "page.html", commands={"model": "assay x"})
    return data(folder / "page.html")["models"][0]


def test_an_exact_tally_has_the_page_of_its_rows_but_for_what_is_single(predictions, tmp_path):
    rows = page_of(replace(predictions, ids=None), tmp_path)
    found = page_of(Tally.of(replace(predictions, ids=None)), tmp_path)
    assert found["mistakes"]["rows"] == []
    assert found["decisions"].pop("confusion") is None
    rows["decisions"].pop("confusion")
    assert found["exactness"].endswith("Every number is exact.")
    assert rows["exactness"] == ""
    shown = ("size", "verdict", "tiles", "decisions", "command", "selective", "densities", "axis")
    drawn = ("densitiesInOdds", "reliability", "reliabilityByMass", "rates", "precision")
    assert {key for key in (*shown, *drawn) if found[key] != rows[key]} == set()
    texts = [[[cell["text"] for cell in row] for row in each["promises"]["rows"]] for each in (found, rows)]
    assert texts[0] == texts[1]
    assert len(found["groupPicture"]) == 2


def test_of_a_grid_every_metric_says_how_far_it_can_be_off(predictions, tmp_path):
    rows = replace(predictions, ids=None)
    groups = {name: in_cells(replace(rows, group=None)[rows.group == name]) for name in ("day", EVIL)}
    tally = replace(in_cells(rows), groups=groups)
    found = page_of(tally, tmp_path)
    assert "read on a grid of confidence; within groups off by at most" in found["exactness"]
    column = found["metrics"]["columns"].index("off by at most")
    off = {row[0]["value"]: (row[column]["text"], row[column]["value"]) for row in found["metrics"]["rows"]}
    assert off["ece"] == ("exact", 0)
    assert off["smooth_ece"] == ("not known", None)
    assert off["auroc"] == (f"{100 * tally.bounds()['auroc']:.1g}%", tally.bounds()["auroc"])


def test_who_takes_the_threshold_of_a_step_of_a_grid_accepts_no_more_than_it_counts(predictions, tmp_path):
    rows = predictions.outcomes()
    steps = page_of(in_cells(replace(rows, ids=None)), tmp_path)["decisions"]
    accepted = [int((rows.confidence >= float(threshold)).sum()) for threshold in steps["threshold"][:-1]]
    assert all(0.99 * kept - 20 <= n <= kept for n, kept in zip(accepted, steps["kept"][:-1], strict=True))


def test_a_tally_of_weighted_rows_has_a_page_without_promises(predictions, tmp_path):
    weighted = replace(predictions, ids=None, group=None, weights=1.0 + np.arange(len(predictions)) % 3)
    audit_page({"w": Tally.of(weighted)}, {"w": audit(Tally.of(weighted), draws=50)}, tmp_path / "w.html")
    [found] = data(tmp_path / "w.html")["models"]
    assert found["verdict"][1] == "A promise on the errors of weighted rows needs the rows themselves, in one file."
    assert (found["promises"]["rows"], found["decisions"]["bound"], found["command"]) == ([], None, "")
    rows = page_of(weighted, tmp_path)
    assert all(found[key] == rows[key] for key in ("selective", "densities", "reliability", "rates", "precision"))


def test_densities_of_weighted_rows_are_by_weight(tmp_path):
    rows = Outcomes.from_scores([0.9, 0.8, 0.3, 0.2], [1, 0, 1, 0], weights=[3.0, 1.0, 1.0, 3.0])
    found = page_of(rows, tmp_path)["densities"]
    assert (sum(found["right"]), sum(found["wrong"])) == (0.5, 0.5)
    assert sorted(found["right"])[-2:] == [0.125, 0.375]


def test_the_tally_of_two_named_classes_names_the_positive_one(tmp_path):
    p = np.random.default_rng(0).random(500)
    rows = replace(Predictions.from_binary_probabilities(p, p > 0.5), classes=("ham", "spam"))
    found = page_of(Tally.of(rows), tmp_path)
    assert "probability of class 1 (spam)" in found["verdict"][0]
    assert found["positive"] == page_of(rows, tmp_path)["positive"]


def test_two_tallies_are_compared_on_a_page_without_single_samples(tmp_path):
    a, b = (replace(examples.load(name), ids=None) for name in examples.MODELS)
    joint = compare(Tally.of(a), Tally.of(b), joint=Joint.of(a, b))
    compare_page({"A": Tally.of(a), "B": Tally.of(b)}, joint, tmp_path / "tallies.html")
    compare_page({"A": a, "B": b}, compare(a, b), tmp_path / "rows.html")
    found, rows = data(tmp_path / "tallies.html"), data(tmp_path / "rows.html")
    assert found["flipped"]["rows"] == []
    assert found["pairing"] == ""
    assert found["verdicts"][0]["word"] == rows["verdicts"][0]["word"] == "worse"
    assert (found["models"], found["coverages"]) == (rows["models"], rows["coverages"])
    assert (found["exactness"], rows["exactness"]) == (["A: every number is exact.", "B: every number is exact."], [])
    coarse = in_cells(a)
    compare_page({"A": coarse, "B": coarse}, compare(coarse, coarse), tmp_path / "coarse.html")
    assert f"{coarse.bounds()['auroc']:.1g} (auroc)" in data(tmp_path / "coarse.html")["exactness"][0]
    weighted = Tally.of(replace(a, weights=1.0 + np.arange(len(a)) % 3))
    compare_page({"A": weighted, "B": weighted}, compare(weighted, weighted), tmp_path / "weighted.html")
    assert data(tmp_path / "weighted.html")["coverages"]["rows"] == []


def test_names_and_groups_are_data_and_never_markup(folder):
    for page in ("audit", "compare", "study"):
        text = (folder / f"{page}.html").read_text()
        assert text.count("</script>") == 3
        assert "<script>document" not in text
        assert "&lt;/script&gt;" in re.findall("<title>(.*?)</title>", text)[0]
    for page in ("audit", "compare"):
        assert data(folder / f"{page}.html")["models"][1]["name"] == EVIL
    groups = data(folder / "audit.html")["models"][0]["groups"]["rows"]
    assert {row[0]["text"] for row in groups} == {"day", EVIL}


def test_the_roc_on_the_page_encloses_the_auroc(model, predictions):
    rates, ranking = model["rates"], metrics.ranking(predictions.outcomes())
    assert rates["auroc"] == metrics.auroc(ranking)
    assert np.trapezoid(rates["right"], rates["wrong"]) == pytest.approx(rates["auroc"], abs=1e-3)


def test_precision_of_right_and_of_wrong_answers_ends_at_their_share(model, predictions):
    ranking = metrics.ranking(predictions.outcomes())
    right, wrong = model["precision"]
    assert [right["average"], wrong["average"]] == [metrics.aupr_success(ranking), metrics.aupr_error(ranking)]
    assert [right["precision"][-1], wrong["precision"][-1]] == [0.759, 0.241]
    assert len(right["recall"]) <= 150


def test_twenty_models_still_make_a_small_page(folder):
    assert (folder / "twenty.html").stat().st_size < 3_000_000


def test_a_mere_score_has_no_reliability(tmp_path):
    energy = Outcomes.from_scores([7.5, -3.0, 2.0], [1, 0, 1], is_probability=False)
    audit_page({"energy": energy}, {"energy": audit(energy)}, tmp_path / "energy.html")
    [found] = data(tmp_path / "energy.html")["models"]
    assert found["reliability"] is None
    assert found["positive"] is None
    assert found["decisions"]["threshold"] == ["7", "2", "anything"]
    assert [tile["title"] for tile in found["tiles"]][:2] == ["accuracy", "error AUROC"]


def test_a_quarter_of_a_million_samples_still_make_a_small_page(tmp_path):
    rng = np.random.default_rng(0)
    confidence = rng.beta(5, 1, 250_000)
    many = Outcomes.from_scores(confidence, rng.random(250_000) < confidence)
    audit_page({"many": many}, {"many": audit(many, draws=10)}, tmp_path / "many.html")
    assert (tmp_path / "many.html").stat().st_size < 1_400_000
    [found] = data(tmp_path / "many.html")["models"]
    assert sum(found["reliability"]["count"]) == 250_000
    assert len(found["selective"]["risk"]) <= 500


def test_a_confidence_is_written_with_the_digits_that_tell_it_from_one():
    written = {0.25: "0.25", 0.98423: "0.9842", 1 - 4.936e-8: "0.9999999506", 1.0: "1", 7.123456789: "7.12346"}
    assert {value: spelled(value) for value in written} == written


def test_differences_are_colored_by_what_is_better(folder):
    rows = {row[0]["value"]: row[3] for row in data(folder / "compare.html")["differences"]["rows"]}
    assert {key: rows[key]["tone"] for key in ("accuracy", "calibration_part", "auroc", "aurc", "ece")} == {
        "accuracy": "bad",
        "calibration_part": "good",
        "auroc": "",
        "aurc": "bad",
        "ece": "",
    }


def test_the_vendored_bundle_has_its_licence_beside_it_and_nothing_is_fetched():
    assert "Plotly" in (PAGE / "plotly-LICENSE").read_text()
    assert "</script" not in (PAGE / "plotly-basic.min.js").read_text()
    own = "".join(
        file.read_text()
        for file in PAGE.iterdir()
        if file.suffix in (".html", ".css", ".js") and "plotly" not in file.name
    )
    assert not re.search(r"https?:|@import|url\(|\bsrc=|fetch\(|XMLHttpRequest|innerHTML", own)


@pytest.fixture
def counted(monkeypatch):
    """How often rows [n, k] were passed over, and confidences sorted."""
    counts = {"passes": 0, "sorts": 0}

    def counting(what, function):
        def counted(*args, **how):
            counts[what] += 1
            return function(*args, **how)

        return counted

    monkeypatch.setattr(loops, "reduce", counting("passes", loops.reduce))
    monkeypatch.setattr(_tables, "ranking_of", counting("sorts", _tables.ranking_of))
    return counts


def written(file: Path, n_classes: int, seed: int = 0) -> Path:
    rng = np.random.default_rng(seed)
    labels = np.arange(400) % n_classes
    files.write(Predictions.from_logits(rng.normal(size=(400, n_classes)) + np.eye(n_classes)[labels], labels), file)
    return file


@pytest.mark.parametrize(("n_classes", "sorts"), [(2, 2), (5, 1), (30, 1)])
def test_from_a_file_to_its_page_there_is_one_pass_and_one_sort(n_classes, sorts, counted, tmp_path):
    """Of two classes the probabilities of class 1 are sorted too."""
    audit_command(written(tmp_path / "a.npz", n_classes), html=tmp_path / "a.html")
    assert (tmp_path / "a.html").is_file()
    assert counted == {"passes": 1, "sorts": sorts}


def test_from_two_files_to_their_page_there_is_one_pass_and_one_sort_each(counted, tmp_path):
    both = [written(tmp_path / f"{seed}.npz", 5, seed) for seed in (0, 1)]
    compare_command(*both, html=tmp_path / "c.html")
    assert (tmp_path / "c.html").is_file()
    assert counted == {"passes": 2, "sorts": 2}


def test_answers_and_mistakes_are_those_of_all_rows(tmp_path):
    rng = np.random.default_rng(0)
    logits = rng.integers(0, 3, size=(300, 4)).astype(float)  # many ties
    t = metrics.Tables(Predictions.from_logits(logits, rng.integers(0, 4, 300)))
    assert answers(t.source, t.outcomes).tolist() == logits.argmax(1).tolist()
    wrong = np.flatnonzero(~t.outcomes.correct)
    worst = wrong[np.argsort(-t.outcomes.confidence[wrong], kind="stable")[:50]]
    assert [mistake.name for mistake in mistakes(t)] == [f"row {row}" for row in worst]


def table(**methods: dict[str, tuple[float, ...]]) -> StudyTable:
    """A table of seeds' values by metric; a calibrator follows two underscores."""

    def line(name: str, values: dict[str, tuple[float, ...]]) -> StudyLine:
        method, _, calibrator = name.partition("__")
        cells = {key: StudyCell(SeedSummary(seeds), 0.5, "", best=False) for key, seeds in values.items()}
        return StudyLine(method, calibrator or "none", cells)

    lines = tuple(line(name, values) for name, values in methods.items())
    return StudyTable({"data": "d", "network": "n", "split": "test"}, ("accuracy", "ece", "aurc"), lines, "ce")


def test_the_verdict_names_the_best_of_both_axes_and_whether_seeds_tell_it_from_the_next():
    found = table(ce={"ece": (0.1, 0.11), "aurc": (0.01, 0.02)}, sam={"ece": (0.02, 0.021), "aurc": (0.02, 0.03)})
    assert words(found) == [
        "Best calibrated: sam (ECE 2.05±0.07 %, clearly ahead). "
        "Best at knowing its errors: ce (AURC 15.00±7.07 ‰, not clearly ahead). Not the same."
    ]


def test_the_verdict_tells_networks_as_trained_from_calibrated_ones():
    found = table(ce={"ece": (0.1,)}, sam={"ece": (0.2,)}, sam__temperature={"ece": (0.05,)})
    assert words(found) == [
        "As trained, best calibrated: ce (ECE 10.00 %, of one seed).",
        "With any calibrator, best calibrated: sam with temperature (ECE 5.00 %, of one seed).",
    ]


def test_an_undefined_figure_is_never_the_best():
    nan = float("nan")
    assert "ce (" in words(table(sam={"ece": (nan, nan)}, ce={"ece": (0.3, 0.4)}))[0]


def test_the_verdict_over_several_settings_counts():
    first = table(ce={"ece": (0.1,), "aurc": (0.1,)}, sam={"ece": (0.2,), "aurc": (0.2,)})
    other = table(ce={"ece": (0.1,), "aurc": (0.3,)}, sam={"ece": (0.2,), "aurc": (0.2,)})
    assert overall([first, first, other]) == [
        "In 3 settings, most often best calibrated: ce (in 3 of 3). "
        "Most often best at knowing its errors: ce (in 2 of 3). One method is both in 2 of 3."
    ]


@pytest.fixture(scope="module")
def study(folder):
    return data(folder / "study.html")


def test_a_view_shows_each_cell_as_the_tables_do(study, folder):
    [view, shifted] = study["views"]
    assert (view["title"], shifted["title"]) == ("digits, mlp, test", "digits, mlp, fog_3")
    assert [(line["method"], line["calibrator"]) for line in view["lines"]][:2] == [
        ("cross_entropy", "none"),
        ("cross_entropy", "temperature"),
    ]
    found = read_rows(STUDY, [folder / "runs" / run.folder for run in RUNS]).to_pylist()
    at = {"method": "cross_entropy", "calibrator": "none", "metric": "ece", "split": "test"}
    seeds = [100 * row["value"] for row in found if all(row[key] == value for key, value in at.items())]
    cell = view["lines"][0]["cells"][1]
    assert cell["text"].split()[0] == f"{mean(seeds):.2f}±{stdev(seeds):.2f}"
    assert cell["seeds"] == pytest.approx(seeds, rel=1e-3)
    assert cell["under"] == f"5.00 ({mean(seeds) - 5:+.2f})"
    assert view["legend"].endswith("the figure of a paper, and ours minus it (zhu2022 table 2)")


def test_curves_are_means_and_spreads_over_seeds_thinned(study):
    [curves] = study["curves"]
    first = curves[0]
    assert [curve["name"] for curve in curves] == ["cross_entropy", "focal", EVIL]
    assert (first["epoch"][0], first["epoch"][-1], len(first["epoch"])) == (0, 149, 100)
    assert first["loss"]["mean"][0] == pytest.approx(0.75)
    assert first["loss"]["spread"][0] == pytest.approx(stdev([1, 0.5]), rel=0.05)
    assert first["held_out_ece"]["mean"][-1] == pytest.approx(159.0)
    assert study["figures"][0] == {"key": "held_out_ece", "title": "held_out_ece % ↓"}


def test_curves_get_what_room_the_tables_leave(folder):
    there = [folder / "runs" / run.folder for run in RUNS]
    assert (room(0, 6, there).epochs, room(0, 6, there).left_out) == (100, 0)
    assert (room(34_000, 3000, there).epochs, room(34_000, 3000, there).left_out) == (16, 1)
    assert room(0, 0, []).figures == ()


def test_runs_are_counted_by_their_state_and_linked_from_where_the_page_is(study, folder):
    assert study["progress"] == "5 of 7 runs done, 1 failed, 1 waiting"
    rows = {row[2]["text"]: row for row in study["runs"]["rows"]}
    assert {name: row[3]["text"] for name, row in rows.items()} == {
        "cross_entropy": "2 done",
        "focal": "2 done",
        EVIL: "1 done, 1 failed, 1 waiting",
    }
    for *_, folders, audits in rows.values():
        for links in (folders["links"], audits["links"]):
            places = [folder / unquote(links["before"] + name + links["after"]) for name in links["names"]]
            assert all(place.exists() for place in places)
    assert [row[-1]["links"]["names"] for row in rows.values()] == [["0"], [], []]
    assert rows[EVIL][-2]["links"]["names"] == ["1", "2"]


def test_a_failure_tells_its_reason_and_its_log(study):
    [failure] = study["failures"]
    assert failure["why"] == f"exit code 1: ValueError: {EVIL}"
    assert failure["log"].startswith("Traceback\n")
    assert failure["text"] == str(FAILING.folder)


def test_a_study_without_a_run_has_a_page(folder):
    found = data(folder / "empty.html")
    assert (found["views"], found["verdict"], found["progress"]) == ([], [], "0 of 6 runs done, 6 waiting")


def test_a_study_of_twenty_points_forty_methods_and_four_calibrators_is_small(tmp_path):
    rng, keys = np.random.default_rng(0), ("accuracy", "ece", "auroc", "aurc", "e_aurc", "nll")
    history = {"epochs": [{"epoch": e, **dict.fromkeys(map(str, range(9)), 1 / 3)} for e in range(20)]}
    runs, found = [], []
    for point in range(20):
        methods = [Variant("focal", {"gamma": i}) for i in range(40)]
        runs += [Run(f"data {point}", "mlp", method, 0) for method in methods]
        lines = [StudyLine(str(m), c, cells(rng, keys)) for m in methods for c in ("none", "a", "b", "c")]
        found.append(StudyTable({"data": f"data {point}", "network": "mlp", "split": "test"}, keys, tuple(lines), ""))
    for run in runs:
        (tmp_path / run.folder).mkdir(parents=True)
        (tmp_path / run.folder / "history.json").write_text(json.dumps(history))
    study_page(STUDY, runs, tmp_path, found, tmp_path / "big.html")
    assert (tmp_path / "big.html").stat().st_size < 5_000_000


def cells(rng: np.random.Generator, keys: tuple[str, ...]) -> dict[str, StudyCell]:
    return {key: StudyCell(SeedSummary(tuple(rng.random(3).tolist())), 0.01, "better", best=False) for key in keys}


@pytest.fixture(scope="module")
def browser():
    """Headless Chromium that writes down its console and every request."""
    driver = shutil.which("chromedriver")
    binary = shutil.which("chromium")
    if driver is None or binary is None:
        pytest.skip("NO BROWSER: the page was not tested in one; run tests/install_chromium.sh as root")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (
        *("headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking"),
        *("disable-component-update", "disable-sync", "disable-dev-shm-usage", "window-size=1280,900"),
    ):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield started
    started.quit()


@pytest.fixture
def opened(browser, folder):
    """Opens a page and waits for its charts; afterwards its console must be empty and all requests its own."""
    from selenium.webdriver.support.ui import WebDriverWait

    def open_page(name: str):
        browser.get((folder / f"{name}.html").as_uri())
        WebDriverWait(browser, 60).until(lambda driver: driver.execute_script(DRAWN))
        return browser

    browser.get_log("browser")
    browser.get_log("performance")
    yield open_page
    assert browser.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    assert asked
    assert all(url.startswith(("file:", "data:", "blob:")) for url in asked)


def all_texts(driver, selector: str) -> list[str]:
    return driver.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map((found) => found.textContent)", selector
    )


def shown(driver, selector: str) -> str:
    return all_texts(driver, selector)[0]


def click(driver, selector: str) -> None:
    driver.execute_script("document.querySelector(arguments[0]).click()", selector)


def test_the_audit_page_draws_everything(opened):
    driver = opened("audit")
    assert all_texts(driver, ".verdict")[0].startswith("Over-confident by 15.9 points")
    assert len(all_texts(driver, ".chart .main-svg .cartesianlayer")) == 8
    click(driver, "#axis input")
    wait_for_charts(driver)
    assert len(all_texts(driver, "#metrics tbody tr")) == 16
    assert len(all_texts(driver, "#trust .reliability .barlayer .point")) > 30


def test_shares_of_wrong_answers_are_not_negative(opened):
    driver = opened("audit")
    click(driver, "#axis input")
    wait_for_charts(driver)
    ticks = all_texts(driver, "#trust .densities .ytick")
    assert ticks == ["10%", "0%", "10%", "20%", "30%", "40%", "50%", "60%"]


def test_the_slider_moves_the_counts_and_the_confusion(opened):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    driver = opened("audit")
    slider = driver.find_element(By.ID, "threshold")
    slider.send_keys(Keys.END)
    assert all_texts(driver, "#accepted dd") == ["100.0% (10,000)", "0.0% (0)", "24.10% (2,410)", "24.81%"]
    assert shown(driver, "#accept-above") == "anything"
    cells = all_texts(driver, "#confusion tbody td")
    assert sum(int(cell) for cell in cells if cell != "·") == 10_000
    slider.send_keys(Keys.ARROW_LEFT)
    assert all_texts(driver, "#accepted dd")[:2] == ["99.5% (9,950)", "0.5% (50)"]


def test_a_click_on_a_head_sorts_and_another_turns_the_order(opened):
    driver = opened("audit")
    head = "#metrics th:nth-child(1) button"
    click(driver, head)
    names = all_texts(driver, "#metrics tbody td:first-child")
    assert names == sorted(names)
    click(driver, head)
    assert all_texts(driver, "#metrics tbody td:first-child")[0] > names[0]


@pytest.mark.parametrize(("clicks", "falling"), [(1, False), (2, True)])
def test_rows_without_a_value_come_last_either_way(clicks, falling, opened):
    driver = opened("audit")
    for _ in range(clicks):
        click(driver, "#metrics th:nth-child(4) button")
    floors = all_texts(driver, "#metrics tbody td:nth-child(4)")
    assert floors[:3] == sorted(floors[:3], reverse=falling)
    assert "" not in floors[:3]
    assert set(floors[3:]) == {""}


def test_rows_are_filtered_by_what_is_typed(opened):
    from selenium.webdriver.common.by import By

    driver = opened("audit")
    driver.find_element(By.CSS_SELECTOR, "#metrics input").send_keys("risk-coverage")
    assert all_texts(driver, "#metrics tbody td:first-child") == ["aurc ↓", "augrc ↓"]


def test_another_model_is_shown_when_chosen(opened):
    driver = opened("audit")
    click(driver, "#choice label:nth-of-type(2) input")
    assert all_texts(driver, ".verdict")[0].startswith("Miscalibrated")
    assert shown(driver, "header .size").startswith(EVIL)
    assert driver.execute_script("return document.querySelector('#groups').hidden")


def test_a_script_in_a_name_is_shown_as_text(opened):
    driver = opened("audit")
    assert driver.title == f"Confidence audit: cross_entropy, {EVIL}"
    assert EVIL in all_texts(driver, "#choice span")
    assert EVIL in all_texts(driver, "#groups tbody td:first-child")
    assert EVIL in all_texts(driver, "#overview .risk .legendtext")
    driver = opened("study")
    assert driver.title == f"Study: study {EVIL}"
    assert shown(driver, "h1") == f"Which is it? {EVIL}"
    assert EVIL in all_texts(driver, "#view tbody td:first-child")
    assert EVIL in all_texts(driver, "#map .legendtext")
    assert EVIL in all_texts(driver, "#curves .legendtext")
    assert EVIL in all_texts(driver, "#assumed li")
    hovered = "Plotly.Fx.hover(document.querySelector('#map .chart'), [{ curveNumber: 8, pointNumber: 1 }])"
    driver.execute_script(hovered)
    assert shown(driver, "#map .hovertext").startswith(f"{EVIL}calibrator temperature")
    assert shown(driver, ".failure").endswith(f"ValueError: {EVIL}\n")


def test_of_twenty_models_each_can_be_chosen(opened):
    driver = opened("twenty")
    assert len(all_texts(driver, "#overview tbody tr")) == 20
    assert len(all_texts(driver, "#overview .risk .scatterlayer .trace")) == 20
    click(driver, "#choice label:nth-of-type(20) input")
    assert shown(driver, "header .size").startswith("model 19 · 800 samples")


CONFIDENCES = ("stated", "log_probability", "wording")


@pytest.fixture(scope="module")
def board_of_many(folder):
    """A board of 100 models with three confidences each and fourteen categories, all but three of them copies."""
    rng = np.random.default_rng(0)
    rows = Outcomes.from_scores(p := rng.random(1400), rng.random(1400) < p, group=np.arange(1400) % 14)
    lines = board([Sheet("m", name, rows, np.arange(1400), 1400) for name in CONFIDENCES]).lines
    many = Board(tuple(replace(line, model=f"model {i} {EVIL}") for i in range(100) for line in lines))
    board_page(many, folder / "board.html")


def test_a_board_of_100_models_and_3_confidences_opens_in_two_seconds(opened, board_of_many):
    """The fastest of three: other processes may take the core meanwhile."""
    loaded = "return performance.getEntriesByType('navigation')[0].loadEventEnd"
    assert 0 < min(opened("board").execute_script(loaded) for _ in range(3)) < 2000


def test_the_map_of_a_board_follows_its_filter(opened, board_of_many):
    from selenium.webdriver.common.by import By

    driver = opened("board")
    assert len(all_texts(driver, "#board tbody tr")) == len(all_texts(driver, "#map .scatterlayer .point")) == 300
    assert len(all_texts(driver, "#categories tbody tr")) == 20
    driver.find_element(By.CSS_SELECTOR, "#board input").send_keys("model 42 ")
    assert [text.split(EVIL)[0] for text in all_texts(driver, "#board tbody td:first-child")] == 3 * ["model 42 "]
    assert len(all_texts(driver, "#map .scatterlayer .point")) == 3


def test_the_study_page_draws_everything(opened):
    driver = opened("study")
    assert shown(driver, "#verdict .verdict").startswith("In 2 settings, most often best calibrated: ")
    assert shown(driver, "#view .verdict").startswith("As trained, best calibrated: ")
    assert len(all_texts(driver, "#view .tile")) == 4
    assert len(all_texts(driver, "#view tbody tr")) == 9
    assert len(all_texts(driver, "#map .scatterlayer .point")) == 9 + 15
    assert len(all_texts(driver, "#curves .scatterlayer .js-line")) == 3 + 3
    assert all_texts(driver, "#runs a:not(.link)")[1:3] == ["0", "1"]


def test_each_score_has_its_numbers_under_their_metrics(opened, folder):
    rows = read_rows(TWO_SCORES, [folder / "scored" / run.folder for run in expand(TWO_SCORES)]).to_pylist()

    def expected(score: str, metric: str) -> str:
        at = {"score": score, "metric": metric, "method": "cross_entropy", "split": "test"}
        seeds = [100 * row["value"] for row in rows if all(row[key] == value for key, value in at.items())]
        return f"{mean(seeds):.2f}±{stdev(seeds):.2f}" if seeds else "–"

    driver = opened("scores")
    assert shown(driver, "#view h2") == "digits, mlp, test"
    heads = [head.split()[0] for head in all_texts(driver, "#view th")]
    for row, (score, name, there) in enumerate((("max_probability", "none", 4), ("energy", "by energy", 3)), start=1):
        cells = all_texts(driver, f"#view tbody tr:nth-child({row}) td")
        assert cells[:2] == ["cross_entropy", name]
        found = dict(zip(heads, [cell.split()[0] for cell in cells], strict=True))
        for metric in ("temperature", "accuracy", "ece", "auroc"):
            assert found[metric] == expected(score, metric)
        assert sum(text != "–" for text in cells[2:]) == there


def test_methods_are_sorted_by_a_metric(opened):
    driver = opened("study")
    click(driver, "#view th:nth-child(4) button")
    errors = [float(text.split("±")[0].split()[0]) for text in all_texts(driver, "#view tbody td:nth-child(4)")]
    assert errors == sorted(errors)


def test_setting_and_calibrator_are_chosen_by_keyboard(opened):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    driver = opened("study")
    before = all_texts(driver, "#view tbody td")
    driver.find_element(By.ID, "setting").send_keys(Keys.ARROW_DOWN)
    assert shown(driver, "#view h2") == "digits, mlp, fog_3"
    assert all_texts(driver, "#view tbody td") != before
    driver.find_element(By.ID, "calibrator").send_keys("t")
    assert all_texts(driver, "#view tbody td:first-child") == ["cross_entropy", "focal", EVIL]
    assert all_texts(driver, "#map .legendtext") == ["cross_entropy", "focal", EVIL]


def test_the_axis_of_the_map_and_the_figure_of_the_curves_are_chosen(opened):
    from selenium.webdriver.common.by import By

    driver = opened("study")
    assert all_texts(driver, "#map .ytitle") == ["auroc (errors) % ↑"]
    driver.find_element(By.ID, "up").send_keys("e")
    assert all_texts(driver, "#map .ytitle") == ["e_aurc ‰ ↓"]
    low, high = driver.execute_script("return document.querySelector('#map .chart').layout.yaxis.range")
    assert low > high
    driver.find_element(By.ID, "figure").send_keys("l")
    assert all_texts(driver, "#curves .ytitle") == ["loss"]


def test_the_filter_of_the_table_holds_for_the_charts(opened):
    from selenium.webdriver.common.by import By

    driver = opened("study")
    driver.find_element(By.CSS_SELECTOR, "#view input").send_keys("focal")
    assert all_texts(driver, "#map .legendtext") == ["focal", "none", "temperature", "histogram"]
    assert all_texts(driver, "#curves .legendtext") == ["focal"]


def test_charts_fit_the_paper_and_afterwards_the_screen_again(opened):
    from selenium.webdriver.support.ui import WebDriverWait

    driver = opened("study")

    def width() -> float:
        return driver.execute_script("return document.querySelector('#map .main-svg').getBoundingClientRect().width")

    before = width()
    driver.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert width() == 680
    driver.execute_script("dispatchEvent(new Event('afterprint'))")
    WebDriverWait(driver, 60).until(lambda _: width() == before > 1000)


def test_a_study_without_rows_opens(opened):
    driver = opened("empty")
    assert shown(driver, "#verdict .verdict") == "There is nothing to compare."
    assert driver.execute_script("return document.querySelector('#view').hidden")


def test_the_comparison_shows_verdicts_and_both_curves(opened):
    driver = opened("compare")
    assert shown(driver, ".verdict") == "B against A: accuracy worse, calibration better, refinement none shown."
    assert len(all_texts(driver, "#overview .risk .scatterlayer .trace")) == 2
    assert len(all_texts(driver, "#differences tbody tr")) == 17


def test_dark_and_light_follow_the_system_and_the_button(opened):
    driver = opened("audit")

    def paper() -> str:
        return driver.execute_script("return getComputedStyle(document.body).backgroundColor")

    def system(theme: str) -> None:
        features = [{"name": "prefers-color-scheme", "value": theme}]
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    system("dark")
    assert paper() == "rgb(20, 23, 27)"
    click(driver, "#theme")
    assert paper() == "rgb(255, 255, 255)"
    system("light")
    assert paper() == "rgb(255, 255, 255)"


@pytest.mark.parametrize("name", ["audit", "compare", "study"])
def test_the_page_fits_a_phone(name, opened):
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    driver = opened(name)
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    opened(name)
    try:
        assert driver.execute_script("return document.documentElement.scrollWidth") == 390
        width = "return document.querySelector('.chart .main-svg').getBoundingClientRect().width"
        assert 300 < driver.execute_script(width) <= 390
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


WIDTHS = [1400, 768, 390]
CUT = """
const wide = document.documentElement.clientWidth;
const box = (element) => element.getBoundingClientRect();
const seen = [...document.querySelectorAll("h1, h2, p, td, dd, .tile, .chart, label, button, select, #confusion th")]
    .filter((element) => element.offsetParent && box(element).width > 0);
const beyond = seen.filter((element) => box(element).right > wide + 1 || box(element).left < -1);
const hidden = [...document.querySelectorAll(".scroll")]
    .filter((part) => part.offsetParent && part.scrollWidth > part.clientWidth + 1);
return [...beyond, ...hidden].map((part) => `${part.tagName}.${part.className}: ${part.textContent.slice(0, 40)}`)"""
OVERLAP = """
const boxes = [...document.querySelectorAll(".tile, .chart, .table, .command, dl, h2")]
    .filter((part) => part.offsetParent).map((part) => [part, part.getBoundingClientRect()]);
const before = (a, b) => a.right <= b.left + 1 || a.bottom <= b.top + 1;
const apart = ([p, a], [q, b]) => p.contains(q) || q.contains(p) || before(a, b) || before(b, a);
return boxes.flatMap((one, i) => boxes.slice(i + 1).filter((other) => !apart(one, other))
    .map((other) => `${one[0].className} and ${other[0].className}`))"""


def resized(driver, width: int) -> None:
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


@pytest.fixture(scope="module")
def newer(folder) -> Path:
    """Pages of two classes with names, of twelve groups, of a correction, of a threshold, and of tallies."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.001, 0.999, 600)
    rows = Predictions.from_binary_probabilities(p, rng.uniform(size=600) < p, group=np.arange(600) % 12)
    rows = replace(rows, classes=("ham", "spam"))
    audit_page({"two": rows}, {"two": audit(rows)}, folder / "two.html", show={"two": lambda row: f"<b>text {row}</b>"})
    cooler = Predictions.from_binary_logits(np.log(p / (1 - p)).clip(-9, 9) / 3, rows.labels)
    correction_page(rows, ("cooler", cooler), compare(rows, cooler), folder / "corrected.html", next_command="assay x")
    threshold_page("two", rows, choose_threshold(rows, risk=0.2), folder / "threshold.html", command="assay y")
    tally, weighted = in_cells(rows), in_cells(replace(rows, group=None, weights=1.0 + np.arange(600) % 3))
    audit_page({"t": tally}, {"t": audit(tally)}, folder / "tally.html", commands={"t": "assay z"})
    audit_page({"w": weighted}, {"w": audit(weighted)}, folder / "weighted.html")
    compare_page({"A": weighted, "B": weighted}, compare(weighted, weighted), folder / "tallies.html")
    return folder


TALLIES = ("tally", "weighted", "tallies")  # pages of summaries


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["two", "corrected", "threshold", "audit", "compare", "study", *TALLIES])
def test_nothing_is_cut_and_nothing_overlaps(opened, newer, name, width):
    driver = opened(name)
    resized(driver, width)
    try:
        driver.get(driver.current_url)
        wait_for_charts(driver)
        assert driver.execute_script(CUT) == []
        assert driver.execute_script(OVERLAP) == []
    finally:
        driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def wait_for_charts(driver) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(driver, 60).until(lambda shown: shown.execute_script(DRAWN))


def test_the_page_of_a_tally_draws_all_but_what_needs_rows(opened, newer):
    hidden = "return [...document.querySelectorAll(arguments[0])].every((part) => part.offsetParent === null)"
    driver = opened("tally")
    assert "mistakes" in shown(driver, ".exactness")
    assert shown(driver, ".command code").startswith("assay z --coverage ")
    assert driver.execute_script(hidden, "#mistakes, #confusion")
    assert len(all_texts(driver, ".chart .main-svg .cartesianlayer")) == 7
    driver = opened("weighted")
    assert driver.execute_script(hidden, "#mistakes, #confusion, .command, .needs-bound")
    assert not any("95 %" in text for text in all_texts(driver, "#accepted dt"))
    driver = opened("tallies")
    assert driver.execute_script(hidden, "#coverages, #flipped")


def test_the_axis_of_confidence_is_chosen(opened, newer):
    driver = opened("two")
    assert all_texts(driver, "#axis input:checked + span") == ["equal width"]
    click(driver, "#axis label:last-of-type input")
    wait_for_charts(driver)
    assert "99%" in all_texts(driver, "#trust .reliability .xtick")
    legend = all_texts(driver, "#trust .reliability .legendtext")
    assert {"over-confident", "under-confident", "if calibrated"} <= set(legend)


def test_a_name_explains_itself_and_a_step_hands_over_its_command(opened, newer):
    driver = opened("two")
    click(driver, "#metrics .term")
    assert shown(driver, "#tip").startswith("ECE: expected calibration error")
    driver.execute_script("find('#threshold').value = 0; find('#threshold').dispatchEvent(new Event('input'))")
    assert shown(driver, ".command code").startswith("assay threshold two --coverage 0.0")


def test_a_correction_and_a_threshold_say_what_to_do_next(opened, newer):
    driver = opened("corrected")
    assert shown(driver, "h1") == "What does the correction change?"
    assert shown(driver, "#verdict .command code") == "assay x"
    assert not driver.execute_script("return document.querySelector('#flipped').offsetParent")  # no answer changed
    driver = opened("threshold")
    assert shown(driver, "h1") == "Which answers can be accepted?"
    assert shown(driver, ".command code").startswith("assay y --coverage ")
    driver = opened("compare")
    assert not driver.execute_script("return document.querySelector('.command').offsetParent")


def test_the_positive_class_is_called_by_its_name(opened, newer):
    driver = opened("two")
    assert "class 1 (spam)" in shown(driver, ".verdict")
    assert "share of class 1 (spam)" in all_texts(driver, "#trust .positive")[0]


def test_mistakes_have_names_and_what_was_asked_for(opened, newer):
    driver = opened("two")
    row = driver.execute_script("return [...find('#mistakes tbody tr').children].map((cell) => cell.textContent)")
    assert {row[2], row[3]} == {"ham", "spam"}
    assert row[-1].startswith("<b>text ")
    assert all_texts(driver, "#confusion tbody th") == ["ham", "spam"]
    assert len(all_texts(driver, "#groups .chart .point")) == 12


def test_tables_and_figures_can_be_saved(opened, newer):
    driver = opened("two")
    driver.execute_script("saved = (href, name) => { window.kept = [name, decodeURIComponent(href)]; }")
    click(driver, "#metrics .controls .save")
    name, content = driver.execute_script("return window.kept")
    assert name == "table.csv"
    assert content.splitlines()[0].endswith("metric,value,95 % interval,noise floor,axis,what it is")
    driver.execute_script("window.kept = null; find('figure .save').click()")
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(driver, 30).until(lambda seen: seen.execute_script("return window.kept"))
    assert driver.execute_script("return window.kept[0]").endswith(".svg")


def test_a_picture_is_embedded_and_a_text_is_cut(tmp_path):
    (tmp_path / "x.png").write_bytes(b"picture")
    show = shown_by(np.array(["x.png", "y.png", "a" * 1000]), tmp_path)
    assert show(0) == "data:image/png;base64,cGljdHVyZQ=="
    assert show(1) == "y.png"
    assert len(show(2)) == 300
