"""Thresholds: answer when sure enough, with a promise about the errors among the accepted answers."""

from assay.thresholds._choosing import By, choose_threshold, evidence_of, predicted_class
from assay.thresholds._evidence import Counts, Evidence, risk_bound
from assay.thresholds._of_map import load_threshold, refuse_other_rows, threshold_under
from assay.thresholds._positive import PositiveThreshold, choose_positive_threshold
from assay.thresholds._promise import decided_by, promised_rows
from assay.thresholds._records import GroupRisk, GroupThresholds, Threshold, level, spelled

__all__ = [
    "By",
    "Counts",
    "Evidence",
    "GroupRisk",
    "GroupThresholds",
    "PositiveThreshold",
    "Threshold",
    "choose_positive_threshold",
    "choose_threshold",
    "decided_by",
    "evidence_of",
    "level",
    "load_threshold",
    "predicted_class",
    "promised_rows",
    "refuse_other_rows",
    "risk_bound",
    "spelled",
    "threshold_under",
]
