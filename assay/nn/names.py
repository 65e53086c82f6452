"""Names of recipes and corruptions. This file imports no torch: reports and studies read it without training."""

from __future__ import annotations

from typing import Literal

Precision = Literal["32-true", "bf16-mixed", "16-mixed", "64-true"]
"""Precisions of weights and arithmetic in training."""
PARTS_OF_RECIPES = ("loss", "objective", "optimizer")
"""Parts of a recipe that can be a user's own, as in loss=package.module:function."""
LISTS = ("gammas", "starts", "cuts")
"""Hyper-parameters of recipes whose value is a list."""

CORRUPTIONS = (
    *("gaussian_noise", "shot_noise", "impulse_noise"),
    *("defocus_blur", "glass_blur", "motion_blur", "zoom_blur"),
    *("snow", "frost", "fog", "brightness"),
    *("contrast", "elastic_transform", "pixelate", "jpeg_compression"),
)
"""The fifteen corruptions of CIFAR-10-C, which `assay.nn.data.corruptions` makes."""
SEVERITIES = (1, 2, 3, 4, 5)

PRIMARIES = {"": "cross-entropy", "focal_": "focal loss", "brier_": "the Brier loss"}
"""Losses that a secondary loss is added to, by the prefix of the recipe's name."""
SECONDARIES = {
    "mmce": "weighted MMCE, a kernel's calibration error",
    "avuc": "AvUC, accuracy against uncertainty",
    "avuc_gs": "AvUC without a gradient through the confidence",
    "sb_ece": "SB-ECE, the soft-binned label-binned ECE",
    "s_avuc": "S-AvUC, AvUC with a soft threshold",
}
ABOUT: dict[str, str] = {
    "cross_entropy": "cross-entropy, the baseline",
    "label_smoothing": "label smoothing: epsilon of the target spread over all classes",
    "label_smoothing_of_others": "label smoothing: epsilon of the target spread over the other classes",
    "focal": "focal loss: sure samples count less",
    "focal_zhu2022_as_coded": "focal loss as in the code of zhu2022: gamma 2 after nine epochs of cross-entropy",
    "focal_wang2021_as_coded": "focal loss as in the code of wang2021: no gradient through the weight",
    "focal_scheduled": "focal loss whose gamma falls from 5 to 3 to 2",
    "flsd53": "focal loss with gamma 5 below a probability of .19 and 3 above",
    "flsd532": "focal loss with gamma 5, 3 or 2 by the probability of the true class",
    "inverse_focal": "inverse focal loss: sure samples count more",
    "entropy": "cross-entropy less the entropy of the answer",
    "entropy_singh2021_as_coded": "the same summed over the batch, as in the listing of singh2021",
    "label_smoothing_singh2021_as_coded": "label smoothing summed over the batch, as in the listing of singh2021",
    "l1": "cross-entropy and the L1 norm of the logits",
    "brier": "the Brier loss: squared error of the probabilities",
    "mse": "the Brier loss divided by the number of classes",
    **{
        primary + name: f"{secondary} and {of_primary}"
        for primary, of_primary in PRIMARIES.items()
        for name, secondary in SECONDARIES.items()
    },
    "mixup": "mixup: mixtures of two samples and of their labels",
    "mixup_as_coded": "mixup with the alpha of zhu2022's code",
    "cs_kd": "self-distillation between samples of a class",
    "crl": "correctness ranking: confidence ordered as samples were right in the past",
    "sam": "sharpness-aware minimization of cross-entropy",
    "swa": "weights averaged at the ends of cycles of the rate",
    "fmfp": "SAM and averaged weights: flat minima for failure prediction",
    "swa_as_coded": "weights averaged from scratch, as in the code of zhu2022",
    "fmfp_as_coded": "FMFP from scratch, as in the code of zhu2022",
}
"""Every recipe in a line."""
