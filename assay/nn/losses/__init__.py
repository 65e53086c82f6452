"""Losses: pure functions (logits, labels, *, hyper) -> scalar, one paper a file.

A primary loss is a mean over samples and has torch's `reduction`, `weight` and `ignore_index`; its labels may be soft
targets [n, k], of which it takes the mean over the classes. It can be used alone; a secondary one (MMCE, AvUC, S-AvUC,
SB-ECE) is added to a primary one:

>>> import torch
>>> logits, labels = torch.tensor([[2.0, 0.0, -1.0], [0.5, 1.5, 0.0], [3.0, -1.0, -2.0]]), torch.tensor([0, 1, 1])
>>> cross_entropy(logits, labels) + 0.5 * sb_ece_lb(logits, labels)
tensor(1.8010)
"""

from assay.nn.losses._avuc import avuc, avuc_gs
from assay.nn.losses._brier import brier, mse
from assay.nn.losses._composite import Loss, with_secondary
from assay.nn.losses._cross_entropy import cross_entropy
from assay.nn.losses._curves import (
    FOCAL_FAMILY,
    at_probabilities,
    gradient_factors_at,
    soft_memberships_at,
    soft_uncertainties_at,
)
from assay.nn.losses._entropy import entropy_regularized
from assay.nn.losses._focal import focal, focal_gradient_factor, focal_sample_wise, gamma_for
from assay.nn.losses._inverse_focal import inverse_focal
from assay.nn.losses._label_smoothing import label_smoothing, label_smoothing_of_others
from assay.nn.losses._mmce import mmce, mmce_weighted
from assay.nn.losses._norm import norm_regularized
from assay.nn.losses._s_avuc import s_avuc, soft_uncertainty
from assay.nn.losses._sb_ece import sb_ece_bin, sb_ece_lb, soft_binned_ece, soft_label_binned_ece, soft_membership
from assay.nn.losses._softmax import log_probabilities
from assay.nn.losses._target import Reduction

__all__ = [
    "FOCAL_FAMILY",
    "Loss",
    "Reduction",
    "at_probabilities",
    "avuc",
    "avuc_gs",
    "brier",
    "cross_entropy",
    "entropy_regularized",
    "focal",
    "focal_gradient_factor",
    "focal_sample_wise",
    "gamma_for",
    "gradient_factors_at",
    "inverse_focal",
    "label_smoothing",
    "label_smoothing_of_others",
    "log_probabilities",
    "mmce",
    "mmce_weighted",
    "mse",
    "norm_regularized",
    "s_avuc",
    "sb_ece_bin",
    "sb_ece_lb",
    "soft_binned_ece",
    "soft_label_binned_ece",
    "soft_membership",
    "soft_memberships_at",
    "soft_uncertainties_at",
    "soft_uncertainty",
    "with_secondary",
]
