"""Objectives: what training minimizes, for methods that need more than logits and labels.

An objective is `(model, batch) -> scalar`. The functions here take hyper-parameters and return the builder
`Task -> Objective` that a recipe holds.
"""

from assay.nn.objectives._crl import CorrectnessRanking, crl, margin, max_probability, negative_entropy, ranking_loss
from assay.nn.objectives._cs_kd import cs_kd, distillation, with_partners
from assay.nn.objectives._mixup import mixup
from assay.nn.objectives._objective import Batch, Objective, Task, every_node, of_loss
from assay.nn.objectives._scheduled_focal import scheduled_focal

__all__ = [
    "Batch",
    "CorrectnessRanking",
    "Objective",
    "Task",
    "crl",
    "cs_kd",
    "distillation",
    "every_node",
    "margin",
    "max_probability",
    "mixup",
    "negative_entropy",
    "of_loss",
    "ranking_loss",
    "scheduled_focal",
    "with_partners",
]
