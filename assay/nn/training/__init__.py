"""Training: a recipe says how, one loop does it, and `predict` gives the predictions that all else works on."""

from assay.nn.training._configuration import described_splits, versions
from assay.nn.training._figures import FIGURES
from assay.nn.training._fitting import fitting
from assay.nn.training._folder import discard_unreadable, load_weights
from assay.nn.training._hardware import Hardware
from assay.nn.training._history import NOTHING, History, Record
from assay.nn.training._keeping import EpochEnd, Keeper, averaged, best, last
from assay.nn.training._loop import Trained, train
from assay.nn.training._predict import last_linear, predict
from assay.nn.training._recipe import Recipe, Start
from assay.nn.training._seeds import initialized, seed_of
from assay.nn.training._stage import Diverged

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
