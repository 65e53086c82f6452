"""Addressing failure prediction by learning model confidence (Corbière et al., NeurIPS 2019): ConfidNet.

A second head on a classifier's penultimate features learns the probability that the classifier gives to the true class,
which should separate right from wrong answers better than the highest probability does. It is a classifier of two
classes, wrong and right, so that the usual loop trains it, with its checkpoints and its history.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.optim import Adam, Optimizer

from assay._core.arrays import Floats, InputError
from assay.metrics import aupr_error, positive_class
from assay.nn.data import Samples, Splits
from assay.nn.networks import Network
from assay.nn.objectives import Batch, Objective, Task
from assay.nn.training import Hardware, Recipe, best, predict, seed_of, train
from assay.predictions import Predictions


class ConfidNet(nn.Module):
    """A classifier, a copy of it that gives the features, and the head that computes the confidence from them.

    `confidnet` makes it. `outcomes_by(net.score, net.predictions(samples))` ranks answers by its confidence.
    """

    def __init__(self, classifier: Network, *, width: int = 400) -> None:
        super().__init__()
        self.classifier = deepcopy(classifier).requires_grad_(False)
        self.encoder = deepcopy(classifier).requires_grad_(False)
        first = (nn.Linear(classifier.head.in_features, width), nn.ReLU())
        hidden = [module for _ in range(3) for module in (nn.Linear(width, width), nn.ReLU())]
        self.head = nn.Sequential(*first, *hidden, nn.Linear(width, 1))
        self.dropout = True  # in the encoder, in train mode
        # Weights of the body to fine-tune: some, such as word vectors, may be fixed.
        self.trainable = [name for name, weight in classifier.body.named_parameters() if weight.requires_grad]

    def forward(self, x: Tensor) -> Tensor:
        """Logits [n, 2] of a wrong and of a right answer."""
        for module in self.encoder.modules():
            # BatchNorm keeps its statistics; `dropout` decides on train mode elsewhere.
            module.training &= self.dropout and not isinstance(module, _BatchNorm)
        logit = self.head(self.encoder.features(x))
        return torch.cat([torch.zeros_like(logit), logit], 1)

    def predictions(self, samples: Samples) -> Predictions:
        """The classifier's predictions, with the features that `score` reads."""
        features = predict(self.encoder, samples, features=True).features
        return replace(predict(self.classifier, samples), features=features)

    @torch.no_grad()
    def score(self, predictions: Predictions) -> Floats:
        """The confidence [n], an estimate of the probability of the true class and so of being right."""
        if predictions.features is None:
            raise InputError("ConfidNet needs the features of its own `predictions`")
        features = torch.tensor(predictions.features).to(next(self.head.parameters()))
        confidence: Floats = self.head(features).squeeze(1).double().sigmoid().cpu().numpy()
        return confidence


def confidnet(
    classifier: Network,
    splits: Splits,
    *,
    epochs: int = 500,
    lr: float = 1e-4,
    seed: int = 0,
    out: Path | None = None,
    hardware: Hardware = Hardware(),  # noqa: B008 (frozen)
) -> ConfidNet:
    """First stage: train the head alone, on fixed features with dropout; the classifier is copied, not changed.

    The weights of the epoch of highest AUPR-error on held-out samples are kept.
    """
    with torch.random.fork_rng([]):
        torch.manual_seed(seed_of(seed))
        net = ConfidNet(classifier)
    return _trained(net, splits, _recipe("confidnet", splits, epochs, lr), seed, out, hardware)


def fine_tuned(
    net: ConfidNet,
    splits: Splits,
    *,
    epochs: int = 500,
    lr: float = 1e-5,
    seed: int = 0,
    out: Path | None = None,
    hardware: Hardware = Hardware(),  # noqa: B008 (frozen)
) -> ConfidNet:
    """Second stage: train a copy together with its features, without dropout; the classifier still gives the answers.

    Weights that the classifier did not train stay fixed. The authors do not print the learning rate.
    """
    net = deepcopy(net)
    net.dropout = False
    for name in net.trainable:
        net.encoder.body.get_parameter(name).requires_grad_(True)
    return _trained(net, splits, _recipe("confidnet_fine_tuned", splits, epochs, lr), seed, out, hardware)


def true_class_probability(labels: Tensor) -> Callable[[Task], Objective]:
    """Minimize the squared error of the confidence against the probability that the classifier gives the true class.

    `labels` [n] are the true classes of the training set. The classifier answers in eval mode.
    """

    def objective(net: nn.Module, batch: Batch) -> Tensor:
        classifier: nn.Module = net.classifier  # type: ignore[assignment]
        true = labels[batch.index].to(batch.x.device)
        with torch.no_grad():
            target = classifier.eval()(batch.x).softmax(1).gather(1, true[:, None]).squeeze(1)
        return F.mse_loss(net(batch.x).softmax(1)[:, 1], target)

    return lambda task: objective


def held_out_aupr_error(predictions: Predictions) -> float:
    """Average precision of finding the errors, the least confident first."""
    return aupr_error(positive_class(predictions))


def _recipe(name: str, splits: Splits, epochs: int, lr: float) -> Recipe:
    def adam(net: nn.Module) -> Optimizer:
        return Adam([p for p in net.parameters() if p.requires_grad], lr=lr)

    return Recipe(name, true_class_probability(splits.train.y), adam, epochs, keep=best(held_out_aupr_error))


def _trained(
    net: ConfidNet, splits: Splits, recipe: Recipe, seed: int, out: Path | None, hardware: Hardware
) -> ConfidNet:
    judged = partial(_judged, net.classifier)
    parts = Splits(judged(splits.train), judged(splits.held_out), judged(splits.test))
    train(net, parts, recipe, seed=seed, out=out, hardware=hardware)
    return net


def _judged(classifier: Network, samples: Samples) -> Samples:
    """The samples, labeled by whether the classifier's answer is right."""
    facts = replace(samples.facts, classes=("wrong", "right"))
    if len(samples) == 0:
        return replace(samples, facts=facts)
    correct = predict(classifier, samples).outcomes().correct
    return replace(samples, y=torch.from_numpy(correct).long(), facts=facts)
