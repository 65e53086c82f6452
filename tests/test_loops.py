"""What is compiled gives what numpy and torch give."""

from __future__ import annotations

import importlib.util
import shutil
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from assay import Outcomes, Predictions, metrics
from assay._core import loops
from assay._core.arrays import InputError
from assay.metrics import _kernel, _proper, _ranking, _sweep
from assay.metrics._ranking import Ranking

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


def logits_of(seed: int, n: int, k: int, scale: float, dtype: torch.dtype = torch.float32) -> Predictions:
    generator = torch.Generator().manual_seed(seed)
    z = scale * torch.randn(n, k, generator=generator)
    return Predictions.from_logits(z.to(dtype), torch.randint(k, (n,), generator=generator))


def ranking_of(seed: int, n: int, levels: int) -> Ranking:
    """Scores of so many levels, ties among them, and answers the likelier right the higher the score."""
    rng = np.random.default_rng(seed)
    score = rng.integers(1, levels + 1, n) / (levels + 1)
    return metrics.ranking(Outcomes.from_scores(score, rng.random(n) < score))


rankings = st.builds(ranking_of, st.integers(0, 10**6), st.integers(1, 700), st.sampled_from([1, 2, 7, 50, 10**6]))


@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler")
def test_where_there_is_a_compiler_the_loops_are_compiled():
    assert loops.AVAILABLE


@needs_library
@pytest.mark.parametrize("n", [1, 7, 8, 9, 127, 128, 129, 1000])
@pytest.mark.parametrize("k", [2, 3, 10, 32, 33, 100])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_outcomes(plain, n, k, dtype):
    p = logits_of(n * k, n, k, 4.0, dtype)
    assert loops.takes(p.values)
    ours, theirs = p.outcomes(), plain(p.outcomes)
    assert torch.equal(ours.correct, theirs.correct)
    for name in ("confidence", "nll", "brier", "entropy"):
        torch.testing.assert_close(getattr(ours, name), getattr(theirs, name), rtol=1e-6, atol=5e-7)


