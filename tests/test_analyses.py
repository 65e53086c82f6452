"""The analyses of the papers: known values, laws that wrong code would break, and that the figures show them."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product
from math import isnan, nan
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pytest
from matplotlib.figure import Figure
from numpy.testing import assert_allclose, assert_array_equal
from torch.nn.functional import cross_entropy

from assay import Predictions, files, metrics
from assay._core.arrays import InputError
from assay.nn.data import Cut, load
from assay.nn.losses import gamma_for
from assay.nn.networks import network
from assay.nn.recipes import recipe
from assay.nn.training import Record, initialized, train
from assay.report import analyses, figures, statistics
from assay.report.drawing import _from_folders, draw_study
from assay.report.drawing._results import Results
from assay.report.drawing._study import DRAWINGS
from assay.report.statistics import Line, MethodPoint
from assay.study import SeedSummary, Study, cohens_d, expand, parse_variant, row_table, within_sem
from assay.study._rows import SCHEMA, method_columns, split_columns, variant_columns
from assay.study._shifts import corruption_and_severity


@pytest.fixture
def ax():
    return Figure().subplots()


def label(ax, name):
    """The artist drawn under a name of the legend."""
    handles, names = ax.get_legend_handles_labels()
    return handles[names.index(name)]


POINT = {"data": "digits", "network": "mlp", "method": "cross_entropy", "n_train": 200, "seed": 0, "split": "test"}
POINT |= {"calibrator": "none", "held_out": 400, "score": "max_probability", "metric": "ece"}


def table(*rows: dict[str, object]) -> pa.Table:
    """Rows that say how they differ from `POINT`."""
    return row_table([in_columns({**POINT, **row}) for row in rows])


def in_columns(row: dict[str, object]) -> dict[str, object]:
    """A row with the columns that its method, its calibrator and its split are written as."""
    method, calibrator = parse_variant(str(row["method"])), parse_variant(str(row["calibrator"]))
    return {**row, **method_columns(method), **variant_columns("calibrator", calibrator), **split_columns(row["split"])}


# Epochs.


def write_history(folder: Path, rows: list[dict[str, float | None]], **more: object) -> Path:
    folder.mkdir(parents=True)
    (folder / "history.json").write_text(json.dumps({"epochs": rows, "reliability": {}, **more}))
    return folder


def test_figures_whose_mean_would_be_infinite_are_refused(tmp_path):
    folder = write_history(tmp_path / "a", [{"epoch": 0, "loss": 1e308}])
    with pytest.raises(InputError, match=r"history.json: is damaged: .* at most 1e\+300"):
        analyses.history(folder)


def test_what_was_undefined_in_a_history_is_nan(tmp_path):
    [row] = analyses.history(write_history(tmp_path / "a", [{"epoch": 0, "test_auroc": None, "loss": 0.5}]))
    assert isnan(row["test_auroc"])
    assert row["loss"] == 0.5


def test_an_epoch_is_the_mean_of_the_seeds_that_have_it():
    histories = {
        "sam": [
            [{"epoch": 0, "ece": 0.2}, {"epoch": 1, "ece": 0.1}],
            [{"epoch": 0, "ece": 0.4}, {"epoch": 1, "ece": nan}],
        ],
        "crl": [[{"epoch": 0, "loss": 1.0}]],
    }
    [line] = analyses.per_epoch(histories, "ece")
    assert (line.name, line.x) == ("sam", (0, 1))
    assert line.mean == (pytest.approx(0.3), 0.1)
    assert line.spread == (pytest.approx(np.std([0.2, 0.4], ddof=1)), 0)


def test_where_no_seed_has_a_value_there_is_none():
    [line] = analyses.per_epoch({"sam": [[{"epoch": 0, "auroc": nan}, {"epoch": 1, "auroc": 0.8}]]}, "auroc")
    assert isnan(line.mean[0])
    assert line.mean[1] == 0.8


def test_epochs_are_drawn_with_the_range_over_seeds(ax):
    """As wang2021's fig 4: the light color ends at the least and at the greatest of the runs."""
    seeds = [[{"epoch": 0, "ece": value}] for value in (0.2, 0.25, 0.45)]
    [line] = analyses.per_epoch({"sam": seeds}, "ece")
    figures.epochs([line], ax, metric="optimal_ece")
    assert_allclose(label(ax, "sam").get_ydata(), [0.3])
    band = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert (band.min(), band.max()) == (0.2, 0.45)
    assert ax.get_ylabel() == "ECE at the best temperature"


