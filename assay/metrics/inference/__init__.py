"""Error bars that hold: influences, intervals, noise floors, paired tests, and the rules that tie them to metrics."""

from assay.metrics.inference._binned import ece_interval, ece_l2_interval
from assay.metrics.inference._design import Design, design, design_of, estimate
from assay.metrics.inference._estimate import ROUNDING, Estimate, mean_estimate, moderated, of_runs
from assay.metrics.inference._influence import (
    Influence,
    augrc_influence,
    aupr_error_influence,
    aupr_success_influence,
    aurc_influence,
    auroc_influence,
    e_aurc_influence,
)
from assay.metrics.inference._intervals import Interval, loss_interval, proportion_interval, student
from assay.metrics.inference._noise import NoiseFloor, NoiseFloors, noise_floors
from assay.metrics.inference._paired import (
    UNSEEN,
    AccuracyChange,
    CalibrationPart,
    accuracy_change,
    accuracy_change_of,
    calibration_difference,
    calibration_estimate,
    calibration_part,
    fisher,
    holm,
)
from assay.metrics.inference._ranked import fpr95_interval, risk_interval, share_interval
from assay.metrics.inference._rules import (
    Change,
    Withheld,
    change,
    fewest_in,
    floors,
    too_few,
    too_few_clusters,
    too_few_in,
)

__all__ = [
    "ROUNDING",
    "UNSEEN",
    "AccuracyChange",
    "CalibrationPart",
    "Change",
    "Design",
    "Estimate",
    "Influence",
    "Interval",
    "NoiseFloor",
    "NoiseFloors",
    "Withheld",
    "accuracy_change",
    "accuracy_change_of",
    "augrc_influence",
    "aupr_error_influence",
    "aupr_success_influence",
    "aurc_influence",
    "auroc_influence",
    "calibration_difference",
    "calibration_estimate",
    "calibration_part",
    "change",
    "design",
    "design_of",
    "e_aurc_influence",
    "ece_interval",
    "ece_l2_interval",
    "estimate",
    "fewest_in",
    "fisher",
    "floors",
    "fpr95_interval",
    "holm",
    "loss_interval",
    "mean_estimate",
    "moderated",
    "noise_floors",
    "of_runs",
    "proportion_interval",
    "risk_interval",
    "share_interval",
    "student",
    "too_few",
    "too_few_clusters",
    "too_few_in",
]
