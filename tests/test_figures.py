"""What is drawn is what was computed, and drawing leaves no trace elsewhere."""

from __future__ import annotations

from io import BytesIO

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import binom

from assay import Outcomes, Predictions, examples, metrics
from assay.report import figures, statistics
from assay.report.figures._style import look
from assay.report.statistics import Effect, Line, MethodPoint
from assay.thresholds import choose_threshold

LINE = Line("sam", (1.0, 2.0, 4.0), (0.5, 0.4, 0.3), (0.01, 0.02, 0.03))
METHODS = [MethodPoint("focal", (0.02, 0.04), (0.90, 0.92)), MethodPoint("mixup", (0.05,), (0.8,))]
EFFECTS = [Effect("crl", 0.8, 0.2, 1.4), Effect("mixup", -0.1, -0.7, 0.5)]


@pytest.fixture(scope="module")
def predictions():
    return examples.load()


@pytest.fixture(scope="module")
def ranking(predictions):
    return metrics.ranking(predictions.outcomes())


@pytest.fixture
def ax():
    return Figure().subplots()


def label(ax: Axes, name: str):
    """The artists drawn under a name of the legend."""
    handles, names = ax.get_legend_handles_labels()
    return handles[names.index(name)]


def heights(bars) -> list[float]:
    return [bar.get_height() for bar in bars]


def test_bars_stand_as_high_as_the_accuracy_of_their_bin(ranking, ax):
    bins = metrics.equal_width(ranking)
    figures.reliability(statistics.reliability(bins), ax)
    some = bins.count > 0
    assert_allclose(heights(label(ax, "accuracy")), bins.accuracy[some])
    assert_allclose([bar.get_x() + bar.get_width() / 2 for bar in label(ax, "accuracy")], (bins.upper - 1 / 30)[some])
    assert_allclose(heights(label(ax, "gap")), bins.gap[some])
    assert_allclose(label(ax, "confidence").get_ydata(), (bins.confidence[some] / bins.count[some]))


def test_the_shelf_under_the_diagram_shows_the_mass_of_each_bin(ranking, ax):
    bins = metrics.equal_width(ranking)
    [shelf] = figures.reliability(statistics.reliability(bins), ax).child_axes
    assert_allclose(heights(shelf.containers[0]), bins.weight[bins.count > 0])


def test_bins_of_few_samples_are_marked_and_no_others(ranking, ax):
    bins = metrics.equal_width(ranking)
    figures.reliability(statistics.reliability(bins), ax)
    marked = label(ax, "under 20 samples")
    places = bins.upper[(bins.count > 0) & (bins.count < 20)] - 1 / 30
    assert len(places) == 2
    assert_allclose([bar.get_x() + bar.get_width() / 2 for bar in marked], places)


def test_the_band_is_that_of_scipys_binomial():
    rng = np.random.default_rng(0)
    n = rng.integers(1, 3000, 500)
    chance = np.concatenate([rng.random(480), rng.random(10) * 1e-20, np.zeros(5), np.ones(5)])
    bins = metrics.Bins(np.arange(1, 501) / 500, n.astype(float), chance * n, np.zeros(500))
    found = statistics.reliability(bins)
    assert_allclose(found.low, binom.ppf(0.025, n, chance) / n)
    assert_allclose(found.high, binom.ppf(0.975, n, chance) / n)


def test_calibrated_models_lie_in_the_band_95_times_in_100():
    rng = np.random.default_rng(0)
    confidence = rng.beta(4, 2, 2000)
    inside = []
    for _ in range(300):
        found = statistics.reliability(
            metrics.equal_width(Outcomes.from_scores(confidence, rng.random(2000) < confidence))
        )
        some = found.bins.count > 0
        accuracy = found.bins.accuracy[some]
        inside.append(((accuracy >= found.low[some] - 1e-12) & (accuracy <= found.high[some] + 1e-12)).mean())
    assert 0.95 <= np.mean(inside) < 0.99  # a count cannot leave out 2.5 % exactly