@needs_library
@pytest.mark.parametrize("k", [10, 1024])
@pytest.mark.parametrize("scale", [0.1, 5.0, 40.0, 3000.0])
def test_outcomes_are_those_of_double_precision(scale, k):
    p = logits_of(0, 100_000 // k, k, scale)
    assert loops.takes(p.values)
    exact = Predictions.from_logits(p.values.double(), p.labels)
    assert not loops.takes(exact.values)
    ours, theirs = p.outcomes(), exact.outcomes()
    assert torch.equal(ours.correct, theirs.correct)
    torch.testing.assert_close(ours.confidence, theirs.confidence, rtol=3e-7, atol=0)
    torch.testing.assert_close(ours.nll, theirs.nll, rtol=3e-7, atol=3e-7)
    torch.testing.assert_close(ours.brier, theirs.brier, rtol=0, atol=1e-6)
    torch.testing.assert_close(ours.entropy, theirs.entropy, rtol=0, atol=2e-6)


def test_more_classes_than_the_library_takes():
    p = logits_of(0, 3, 1025, 2.0)
    assert not loops.takes(p.values)
    torch.testing.assert_close(p.outcomes().confidence, p.values.double().softmax(1).amax(1), rtol=1e-6, atol=0)


@needs_library
def test_confidences_near_1_keep_their_distance_from_it():
    margin = torch.arange(1, 33, dtype=torch.float32)
    p = Predictions.from_logits(torch.stack([margin, torch.zeros(32)], 1), torch.zeros(32, dtype=torch.int64))
    torch.testing.assert_close(1 - p.outcomes().confidence, torch.sigmoid(-margin.double()), rtol=1e-6, atol=1.2e-16)


@needs_library
@pytest.mark.parametrize("z", [[0.0, 3e38, -3e38], [1e4, -1e4, 1e4], [-0.0, 0.0, 0.0], [5.0, 5.0, 5.0]])
@pytest.mark.parametrize("label", [0, 1, 2])
def test_extremes_and_ties(plain, z, label):
    p = Predictions.from_logits(torch.tensor([z]), [label])
    exact = Predictions.from_logits(p.values.double(), [label]).outcomes()
    for found in (p.outcomes(), plain(p.outcomes)):
        for name in ("confidence", "nll", "brier", "entropy", "correct"):
            torch.testing.assert_close(getattr(found, name), getattr(exact, name))


@needs_library
def test_rows_need_not_lie_in_order():
    z = logits_of(1, 10, 300, 3.0).values
    labels = (torch.arange(600) % 10)[::2]
    assert not labels.is_contiguous()
    turned, straight = (
        Predictions.from_logits(z.t(), labels),
        Predictions.from_logits(z.t().contiguous(), labels.clone()),
    )
    assert torch.equal(turned.outcomes().nll, straight.outcomes().nll)


@needs_library
@pytest.mark.parametrize("k", [10, 100])
def test_what_is_small_counts_in_whatever_order_it_comes(k):
    generator = torch.Generator().manual_seed(0)
    row = torch.cat([torch.zeros(1), -36 - torch.rand(k - 1, generator=generator)])
    z = torch.stack([row[torch.randperm(k, generator=generator)] for _ in range(500)])
    p = Predictions.from_logits(z, torch.zeros(500, dtype=torch.int64))
    confidence, small = p.outcomes().confidence, row[1:].double().exp().sum()
    torch.testing.assert_close(1 - confidence, small.expand(500), rtol=0, atol=2.3e-16)
    assert len(confidence.unique()) <= 2


@needs_library
@pytest.mark.parametrize("z", [[float("nan"), 1.0, 2.0], [1.0, 2.0, float("nan")], [float("inf"), 1.0, 2.0]])
def test_what_is_no_number_stays_none(z):
    o = Predictions(torch.tensor([z]), torch.tensor([2])).outcomes()
    assert all(torch.isnan(column).all() for column in (o.confidence, o.brier, o.entropy))


@needs_library
def test_labels_that_passed_no_door():
    z = logits_of(1, 4, 3, 2.0).values
    narrow = Predictions(z, torch.tensor([0, 1, 2, 0], dtype=torch.int32))
    assert torch.equal(narrow.outcomes().nll, Predictions.from_logits(z, [0, 1, 2, 0]).outcomes().nll)
    for labels in ([0, 1, 2, 3], [0, -1, 2, 1], [0, 1]):
        wrong = Predictions(z, torch.tensor(labels))
        for call in (wrong.outcomes, lambda p=wrong: metrics.class_bins(p)):
            with pytest.raises(InputError, match="label"):
                call()


def test_a_ranking_that_must_not_be_written_to():
    r = ranking_of(0, 100, 50)
    columns = [x.copy() for x in (r.score, r.kept, r.wrong)]
    for column in columns:
        column.setflags(write=False)
    assert metrics.auroc(Ranking(*columns)) == metrics.auroc(r)


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


def test_a_view_that_only_notes_its_sign():
    z = logits_of(1, 20, 5, 3.0).values
    turned, straight = (Predictions.from_logits(x, torch.arange(20) % 5) for x in (torch._neg_view(z), -z))
    assert torch.equal(turned.outcomes().nll, straight.outcomes().nll)


@needs_library
@pytest.mark.parametrize("n", [1, 130, 20_000])
def test_who_watches_sees_the_same_probabilities(plain, n):
    p = logits_of(2, n, 10, 4.0)

    def seen():
        chunks = []
        p.outcomes(watch=lambda probabilities, labels: chunks.append((probabilities.clone(), labels)))
        return torch.cat([c for c, _ in chunks]), torch.cat([y for _, y in chunks])

    (ours, labels), (theirs, _) = seen(), plain(seen)
    torch.testing.assert_close(ours, theirs, rtol=1e-6, atol=1e-18)
    torch.testing.assert_close(ours, p.probabilities, rtol=1e-6, atol=1e-18)
    assert torch.equal(labels, p.labels)


@needs_library
@pytest.mark.parametrize("n_bins", [1, 7, 15, 200])
@pytest.mark.parametrize("k", [2, 8, 9, 100])
def test_sums_of_classes(plain, k, n_bins):
    p = logits_of(4, 700, k, 2.0).probabilities
    p[::7] = (p[::7] * 16).round() / 16  # probabilities on and beside the edges of bins
    p[:50] = torch.eye(k)[torch.arange(50) % k]
    p[50:60] = 1.0004 * torch.eye(k)[torch.arange(10) % k]  # rows need not sum to 1 exactly
    predictions = Predictions(p, torch.arange(700) % k, normalized=True)
    threshold = min(1 / 16, 1 / n_bins)
    ours = metrics.class_bins(predictions, n_bins, threshold)
    theirs = plain(metrics.class_bins, predictions, n_bins, threshold)
    assert ours.n == theirs.n == 700
    turned = metrics.class_bins(
        Predictions(p.t().contiguous().t(), predictions.labels, normalized=True), n_bins, threshold
    )
    for name in ("count", "confidence", "correct", "rest_confidence", "rest_correct"):
        torch.testing.assert_close(getattr(ours, name), getattr(theirs, name), rtol=1e-12, atol=1e-12)
        assert torch.equal(getattr(ours, name), getattr(turned, name))


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
    for ours, theirs in zip(
        loops.spread(r.score, r.kept, r.wrong), _ranking._spread(r.score, r.kept, r.wrong), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, rtol=1e-13)
    np.testing.assert_allclose(loops.risks(r.kept, r.wrong), _ranking._risks(r), rtol=1e-12, atol=1e-12)
    columns = r.score, r.hits, r.misses
    np.testing.assert_allclose(loops.log_likelihood(*columns), _proper._log_likelihood(*columns), rtol=1e-13)
    kernel = r.score, r.size, r.hits, 0.4
    np.testing.assert_allclose(loops.laplacian(*kernel), _kernel._laplacian(*kernel), rtol=1e-9, atol=1e-12 * r.n)


@needs_library
@given(rankings)
def test_isotonic_accuracies(r):
    ours, theirs = loops.majorant(r.kept, r.right), _proper._pooled(r)
    accuracy = [np.repeat(np.diff(r.right[x]) / np.diff(r.kept[x]), np.diff(x)) for x in (ours, theirs)]
    np.testing.assert_allclose(*accuracy, rtol=1e-12)
    assert (np.diff(np.diff(r.right[ours]) / np.diff(r.kept[ours])) < 0).all()


@needs_library
@given(rankings)
def test_sweeps_reach_as_far(r):
    reached = _sweep.sweep_bins(r)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loops, "AVAILABLE", False)
        assert _sweep.sweep_bins(r) == reached


