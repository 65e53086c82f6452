"""Objectives: what training minimizes, where a method needs more than logits and labels, built from the task.

An objective is `(model, batch) -> scalar`. The functions here give, for their hyper-parameters, the builder
`Task -> Objective` that a recipe holds.
"""

from assay.nn.objectives._crl import CorrectnessRanking, crl, margin, max_probability, negative_entropy, ranking_loss
from assay.nn.objectives._cs_kd import cs_kd, distillation, with_partners
from assay.nn.objectives._mixup import mixup
from assay.nn.objectives._of_loss import every_node, of_loss
from assay.nn.objectives._scheduled_focal import scheduled_focal

__all__ = [
    "CorrectnessRanking",
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