def test_the_smooth_line_of_one_confidence_is_its_accuracy():
    found = statistics.smooth_reliability(metrics.ranking(Outcomes.from_scores([0.6] * 50, [1] * 20 + [0] * 30)))
    assert_allclose(found.accuracy, 0.4)
    assert_allclose(found.confidence, 0.6)


def test_a_calibrated_model_stays_in_the_smooth_band():
    rng = np.random.default_rng(1)
    confidence = rng.beta(4, 2, 20_000)
    inside = []
    for _ in range(40):
        correct = rng.random(20_000) < confidence
        found = statistics.smooth_reliability(metrics.ranking(Outcomes.from_scores(confidence, correct)))
        inside.append(((found.accuracy >= found.low) & (found.accuracy <= found.high)).mean())
    assert 0.93 < np.mean(inside) < 0.97


def test_the_smooth_diagram_draws_the_line_it_was_given(ranking, ax):
    found = statistics.smooth_reliability(ranking)
    figures.smooth_reliability(found, ax)
    pieces = np.array(label(ax, "accuracy").get_segments())
    assert_allclose(pieces[:, 0], np.column_stack([found.confidence, found.accuracy])[:-1])


def test_a_risk_coverage_curve_ends_at_the_error_rate_and_never_beats_the_optimum(ranking, ax):
    found = statistics.selective(ranking)
    assert found.coverage[-1] == 1
    assert found.risk[-1] == found.optimal[-1] == pytest.approx(ranking.n_wrong / ranking.n)
    assert (found.risk >= found.optimal - 1e-12).all()
    drawn = label(figures.risk_coverage({"net": found}, ax), "net")
    assert_array_equal(drawn.get_xdata(), found.coverage)
    assert_array_equal(drawn.get_ydata(), found.risk)


def test_a_perfect_ranking_is_the_optimum():
    found = statistics.selective(metrics.ranking(Outcomes.from_scores(np.linspace(0.9, 0.1, 100), np.arange(100) < 70)))
    assert_allclose(found.risk, found.optimal, atol=1e-12)


def test_a_part_of_tied_answers_has_its_share_of_their_errors():
    tied = Outcomes.from_scores([0.9] * 6 + [0.1] * 4, [True] * 5 + [False] * 5)
    found = statistics.selective(metrics.ranking(tied))
    assert_allclose(found.coverage, np.arange(1, 11) / 10)
    assert_allclose(found.risk, [*[1 / 6] * 6, 2 / 7, 3 / 8, 4 / 9, 5 / 10])


@pytest.mark.parametrize("levels", [1, 3, 40])
def test_the_areas_under_the_drawn_curves_are_aurc_and_its_optimum_with_ties_too(levels):
    rng = np.random.default_rng(levels)
    confidence = rng.integers(0, levels, 20_000) / levels
    r = metrics.ranking(Outcomes.from_scores(confidence, rng.random(20_000) < 0.3 + 0.6 * confidence))
    found = statistics.selective(r)
    assert np.trapezoid(found.risk, found.coverage) == pytest.approx(metrics.aurc(r), abs=1e-4)
    assert np.trapezoid(found.optimal, found.coverage) == pytest.approx(metrics.aurc(r) - metrics.e_aurc(r), abs=1e-4)


def test_the_optimum_is_zero_up_to_the_accuracy_and_no_farther():
    found = statistics.selective(metrics.ranking(Outcomes.from_scores([0.7] * 5000, np.arange(5000) < 3333)))
    right = found.coverage <= 3333 / 5000
    assert (found.optimal[right] == 0).all()
    assert (found.optimal[~right] > 0).all()
    assert found.coverage[right][-1] == 3333 / 5000


def test_the_precision_of_one_confidence_is_that_of_chance_from_end_to_end():
    r = metrics.ranking(Outcomes.from_scores([0.6] * 10, [1] * 7 + [0] * 3))
    for found in (statistics.precision_of_right(r), statistics.precision_of_wrong(r)):
        assert found.recall.tolist() == [0, 1]
        assert_allclose(found.precision, found.base)


