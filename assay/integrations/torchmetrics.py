"""A torchmetrics `Metric` of calibration and failure prediction: a tally in one tensor of fixed size that adds up."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torchmetrics import Metric

from assay._core.arrays import Floats, InputError
from assay.metrics import evaluate
from assay.predictions import Outcomes, Predictions
from assay.scale import Cells, Tally, added
from assay.scale._cells import MOST, NONE
from assay.scale._filling import sums_of

KEYS = (
    *("accuracy", "mean_confidence", "nll", "brier", "mean_entropy"),
    *("ece", "mce", "oe", "rmsce"),
    *("auroc", "aupr_success", "aupr_error", "fpr95", "aurc", "e_aurc", "augrc"),
    *("risk_at_80", "risk_at_90", "risk_at_95"),
)

RECENT = 2**14  # rows that are kept as they are until they are counted together
# Of the state: level, number of cells, number of recent rows; sums of NLL, Brier and entropy; recent rows; cells.
ENDS = np.cumsum([3, 12, RECENT, 4 * MOST])


class Trust(Metric):
    """Metrics of `evaluate` by key, from logits [n, k], or probabilities if `normalized`, and labels [n].

    The state is a tally: up to 20,000 distinct confidences everything is what `evaluate` says, beyond that see `Tally`.

    >>> trust = Trust("ece", "auroc", prefix="val/")
    >>> trust.update(torch.tensor([[2.0, 0.0], [0.1, 0.0], [0.0, 3.0]]), torch.tensor([0, 1, 1]))
    >>> {key: round(value.item(), 3) for key, value in trust.compute().items()}
    {'val/ece': 0.231, 'val/auroc': 1.0}
    """

    full_state_update = False
    counted: Tensor

    def __init__(self, *keys: str, prefix: str = "", normalized: bool = False, **kwargs: Any):
        super().__init__(**kwargs)
        for key in keys:
            if key not in KEYS:
                raise InputError(
                    f"'{key}' needs all rows, which a state of fixed size has not; it has {', '.join(KEYS)}"
                )
        self.keys, self.prefix, self.normalized = keys or KEYS, prefix, normalized
        self.add_state("counted", torch.zeros(int(ENDS[-1]), dtype=torch.float64), dist_reduce_fx=_sum)

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Take in a batch."""
        make = Predictions.from_probabilities if self.normalized else Predictions.from_logits
        state = self.counted.cpu().numpy()
        _add(make(preds.detach(), target.detach()).outcomes(), state)
        if self.counted.device.type != "cpu":
            self.counted.copy_(torch.from_numpy(state))

    def compute(self) -> dict[str, Tensor]:
        """The metrics by key, each after the prefix."""
        tally = _tally(self.counted.cpu().numpy())
        if not len(tally):
            raise InputError("no batch was given to the metric")
        found = evaluate(tally, self.keys)
        return {self.prefix + key: torch.tensor(found[key], dtype=torch.float64, device=self.device) for key in found}


def _add(o: Outcomes, state: Floats) -> None:
    """Rows as their confidence, that of errors negative; they are counted when there is no more room."""
    head, sums, recent, _ = np.split(state, ENDS[:-1])
    start = int(head[2])
    if start + len(o) > RECENT:
        state[:] = _state(_tally(state) + Tally.of(o))
        return
    sums += sums_of(o).reshape(-1)
    recent[start : start + len(o)] = np.copysign(o.confidence, o.correct - 0.5)
    head[2] += len(o)


def _tally(state: Floats) -> Tally:
    head, sums, recent, cells = np.split(state, ENDS[:-1])
    level, n, rows = map(int, head)
    *columns, place = cells.reshape(4, MOST)[:, :n]
    mixed = np.signbit(place)
    counted = Cells(np.stack(columns, 1), mixed, level, np.abs(place).astype(np.int64)[: n if level else 0])
    new = Cells.of_scores(np.abs(recent[:rows]), ~np.signbit(recent[:rows])) if rows else NONE
    return Tally((counted + new).fitting(True), sums.reshape(3, 2, 2))


def _state(tally: Tally) -> Floats:
    """What `_tally` reads: the place of a cell is negative if it is mixed."""
    cells, n = tally.cells, len(tally.cells.table)
    state = np.zeros(ENDS[-1])
    head, sums, _, into = np.split(state, ENDS[:-1])
    head[:2], sums[:] = (cells.level, n), tally.sums.reshape(-1)
    place = cells.place if cells.level else np.zeros(n)
    into.reshape(4, MOST)[:, :n] = *cells.table.T, np.copysign(place, np.where(cells.mixed, -1.0, 1.0))
    return state


def _sum(states: Tensor) -> Tensor:
    """The state of all rows, from those of several processes, [p, ...]."""
    return torch.from_numpy(_state(added(map(_tally, states.cpu().numpy())))).to(states.device)
