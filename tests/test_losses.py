"""Losses: known values, gradients, limits, and calm where numbers are extreme."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from assay import Outcomes, metrics
from assay.metrics import equal_width
from assay.nn.losses import (
    avuc,
    avuc_gs,
    brier,
    cross_entropy,
    entropy_regularized,
    focal,
    focal_gradient_factor,
    focal_sample_wise,
    gamma_for,
    inverse_focal,
    label_smoothing,
    label_smoothing_of_others,
    mmce,
    mmce_weighted,
    mse,
    norm_regularized,
    s_avuc,
    sb_ece_bin,
    sb_ece_lb,
    soft_binned_ece,
    soft_label_binned_ece,
    soft_membership,
    soft_uncertainty,
    with_secondary,
)

PRIMARY = {
    "cross_entropy": cross_entropy,
    "label_smoothing": label_smoothing,
    "label_smoothing_of_others": label_smoothing_of_others,
    "focal": focal,
    "focal_detached": partial(focal, detach_weight=True),
    "focal_gamma_half": partial(focal, gamma=0.5),
    "focal_sample_wise": focal_sample_wise,
    "inverse_focal": inverse_focal,
    "brier": brier,
    "mse": mse,
    "entropy_regularized": entropy_regularized,
    "norm_regularized": norm_regularized,
    "norm_regularized_l2": partial(norm_regularized, p=2.0),
}
SECONDARY = {
    "mmce": mmce,
    "mmce_weighted": mmce_weighted,
    "mmce_weighted_twice": partial(mmce_weighted, normalized_twice=True),
    "avuc": avuc,
    "avuc_gs": avuc_gs,
    "s_avuc": s_avuc,
    "s_avuc_sharp": partial(s_avuc, kappa=0.3, temperature=0.01),
    "sb_ece_bin": sb_ece_bin,
    "sb_ece_bin_sharp": partial(sb_ece_bin, temperature=1e-4),
    "sb_ece_bin_l1": partial(sb_ece_bin, norm=1.0),
    "sb_ece_lb": sb_ece_lb,
    "sb_ece_lb_sharp": partial(sb_ece_lb, temperature=1e-4),
    "sb_ece_lb_l1": partial(sb_ece_lb, norm=1.0),
}
LOSSES = PRIMARY | SECONDARY

# Values worked out apart from this code.
LOGITS = torch.tensor([[2.0, 0.0, -1.0], [0.5, 1.5, 0.0], [0.0, 0.2, 0.1], [3.0, -1.0, -2.0]], dtype=torch.float64)
LABELS = torch.tensor([0, 1, 0, 1])
KNOWN = [
    (cross_entropy, 1.4652256355),
    (label_smoothing, 1.4827256355),
    (label_smoothing_of_others, 1.4914756355),
    (partial(focal, gamma=1.0), 1.2481218052),
    (partial(focal, gamma=2.0), 1.1345875634),
    (focal, 1.0621187541),
    (partial(focal, detach_weight=True), 1.0621187541),
    (partial(focal_sample_wise, cuts=(0.2,)), 1.0283592503),
    (partial(inverse_focal, gamma=1.0), 1.6823294658),
    (inverse_focal, 2.0030028846),
    (partial(inverse_focal, gamma=3.0, detach_weight=True), 2.4897500480),
    (entropy_regularized, 1.3988607286),
    (partial(entropy_regularized, beta=0.1 / 3), 1.4431039999),
    (norm_regularized, 1.4934756355),
    (brier, 0.7252498328),
    (mse, 0.2417499443),
    (mmce, 0.2197739299),
    (lambda z, y: mmce(z, y) ** 2, 0.0483005803),
    (mmce_weighted, 0.4395478598),
    (partial(mmce_weighted, normalized_twice=True), 0.2197736554),
    (sb_ece_bin, 0.4571698946),
    (sb_ece_lb, 0.4607368154),
    (lambda z, y: sb_ece_lb(z, y, lowest=1 / 3) ** 2, 0.2114466468),
    (lambda z, y: sb_ece_lb(z, y, lowest=1 / 3, temperature=1e-4) ** 2, 0.3122285212),
    (partial(avuc, kappa=0.8), 0.4066028707),
    (partial(avuc_gs, kappa=0.8), 0.4066028707),
    (partial(s_avuc, kappa=0.5, temperature=1.0), 0.8782483480),
    (partial(s_avuc, kappa=0.5, temperature=0.1), 0.9076930348),
    (partial(s_avuc, kappa=0.3, temperature=0.5), 1.1311733111),
]


@pytest.mark.parametrize(("loss", "value"), KNOWN)
def test_known_values(loss, value):
    assert loss(LOGITS, LABELS).item() == pytest.approx(value, abs=1e-9, rel=0)


@pytest.fixture
def batch() -> tuple[Tensor, Tensor]:
    """Twenty samples of six classes, half of them answered right, no two confidences near each other."""
    generator = torch.Generator().manual_seed(1)
    logits = 1.5 * torch.randn(20, 6, generator=generator, dtype=torch.float64)
    labels = torch.where(torch.arange(20) % 2 == 0, logits.argmax(1), logits.argmin(1))
    return logits.requires_grad_(), labels


def gradient(loss: Callable[[Tensor, Tensor], Tensor], logits: Tensor, labels: Tensor) -> Tensor:
    return torch.autograd.grad(loss(logits, labels), logits)[0]


@pytest.mark.parametrize("name", [name for name in LOSSES if name not in ("focal_detached", "avuc_gs")])
def test_gradients_are_those_of_finite_differences(name, batch):
    logits, labels = batch
    torch.autograd.gradcheck(lambda z: LOSSES[name](z, labels), logits, eps=1e-6, atol=1e-6, rtol=1e-4)


AT_REST = {
    "label_smoothing": partial(label_smoothing, epsilon=0.0),
    "label_smoothing_of_others": partial(label_smoothing_of_others, epsilon=0.0),
    "focal": partial(focal, gamma=0.0),
    "focal_detached": partial(focal, gamma=0.0, detach_weight=True),
    "focal_sample_wise": partial(focal_sample_wise, gammas=(0.0, 0.0)),
    "inverse_focal": partial(inverse_focal, gamma=0.0),
    "entropy_regularized": partial(entropy_regularized, beta=0.0),
    "norm_regularized": partial(norm_regularized, alpha=0.0),
    **{name: with_secondary(cross_entropy, secondary, beta=0.0) for name, secondary in SECONDARY.items()},
}


@pytest.mark.parametrize("loss", AT_REST.values(), ids=AT_REST)
def test_the_limit_is_cross_entropy(loss, batch):
    logits, labels = batch
    assert loss(logits, labels).item() == pytest.approx(F.cross_entropy(logits, labels).item(), abs=1e-12)
    assert torch.allclose(gradient(loss, *batch), gradient(F.cross_entropy, *batch), atol=1e-12)


def extreme(k: int) -> list[tuple[Tensor, Tensor]]:
    """Batches of logits +-1e4: any signs, all equal, all right, all wrong."""
    generator = torch.Generator().manual_seed(0)
    signs = torch.randint(0, 2, (12, k), generator=generator) * 2.0 - 1
    labels = torch.randint(0, k, (12,), generator=generator)
    right = 2 * F.one_hot(labels, k) - 1.0
    rows = [(signs, labels), (torch.ones(12, k), labels), (right, labels), (right, (labels + 1) % k)]
    return [(1e4 * logits, labels) for logits, labels in rows]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", LOSSES)
def test_value_and_gradient_are_finite_at_extreme_logits(name, dtype):
    for k in (2, 5):
        for logits, labels in extreme(k):
            z = logits.to(dtype).requires_grad_()
            loss = LOSSES[name](z, labels)
            loss.backward()
            assert loss.isfinite()
            assert z.grad.isfinite().all()


@pytest.mark.parametrize("name", LOSSES)
def test_autocast_to_bfloat16_costs_no_precision_beyond_the_logits(name):
    generator = torch.Generator().manual_seed(2)
    x, labels = torch.randn(16, 8, generator=generator), torch.randint(0, 5, (16,), generator=generator)
    weight = torch.randn(5, 8, generator=generator, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        logits = F.linear(x, weight)
        loss = LOSSES[name](logits, labels)
    loss.backward()
    assert logits.dtype == torch.bfloat16
    assert loss.dtype == torch.float32
    assert loss.item() == pytest.approx(LOSSES[name](logits.double(), labels).item(), rel=1e-4, abs=1e-5)
    assert weight.grad.isfinite().all()
    with torch.autocast("cpu", torch.bfloat16):
        for logits, labels in extreme(5):
            z = logits.bfloat16().requires_grad_()
            LOSSES[name](z, labels).backward()
            assert z.grad.isfinite().all()


@pytest.mark.parametrize("gamma", [0.5, 1.0, 3.0])
def test_focal_gradient_is_that_of_cross_entropy_times_the_factor(gamma, batch):
    """mukhoti2020, proposition 1; with a detached weight the factor is (1 - p)^gamma."""
    logits, labels = batch
    p = logits.detach().softmax(1).gather(1, labels[:, None])
    plain = gradient(cross_entropy, *batch)
    assert torch.allclose(
        gradient(partial(focal, gamma=gamma), *batch), focal_gradient_factor(p, gamma) * plain, atol=1e-12
    )
    detached = gradient(partial(focal, gamma=gamma, detach_weight=True), *batch)
    assert torch.allclose(detached, (1 - p) ** gamma * plain, atol=1e-12)


def test_detached_inverse_focal_weighs_the_gradient_of_cross_entropy(batch):
    logits, labels = batch
    p = logits.detach().softmax(1).gather(1, labels[:, None])
    plain = gradient(cross_entropy, *batch)
    detached = gradient(partial(inverse_focal, gamma=2.0, detach_weight=True), *batch)
    assert torch.allclose(detached, (1 + p) ** 2 * plain, atol=1e-12)


@pytest.mark.parametrize(
    ("p0", "gamma"), [(0.1, 14.92399), (0.19, 5.33704), (0.2, 4.85055), (0.25, 3.07023), (0.3, 1.95717), (0.4, 0.68051)]
)
def test_gamma_for_puts_the_factor_at_one(p0, gamma):
    assert gamma_for(p0) == pytest.approx(gamma, abs=5e-6)
    at = torch.tensor([0.9 * p0, p0, 1.1 * p0], dtype=torch.float64)
    pushed, same, held = focal_gradient_factor(at, gamma_for(p0)).tolist()
    assert pushed > 1 > held
    assert same == pytest.approx(1, abs=1e-9)


def test_gamma_for_ends():
    assert gamma_for(0.5) == gamma_for(0.9) == 0
    assert gamma_for(1e-9) > 1e9
    for p0 in (0.0, 1.0):
        with pytest.raises(ValueError, match=f"between 0 and 1, got {p0}"):
            gamma_for(p0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_gradient_factor_at_the_ends(dtype):
    ends = torch.tensor([0.0, 1.0], dtype=dtype)
    for gamma in (0.5, 1.0, 3.0):
        assert focal_gradient_factor(ends, gamma).tolist() == pytest.approx([1, 0], abs=1e-9)
    assert focal_gradient_factor(ends, 0.0).tolist() == [1, 1]


def test_sample_wise_ranges_are_closed_on_the_right():
    """5 up to .19, 3 up to .5, 2 above, .5 itself being a 3."""
    p = torch.tensor([0.1, 0.3, 0.5, 0.7], dtype=torch.float64)
    logits = torch.stack([p.log(), (1 - p).log()], 1)
    labels = torch.zeros(1, dtype=torch.long)
    for row, gamma in zip(logits, (5.0, 3.0, 3.0, 2.0), strict=True):
        found = focal_sample_wise(row[None], labels, gammas=(5.0, 3.0, 2.0), cuts=(0.19, 0.5))
        assert found.item() == pytest.approx(focal(row[None], labels, gamma=gamma).item())


def test_sample_wise_needs_a_gamma_for_every_range():
    with pytest.raises(ValueError, match="2 cuts make 3 ranges, got 2 gammas"):
        focal_sample_wise(LOGITS, LABELS, cuts=(0.2, 0.5))


def test_smoothing_targets_are_those_of_both_conventions():
    log_p = LOGITS.log_softmax(1)
    for smooth, true, other in ((label_smoothing, 0.8 + 0.2 / 3, 0.2 / 3), (label_smoothing_of_others, 0.8, 0.1)):
        target = torch.where(F.one_hot(LABELS, 3).bool(), true, other)
        assert smooth(LOGITS, LABELS, epsilon=0.2).item() == pytest.approx(float(-(target * log_p).sum(1).mean()))


def outcomes(seed: int, n: int = 400) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    confidence = 0.2 + 0.8 * torch.rand(n, generator=generator, dtype=torch.float64)
    return confidence, torch.rand(n, generator=generator, dtype=torch.float64) < confidence - 0.1


@pytest.mark.parametrize("norm", [1.0, 2.0])
def test_soft_bins_become_hard_as_they_cool(norm):
    confidence, correct = outcomes(0)
    bins = equal_width(Outcomes.from_scores(confidence, correct))
    hard = metrics.ece(bins, norm=norm)
    assert soft_binned_ece(confidence, correct, norm=norm, temperature=1e-8).item() == pytest.approx(hard, abs=1e-6)
    accuracy = torch.from_numpy(bins.accuracy)[(confidence * 15).ceil().long() - 1]
    hard_lb = (accuracy - confidence).abs().pow(norm).mean() ** (1 / norm)
    soft_lb = soft_label_binned_ece(confidence, correct, norm=norm, temperature=1e-8)
    assert soft_lb.item() == pytest.approx(hard_lb.item(), abs=1e-6)


@pytest.mark.parametrize("temperature", [1e-4, 0.01, 1.0])
@pytest.mark.parametrize("norm", [1.0, 1.5, 2.0])
def test_label_binned_is_never_below_binned(norm, temperature):
    for seed in range(5):
        table = outcomes(seed, 60)
        low, high = (
            f(*table, norm=norm, temperature=temperature).item() for f in (soft_binned_ece, soft_label_binned_ece)
        )
        assert low <= high + 1e-12


def test_memberships_add_up_and_prefer_the_nearest_bin():
    u = soft_membership(torch.linspace(0, 1, 200, dtype=torch.float64), temperature=0.003)
    assert torch.allclose(u.sum(1), torch.ones(200, dtype=torch.float64))
    centers = (torch.arange(15) + 0.5) / 15
    assert torch.equal(soft_membership(centers, temperature=0.003).argmax(1), torch.arange(15))


def test_soft_uncertainty_is_the_identity_then_a_step():
    h = torch.linspace(0.05, 0.95, 10, dtype=torch.float64)
    assert torch.allclose(soft_uncertainty(h), h)
    assert torch.allclose(soft_uncertainty(h, kappa=0.3, temperature=1e-3), (h > 0.3).double(), atol=1e-9)
    assert soft_uncertainty(torch.tensor([0.0, 1.0]), temperature=0.1).tolist() == [0, 1]


def test_the_losses_of_a_confidence_column_are_those_of_the_logits(batch):
    logits, labels = batch
    confidence, answer = logits.softmax(1).max(1)
    assert torch.allclose(soft_binned_ece(confidence, answer == labels), sb_ece_bin(logits, labels))
    assert torch.allclose(soft_label_binned_ece(confidence, answer == labels), sb_ece_lb(logits, labels))


def test_mmce_is_the_metric(batch):
    logits, labels = batch
    confidence, answer = logits.detach().softmax(1).max(1)
    found = metrics.mmce(metrics.ranking(Outcomes.from_scores(confidence, answer == labels)))
    assert mmce(logits, labels).item() == pytest.approx(found, abs=1e-12)


def test_weighted_mmce_asks_for_nothing_of_a_batch_all_right_or_all_wrong(batch):
    logits, _ = batch
    for labels in (logits.argmax(1), logits.argmin(1)):
        assert mmce_weighted(logits, labels).item() == 0
        assert not gradient(mmce_weighted, logits, labels).any()


def test_avuc_is_low_when_right_answers_are_certain_and_wrong_ones_are_not():
    sure, unsure = torch.tensor([9.0, 0.0, 0.0]), torch.tensor([0.1, 0.0, 0.0])
    right, wrong = torch.tensor([0, 1]), torch.tensor([1, 0])
    for loss in (partial(avuc, kappa=0.5), partial(s_avuc, temperature=0.1)):
        assert loss(torch.stack([sure, unsure]), right).item() < 0.3
        assert loss(torch.stack([sure, unsure]), wrong).item() > 1


def test_stopping_the_gradient_changes_the_gradient_alone(batch):
    assert avuc(*batch).item() == avuc_gs(*batch).item()
    assert not torch.allclose(gradient(avuc, *batch), gradient(avuc_gs, *batch))


def test_stopped_gradient_is_that_at_constant_confidence(batch):
    """Finite differences of AvUC in which c and 1 - c stand still."""
    logits, labels = batch
    confidence, answer = logits.detach().softmax(1).max(1)
    correct = answer == labels

    def with_constant_confidence(z: Tensor) -> Tensor:
        entropy = torch.special.entr(z.softmax(1)).sum(1)
        certain, tanh = entropy <= 1.0, entropy.tanh()
        weight = torch.where(correct, confidence, 1 - confidence)
        counts = weight * torch.where(certain, 1 - tanh, tanh)
        agreed = counts[correct == certain].sum()
        return (counts.sum() / agreed).log()

    torch.autograd.gradcheck(with_constant_confidence, logits, eps=1e-6, atol=1e-6)
    expected = torch.autograd.grad(with_constant_confidence(logits), logits)[0]
    assert torch.allclose(gradient(avuc_gs, *batch), expected, atol=1e-12)


@pytest.mark.parametrize("primary", [cross_entropy, focal, mse])
@pytest.mark.parametrize("secondary", [mmce, avuc, avuc_gs, sb_ece_lb, s_avuc])
def test_every_secondary_joins_every_primary(primary, secondary, batch):
    """karandikar2021's cross product."""
    both = with_secondary(primary, secondary, beta=0.7)
    assert torch.allclose(both(*batch), primary(*batch) + 0.7 * secondary(*batch))


