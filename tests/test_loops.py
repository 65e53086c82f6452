"""Compiled loops and their plain twins give the same digits."""

from __future__ import annotations

import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from assay import Outcomes, Predictions, metrics
from assay._core import loops
from assay._core import plain as twins
from assay._core.arrays import InputError
from assay._core.library import SOURCES
from assay._core.plain import ClassSums
from assay.metrics import Ranking
from assay.metrics._bins import mass_starts
from assay.scale._grid import lowest

needs_library = pytest.mark.skipif(not loops.AVAILABLE, reason="no C compiler when the package was installed")
SOURCE = Path(loops.__file__)


@pytest.fixture
def plain(monkeypatch):
    """Runs a call without the library."""

    def run(call, *args):
        with monkeypatch.context() as patch:
            patch.setattr(loops, "AVAILABLE", False)
            return call(*args)

    return run


def logits_of(seed: int, n: int, k: int, scale: float, dtype: str = "f4") -> Predictions:
    rng = np.random.default_rng(seed)
    return Predictions.from_logits((scale * rng.normal(size=(n, k))).astype(dtype), rng.integers(k, size=n))


def ranking_of(seed: int, n: int, levels: int) -> Ranking:
    """Scores of so many levels, ties among them, and answers the likelier right the higher the score."""
    rng = np.random.default_rng(seed)
    score = rng.integers(1, levels + 1, n) / (levels + 1)
    return metrics.ranking(Outcomes.from_scores(score, rng.random(n) < score))


rankings = st.builds(ranking_of, st.integers(0, 10**6), st.integers(1, 700), st.sampled_from([1, 2, 7, 50, 10**6]))


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_where_there_is_a_compiler_the_loops_are_compiled():
    assert loops.AVAILABLE


COLUMNS = ("confidence", "nll", "brier", "entropy")


@needs_library
@pytest.mark.parametrize("n", [1, 7, 8, 9, 127, 128, 129, 1000])
@pytest.mark.parametrize("k", [2, 3, 7, 8, 9, 32, 100, 1025])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_outcomes_of_logits(plain, n, k, dtype):
    p = logits_of(n * k, n, k, 4.0, dtype)
    assert_alike(p.outcomes(), plain(p.outcomes))


@needs_library
@pytest.mark.parametrize("n", [1, 8, 13, 500])
@pytest.mark.parametrize("k", [2, 3, 8, 10, 1025])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_outcomes_of_probabilities(plain, n, k, dtype):
    p = logits_of(n * k, n, k, 6.0, dtype)
    given = p.probabilities
    given[: n // 3] = np.eye(k)[: n // 3] if n // 3 <= k else given[: n // 3]
    known = Predictions.from_probabilities(given, p.labels)
    assert_alike(known.outcomes(), plain(known.outcomes))


def assert_alike(ours: Outcomes, theirs: Outcomes) -> None:
    np.testing.assert_array_equal(ours.correct, theirs.correct)
    for name in COLUMNS:
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-12, atol=1e-15)