def test_the_threshold_is_marked_where_it_accepts(predictions, ranking, ax):
    chosen = choose_threshold(predictions, risk=0.05)
    figures.risk_coverage({"net": statistics.selective(ranking)}, ax, threshold=chosen)
    mark = label(ax, f"at most 5% errors on {chosen.coverage:.1%}")
    assert (mark.get_xdata()[0], mark.get_ydata()[0]) == (chosen.coverage, chosen.observed_risk)


def test_the_area_under_the_roc_curve_is_the_auroc(ranking, ax):
    found = statistics.rates(ranking)
    assert np.trapezoid(found.right, found.wrong) == pytest.approx(metrics.auroc(ranking), abs=1e-3)
    drawn = label(figures.roc({"net": found}, ax), f"net, error AUROC {metrics.auroc(ranking):.2%}")
    assert_array_equal(drawn.get_xdata(), found.wrong)


@pytest.mark.parametrize(
    ("curve", "average"),
    [
        (statistics.precision_of_right, metrics.aupr_success),
        (statistics.precision_of_wrong, metrics.aupr_error),
    ],
)
def test_the_area_under_a_precision_recall_curve_is_the_average_precision(curve, average, ranking, ax):
    found = curve(ranking)
    steps = float(np.diff(found.recall, prepend=0) @ found.precision)
    assert steps == pytest.approx(average(ranking), abs=5e-3)
    assert found.recall[-1] == 1
    assert found.precision[-1] == found.base
    [drawn] = figures.precision_recall({"net": found}, ax).get_legend_handles_labels()[0]
    assert_array_equal(drawn.get_ydata(), found.precision)


def test_densities_add_up_to_the_right_and_the_wrong(predictions, ax):
    found = statistics.densities(predictions.outcomes())
    assert (found.right.sum(), found.wrong.sum()) == (pytest.approx(0.759), pytest.approx(0.241))
    right, wrong = figures.densities(found, ax).patches
    assert_array_equal(right.get_data().values, found.right)
    assert_array_equal(wrong.get_data().values, -found.wrong)


def test_the_classwise_strip_shows_the_ece_of_each_class_against_the_rest(ax):
    rng = np.random.default_rng(3)
    few = Predictions.from_logits(rng.normal(size=(150, 8)), rng.integers(0, 8, 150))
    bins = metrics.class_bins(few)
    found = statistics.classwise(bins)
    one_vs_rest = [Outcomes.from_scores(few.probabilities[:, c], few.labels == c) for c in range(8)]
    assert_allclose(found.ece, [metrics.ece(metrics.equal_width(each)) for each in one_vs_rest], atol=1e-6)
    assert_allclose(found.excess, [(each.confidence - each.correct).mean() for each in one_vs_rest])
    assert found.ece.mean() == pytest.approx(metrics.classwise_ece(bins))
    figures.classwise(found, ax)
    drawn = [*label(ax, "expected too often").get_ydata(), *label(ax, "expected too rarely").get_ydata()]
    assert_allclose(sorted(drawn), sorted(found.ece))


def test_a_method_stands_at_the_mean_of_its_seeds_with_their_spread(ax):
    figures.calibration_refinement(METHODS, ax)
    point, _, bars = label(ax, "focal")
    assert (point.get_xdata()[0], point.get_ydata()[0]) == (pytest.approx(0.03), pytest.approx(0.91))
    horizontal = bars[0].get_segments()[0]
    assert horizontal[1, 0] - horizontal[0, 0] == pytest.approx(2 * np.std([0.02, 0.04], ddof=1))


@pytest.mark.parametrize(("refinement", "upside_down"), [("auroc", False), ("e_aurc", True)])
def test_the_better_is_always_up(refinement, upside_down, ax):
    assert figures.calibration_refinement(METHODS, ax, refinement=refinement).yaxis_inverted() == upside_down


def test_lines_are_drawn_as_given(ax):
    [drawn] = figures.epochs([LINE], ax, metric="nll").lines
    assert (tuple(drawn.get_xdata()), tuple(drawn.get_ydata())) == (LINE.x, LINE.mean)


