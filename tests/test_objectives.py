"""Objectives: known values, limits, memory, and the same answer when a batch is looked at twice."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from assay._core.arrays import InputError
from assay.nn import objectives
from assay.nn.losses import cross_entropy, focal
from assay.nn.objectives import (
    Batch,
    CorrectnessRanking,
    Task,
    crl,
    cs_kd,
    distillation,
    every_node,
    mixup,
    of_loss,
    ranking_loss,
    scheduled_focal,
    with_partners,
)

LOGITS = torch.tensor([[2.0, 0.0, -1.0], [0.5, 1.5, 0.0], [0.0, 0.2, 0.1], [3.0, -1.0, -2.0]], dtype=torch.float64)
TASK = Task(n_samples=100, n_classes=3, epochs=350)


@pytest.fixture
def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Linear(5, 3)


@pytest.fixture
def batch() -> Batch:
    generator = torch.Generator().manual_seed(3)
    labels = torch.tensor([0, 1, 2, 1, 0, 1, 2, 1])
    return Batch(torch.randn(8, 5, generator=generator), labels, torch.arange(30, 38), epoch=4)


@pytest.mark.parametrize(
    ("build", "rows"),
    [
        (of_loss(cross_entropy), 8),
        (scheduled_focal(gammas=(0.0,), starts=()), 8),
        (mixup(alpha=1e-9), 8),
        (crl(weight=0.0), 8),
        (cs_kd(weight=0.0), 4),  # the others are partners
    ],
)
def test_the_limit_is_cross_entropy(build, rows, model, batch):
    expected = F.cross_entropy(model(batch.x[:rows]), batch.y[:rows])
    assert build(TASK)(model, batch).item() == pytest.approx(expected.item(), abs=1e-6)


@pytest.mark.parametrize("build", [of_loss(cross_entropy), scheduled_focal(), mixup(), crl(), cs_kd()])
def test_a_second_look_at_a_batch_sees_the_same(build, model, batch):
    """SAM looks twice; what happens to the global random state between the looks is no matter."""
    objective = build(TASK)
    first = objective(model, batch)
    torch.rand(3)
    assert objective(model, batch).item() == first.item()


def test_gamma_falls_by_epoch(model, batch):
    """5 for the first 100 epochs, 3 for the next 150, 2 for the last 100 of 350 (mukhoti2020)."""
    objective = scheduled_focal()(TASK)
    for epoch, gamma in ((0, 5.0), (99, 5.0), (100, 3.0), (249, 3.0), (250, 2.0), (349, 2.0)):
        found = objective(model, replace(batch, epoch=epoch))
        assert found.item() == focal(model(batch.x), batch.y, gamma=gamma).item()


def test_gamma_starts_with_cross_entropy_for_nine_epochs(model, batch):
    objective = scheduled_focal(gammas=(0.0, 2.0), starts=(9 / 201,))(Task(100, 3, epochs=201))
    for epoch, gamma in ((8, 0.0), (9, 2.0)):
        found = objective(model, replace(batch, epoch=epoch))
        assert found.item() == focal(model(batch.x), batch.y, gamma=gamma).item()


def test_every_phase_needs_a_gamma():
    with pytest.raises(ValueError, match="2 starts make 3 phases, got 2 gammas"):
        scheduled_focal(gammas=(5.0, 3.0))


class Recorder(nn.Module):
    """Answers with its input, and remembers it."""

    def forward(self, x: Tensor) -> Tensor:
        self.x = x
        return x


def test_mixup_mixes_inputs_and_losses_alike():
    torch.manual_seed(0)
    x = torch.eye(6)
    batch = Batch(x, torch.arange(6), torch.arange(6), epoch=1)
    model = Recorder()
    loss = mixup(alpha=1.0)(TASK)(model, batch)
    mixed = model.x
    assert torch.allclose(mixed.sum(1), torch.ones(6))
    partner = (mixed - torch.diag(mixed.diag())).argmax(1)
    partner = torch.where(mixed.diag() > 1 - 1e-6, torch.arange(6), partner)
    share = mixed.diag()[partner != torch.arange(6)][0].item()
    expected = share * F.cross_entropy(mixed, batch.y) + (1 - share) * F.cross_entropy(mixed, partner)
    assert loss.item() == pytest.approx(expected.item(), abs=1e-6)


def test_mixup_draws_anew_for_each_batch_epoch_and_seed():
    model, objective = Recorder(), mixup(alpha=1.0)(TASK)

    def mixed(seed: int, epoch: int, first: int) -> tuple[float, ...]:
        torch.manual_seed(seed)
        objective(model, Batch(torch.eye(8), torch.arange(8), torch.arange(first, first + 8), epoch))
        return tuple(model.x.flatten().tolist())

    draws = {mixed(seed, epoch, first) for seed in range(3) for epoch in range(3) for first in range(3)}
    assert len(draws) == 27
    assert mixed(1, 2, 2) in draws


def test_mixup_shares_follow_beta():
    torch.manual_seed(0)
    model, objective, shares = Recorder(), mixup(alpha=0.2)(TASK), []
    for first in range(2000):
        batch = Batch(torch.eye(3), torch.arange(3), torch.tensor([first, 0, 0]), 0)
        objective(model, batch)
        shares += [d for d in model.x.diag().tolist() if d < 1][:1]
    shares = torch.tensor(shares)
    assert shares.mean().item() == pytest.approx(0.5, abs=0.04)
    assert shares.var().item() == pytest.approx(1 / (4 * (2 * 0.2 + 1)), abs=0.02)  # of Beta(a, a)


def test_mixup_refuses_words(model):
    words = Batch(torch.ones(4, 6, dtype=torch.int32), torch.zeros(4, dtype=torch.long), torch.arange(4))
    with pytest.raises(InputError, match="which words and trees do not have"):
        mixup()(Task(4, 3, 1))(model, words)


def test_mixup_refuses_alpha_zero():
    with pytest.raises(ValueError, match="alpha must be > 0, got 0"):
        mixup(alpha=0)


def test_distillation_has_its_known_value():
    assert distillation(LOGITS[:2], LOGITS[2:]).item() == pytest.approx(1.8452186019, abs=1e-9)


def test_cs_kd_is_cross_entropy_of_the_first_half_and_learns_nothing_from_the_teacher_side(model, batch):
    batch = replace(batch, x=batch.x.clone().requires_grad_())
    loss = cs_kd(weight=2.0)(TASK)(model, batch)
    student, teacher = model(batch.x[:4]), model(batch.x[4:])
    expected = F.cross_entropy(student, batch.y[:4]) + 2 * distillation(student, teacher)
    assert loss.item() == pytest.approx(expected.item())
    loss.backward()
    assert batch.x.grad[:4].any()
    assert not batch.x.grad[4:].any()


def test_cs_kd_refuses_batches_without_partners(model, batch):
    with pytest.raises(ValueError, match="with_partners"):
        cs_kd()(TASK)(model, replace(batch, y=batch.y.sort().values))


def test_partners_have_the_same_label_and_come_from_all_of_its_class():
    labels = torch.tensor([2, 0, 1, 2, 2, 0, 4, 2])
    index = torch.tensor([4, 1, 2, 6])
    generator = torch.Generator().manual_seed(0)
    drawn = torch.stack([with_partners(index, labels, generator) for _ in range(400)])
    assert torch.equal(drawn[:, :4], index.expand(400, 4))
    assert torch.equal(labels[drawn[:, 4:]], labels[index].expand(400, 4))
    for column, members in zip(drawn[:, 4:].T, ([0, 3, 4, 7], [1, 5], [2], [6]), strict=True):
        assert column.unique().tolist() == members
        assert column.bincount()[members].min() > 0.7 * 400 / len(members)


def test_partners_follow_the_generator():
    labels, index = torch.arange(300) % 3, torch.arange(64)
    first, again, other = (with_partners(index, labels, torch.Generator().manual_seed(s)) for s in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_ranking_loss_has_its_known_value():
    history = torch.tensor([0.75, 0.25, 0.5, 0.0], dtype=torch.float64)
    confidence = objectives.max_probability(LOGITS)
    assert ranking_loss(confidence, history).item() == pytest.approx(0.6965651693, abs=1e-9)


def test_ranking_loss_asks_nothing_of_equal_histories(batch):
    assert ranking_loss(torch.rand(8), torch.full((8,), 0.5)).item() == 0


def test_ranking_loss_is_the_hinge_of_the_authors():
    """A margin-ranking loss against the next confidence plus margin / sign, zero where the signs are."""
    generator = torch.Generator().manual_seed(0)
    confidence = torch.rand(50, generator=generator).requires_grad_()
    history = torch.randint(0, 4, (50,), generator=generator) / 3
    margin = (history - history.roll(-1)).abs()
    sign = (history - history.roll(-1)).sign()
    shifted = confidence.roll(-1) + margin / torch.where(sign == 0, 1, sign)
    theirs = F.margin_ranking_loss(confidence, shifted, sign)
    ours = ranking_loss(confidence, history)
    assert ours.item() == pytest.approx(theirs.item(), abs=1e-7)
    gradients = [torch.autograd.grad(loss, confidence)[0] for loss in (ours, theirs)]
    assert torch.allclose(*gradients)


def test_confidences_of_crl():
    p = LOGITS.softmax(1)
    top = p.topk(2, 1).values
    assert torch.allclose(objectives.max_probability(LOGITS), top[:, 0])
    assert torch.allclose(objectives.margin(LOGITS), top[:, 0] - top[:, 1])
    entropy = torch.tensor([0.5242666167, 0.9059592565, 1.0952872687, 0.1290831335], dtype=torch.float64)
    assert torch.allclose(objectives.negative_entropy(LOGITS), -entropy / torch.tensor(3.0).log().double())


def answer(objective: CorrectnessRanking, epoch: int, index: list[int], right: list[bool]) -> None:
    """Show the objective a batch in which samples are answered right or not."""
    labels = torch.zeros(len(index), dtype=torch.long)
    logits = torch.where(torch.tensor(right)[:, None], torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0]))
    objective(Recorder(), Batch(logits, labels, torch.tensor(index), epoch))


def test_history_is_normalized_over_the_whole_set():
    """Counts 3 1 2 0 after four epochs are .75 .25 .5 0; once all were right the lowest is 1."""
    objective = crl()(Task(4, 2, 10))
    for epoch, right in enumerate([[1, 1, 1, 0], [1, 0, 1, 0], [1, 0, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1]]):
        if epoch == 4:
            answer(objective, epoch, [0], [True])
            assert objective.history(torch.arange(4)).tolist() == [0.75, 0.25, 0.5, 0.0]
        answer(objective, epoch, [0, 1, 2, 3], [bool(r) for r in right])
    answer(objective, 5, [0], [True])
    assert objective.history(torch.arange(4)).tolist() == [0.75, 0.25, 0.5, 0.0]  # (4 2 3 1 - 1) / (5 - 1)


def test_history_is_of_the_epochs_since_it_began():
    """As where another recipe trained before: of two samples one is right in all three epochs, one in none."""
    objective = crl()(Task(2, 2, 200))
    for epoch in (100, 101, 102, 103):
        answer(objective, epoch, [0, 1], [True, False])
    assert objective.history(torch.arange(2)).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("right", [True, False])
def test_history_is_finite_when_all_counts_are_equal(right):
    """Where the authors' code divides 0 by 0."""
    objective = crl()(Task(4, 2, 10))
    for epoch in range(4):
        assert objective.history(torch.arange(4)).tolist() == [0, 0, 0, 0]
        answer(objective, epoch, [0, 1, 2, 3], [right] * 4)
    assert objective.history(torch.arange(4)).tolist() == [0, 0, 0, 0]


