"""ConfidNet: what is frozen and what is not, what it is trained towards, and that it learns to rank."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from assay._core.arrays import InputError
from assay.metrics import aupr_error, auroc
from assay.nn.confidnet import ConfidNet, confidnet, fine_tuned, held_out_aupr_error, true_class_probability
from assay.nn.data import Cut, Splits, load
from assay.nn.networks import Network, mlp, vgg16_confidnet
from assay.nn.objectives import Batch, Task
from assay.nn.recipes import recipe
from assay.nn.training import NOTHING, predict, train
from assay.predictions import Outcomes, Predictions
from assay.scores import outcomes_by


@pytest.fixture(scope="module")
def digits() -> Splits:
    return load("digits", cut=Cut(n_train=400, held_out=400))


@pytest.fixture(scope="module")
def classifier(digits: Splits) -> Network:
    """Small and stopped early, so that there are errors to learn from."""
    network = mlp(10, inputs=64, width=16)
    torch.manual_seed(0)
    for p in network.parameters():
        nn.init.normal_(p, std=0.2)
    train(network, digits, replace(recipe("cross_entropy"), epochs=3, batch_size=32), record=NOTHING)
    return network


def weights(module: nn.Module) -> list[Tensor]:
    return [w.clone() for w in module.state_dict().values()]


def same(a: list[Tensor], b: list[Tensor]) -> bool:
    return all(map(torch.equal, a, b))


def test_the_head_on_512_features_has_686801_weights():
    head = ConfidNet(vgg16_confidnet(10)).head
    assert sum(p.numel() for p in head.parameters()) == 686_801
    assert [layer.out_features for layer in head if isinstance(layer, nn.Linear)] == [400, 400, 400, 400, 1]


def test_the_target_is_the_probability_of_the_true_class(classifier: Network, digits: Splits):
    net, rows = ConfidNet(classifier), torch.tensor([7, 3, 11])
    x = torch.randn(3, 1, 8, 8)
    loss = true_class_probability(digits.train.y)(Task(400, 2, 1))(
        net, Batch(x, torch.zeros(3, dtype=torch.long), rows)
    )
    confidence = net.head(classifier.features(x)).sigmoid().squeeze(1)
    p = classifier(x).softmax(1)[torch.arange(3), digits.train.y[rows]]
    assert loss.item() == pytest.approx((confidence - p).square().mean().item(), rel=1e-5)
    loss.backward()
    assert all(q.grad is None for q in [*net.classifier.parameters(), *net.encoder.parameters()])
    assert all(q.grad is not None for q in net.head.parameters())


def test_the_first_stage_changes_the_head_alone(classifier: Network, digits: Splits):
    before = weights(classifier)
    net = confidnet(classifier, digits, epochs=2)
    assert same(weights(classifier), before)
    assert same(weights(net.classifier), before)
    assert same(weights(net.encoder), before)
    assert not same(weights(net.head), weights(confidnet(classifier, digits, epochs=1, lr=0.0).head))


def test_the_second_stage_changes_features_but_no_answers(classifier: Network, digits: Splits):
    first = confidnet(classifier, digits, epochs=1)
    head = weights(first.head)
    second = fine_tuned(first, digits, epochs=2, lr=1e-3)
    assert same(weights(first.head), head)
    assert same(weights(first.encoder), weights(classifier))
    assert same(weights(second.classifier), weights(classifier))
    assert not same(weights(second.encoder.body), weights(classifier.body))
    assert np.array_equal(second.predictions(digits.test).values, predict(classifier, digits.test).values)


def test_the_second_stage_leaves_alone_what_the_classifier_did_not_train(classifier: Network, digits: Splits):
    """As fixed word vectors."""
    fixed = deepcopy(classifier)
    first, *_ = [layer for layer in fixed.body.modules() if isinstance(layer, nn.Linear)]
    first.weight.requires_grad_(False)
    tuned = fine_tuned(confidnet(fixed, digits, epochs=1), digits, epochs=1, lr=1e-3).encoder.body
    moved = [not torch.equal(a, b) for a, b in zip(tuned.parameters(), fixed.body.parameters(), strict=True)]
    assert moved == [weight.requires_grad for weight in fixed.body.parameters()]
    assert sum(moved) == len(moved) - 1


def test_a_classifier_without_held_out_errors_keeps_the_last_head(classifier: Network, digits: Splits):
    """AUPR-error is then nan in every epoch."""
    right = torch.from_numpy(predict(classifier, digits.held_out).outcomes().correct)
    sure = replace(digits, held_out=digits.held_out[right])
    with pytest.warns(UserWarning, match="all are nan; the last is kept"):
        heads = [weights(confidnet(classifier, sure, epochs=n).head) for n in (1, 2)]
    assert not same(*heads)


def test_dropout_is_on_in_the_first_stage_only_and_batch_norm_never_learns():
    body = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.BatchNorm1d(32), nn.Dropout(0.5))
    net, x = ConfidNet(Network(body, nn.Linear(32, 10))).train(), torch.randn(8, 1, 8, 8)
    statistics = weights(net.encoder.body[2])
    assert not torch.equal(net(x), net(x))
    net.train().dropout = False
    assert torch.equal(net(x), net(x))
    assert same(weights(net.encoder.body[2]), statistics)


def test_errors_are_found_by_the_lowest_chance_of_being_right():
    """Of the two classes wrong (0) and right (1), whichever is the likelier."""
    p = Predictions.from_logits([[0.0, 3.0], [0.0, -1.0], [0.0, -2.0], [0.0, -3.0]], [1, 1, 0, 1])
    by_hand = Outcomes.from_scores([3.0, -1.0, -2.0, -3.0], [1, 1, 0, 1], is_probability=False)
    assert held_out_aupr_error(p) == aupr_error(by_hand) == 0.5


def test_it_learns_to_rank_and_is_a_score(classifier: Network, digits: Splits):
    net = confidnet(classifier, digits, epochs=30, lr=1e-3)
    predictions = net.predictions(digits.test)
    outcomes = outcomes_by(net.score, predictions)
    assert len(outcomes) == 359
    assert not outcomes.is_probability
    assert np.array_equal(outcomes.correct, predictions.outcomes().correct)
    assert net.score(predictions).dtype == np.float64
    untrained = outcomes_by(ConfidNet(classifier).score, predictions)
    assert auroc(outcomes) > max(auroc(untrained), 0.65)
    with pytest.raises(InputError, match="features"):
        net.score(predict(classifier, digits.test))


def test_the_kept_epoch_is_best_by_aupr_error_on_held_out_samples(classifier: Network, digits: Splits, tmp_path: Path):
    net = confidnet(classifier, digits, epochs=6, lr=3e-3, out=tmp_path)
    found = [
        aupr_error(outcomes_by(confidnet(classifier, digits, epochs=n, lr=3e-3).score, kept))
        for n, kept in ((n, net.predictions(digits.held_out)) for n in (1, 3, 6))
    ]
    assert found == sorted(found)  # the best of more epochs is no worse


def test_training_can_be_resumed(classifier: Network, digits: Splits, tmp_path: Path):
    whole = confidnet(classifier, digits, epochs=2, out=tmp_path)
    again = confidnet(deepcopy(classifier), digits, epochs=2, out=tmp_path)
    assert same(weights(whole), weights(again))