@pytest.mark.parametrize("name", PRIMARY)
def test_reductions_are_of_the_same_samples(name, batch):
    loss, (logits, labels) = PRIMARY[name], batch
    each = loss(logits, labels, reduction="none")
    assert each.shape == (20,)
    assert torch.stack([loss(logits[i : i + 1], labels[i : i + 1]) for i in range(20)]).allclose(each)
    assert loss(logits, labels, reduction="sum").allclose(each.sum())
    assert loss(logits, labels).allclose(each.mean())
    with pytest.raises(ValueError, match="mean, sum or none, got 'avg'"):
        loss(logits, labels, reduction="avg")


@pytest.mark.parametrize("name", PRIMARY)
def test_ignored_samples_do_not_count(name, batch):
    loss, (logits, labels) = PRIMARY[name], batch
    some = torch.where(torch.arange(20) < 5, -100, labels)
    assert loss(logits, some, ignore_index=-100).allclose(loss(logits[5:], labels[5:]))
    assert not loss(logits, some, ignore_index=-100, reduction="none")[:5].any()
    with pytest.raises(ValueError, match=r"row 0: label -100 is outside 0..5"):
        loss(logits, some)


@pytest.mark.parametrize("name", PRIMARY)
def test_a_weighted_class_counts_as_so_many_samples(name, batch):
    loss, (logits, labels) = PRIMARY[name], batch
    weight = torch.tensor([1.0, 3.0, 1.0, 1.0, 2.0, 1.0], dtype=torch.float64)
    repeated = torch.repeat_interleave(torch.arange(20), weight[labels].long())
    assert loss(logits, labels, weight=weight).allclose(loss(logits[repeated], labels[repeated]))
    with pytest.raises(ValueError, match=r"one number a class, \[6\], got \[3\]"):
        loss(logits, labels, weight=weight[:3])


