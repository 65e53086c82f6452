"""Scores that need the network itself: computed once for a run, and written beside its predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

import numpy as np

from assay._core.arrays import Floats, InputError
from assay._core.lookup import check_values, hyper_parameters, lookup
from assay._core.manifest import intact, recording
from assay._core.own_code import entry_point, is_own
from assay._core.text import file_name
from assay._core.variants import Variant
from assay._core.writing import replacing
from assay.scores import SCORES, max_logit_p_norm, trust_score

if TYPE_CHECKING:
    from assay.nn.data import Samples, Splits
    from assay.nn.networks import Network
    from assay.nn.training import Hardware

    Scorer = Callable[[Samples], Floats]


def by_trust(
    network: Network,
    splits: Splits,
    seed: int,
    hardware: Hardware,
    *,
    alpha: float = 0.0,
    k: int = 10,
    neighbor: int = 1,
) -> Scorer:
    """TrustScore from the features of the training samples; nothing about it is random."""
    from assay.nn.training import predict

    train = predict(network, splits.train, features=True)
    assert train.features is not None, "asked for"
    score = trust_score(train.features, train.labels, n_classes=train.n_classes, alpha=alpha, k=k, neighbor=neighbor)
    return lambda samples: score(predict(network, samples, features=True))


def by_confidnet(
    network: Network,
    splits: Splits,
    seed: int,
    hardware: Hardware,
    *,
    epochs: int = 500,
    fine_tuning: int = 500,
    lr: float = 1e-4,
    fine_tuning_lr: float = 1e-5,
) -> Scorer:
    """ConfidNet, so many epochs of each of its two stages; 0 epochs leave out the second."""
    from assay.nn.confidnet import confidnet, fine_tuned

    net = confidnet(network, splits, epochs=epochs, lr=lr, seed=seed, hardware=hardware)
    if fine_tuning:
        net = fine_tuned(net, splits, epochs=fine_tuning, lr=fine_tuning_lr, seed=seed, hardware=hardware)
    return lambda samples: net.score(net.predictions(samples))


def by_p_norm(network: Network, splits: Splits, seed: int, hardware: Hardware) -> Scorer:
    """MaxLogit-pNorm, its power chosen on the held-out samples; nothing about it is random."""
    from assay.nn.training import predict

    if len(splits.held_out) == 0:
        raise InputError("max_logit_p_norm is chosen on held-out samples, and held_out is 0")
    score = max_logit_p_norm(predict(network, splits.held_out))
    return lambda samples: score(predict(network, samples))


LEARNED: dict[str, Callable[..., Scorer]] = {
    "trust_score": by_trust,
    "confidnet": by_confidnet,
    "max_logit_p_norm": by_p_norm,
}
PROBABILITIES = ("confidnet",)
"""Learned scores that estimate a probability of being right, so that their calibration can be measured (singh2021)."""


def check_score(score: Variant) -> None:
    """Refuse an unknown score, or values that it does not have; reading a study imports no code of others."""
    if is_own(score.name) or (score.name not in (*SCORES, *LEARNED) and entry_point("score", score.name)):
        return
    known: dict[str, Callable[..., Any]] = {**SCORES, **LEARNED}
    check_values("score", hyper_parameters(lookup("score", score.name, known)), score.values)


def learn_score(score: Variant, network: object, splits: Splits, *, seed: int, hardware: Hardware) -> Scorer:
    """Learn a score of a trained network."""
    from assay.nn.networks import Network

    if not isinstance(network, Network):
        raise InputError(f"{score.name} needs a network with features and a head, as those of assay.nn.networks")
    values: dict[str, Any] = dict(score.values)
    return LEARNED[score.name](network, splits, seed, hardware, **values)


def write_score(score: Variant, values: Mapping[str, Floats], folder: Path) -> None:
    """Write the values of a score on each split."""
    columns: dict[str, Any] = dict(values)
    name = _file(score)
    with recording(folder, name), replacing(folder / name) as stream:
        np.savez(stream, **columns)


def read_score(score: Variant, folder: Path, splits: Iterable[str]) -> dict[str, Floats] | None:
    """The values of a score on these splits; None if they are missing or damaged."""
    if not intact(folder, _file(score)):
        return None
    try:
        with np.load(folder / _file(score), allow_pickle=False) as stored:
            return {name: stored[name] for name in splits}
    except (OSError, ValueError, EOFError, KeyError, BadZipFile):
        return None


def _file(score: Variant) -> str:
    return f"score_{file_name(str(score))}.npz"
