"""Training: a recipe says how to train, one loop trains, and `predict` makes the predictions that are audited."""

from assay.epochs import FIGURES, NOTHING, Record
from assay.nn.training._configuration import described_splits, versions
from assay.nn.training._folder import discard_unreadable, load_run, load_weights
from assay.nn.training._hardware import Hardware, threads_each, use_threads
from assay.nn.training._history import History
from assay.nn.training._loop import Trained, train
from assay.nn.training._network import fitting, initialized, last_linear, predict, seed_of
from assay.nn.training._recipe import EpochEnd, Keeper, Recipe, Start, averaged, best, last
from assay.nn.training._stage import Diverged
from assay.nn.training._start import Weights, normalized_splits, read_weights, started_from

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
    "Weights",
    "averaged",
    "best",
    "described_splits",
    "discard_unreadable",
    "fitting",
    "initialized",
    "last",
    "last_linear",
    "load_run",
    "load_weights",
    "normalized_splits",
    "predict",
    "read_weights",
    "seed_of",
    "started_from",
    "threads_each",
    "train",
    "use_threads",
    "versions",
]