@pytest.mark.parametrize("name", PRIMARY)
def test_a_certain_soft_target_is_a_label(name, batch):
    loss, (logits, labels) = PRIMARY[name], batch
    assert loss(logits, F.one_hot(labels, 6).double()).allclose(loss(logits, labels))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy_has_the_conventions_of_torch(batch, reduction):
    logits, labels = batch
    weight = torch.rand(6, dtype=torch.float64)
    ours = cross_entropy(logits, labels, weight=weight, reduction=reduction, ignore_index=2)
    assert ours.allclose(F.cross_entropy(logits, labels, weight=weight, reduction=reduction, ignore_index=2))
    soft = torch.rand(20, 6, dtype=torch.float64).softmax(1)
    assert cross_entropy(logits, soft, reduction=reduction).allclose(F.cross_entropy(logits, soft, reduction=reduction))


@pytest.mark.parametrize("name", LOSSES)
def test_batches_of_another_shape_are_refused(name, batch):
    """A column of labels would be broadcast to all pairs of samples."""
    loss, (logits, labels) = LOSSES[name], batch
    with pytest.raises(ValueError, match=r"\[20\], got int64 of shape \[20, 1\]"):
        loss(logits, labels[:, None])
    with pytest.raises(ValueError, match=r"row 3: label 6 is outside 0..5"):
        loss(logits, torch.where(torch.arange(20) == 3, 6, labels))
    with pytest.raises(ValueError, match=r"k >= 2, got \[20, 1\]"):
        loss(logits[:, :1], torch.zeros(20, dtype=torch.long))


@pytest.mark.parametrize("name", ["mmce", "avuc", "s_avuc", "sb_ece_lb"])
def test_compiled_secondary_losses_refuse_labels_out_of_range(name, batch):
    """A compiled loss does not look at values first; a label that no answer equals would count as an error."""
    logits, labels = batch
    loss = torch.compile(SECONDARY[name], backend="eager")
    with pytest.raises(RuntimeError, match="index 6 is out of bounds"):
        loss(logits, torch.where(torch.arange(20) == 3, 6, labels))