def test_the_reliability_that_a_run_wrote_is_read_back(trained):
    folder, history = trained
    found = analyses.train_reliability(folder)
    assert list(found) == [0, 2]
    assert_array_equal(found[2].bins.count, history.reliability[2].count)
    assert metrics.ece(found[2].bins) == pytest.approx(history.epochs[2]["train_ece"])


# Samples.


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run of three epochs, with all that can be written down, and its history."""
    folder = tmp_path_factory.mktemp("run")
    splits = load("digits", cut=Cut(100, 200))
    made = initialized(network("mlp"), splits.train, seed=0)
    recorded = Record(gradient_norms_at=(0, 2), reliability_at=(0, 2))
    done = train(made, splits, replace(recipe("cross_entropy"), epochs=3), seed=0, out=folder, record=recorded)
    return folder, done.history


def test_gradient_norms_are_shares_of_each_methods_samples():
    norms = {"ce": np.array([0.5, 5.0, 5.0, 100.0]), "focal": np.array([0.0, 0.5])}
    ce, focal = analyses.gradient_norms(norms, n_bins=8)
    assert ce.share.sum() == focal.share.sum() == 1
    assert (ce.n, focal.n) == (4, 2)
    assert_allclose(np.diff(np.log(ce.edges)), np.log(1e8) / 8)
    assert focal.share[0] == 0.5, "a norm of 0 is in the first bin"
    assert ce.share[-1] == 0.25, "the largest in the last"


def test_norms_that_are_all_zero_have_no_histogram():
    with pytest.raises(InputError, match=r"the largest is 0\.0"):
        analyses.gradient_norms({"ce": np.zeros(3)})


def test_histograms_are_drawn_on_the_axis_of_their_bins(trained, ax):
    folder, _ = trained
    columns = analyses.sample_columns(folder)
    found = analyses.gradient_norms({"first": columns["gradient_norm_0"], "last": columns["gradient_norm_2"]})
    figures.histograms(found, ax, of="norm")
    assert ax.get_xscale() == "log"
    assert_array_equal(label(ax, "last, n = 200").get_data().values, found[1].share)
    assert np.average(np.log(found[1].edges[1:]), weights=found[1].share) < np.average(
        np.log(found[0].edges[1:]), weights=found[0].share
    ), "what is learned pulls less"


def test_the_norms_of_a_run_that_diverged_do_not_count():
    columns = {"ce": [{"norm": np.array([1.0, np.nan])}, {"norm": np.array([2.0])}, {}], "sam": [{"norm": np.zeros(2)}]}
    found = _from_folders._norms(columns, "norm")
    assert {name: norms.tolist() for name, norms in found.items()} == {"ce": [1, 2]}


def predictions(logits: list[float], ids: list[int]) -> Predictions:
    """Two classes, the first right, with that highest logit."""
    return Predictions.from_logits([[x, x - 1] for x in logits], [0] * len(logits), ids=ids)


def test_samples_are_grouped_by_the_quarter_in_which_they_were_learned(ax):
    found = analyses.max_logits(
        predictions([9.0, 5.0, 4.0, 1.0, 0.0], [7, 8, 9, 10, 11]),
        np.array([11, 10, 9, 8, 7]),
        np.array([8, 6, 2, 1, 0]),  # learned, of samples 11, 10, 9, 8, 7
        epochs=8,
    )
    assert [each.name for each in found] == ["epochs 0 to 1", "epochs 2 to 3", "epochs 6 to 7", "never"]
    assert [each.n for each in found] == [2, 1, 1, 1]
    peaks = [each.edges[np.flatnonzero(each.share)].tolist() for each in found]
    assert peaks[0][-1] == pytest.approx(9, abs=0.4), "sample 7, learned at once, has the highest logit"
    assert peaks[3] == [0]
    figures.histograms(found, ax, of="highest logit")
    assert ax.get_xscale() == "linear"
    assert_array_equal(label(ax, "never, n = 1").get_data().values, found[3].share)


def test_groups_of_few_samples_are_named_but_not_drawn(ax):
    edges = np.array([0.0, 1.0, 2.0])
    many, few = (analyses.Histogram(name, n, edges, np.array([0.5, 0.5])) for name, n in (("many", 40), ("few", 2)))
    figures.histograms([many, few], ax, of="highest logit")
    assert ax.get_legend_handles_labels()[1] == ["many, n = 40"]
    assert ax.get_legend().get_title().get_text() == "under 20: few (2)"


def test_predictions_on_other_samples_are_refused():
    with pytest.raises(InputError, match="their ids differ"):
        analyses.max_logits(predictions([1.0], [3]), np.array([4]), np.array([0]), epochs=2)


def test_a_folder_without_samples_has_none(tmp_path):
    assert analyses.sample_columns(tmp_path) == {}


# Curves.


def test_the_curve_of_cross_entropy_is_minus_log_p(ax):
    [line] = analyses.loss_curves({"ce": cross_entropy})
    assert_allclose(line.mean, -np.log(line.x), rtol=1e-9)
    figures.curves([line], ax, over="p", metric="loss")
    assert tuple(label(ax, "ce").get_ydata()) == line.mean
    assert ax.get_xlabel() == "p"


def test_focal_lies_below_cross_entropy_and_inverse_focal_above():
    found = {line.name: np.array(line.mean) for line in analyses.loss_curves()}
    assert (found["focal, γ = 3"] < found["focal, γ = 1"]).all()
    assert (found["focal, γ = 1"] < found["cross-entropy"]).all()
    assert (found["cross-entropy"] < found["inverse focal, γ = 1"]).all()
    assert (found["inverse focal, γ = 2"] < found["inverse focal, γ = 3"]).all()


@pytest.mark.parametrize("gamma", [2.0, 3.0, 5.0])
def test_the_gradient_factor_falls_below_one_at_p0(gamma):
    [line] = analyses.gradient_factors([gamma])
    p0 = next(p for p, g in zip(line.x, line.mean, strict=True) if g < 1)
    assert gamma_for(p0) <= gamma <= gamma_for(p0 - 0.005), "mukhoti2020, proposition 2"


# Names.


@pytest.mark.parametrize(
    ("split", "found"),
    [
        ("test", (None, 0)),
        ("gaussian_noise_5", ("gaussian_noise", 5)),
        ("cifar100_c/saturate_2", ("cifar100_c/saturate", 2)),
        ("cifar10_1", (None, None)),
        ("imagenet_v2/matched-frequency", (None, None)),
    ],
)
def test_only_corruptions_have_a_severity(split, found):
    assert corruption_and_severity(split) == found


@pytest.mark.parametrize(
    ("recipe", "found"),
    [
        ("sb_ece", ("sb_ece", "cross_entropy")),
        ("brier_s_avuc", ("s_avuc", "brier")),
        ("focal_mmce", ("mmce", "focal")),
        ("focal", None),
        ("focal_scheduled", None),
    ],
)
def test_a_composite_loss_knows_its_primary(recipe, found):
    assert analyses.secondary_and_primary(recipe) == found


# Sweeps.


def sweep_rows(**more: object) -> pa.Table:
    values = {(1.0, 0): 0.1, (1.0, 1): 0.3, (5.0, 0): 0.4, (5.0, 1): 0.4, (3.0, 0): 0.0, (3.0, 1): 0.1}
    focal = [
        {"method": f"focal@wang2021,gamma={gamma}", "seed": seed, "value": value, **more}
        for (gamma, seed), value in values.items()
    ]
    return table({"value": 0.9, **more}, *focal)


def test_a_sweep_reads_its_coefficient_from_its_column(ax):
    [line] = analyses.lines(sweep_rows(), over="gamma", by=["recipe", "setup", "calibrator"])
    assert (line.name, line.x) == ("focal, wang2021, none", (1.0, 3.0, 5.0))
    assert_allclose(line.mean, [0.2, 0.05, 0.4])
    assert_allclose(line.spread, [np.std([0.1, 0.3], ddof=1), np.std([0.0, 0.1], ddof=1), 0])
    figures.sweep([line], ax, varied="gamma", metric="ece")
    points, _, _ = label(ax, "focal, wang2021, none")
    assert tuple(points.get_xdata()) == line.x
    assert tuple(points.get_ydata()) == line.mean


def test_rows_that_differ_in_what_was_not_told_are_refused():
    rows = pa.concat_tables([sweep_rows(), sweep_rows(calibrator="temperature")])
    with pytest.raises(ValueError, match="differ also by method, calibrator, calibrator_name"):
        analyses.lines(rows, over="gamma", by=["recipe"])
    with pytest.raises(ValueError, match="one metric"):
        analyses.lines(table({"value": 1}, {"value": 1, "metric": "nll"}), over="held_out", by=["method"])


def test_a_row_without_a_number_there_is_left_out():
    rows = table({"value": 0.1, "n_train": None}, {"value": 0.2, "n_train": 50}, {"value": 0.3, "n_train": 100})
    [line] = analyses.lines(rows, over="n_train", by=["method"])
    assert line == Line("cross_entropy", (50.0, 100.0), (0.2, 0.3), (0.0, 0.0), ((0.2, 0.2), (0.3, 0.3)))


@pytest.mark.parametrize(("metric", "best"), [("ece", (3.0, 1.0)), ("auroc", (5.0, 5.0))])
def test_the_best_coefficient_is_that_of_the_best_mean(metric, best, ax):
    small = sweep_rows(n_train=50, metric=metric)
    large = table(
        {"method": "focal@wang2021,gamma=1.0", "value": 0.05, "metric": metric},
        {"method": "focal@wang2021,gamma=5.0", "value": 0.06, "metric": metric},
    )
    [line] = analyses.best_coefficients(pa.concat_tables([small, large], promote_options="default"), "gamma")
    assert (line.name, line.x, line.mean) == ("focal@wang2021", (50.0, 200.0), best)
    figures.sweep([line], ax, varied="n_train", metric="best gamma")
    assert tuple(label(ax, "focal@wang2021")[0].get_ydata()) == best


# Shift: value = severity / 10 + kind, so kinds differ a lot and that must not be error.
KINDS = {"fog": 0.0, "snow": 0.5}


def shifted(noise: dict[tuple[str, str], float] | None = None) -> pa.Table:
    """Two calibrators, two kinds, severities 1 and 3, two seeds; snow_5 stands alone."""
    rows: list[dict[str, object]] = [{"split": "snow_5", "value": 9.0, "seed": seed} for seed in (0, 1)]
    for index, calibrator in enumerate(("temperature", "temperature_sb_ece_lb")):
        for seed in (0, 1):
            same = {"calibrator": calibrator, "seed": seed}
            rows.append({**same, "value": 0.01 * seed})
            for kind, level in KINDS.items():
                more = (noise or {}).get((calibrator, kind), 0.0)
                for severity in (1, 3):
                    value = severity / 10 + level - 0.05 * index + more + 0.01 * seed
                    rows.append({**same, "split": f"{kind}_{severity}", "value": value})
    return table(*rows[2:])


def test_a_severity_is_the_mean_over_kinds_with_the_spread_over_seeds(ax):
    first, second = analyses.severities(shifted(), by=["calibrator"])
    assert first.x == (0, 1, 3)
    assert_allclose(first.mean, [0.005, 0.1 + 0.25 + 0.005, 0.3 + 0.25 + 0.005])
    assert_allclose(np.subtract(first.mean, second.mean), [0, 0.05, 0.05])
    assert_allclose(first.spread, np.std([0, 0.01], ddof=1))
    figures.sweep([first, second], ax, varied="severity", metric="ece")
    assert tuple(label(ax, "temperature")[0].get_ydata()) == first.mean


def test_kinds_that_are_not_at_every_severity_do_not_count():
    alone = [{"split": "contrast_5", "calibrator": c, "value": 9.0} for c in ("temperature", "temperature_sb_ece_lb")]
    fogs = [{"split": f"fog_{s}", "calibrator": "temperature", "value": 0.1} for s in (1, 3, 5)]
    [line] = analyses.severities(table(*alone, *fogs), by=["calibrator"])
    assert (line.x, line.mean) == ((1, 3, 5), (pytest.approx(0.1),) * 3)


def test_a_corruption_that_was_read_is_another_kind_than_the_same_made_here():
    places, calibrators = {"": 0.1, "cifar10_c/": 0.3}, ("none", "temperature")
    rows = [
        {"split": f"{place}fog_{severity}", "calibrator": calibrator, "value": value}
        for (place, value), severity, calibrator in product(places.items(), (1, 3), calibrators)
    ]
    for line in analyses.severities_within(table(*rows), by=["calibrator"]):
        assert_allclose(line.mean, 0.2)
        assert_allclose(line.spread, 0, atol=1e-12)


def test_what_kinds_differ_by_is_no_error_in_comparing_calibrators():
    for line in analyses.severities_within(shifted(), by=["calibrator"]):
        assert isnan(line.spread[0]), "without a shift there are no kinds"
        assert_allclose(line.spread[1:], 0, atol=1e-12)


def test_the_error_under_shift_is_that_of_masson_and_loftus(ax):
    noise = {("temperature", "fog"): 0.2, ("temperature_sb_ece_lb", "snow"): 0.1}
    first, second = analyses.severities_within(shifted(noise), by=["calibrator"])
    values = np.array([[0.2, 0.0 - 0.05], [0.5, 0.5 + 0.1 - 0.05]])  # [kinds, calibrators]
    assert_allclose(first.spread[1:], within_sem(values))
    assert first.spread[1:] == second.spread[1:]
    assert_allclose(first.mean, analyses.severities(shifted(noise), by=["calibrator"])[0].mean)
    figures.sweep([first, second], ax, varied="severity", metric="ece")
    _, _, (bars,) = label(ax, "temperature")
    lengths = [np.ptp(piece[:, 1]) / 2 for piece in bars.get_segments() if len(piece)]
    assert_allclose([length for length in lengths if length == length], first.spread[1:])


# Methods.


def two_metrics(a: str, b: str) -> pa.Table:
    cells = {
        ("crl", 0): (0.1, 0.9),
        ("crl", 1): (0.2, 0.8),
        ("sam", 1): (0.3, 0.7),
        ("sam", 0): (0.4, 0.6),
    }
    return table(
        *(
            {"method": m, "seed": s, "metric": key, "value": v}
            for (m, s), pair in cells.items()
            for key, v in zip((a, b), pair, strict=True)
        ),
        {"method": "sam", "seed": 2, "metric": a, "value": 9.0},
    )


def test_both_axes_have_the_same_seeds_in_the_same_order():
    found = analyses.both_axes(two_metrics("ece", "auroc"))
    assert found == [MethodPoint("crl", (0.1, 0.2), (0.9, 0.8)), MethodPoint("sam", (0.4, 0.3), (0.6, 0.7))]


def test_uncertainty_is_drawn_against_calibration(ax):
    found = analyses.uncertainties(two_metrics("mean_entropy", "ece"))
    assert [(m.name, m.entropy, m.calibration) for m in found][1] == ("sam", (0.4, 0.3), (0.6, 0.7))
    figures.uncertainty(found, ax)
    point, _, _ = label(ax, "sam")
    assert (point.get_xdata()[0], point.get_ydata()[0]) == (pytest.approx(0.35), pytest.approx(0.65))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("mean entropy", "ECE ↓")


def test_dots_stand_at_the_mean_of_the_seeds_the_first_on_top(ax):
    rows = analyses.where(two_metrics("confidence_gap", "ece"), {"metric": "confidence_gap"})
    figures.dots(analyses.by_method(rows), ax, metric="confidence_gap")
    means = {bar[0].get_ydata()[0]: bar[0].get_xdata()[0] for bar in ax.containers}
    assert means == {1: pytest.approx(0.15), 0: pytest.approx((0.4 + 0.3 + 9) / 3)}
    assert [text.get_text() for text in ax.get_yticklabels()] == ["crl", "sam"]


def test_names_of_close_points_do_not_cover_each_other():
    close = [MethodPoint(f"method_{i}", (0.5 + i / 100,), (0.9,)) for i in range(5)]
    figure = Figure(figsize=(6, 4.5))
    ax = figures.calibration_refinement([*close, MethodPoint("far", (1.0,), (0.5,))], figure.subplots())
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert len(boxes) == 6
    assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    assert all(ax.bbox.x0 <= box.x0 and box.x1 <= ax.bbox.x1 for box in boxes)


def seeds(method: str, values: list[float], **more: object) -> list[dict[str, object]]:
    return [{"method": method, "seed": i, "value": value, **more} for i, value in enumerate(values)]


@pytest.mark.parametrize(("metric", "sign"), [("ece", -1), ("auroc", 1)])
def test_an_effect_is_cohens_d_positive_where_better(metric, sign, ax):
    a, b = [0.1, 0.2, 0.3], [0.3, 0.5, 0.4]
    rows = table(*seeds("crl", a, metric=metric), *seeds("ce", b, metric=metric), *seeds("one", [0.1], metric=metric))
    [effect] = analyses.effects(rows, {"crl": "ce", "one": "ce", "absent": "ce"})
    assert effect.size == pytest.approx(sign * cohens_d(SeedSummary(tuple(a)), SeedSummary(tuple(b))))
    half = 1.959964 * np.sqrt(1 / 3 + 1 / 3 + effect.size**2 / 8)
    assert (effect.low, effect.high) == (pytest.approx(effect.size - half), pytest.approx(effect.size + half))
    figures.effects([effect], ax)
    [point] = [line for line in ax.lines if line.get_marker() == "o"]
    assert point.get_xdata()[0] == effect.size


def covered(effect: float, n: int, cells: int, rng: np.random.Generator) -> bool:
    a, b = rng.normal(effect, 1, (cells, n)), rng.normal(0, 1, (cells, n))
    pairs = [(SeedSummary(tuple(x)), SeedSummary(tuple(y))) for x, y in zip(a, b, strict=True)]
    if cells > 1:
        found = analyses.pooled_effect("", pairs, metric="auroc")
    else:
        rows = table(*seeds("a", list(a[0]), metric="auroc"), *seeds("b", list(b[0]), metric="auroc"))
        [found] = analyses.effects(rows, {"a": "b"})
    return found.low <= effect <= found.high


@pytest.mark.parametrize(("effect", "n", "cells"), [(0.0, 3, 6), (2.0, 3, 6), (5.0, 3, 6), (2.0, 10, 6)])
def test_the_interval_of_a_pooled_effect_covers_it(effect, n, cells):
    rng = np.random.default_rng(0)
    assert 0.93 <= np.mean([covered(effect, n, cells, rng) for _ in range(1000)]) <= 0.98


@pytest.mark.parametrize(("effect", "n"), [(0.0, 3), (2.0, 3), (2.0, 10)])
def test_the_interval_of_one_effect_covers_it(effect, n):
    rng = np.random.default_rng(1)
    assert 0.92 <= np.mean([covered(effect, n, 1, rng) for _ in range(400)]) <= 0.985


def test_a_metric_that_is_better_in_no_direction_has_no_effect():
    with pytest.raises(ValueError, match="mean_entropy is better neither higher nor lower"):
        analyses.effects(table({"value": 1.0, "metric": "mean_entropy"}), {})


# Scenarios.


def test_the_three_scenarios_have_the_figures_of_the_paper(ax):
    """singh2021, fig 1."""
    found = analyses.scenarios()
    printed = [(0.06, 0.774), (0.18, 0.9946), (0.08, 0.89)]
    assert [(round(s.ece, 2), round(s.auroc, 2)) for s in found] == [(e, round(a, 2)) for e, a in printed]
    assert_allclose([s.auroc for s in found], [a for _, a in printed], atol=1e-3)
    assert all(s.outcomes.correct.mean() == 0.5 for s in found)
    for s in found:
        assert s.ece == metrics.ece(metrics.equal_width(s.outcomes))
    figures.scenario(found[1], ax)
    right, wrong = ax.patches
    assert_array_equal(right.get_data().values, found[1].densities.right)
    assert_array_equal(wrong.get_data().values, -found[1].densities.wrong)
    assert "ECE 17.84%, error AUROC 99.46%" in ax.get_title(loc="left")


# A whole study.

METRICS = ("accuracy", "ece", "auroc", "mean_entropy", "confidence_gap", "temperature")
AXES = {
    "name": "made up",
    "data": ["digits"],
    "networks": ["mlp"],
    "recipes": ["cross_entropy", "focal"],
    "seeds": [0, 1],
    "held_out": 100,
    "calibrators": ["none", "temperature"],
    "metrics": list(METRICS),
}
RICH = {
    "recipes": [
        *("cross_entropy", "sb_ece", "focal", "focal_sb_ece"),
        {"recipe": "l1", "alpha": [0.01, 0.1]},
        {"recipe": "mixup", "alpha": 0.3},
    ],
    "n_train": [60, 120],
    "held_out_sizes": [50, 100],
    "shifts": ["fog_1", "fog_5", "contrast_1", "contrast_5"],
}


def made_up(root: Path, *, folders: bool, **more: object) -> Results:
    """A study whose every number is drawn by lot, and for its smaller training sets the folders of its runs."""
    rng = np.random.default_rng(0)
    study = Study(**{**AXES, **more})
    runs = expand(study)
    cells = product(runs, ["test", *study.shifts], study.calibrators, study.held_out_sizes, study.metrics)
    rows = [
        {
            **POINT,
            "method": str(run.method),
            "n_train": run.n_train,
            "seed": run.seed,
            "split": split,
            "calibrator": calibrator,
            "held_out": size or 100,
            "metric": metric,
            "value": rng.random(),
        }
        for run, split, calibrator, size, metric in cells
        if metric != "temperature" or calibrator != "none"
    ]
    for run in runs if folders else ():
        if run.n_train == 60:
            write_run(root / run.folder, rng)
    return Results(study, runs, root, table(*rows))


def write_run(folder: Path, rng: np.random.Generator) -> None:
    names = ("held_out_accuracy", "held_out_optimal_ece", "train_nll_wrong", "weight_norm")
    bins = {name: [30.0, 30.0] for name in ("count", "confidence", "correct")} | {"upper": [0.5, 1.0]}
    rows = [{"epoch": epoch, **{name: rng.random() for name in names}} for epoch in range(4)]
    write_history(folder, rows, reliability={"0": bins, "3": bins})
    np.savez(
        folder / "samples.npz", ids=np.arange(60), learned_epoch=rng.integers(0, 5, 60), gradient_norm_3=rng.random(60)
    )
    for name in ("train", "test", "held_out"):
        labels = rng.integers(0, 3, 60)
        logits = rng.normal(size=(60, 3)) + 2 * np.eye(3)[labels]
        predictions = Predictions.from_logits(logits, labels, ids=np.arange(60))
        files.write(predictions, folder / f"{name}.npz")


def kinds(results: Results) -> dict[str, dict[str, Figure]]:
    """The figures of each kind by name."""
    found = {draw.__name__: dict(draw(results)) for draw in DRAWINGS}
    return {kind: figures for kind, figures in found.items() if figures}


@pytest.fixture(scope="module")
def rich(tmp_path_factory):
    """A study that has something of everything."""
    return made_up(tmp_path_factory.mktemp("runs"), folders=True, **RICH)


@pytest.fixture(scope="module")
def drawn(rich):
    return kinds(rich)


def test_everything_that_a_study_supports_is_drawn(drawn):
    assert drawn.keys() == {draw.__name__ for draw in DRAWINGS}
    assert list(drawn["coefficients"]) == [f"alpha of l1 digits, mlp, n_train {n}" for n in (60, 120)]
    assert list(drawn["axes_that_vary"]) == ["n_train digits, mlp"]
    assert [name.split(" digits")[0] for name in drawn["epochs"]] == [
        "epochs overfitting held_out",
        "epochs likelihood train",
        "epochs weights",
    ]
    assert len(drawn["train_reliability"]) == 7, "one a method"
    [best] = drawn["best_coefficients"].values()
    assert [ax.get_title(loc="left") for ax in best.axes] == ["l1"], "of mixup one strength was tried"


def test_a_name_looks_the_same_in_every_panel(drawn):
    """The calibrator none has no temperature, so it is missing in one panel."""
    for kind in ("coefficients", "axes_that_vary", "held_out_sizes", "severities", "calibrators_under_shift", "epochs"):
        for name, figure in drawn[kind].items():
            looks: dict[str, set[tuple[object, ...]]] = {}
            for ax in figure.axes:
                for handle, text in zip(*ax.get_legend_handles_labels(), strict=True):
                    line = handle[0] if isinstance(handle, tuple) else handle
                    looks.setdefault(text, set()).add((line.get_color(), line.get_linestyle(), line.get_marker()))
            assert all(len(each) == 1 for each in looks.values()), name


def test_nothing_is_drawn_for_what_is_not_there(tmp_path):
    one = {"recipes": ["cross_entropy"], "calibrators": ["none"], "metrics": ["ece", "auroc"]}
    assert kinds(made_up(tmp_path, folders=False, **one)).keys() == {"maps"}
    assert kinds(made_up(tmp_path, folders=False, **one | {"metrics": ["accuracy"]})) == {}
    results = made_up(tmp_path, folders=False)
    assert draw_study(results.study, results.runs, tmp_path, SCHEMA.empty_table(), tmp_path / "figures") == []


def test_corruptions_made_and_read_are_drawn_apart(tmp_path):
    results = made_up(tmp_path, folders=False, shifts=["fog_1", "fog_5", "cifar10_c/fog_1", "cifar10_c/fog_5"])
    found = kinds(results)
    assert list(found["severities"]) == ["severities digits, mlp", "severities digits, mlp, cifar10_c"]
    assert len(found["calibrators_under_shift"]) == 2
    for figure, place in zip(found["severities"].values(), ("", "cifar10_c/"), strict=True):
        point = {"method": "focal", "calibrator": "none", "metric": "ece"}
        means = [
            np.mean(analyses.where(results.rows, {**point, "split": split})["value"].to_numpy())
            for split in ("test", f"{place}fog_1", f"{place}fog_5")
        ]
        assert label(figure.axes[0], "focal")[0].get_ydata() == pytest.approx(means)


def test_figures_of_one_seed_name_it_and_all_methods_have_it(tmp_path):
    results = made_up(tmp_path, folders=True, n_train=[60])
    (tmp_path / results.runs[0].folder / "history.json").unlink()  # seed 0 of the first method failed
    for draw in (_from_folders.predictions, _from_folders.train_reliability, _from_folders.max_logits):
        found = dict(draw(results))
        assert found
        for name, figure in found.items():
            assert name.endswith("digits, mlp, n_train 60, seed 1")
            assert figure.get_suptitle().endswith("digits, mlp, n_train 60, seed 1")
    [ax] = dict(_from_folders.predictions(results))["risk coverage digits, mlp, n_train 60, seed 1"].axes
    for run in (run for run in results.runs if run.seed == 1):
        curve = statistics.selective(metrics.ranking(files.read(tmp_path / run.folder / "test.npz").outcomes()))
        assert_array_equal(label(ax, str(run.method)).get_ydata(), curve.risk)


def test_figures_are_of_the_whole_held_out_split_and_no_shift(rich, drawn):
    figure = drawn["maps"]["map digits, mlp, n_train 120"]
    point = {"method": "focal", "n_train": 120, "split": "test", "calibrator": "none", "held_out": 100}
    rows = analyses.where(rich.rows, point)
    x, y = (np.mean(analyses.where(rows, {"metric": key})["value"].to_numpy()) for key in ("ece", "auroc"))
    mean, _, _ = label(figure.axes[0], "focal")
    assert (mean.get_xdata()[0], mean.get_ydata()[0]) == (pytest.approx(x), pytest.approx(y))


def test_methods_are_compared_with_their_primary_loss(rich, drawn):
    rows = analyses.where(rich.at({"split": "test", "metric": "ece"}), {"n_train": 60, "calibrator": "none"})
    values = analyses.by_method(rows)
    ax = drawn["effects"]["effects on ece digits, mlp, n_train 60"].axes[0]
    methods = [text.get_text() for text in ax.get_yticklabels()]
    sizes = dict(zip(methods, [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "o"], strict=True))
    assert sizes["focal_sb_ece"] == pytest.approx(-cohens_d(values["focal_sb_ece"], values["focal"]))
    assert sizes["l1,alpha=0.1"] == pytest.approx(-cohens_d(values["l1,alpha=0.1"], values["cross_entropy"]))
    assert "cross_entropy" not in sizes


def test_a_figure_is_the_same_file_twice(tmp_path):
    results = made_up(tmp_path, folders=False, metrics=["ece", "auroc"])
    twice = [
        draw_study(results.study, results.runs, tmp_path, results.rows, tmp_path / name)[0].read_bytes()
        for name in ("one", "two")
    ]
    assert twice[0] == twice[1]
    assert b"<dc:date>" not in twice[0]


def test_a_study_is_drawn_into_files_that_are_named_after_what_they_show(tmp_path):
    results = made_up(tmp_path, folders=False, metrics=["ece", "auroc"])
    before = dict(mpl.rcParams)
    study, runs = results.study, results.runs
    written = draw_study(study, runs, tmp_path, results.rows, tmp_path / "figures", "png")
    assert [file.name for file in written] == [
        f"{name}-digits-mlp.png" for name in ("map", "bars", "effects-on-ece", "effects-on-auroc")
    ]
    assert all(file.stat().st_size > 1000 for file in written)
    assert dict(mpl.rcParams) == before
