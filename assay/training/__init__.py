"""Training: a recipe says how, one loop does it, and `predict` gives the predictions that all else works on."""

from assay.training._configuration import described_splits, versions
from assay.training._figures import FIGURES
from assay.training._fitting import fitting
from assay.training._folder import discard_unreadable, load_weights
from assay.training._hardware import Hardware
from assay.training._history import NOTHING, History, Record
from assay.training._keeping import EpochEnd, Keeper, averaged, best, last
from assay.training._loop import Trained, train
from assay.training._predict import last_linear, predict
from assay.training._recipe import Recipe, Start
from assay.training._seeds import initialized, seed_of
from assay.training._stage import Diverged

__all__ = [
    "FIGURES",
    "NOTHING",
    "Diverged",
    "EpochEnd",
    "Hardware",
    "History",
    "Keeper",
    "Recipe",
    "Record",
    "Start",
    "Trained",
    "averaged",
    "best",
    "described_splits",
    "discard_unreadable",
    "fitting",
    "initialized",
    "last",
    "last_linear",
    "load_weights",
    "predict",
    "seed_of",
    "train",
    "versions",
]
