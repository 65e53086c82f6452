"""A torchmetrics `Metric` of calibration and failure prediction, whose state has a fixed size and merges by sums."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torchmetrics import Metric

from assay import metrics
from assay._core.arrays import Floats, InputError
from assay.metrics import Bins, Ranking
from assay.predictions import Outcomes, Predictions

N_BINS = 15
GRID = 2**14  # cells of the confidence: of -log2(1 - c), with 256 in each halving of the rest to 1

FROM_MEANS = ("accuracy", "mean_confidence", "nll", "brier", "mean_entropy")
FROM_BINS: dict[str, Callable[[Bins], float]] = {
    "ece": metrics.ece,
    "mce": metrics.mce,
    "oe": metrics.oe,
    "rmsce": metrics.rmsce,
}
FROM_RANKING: dict[str, Callable[[Ranking], float]] = {
    "auroc": metrics.auroc,
    "aupr_success": metrics.aupr_success,
    "aupr_error": metrics.aupr_error,
    "fpr95": metrics.fpr95,
    "aurc": metrics.aurc,
    "e_aurc": metrics.e_aurc,
    "augrc": metrics.augrc,
    "risk_at_80": metrics.risk_at_80,
    "risk_at_90": metrics.risk_at_90,
}
KEYS = (*FROM_MEANS, *FROM_BINS, *FROM_RANKING)


class Trust(Metric):
    """Metrics of `evaluate` by key, from logits [n, k], or probabilities if `normalized`, and labels [n].

    Means and errors in bins of equal width are those of `evaluate`. Metrics of the ranking take answers as tied whose
    confidences share one of 16,384 cells, fine near 1; they differ from `evaluate` by less than 1e-3.

    >>> trust = Trust("ece", "auroc", prefix="val/")
    >>> trust.update(torch.tensor([[2.0, 0.0], [0.1, 0.0], [0.0, 3.0]]), torch.tensor([0, 1, 1]))
    >>> {key: round(value.item(), 3) for key, value in trust.compute().items()}
    {'val/ece': 0.231, 'val/auroc': 1.0}
    """

    full_state_update = False

    def __init__(self, *keys: str, prefix: str = "", normalized: bool = False, **kwargs: Any):
        super().__init__(**kwargs)
        for key in keys:
            if key not in KEYS:
                raise InputError(
                    f"'{key}' needs all rows, which a state of fixed size has not; it has {', '.join(KEYS)}"
                )
        self.keys, self.prefix, self.normalized = keys or KEYS, prefix, normalized
        zeros = {"sums": (6,), "bins": (3, N_BINS), "grid": (3, GRID)}
        for name, shape in zeros.items():
            self.add_state(name, torch.zeros(shape, dtype=torch.float64), dist_reduce_fx="sum")

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Take in a batch."""
        make = Predictions.from_probabilities if self.normalized else Predictions.from_logits
        o = make(preds.detach(), target.detach()).outcomes()
        for name, added in (("sums", _sums(o)), ("bins", _bins(o)), ("grid", _grid(o))):
            state = getattr(self, name)
            state += torch.from_numpy(added).to(state.device)

    def compute(self) -> dict[str, Tensor]:
        """The metrics by key, each after the prefix."""
        sums, bins, grid = (getattr(self, name).cpu().numpy() for name in ("sums", "bins", "grid"))
        if not sums[0]:
            raise InputError("no batch was given to the metric")
        binned, ranked = Bins(np.arange(1, N_BINS + 1) / N_BINS, *bins), _as_ranking(grid)
        found = dict(zip(FROM_MEANS, (sums[1:] / sums[0]).tolist(), strict=True))
        found |= {key: FROM_BINS[key](binned) for key in self.keys if key in FROM_BINS}
        found |= {key: FROM_RANKING[key](ranked) for key in self.keys if key in FROM_RANKING}
        return {self.prefix + key: torch.tensor(found[key], device=self.device) for key in self.keys}


def _sums(o: Outcomes) -> Floats:
    columns = (np.ones(len(o)), o.correct, o.confidence, o.nll, o.brier, o.entropy)
    return np.array([column.sum(dtype=np.float64) for column in columns if column is not None])


def _bins(o: Outcomes) -> Floats:
    """The sums of bins of equal width."""
    found = metrics.equal_width(o, N_BINS)
    return np.stack([found.count, found.confidence, found.correct])


def _grid(o: Outcomes) -> Floats:
    """Size, errors and summed confidence of each cell."""
    with np.errstate(divide="ignore"):
        place = np.clip(-np.log2(1 - o.confidence) * 256, 0, GRID - 1).astype(int)
    return np.stack([np.bincount(place, x, GRID) for x in (np.ones(len(o)), ~o.correct, o.confidence)])


def _as_ranking(grid: Floats) -> Ranking:
    size, wrong, confidence = grid[:, ::-1][:, grid[0, ::-1] > 0]
    return Ranking(confidence / size, np.append(0, size.cumsum()), np.append(0, wrong.cumsum()))