def test_a_sweep_has_its_points_and_their_spread(ax):
    figures.sweep([LINE], ax, varied="gamma", metric="ece")
    points, _, (bars,) = label(ax, "sam")
    assert tuple(points.get_ydata()) == LINE.mean
    ends = np.array(bars.get_segments())[:, :, 1]
    assert_allclose((ends[:, 1] - ends[:, 0]) / 2, LINE.spread)
    assert ax.get_xlabel() == "gamma"
    assert ax.get_ylabel() == "ECE ↓"


def test_the_probability_of_the_true_class_is_named_and_in_per_cent(ax):
    figures.epochs([LINE], ax, metric="true_class_wrong")
    assert ax.get_ylabel() == "p(true class) of wrong answers"
    assert ax.yaxis.get_major_formatter()(0.25) == "25.0%"


def test_an_effect_is_filled_where_its_interval_leaves_out_zero(ax):
    figures.effects(EFFECTS, ax)
    points = [line for line in ax.lines if line.get_marker() == "o"]
    assert [point.get_xdata()[0] for point in points] == [0.8, -0.1]
    assert [point.get_markerfacecolor() == "white" for point in points] == [False, True]


def test_twenty_of_a_family_look_different():
    assert len({look(index) for index in range(20)}) == 20


@pytest.mark.parametrize("most", [50, 500])
def test_a_thinned_curve_passes_by_every_point_left_out(most):
    rng = np.random.default_rng(2)
    x, y = np.sort(rng.random(10_000)), np.cumsum(rng.normal(size=10_000)) / 300
    rows = statistics.thin(x, y, most)
    assert len(rows) <= most
    assert (rows[0], rows[-1]) == (0, 9_999)
    way = (np.abs(np.diff(x)) + np.abs(np.diff(y))).sum()
    apart = np.abs(x[:, None] - x[rows]) + np.abs(y[:, None] - y[rows])
    assert apart.min(1).max() <= way / (most - 2)


def test_without_errors_the_roc_curve_is_undefined_and_the_others_are_drawn(ax):
    r = metrics.ranking(Outcomes.from_scores([0.9, 0.8], [1, 1]))
    assert np.isnan(statistics.rates(r).wrong).all()
    figures.risk_coverage({"net": statistics.selective(r)}, ax)
    assert ax.get_ylim() == (0, 1)


def every_figure(predictions, ranking):
    bins = metrics.equal_width(ranking)
    return {
        "reliability": lambda ax: figures.reliability(statistics.reliability(bins), ax),
        "smooth": lambda ax: figures.smooth_reliability(statistics.smooth_reliability(ranking), ax),
        "risk": lambda ax: figures.risk_coverage({"net": statistics.selective(ranking)}, ax),
        "roc": lambda ax: figures.roc({"net": statistics.rates(ranking)}, ax),
        "precision": lambda ax: figures.precision_recall({"net": statistics.precision_of_wrong(ranking)}, ax),
        "densities": lambda ax: figures.densities(statistics.densities(predictions.outcomes()), ax),
        "classwise": lambda ax: figures.classwise(statistics.classwise(metrics.class_bins(predictions)), ax),
        "map": lambda ax: figures.calibration_refinement(METHODS, ax, calibration="ece_excess"),
        "epochs": lambda ax: figures.epochs([LINE], ax, metric="accuracy"),
        "sweep": lambda ax: figures.sweep([LINE], ax, varied="severity", metric="ece"),
        "effects": lambda ax: figures.effects(EFFECTS, ax),
    }


@pytest.mark.parametrize("form", ["svg", "png", "pdf"])
def test_every_figure_returns_its_axes_saves_and_changes_no_style(form, predictions, ranking):
    before = dict(mpl.rcParams)
    for name, draw in every_figure(predictions, ranking).items():
        figure = Figure()
        ax = figure.subplots()
        assert draw(ax) is ax, name
        stream = BytesIO()
        figure.savefig(stream, format=form)
        assert stream.tell() > 1000, name
    assert dict(mpl.rcParams) == before