@needs_library
@pytest.mark.parametrize("k", [10, 1024])
@pytest.mark.parametrize("scale", [0.1, 5.0, 40.0, 3000.0])
def test_single_precision_is_near_double(scale, k):
    p = logits_of(0, 100_000 // k, k, scale)
    ours, exact = p.outcomes(), Predictions.from_logits(p.values.astype(np.float64), p.labels).outcomes()
    np.testing.assert_array_equal(ours.correct, exact.correct)
    np.testing.assert_allclose(ours.confidence, exact.confidence, rtol=3e-7)
    np.testing.assert_allclose(ours.nll, exact.nll, rtol=3e-7, atol=3e-7)
    np.testing.assert_allclose(ours.brier, exact.brier, atol=1e-6)
    np.testing.assert_allclose(ours.entropy, exact.entropy, atol=2e-6)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_outcomes_are_the_plain_formulas(dtype):
    p = logits_of(5, 400, 7, 3.0, dtype)
    z = p.values.astype(np.float64)
    q = np.exp(z - z.max(1, keepdims=True))
    q /= q.sum(1, keepdims=True)
    at_label = q[np.arange(400), p.labels]
    o, tolerance = p.outcomes(), {"f4": 1e-6, "f8": 1e-13}[dtype]
    np.testing.assert_allclose(o.confidence, q.max(1), rtol=tolerance)
    np.testing.assert_allclose(o.nll, -np.log(at_label), rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(o.brier, (q**2).sum(1) - 2 * at_label + 1, atol=tolerance)
    np.testing.assert_allclose(o.entropy, -(q * np.log(q)).sum(1), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("n", [1, 9, 5000])
def test_moments(plain, n, dtype):
    p = logits_of(6, n, 11, 5.0, dtype)
    ours = loops.moments(p.values, p.labels, 0.3)
    np.testing.assert_allclose(ours, plain(loops.moments, p.values, p.labels, 0.3), rtol=1e-11, atol=1e-13)
    z, step = p.values.astype(np.float64), 1e-5
    slopes = (0.3, 0.3 + step, 0.3 - step)
    at, above, below = (Predictions.from_logits(b * z, p.labels).outcomes().nll.mean() for b in slopes)
    assert ours[0] == pytest.approx(at, rel=1e-6)
    assert ours[1] == pytest.approx((above - below) / (2 * step), rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_confidence_at_a_temperature(plain, dtype):
    p = logits_of(7, 300, 10, 5.0, dtype)
    ours, theirs = np.empty(300), np.empty(300)
    loops.confidence_at(p.values, 0.4, ours)
    plain(loops.confidence_at, p.values, 0.4, theirs)
    np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    expected = Predictions.from_logits(0.4 * p.values.astype("f8"), p.labels).outcomes().confidence
    np.testing.assert_allclose(ours, expected, rtol=1e-6 if dtype == "f4" else 1e-13)


@pytest.mark.parametrize("exponent", range(-320, 1, 16))
def test_logarithms_of_all_sizes(exponent):
    p = np.random.default_rng(0).uniform(0.3, 1, 500) * 10.0**exponent
    o = Predictions.from_probabilities(np.stack([p, 1 - p], 1), np.zeros(500, dtype=int)).outcomes()
    np.testing.assert_allclose(o.nll, -np.log(p), rtol=1e-14, atol=1e-15)


def test_confidences_near_1_keep_their_distance_from_it():
    margin = np.arange(1, 33, dtype=np.float32)
    p = Predictions.from_logits(np.stack([margin, np.zeros(32, dtype=np.float32)], 1), np.zeros(32, dtype=int))
    expected = 1 / (1 + np.exp(margin.astype(np.float64)))
    np.testing.assert_allclose(1 - p.outcomes().confidence, expected, rtol=1e-6, atol=1.2e-16)


@pytest.mark.parametrize("z", [[0.0, 3e38, -3e38], [1e4, -1e4, 1e4], [-0.0, 0.0, 0.0], [5.0, 5.0, 5.0]])
@pytest.mark.parametrize("label", [0, 1, 2])
def test_extremes_and_ties(plain, z, label):
    p = Predictions.from_logits(np.array([z], dtype=np.float32), [label])
    exact = Predictions.from_logits(p.values.astype(np.float64), [label]).outcomes()
    for found in (p.outcomes(), plain(p.outcomes)):
        for name in (*COLUMNS, "correct"):
            np.testing.assert_allclose(getattr(found, name), getattr(exact, name), rtol=1e-6)


def test_rows_need_not_lie_in_order():
    z = logits_of(1, 10, 300, 3.0).values
    labels = (np.arange(600) % 10)[::2]
    turned = Predictions.from_logits(z.T, labels)
    straight = Predictions.from_logits(np.ascontiguousarray(z.T), labels.copy())
    np.testing.assert_array_equal(turned.outcomes().nll, straight.outcomes().nll)


@pytest.mark.parametrize("k", [10, 100])
def test_what_is_small_counts_in_whatever_order_it_comes(k):
    rng = np.random.default_rng(0)
    row = np.append(0, -36 - rng.random(k - 1)).astype(np.float32)
    p = Predictions.from_logits(np.stack([rng.permutation(row) for _ in range(500)]), np.zeros(500, dtype=int))
    confidence, small = p.outcomes().confidence, np.exp(row[1:].astype(np.float64)).sum()
    np.testing.assert_allclose(1 - confidence, small, rtol=0, atol=2.3e-16)
    assert len(np.unique(confidence)) <= 2


@pytest.mark.parametrize("z", [[float("nan"), 1.0, 2.0], [1.0, 2.0, float("nan")], [float("inf"), 1.0, 2.0]])
def test_what_is_no_number_stays_none(z):
    o = Predictions(np.array([z], dtype=np.float32), np.array([2])).outcomes()
    assert all(np.isnan(column).all() for column in (o.confidence, o.brier, o.entropy))


def test_labels_that_passed_no_door():
    z = logits_of(1, 4, 3, 2.0).values
    narrow = Predictions(z, np.array([0, 1, 2, 0], dtype=np.int32))
    np.testing.assert_array_equal(narrow.outcomes().nll, Predictions.from_logits(z, [0, 1, 2, 0]).outcomes().nll)
    for labels in ([0, 1, 2, 3], [0, -1, 2, 1], [0, 1]):
        wrong = Predictions(z, np.array(labels))
        for call in (
            wrong.outcomes,
            lambda p=wrong: metrics.class_bins(p),
            lambda p=wrong: loops.moments(p.values, p.labels, 1.0),
        ):
            with pytest.raises(InputError, match="label"):
                call()


def test_bins_that_make_no_sense_are_refused():
    p = logits_of(1, 4, 3, 2.0)
    for n_bins, threshold in ((0, 0.01), (-1, 0.01), (15, -0.1), (15, float("nan"))):
        with pytest.raises(InputError, match="bin"):
            metrics.class_bins(p, n_bins, threshold)
    with pytest.raises(InputError, match="4 classes"):
        p.outcomes(ClassSums.empty(4, 15, 0.01))


@pytest.mark.skipif(not loops.AVAILABLE or loops.SINGLE == "float", reason="this processor has no wider registers")
@pytest.mark.parametrize("k", [2, 3, 8, 10, 100])
@pytest.mark.parametrize("n", [1, 7, 16, 33, 1000])
def test_wider_registers_change_no_digit(n, k, monkeypatch):
    def everything(p):
        sums, out = ClassSums.empty(k, 15, 0.01), np.empty(n)
        o = p.outcomes(sums)
        loops.confidence_at(p.values, 0.7, out)
        columns = (o.confidence, o.correct, o.nll, o.brier, o.entropy, out, loops.moments(p.values, p.labels, 0.7))
        return *columns, sums.mass, sums.labels, sums.binned

    logits = logits_of(9, n, k, 5.0)
    both = logits, Predictions.from_probabilities(softmax(logits.values, axis=1), logits.labels)
    wider = [everything(p) for p in both]
    monkeypatch.setattr(loops, "SINGLE", "float")
    for p, expected in zip(both, wider, strict=True):
        for mine, theirs in zip(everything(p), expected, strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("first", [0, 3, 8, 13])
@pytest.mark.parametrize("n", [1, 9, 128, 1003])
def test_bits_and_bytes_count_alike(first, n):
    rng = np.random.default_rng(first)
    confidence, correct = rng.choice([-0.0, 1 / 15, 0.5, 1.0, *rng.random(500)], n), rng.random(first + n) < 0.8
    by_bytes, by_bits = twins.Grid.empty(), twins.Grid.empty()
    loops.add_to_cells(confidence, correct[first:], by_bytes)
    loops.add_bits_to_cells(confidence, np.packbits(correct, bitorder="little"), first, by_bits)
    np.testing.assert_array_equal(by_bits, by_bytes)
    assert int(by_bits["counts"].sum()) >> 32 == np.count_nonzero(~correct[first:])


def test_results_do_not_depend_on_the_number_of_threads():
    p = logits_of(8, 40_000, 30, 3.0)
    found = []
    for n in (1, 2, 5):
        with loops.threads(n):
            assert loops.n_threads() == n
            sums = ClassSums.empty(30, 15, 0.01)
            found.append((p.outcomes(sums), sums, loops.moments(p.values, p.labels, 0.5)))
    for outcomes, sums, moments in found[1:]:
        np.testing.assert_array_equal(outcomes.nll, found[0][0].nll)
        np.testing.assert_array_equal(sums.mass, found[0][1].mass)
        np.testing.assert_array_equal(sums.binned, found[0][1].binned)
        np.testing.assert_array_equal(moments, found[0][2])


def test_threads_follow_the_environment(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert loops.n_threads() == 3
    monkeypatch.setenv("OMP_NUM_THREADS", "none")
    assert loops.n_threads() >= 1
    with pytest.raises(InputError, match="at least 1"), loops.threads(0):
        pass


def test_a_ranking_that_must_not_be_written_to():
    r = ranking_of(0, 100, 50)
    columns = [x.copy() for x in (r.score, r.kept, r.wrong)]
    for column in columns:
        column.setflags(write=False)
    assert metrics.auroc(Ranking(*columns)) == metrics.auroc(r)


def test_a_ranking_of_unequal_columns_is_refused():
    for score, kept, wrong in (([0.5], [0, 1], [0]), ([0.5], [0], [0]), ([], [0], [0]), ([0.5, 0.4], [0, 1], [0, 1])):
        with pytest.raises(ValueError, match="scores need"):
            Ranking(np.array(score), np.array(kept), np.array(wrong))


@needs_library
def test_arrays_that_do_not_fit_never_reach_the_library():
    one, two = np.ones(1), np.ones(2)
    calls = (
        lambda: loops.areas(one, one, two),
        lambda: loops.between(one, one, two, np.array([1, 0])),
        lambda: loops.majorant(two, one),
        lambda: loops.laplacian(two, one, two, 0.4),
        lambda: loops.sweep(two, one, 2, 5),
        lambda: loops.log_likelihood(two, one, two),
        lambda: loops.runs(np.ones(4)[::2], one),
        lambda: loops.runs(np.ones(4, dtype=np.float32), one),
        lambda: loops.width_bins(two, np.ones(1, dtype=bool), two),
        lambda: loops.width_bins(two, np.ones(2, dtype=np.int64), two),
    )
    for call in calls:
        with pytest.raises(InputError, match="in one piece is needed"):
            call()


@pytest.mark.parametrize("n", [0, 1])
def test_a_majorant_needs_two_points(n):
    with pytest.raises(InputError, match=f"at least two points, got {n}"):
        loops.majorant(np.zeros(n), np.zeros(n))


def test_a_denormal_confidence():
    r = metrics.ranking(Outcomes.from_scores([0.9, 3e-323], [True, True]))
    assert metrics.nll_decomposition(r).calibration == pytest.approx(-np.log([0.9, 3e-323]).mean())


def test_a_kernel_too_narrow_is_refused():
    with pytest.raises(ValueError, match="too narrow"):
        metrics.mmce(ranking_of(0, 100, 50), width=0.001)


def test_smooth_ece_of_one_score_is_its_gap():
    """Far from both ends a smoothed gap is the gap itself, so the fixed point is known."""
    r = metrics.ranking(Outcomes.from_scores([0.5] * 100, [True] * 52 + [False] * 48))
    assert metrics.smooth_ece(r) == pytest.approx(0.02, abs=1e-9)


def test_all_wrong_and_sure():
    assert metrics.smooth_ece(metrics.ranking(Outcomes.from_scores([1.0, 1.0], [False, False]))) == 1


@needs_library
@pytest.mark.parametrize("n_bins", [1, 7, 15, 200])
@pytest.mark.parametrize("k", [2, 8, 9, 100])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_sums_of_classes(plain, k, n_bins, dtype):
    p = logits_of(4, 700, k, 2.0, dtype).probabilities
    p[::7] = (p[::7] * 16).round() / 16  # probabilities on and beside the edges of bins
    p[:50] = np.eye(k)[np.arange(50) % k]
    p[50:60] = 1.0004 * np.eye(k)[np.arange(10) % k]  # rows need not sum to 1 exactly
    predictions = Predictions(p, np.arange(700) % k, normalized=True)
    threshold = min(1 / 16, 1 / n_bins)
    ours = metrics.class_bins(predictions, n_bins, threshold)
    theirs = plain(metrics.class_bins, predictions, n_bins, threshold)
    assert ours.n == theirs.n == 700
    turned = metrics.class_bins(
        Predictions(np.asfortranarray(p), predictions.labels, normalized=True), n_bins, threshold
    )
    for name in ("count", "confidence", "correct", "rest_confidence", "rest_correct"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(getattr(ours, name), getattr(turned, name))


@needs_library
@given(seed=st.integers(0, 10**6), n=st.integers(1, 300), levels=st.sampled_from([1, 3, 40, 10**6]))
def test_rankings_are_equal(seed, n, levels):
    rng = np.random.default_rng(seed)
    o = Outcomes.from_scores(rng.integers(-levels, levels, n), rng.random(n) < 0.7, is_probability=False)
    ours = metrics.ranking(o)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loops, "AVAILABLE", False)
        theirs = metrics.ranking(o)
    for name in ("score", "kept", "wrong"):
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))


def test_a_ranking_of_integers_is_one_of_floats():
    r = Ranking(np.array([3, 2, 1]) / 4, np.array([0, 1, 2, 4]), np.array([0, 0, 1, 2]))
    assert metrics.auroc(r) == 2.5 / 4
    assert metrics.aurc(r) == pytest.approx((0 + 1 / 2 + 1.5 / 3 + 2 / 4) / 4)


@needs_library
@given(rankings)
def test_loops_over_a_ranking(r):
    columns = r.score, r.kept, r.wrong
    np.testing.assert_allclose(loops.areas(*columns), twins.areas(*columns), rtol=1e-13)
    np.testing.assert_allclose(loops.log_likelihood(*columns), twins.log_likelihood(*columns), rtol=1e-13)
    kernel = *columns, 0.4
    np.testing.assert_allclose(loops.laplacian(*kernel), twins.laplacian(*kernel), rtol=1e-9, atol=1e-12 * r.n)


@needs_library
@given(rankings, st.integers(1, 4096))
def test_residuals_in_cells(r, cells):
    columns = r.score, r.kept, r.wrong, cells
    np.testing.assert_array_equal(loops.residuals(*columns), twins.residuals(*columns))
    np.testing.assert_allclose(loops.residuals(*columns).sum(), r.claimed[-1] - r.right[-1], atol=1e-12 * r.n)


@needs_library
@given(rankings, st.integers(1, 40))
def test_sums_between_the_rows_of_a_ranking(r, n_bins):
    start = mass_starts(r, n_bins)
    ours, theirs = (of.between(r.score, r.kept, r.wrong, start) for of in (loops, twins))
    np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-13 * r.n)
    np.testing.assert_allclose(ours[:3].sum(1), [r.n, r.claimed[-1], r.right[-1]], rtol=1e-12)


@needs_library
@pytest.mark.parametrize("start", [[101, 0], [100, -1], [50, 60, 0]])
def test_bins_that_are_not_rows_of_the_ranking_are_refused(start):
    r = ranking_of(0, 100, 10**6)
    with pytest.raises(InputError, match="rows start at"):
        loops.between(r.score, r.kept, r.wrong, np.array(start))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_one_value_that_is_not_finite_is_found_wherever_it_is(plain, dtype, value):
    for n, k in ((1, 2), (3, 5), (11, 7), (40, 40)):
        z = np.full((n, k), np.finfo(dtype).max / 2, dtype=dtype)
        assert loops.all_finite(z)
        assert plain(loops.all_finite, z)
        for place in {0, 1, n * k // 2, n * k - 1}:
            other = z.copy()
            other.flat[place] = value
            assert not loops.all_finite(other)
            assert not plain(loops.all_finite, other)


@needs_library
@given(rankings)
def test_isotonic_accuracies(r):
    ours, theirs = loops.majorant(r.kept, r.right), twins.majorant(r.kept, r.right)
    accuracy = [np.repeat(np.diff(r.right[x]) / np.diff(r.kept[x]), np.diff(x)) for x in (ours, theirs)]
    np.testing.assert_allclose(*accuracy, rtol=1e-12)
    assert (np.diff(np.diff(r.right[ours]) / np.diff(r.kept[ours])) < 0).all()


@needs_library
@given(rankings)
def test_sweeps_reach_as_far(r):
    reached = metrics.sweep_bins(r)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loops, "AVAILABLE", False)
        assert metrics.sweep_bins(r) == reached


@needs_library
@pytest.mark.parametrize("width", [0.002, 0.05, 0.4, 3.0, 100.0])
def test_exponentials_of_all_sizes(width):
    for c in np.random.default_rng(0).random(200):
        score, kept, wrong = np.array([c, 0.0]), np.arange(3.0), np.array([0.0, 1.0, 1.0])  # d is -c, and 1
        pair = (loops.laplacian(score, kept, wrong, width) - c * c - 1) / (-2 * c)
        np.testing.assert_allclose(pair, np.exp(-c / width), rtol=1e-14, atol=1e-15 / c)


@needs_library
def test_every_metric(plain):
    p = logits_of(3, 5000, 10, 3.0)
    ours, theirs = metrics.evaluate(p), plain(metrics.evaluate, p)
    assert list(ours) == list(theirs)
    np.testing.assert_allclose(list(ours.values()), list(theirs.values()), rtol=1e-10, atol=1e-12)


def loaded_from(folder: Path, monkeypatch) -> bool:
    """Whether the library of the sources in that folder is loaded."""
    monkeypatch.setattr(loops, "__file__", str(folder / "loops.py"))
    return loops._load() is not None


@pytest.fixture
def copied(tmp_path):
    for file in SOURCE.parent.glob("loops-*"):
        shutil.copy(file, tmp_path)
    for name in SOURCES:
        shutil.copy(SOURCE.with_name(name), tmp_path)
    return tmp_path


@needs_library
@pytest.mark.parametrize("name", SOURCES)
def test_a_library_of_other_sources_is_not_loaded(copied, monkeypatch, name):
    assert loaded_from(copied, monkeypatch)
    (copied / name).write_text("int nothing;")
    assert not loaded_from(copied, monkeypatch)


@needs_library
def test_the_library_can_be_switched_off(copied, monkeypatch):
    monkeypatch.setenv("ASSAY_PURE", "1")
    assert not loaded_from(copied, monkeypatch)


@needs_library
def test_a_library_that_cannot_be_loaded_is_named(copied, monkeypatch):
    (library,) = copied.glob("loops-*")
    library.write_bytes(b"no library")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert not loaded_from(copied, monkeypatch)
    assert library.name in str(caught[0].message)


confidences = st.one_of(
    st.floats(0, 1),
    st.integers(0, 15).map(lambda j: j / 15),
    st.integers(1, 14).flatmap(lambda j: st.sampled_from([np.nextafter(j / 15, 0), np.nextafter(j / 15, 1)])),
    st.sampled_from([0.0, -0.0, 5e-324, 1e-300, 1 - 1e-15, np.nextafter(1.0, 0), 1.0]),
)


@needs_library
@settings(max_examples=30)
@given(st.lists(st.tuples(confidences, st.booleans()), min_size=2, max_size=300), st.integers(0, 9))
def test_cells_of_a_grid(rows, first):
    confidence, correct = (np.array(column) for column in zip(*rows, strict=True))
    bits = np.packbits(np.concatenate([np.ones(first, bool), correct]), bitorder="little")
    ours, from_bits, theirs = (twins.Grid.empty() for _ in range(3))
    for part in np.array_split(np.arange(len(rows)), 2):
        loops.add_to_cells(confidence[part], correct[part], ours)
        twins.add_to_cells(confidence[part], correct[part], theirs)
    loops.add_bits_to_cells(confidence, bits, first, from_bits)
    for found in (ours, from_bits):
        assert (found["counts"] == theirs["counts"]).all()
        assert (found["only"] == theirs["only"]).all()
        np.testing.assert_allclose(found["sum"], theirs["sum"], rtol=1e-12)


@pytest.mark.parametrize("bad", [-1e-300, 1.0000000000000002, np.nan, np.inf])
def test_a_confidence_that_has_no_cell_is_refused(bad, plain):
    confidence = np.full(300, 0.5)
    confidence[200] = bad
    bits = np.zeros(38, np.uint8)
    for run in (lambda call, *args: call(*args), plain):
        with pytest.raises(InputError, match=r"row 200: confidence .* is outside \[0, 1\]"):
            run(loops.add_bits_to_cells, confidence, bits, 0, twins.Grid.empty())


@needs_library
def test_cells_begin_where_c_and_numpy_say():
    edge = lowest()[1:-1]
    confidence = np.sort(np.concatenate([edge, np.nextafter(edge, 0), np.nextafter(edge, 1)]))
    ours, theirs = twins.Grid.empty(), twins.Grid.empty()
    loops.add_to_cells(confidence, np.ones(len(confidence), bool), ours)
    twins.add_to_cells(confidence, np.ones(len(confidence), bool), theirs)
    assert (ours["counts"] == theirs["counts"]).all()


def test_cells_are_checked_before_c_writes_to_them():
    with pytest.raises(InputError, match="bits are needed"):
        loops.add_bits_to_cells(np.full(9, 0.5), np.zeros(1, np.uint8), 0, twins.Grid.empty())
    if loops.AVAILABLE:
        with pytest.raises(InputError, match="cells of a grid are needed"):
            loops.add_to_cells(np.full(9, 0.5), np.ones(9, bool), np.zeros(3, twins.Grid.ROW))