@needs_library
@pytest.mark.parametrize("exponent", range(-307, 1, 13))
def test_logarithms_of_all_sizes(exponent):
    c = np.sort(np.random.default_rng(0).uniform(0.3, 1, 500))[::-1] * 10.0**exponent
    none, one = np.zeros(500), np.ones(500)
    np.testing.assert_allclose(loops.log_likelihood(c, one, none), np.log(c).sum(), rtol=1e-14)
    np.testing.assert_allclose(loops.log_likelihood(c, none, one), np.log1p(-c).sum(), rtol=1e-12, atol=1e-13)


@needs_library
@pytest.mark.parametrize("width", [0.002, 0.05, 0.4, 3.0, 100.0])
def test_exponentials_of_all_sizes(width):
    for c in np.random.default_rng(0).random(200):
        score, one, none = np.array([c, 0.0]), np.ones(2), np.array([0.0, 1.0])  # d is -c, and 1
        pair = (loops.laplacian(score, one, none, width) - c * c - 1) / (-2 * c)
        np.testing.assert_allclose(pair, np.exp(-c / width), rtol=1e-14, atol=1e-15 / c)


@needs_library
def test_every_metric(plain):
    p = logits_of(3, 5000, 10, 3.0)
    ours, theirs = metrics.evaluate(p), plain(metrics.evaluate, p)
    assert list(ours) == list(theirs)
    np.testing.assert_allclose(list(ours.values()), list(theirs.values()), rtol=2e-5, atol=1e-7)


def loaded_from(folder: Path):
    spec = importlib.util.spec_from_file_location("of_another_source", folder / SOURCE.name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@needs_library
def test_a_library_of_another_source_is_not_loaded(tmp_path):
    for file in [SOURCE, SOURCE.with_name("loops.c"), *SOURCE.parent.glob("loops-*.so")]:
        shutil.copy(file, tmp_path)
    assert loaded_from(tmp_path).AVAILABLE
    (tmp_path / "loops.c").write_text("int nothing;")
    assert not loaded_from(tmp_path).AVAILABLE


@needs_library
def test_a_library_that_cannot_be_loaded_is_named(tmp_path):
    for file in [SOURCE, SOURCE.with_name("loops.c")]:
        shutil.copy(file, tmp_path)
    (library,) = SOURCE.parent.glob("loops-*.so")
    (tmp_path / library.name).write_bytes(b"no library")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert not loaded_from(tmp_path).AVAILABLE
    assert library.name in str(caught[0].message)