def test_the_first_look_of_an_epoch_stands():
    objective = crl()(Task(3, 2, 10))
    answer(objective, 0, [0, 1], [True, False])
    answer(objective, 0, [0, 1], [False, True])
    answer(objective, 1, [2], [True])
    assert objective.count.tolist() == [1, 0, 0]
    answer(objective, 1, [0], [True])
    answer(objective, 2, [2], [True])
    assert objective.count.tolist() == [2, 0, 1]


def test_a_sample_not_shown_in_an_epoch_gains_nothing():
    objective = crl()(Task(2, 2, 10))
    answer(objective, 0, [0, 1], [True, True])
    answer(objective, 1, [1], [True])
    answer(objective, 2, [1], [True])
    assert objective.count.tolist() == [1, 2]


def test_crl_ranks_by_what_it_remembers(model, batch):
    objective = crl()(TASK)
    for epoch in range(3):
        before = objective(model, replace(batch, epoch=epoch))
    plain = F.cross_entropy(model(batch.x), batch.y)
    right = (model(batch.x).argmax(1) == batch.y).float()
    assert 0 < right.sum() < 8
    ranking = ranking_loss(objectives.max_probability(model(batch.x)), right)  # right 2 of 2 times or 0 of 2
    assert before.item() == pytest.approx((plain + ranking).item())


