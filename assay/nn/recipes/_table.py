"""The methods of the papers, each with the hyper-parameters of its paper."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from assay.nn.losses import (
    Loss,
    avuc,
    avuc_gs,
    brier,
    cross_entropy,
    entropy_regularized,
    focal,
    focal_sample_wise,
    inverse_focal,
    label_smoothing,
    label_smoothing_of_others,
    mmce_weighted,
    mse,
    norm_regularized,
    s_avuc,
    sb_ece_lb,
)
from assay.nn.objectives import mixup
from assay.nn.recipes._methods import (
    Method,
    adding,
    averaging_from_baseline,
    averaging_from_scratch,
    by,
    by_crl,
    by_cs_kd,
    by_scheduled_focal,
    changing,
    minimizing,
    with_sam,
)

# The squared error is summed over classes. Its mean, as in karandikar2021, has K times smaller gradients and needs
# secondary losses of a K times smaller weight.
PRIMARIES: dict[str, Loss] = {"": cross_entropy, "focal_": partial(focal, gamma=3.0), "brier_": brier}
SECONDARIES: dict[str, Callable[..., Method]] = {
    # Weight and scale of mukhoti2020's code, for images; 8 for text. karandikar2021 tunes all weights and prints none.
    "mmce": partial(adding, mmce_weighted, beta=2.0, normalized_twice=True),
    "avuc": partial(adding, avuc, beta=3.0),  # the weight of its authors' code
    "avuc_gs": partial(adding, avuc_gs, beta=3.0),
    "sb_ece": partial(adding, sb_ece_lb, beta=1.0),
    "s_avuc": partial(adding, s_avuc, beta=1.0),
}

METHODS: dict[str, Method] = {
    "cross_entropy": changing(),
    # Losses. wang2021 chooses among several strengths on the test set: for CIFAR-10 it chooses those of zhu2022 and
    # singh2021 except for the norm, .05; for CIFAR-100 it chooses .09, gamma 5 and .01.
    "label_smoothing": minimizing(label_smoothing, epsilon=0.05),  # as in singh2021, wang2021 and the code of zhu2022
    "label_smoothing_of_others": minimizing(label_smoothing_of_others, epsilon=0.05),  # as zhu2022 prints it
    "focal": minimizing(focal, gamma=3.0),
    "focal_zhu2022_as_coded": by_scheduled_focal(gammas=(0.0, 2.0), starts=(9 / 201,)),
    "focal_wang2021_as_coded": minimizing(focal, gamma=3.0, detach_weight=True),
    "focal_scheduled": by_scheduled_focal(gammas=(5.0, 3.0, 2.0), starts=(100 / 350, 250 / 350)),
    "flsd53": minimizing(focal_sample_wise, gammas=(5.0, 3.0), cuts=(0.19,)),  # .2 in the code
    "flsd532": minimizing(focal_sample_wise, gammas=(5.0, 3.0, 2.0), cuts=(0.19, 0.5)),
    "inverse_focal": minimizing(inverse_focal, gamma=2.0),
    "entropy": minimizing(entropy_regularized, beta=0.1),
    # The listings of singh2021 sum over the batch: gradients are as many times larger, at the same rate.
    "entropy_singh2021_as_coded": minimizing(entropy_regularized, beta=0.1, reduction="sum"),
    "label_smoothing_singh2021_as_coded": minimizing(label_smoothing, epsilon=0.05, reduction="sum"),
    "l1": minimizing(norm_regularized, alpha=0.01),
    "brier": minimizing(brier),
    "mse": minimizing(mse),
    **{
        primary + name: secondary(to=PRIMARIES[primary])
        for primary in PRIMARIES
        for name, secondary in SECONDARIES.items()
    },
    # Objectives.
    "mixup": by(mixup, alpha=0.2),
    "mixup_as_coded": by(mixup, alpha=0.3),
    "cs_kd": by_cs_kd,
    "crl": by_crl,
    # Flat minima.
    "sam": changing(with_sam),
    "swa": changing(averaging_from_baseline),
    "fmfp": changing(with_sam, averaging_from_baseline),
    "swa_as_coded": changing(averaging_from_scratch),
    "fmfp_as_coded": changing(with_sam, averaging_from_scratch),
}