def test_crl_resumes_in_the_middle_of_an_epoch(model, batch, tmp_path):
    whole, part = crl()(TASK), crl()(TASK)
    steps = [replace(batch, epoch=epoch, index=batch.index + shift) for epoch in range(4) for shift in (0, 8)]
    steps.insert(5, replace(steps[4], y=2 - batch.y))  # a second look, at which other answers would be right
    expected = [whole(model, step).item() for step in steps]
    for step in steps[:5]:
        part(model, step)
    torch.save(part.state_dict(), tmp_path / "state")
    resumed = crl()(TASK)
    resumed.load_state_dict(torch.load(tmp_path / "state", weights_only=True))
    assert [resumed(model, step).item() for step in steps[5:]] == expected[5:]


class Nodes(nn.Module):
    """Logits of every node, read off the tree itself."""

    def nodes(self, x: Tensor) -> Tensor:
        return x[..., :3].double()


def test_every_node_needs_a_network_over_trees(model, batch):
    with pytest.raises(InputError, match="take one over trees"):
        every_node(cross_entropy)(TASK)(model, batch)


def test_every_node_sums_over_labeled_nodes_and_averages_over_trees():
    trees = torch.tensor(
        [[[1, 0, 0, 0, 2], [0, 3, 0, 0, -1], [0, 0, 1, 1, 0]], [[2, 0, 1, 0, 1], [0, 0, 0, -1, -1], [0, 0, 0, -1, -1]]]
    )
    labeled = [(0, 0, 2), (0, 2, 0), (1, 0, 1)]
    expected = sum(-trees[t, n, :3].double().log_softmax(0)[y].item() for t, n, y in labeled) / 2
    batch = Batch(trees, torch.tensor([0, 1]), torch.arange(2))
    assert every_node(cross_entropy)(TASK)(Nodes(), batch).item() == pytest.approx(expected)


@pytest.mark.parametrize("method", [crl(), mixup(), scheduled_focal()])
def test_methods_that_follow_epochs_refuse_batches_without_one(method, model):
    batch = Batch(torch.randn(8, 5), torch.zeros(8, dtype=torch.long), torch.arange(8))
    with pytest.raises(InputError, match="needs the epoch of each batch"):
        method(TASK)(model, batch)
