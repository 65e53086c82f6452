"""Figures from the folders of runs: histories, training samples, predictions."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from assay import files, metrics
from assay._core.arrays import Array, Floats
from assay._core.variants import Variant
from assay.maps import apply
from assay.predictions import Outcomes, Predictions
from assay.report import analyses, figures, statistics
from assay.report.drawing._results import Drawn, Results, entitle, one_legend, panels, root_scale, same_looks
from assay.study import FITTED, correction

NORM = "gradient_norm_"
SPLITS = ("train", "clean_train", "held_out", "test")
PER_EPOCH = {
    "overfitting": ("accuracy", "auroc", "aurc", "ece", "optimal_ece"),
    "true class": ("true_class_correct", "true_class_wrong"),
    "likelihood": ("nll", "nll_correct", "nll_wrong", "entropy_correct", "entropy_wrong"),
}


def epochs(results: Results) -> Drawn:
    """Figures of the histories, epoch by epoch, with the range over seeds."""
    for point, methods in results.folders():
        histories = {name: list(map(analyses.history, seeds.values())) for name, seeds in methods.items()}
        wanted = {
            f"{name} {split}": {figure: f"{split}_{figure}" for figure in group}
            for name, group in PER_EPOCH.items()
            for split in SPLITS
        }
        for name, columns in {**wanted, "weights": {"weight_norm": "weight_norm"}}.items():
            found = {figure: lines for figure, key in columns.items() if (lines := analyses.per_epoch(histories, key))}
            if found:
                figure, axes = panels(len(found), f"{point}: {name.replace('_', ' ')}, mean and range over seeds")
                for ax, metric, lines in zip(axes, found, same_looks(list(found.values())), strict=True):
                    figures.epochs(lines, ax, metric=metric)
                yield f"epochs {name} {point}", one_legend(figure, axes)


def gradient_norms(results: Results) -> Drawn:
    """Histograms of the norms of samples' gradients, one panel an epoch, one outline a method over all seeds."""
    for point, methods in results.folders():
        columns = {name: list(map(analyses.sample_columns, seeds.values())) for name, seeds in methods.items()}
        there = {key for seeds in columns.values() for each in seeds for key in each if key.startswith(NORM)}
        epochs = sorted(int(key.removeprefix(NORM)) for key in there)
        found = {epoch: norms for epoch in epochs if (norms := _norms(columns, f"{NORM}{epoch}"))}
        if found:
            figure, axes = panels(len(found), point)
            for ax, (epoch, norms) in zip(axes, found.items(), strict=True):
                figures.histograms(analyses.gradient_norms(norms), ax, of="norm of the gradient in the last layer")
                entitle(ax, f"epoch {epoch}")
            yield f"gradient norms {point}", one_legend(figure, axes)


def train_reliability(results: Results) -> Drawn:
    """Reliability of the training set over epochs, of one seed."""
    for point, methods in results.folders_of_one_seed():
        for name, folder in methods.items():
            found = analyses.train_reliability(folder)
            if found:
                figure, axes = panels(len(found), f"{name}: {point}", height=4.4)
                for ax, (epoch, each) in zip(axes, found.items(), strict=True):
                    entitle(figures.reliability(each, ax), f"epoch {epoch}")
                yield f"train reliability {name} {point}", one_legend(figure, axes)


def max_logits(results: Results) -> Drawn:
    """The highest logits of training samples by the epoch they were learned, of one seed, if it predicted them."""
    for point, methods in results.folders_of_one_seed():
        found = {name: histograms for name, folder in methods.items() if (histograms := _max_logits(folder))}
        if found:
            figure, axes = panels(len(found), point)
            for ax, (name, each) in zip(axes, found.items(), strict=True):
                figures.histograms(each, ax, of="highest logit").set_title(name, loc="left", fontsize="medium")
            yield f"logits by learned epoch {point}", figure


def predictions(results: Results) -> Drawn:
    """Risk-coverage curves, reliability and densities on the test set, of one seed."""
    for point, methods in results.folders_of_one_seed():
        tests = {name: folder / "test.npz" for name, folder in methods.items()}
        outcomes = {name: files.read(file).outcomes() for name, file in tests.items() if file.is_file()}
        if outcomes:
            figure, [ax] = panels(1, point)
            curves = {name: statistics.selective(metrics.ranking(each)) for name, each in outcomes.items()}
            figures.risk_coverage(curves, ax)
            yield f"risk coverage {point}", figure
            figure, axes = panels(len(outcomes), point, height=4.4)
            for ax, (name, each) in zip(axes, outcomes.items(), strict=True):
                found = statistics.reliability(metrics.equal_width(each))
                entitle(figures.reliability(found, ax), name)
            yield f"reliability {point}", one_legend(figure, axes)
            figure, axes = panels(len(outcomes), point)
            for ax, (name, each) in zip(axes, outcomes.items(), strict=True):
                entitle(root_scale(figures.densities(statistics.densities(each), ax)), name)
            yield f"densities {point}", figure


def calibrated_reliability(results: Results) -> Drawn:
    """Reliability on the test set after each fitted calibrator, of one seed (wang2021, fig 2)."""
    for calibrator in (each for each in results.study.corrections if each.name in FITTED):
        for point, methods in results.folders_of_one_seed():
            found = {name: _corrected(folder, calibrator) for name, folder in methods.items()}
            there = {name: outcomes for name, outcomes in found.items() if outcomes is not None}
            if there:
                figure, axes = panels(len(there), f"{point}: after {calibrator}", height=4.4)
                for ax, (name, each) in zip(axes, there.items(), strict=True):
                    entitle(figures.reliability(statistics.reliability(metrics.equal_width(each)), ax), name)
                yield f"reliability after {calibrator} {point}", one_legend(figure, axes)


def _corrected(folder: Path, calibrator: Variant) -> Outcomes | None:
    held_out, test = (folder / f"{split}.npz" for split in ("held_out", "test"))
    if not (held_out.is_file() and test.is_file()):
        return None
    fit_on, judged = files.read(held_out), files.read(test)
    assert isinstance(fit_on, Predictions), "a run writes logits"
    assert isinstance(judged, Predictions), "a run writes logits"
    mapping = correction(calibrator, fit_on)(judged)
    return None if mapping is None else apply(mapping, judged).outcomes()


def wrong_answers(results: Results) -> Drawn:
    """Class probabilities of single wrong answers, the baseline beside other methods, of one seed (zhu2022, fig 10 a).

    The samples are the baseline's most confident errors.
    """
    for point, methods in results.folders_of_one_seed():
        tests = {name: folder / "test.npz" for name, folder in methods.items() if (folder / "test.npz").is_file()}
        if str(results.baseline) in tests and len(tests) > 1:
            found = analyses.wrong_answers(str(results.baseline), {name: files.read(at) for name, at in tests.items()})
            if found:
                figure, axes = panels(len(found), point)
                for ax, each in zip(axes, found, strict=True):
                    figures.class_probabilities(each, ax)
                yield f"wrong answers {point}", one_legend(figure, axes)


def _norms(columns: dict[str, list[dict[str, Array]]], key: str) -> dict[str, Floats]:
    """The norms of each method that has some, without those of diverged runs."""
    found = {}
    for name, seeds in columns.items():
        finite = [each[key][np.isfinite(each[key])] for each in seeds if key in each]
        if any(norms.any() for norms in finite):
            found[name] = np.concatenate(finite)
    return found


def _max_logits(folder: Path) -> list[analyses.Histogram]:
    columns = analyses.sample_columns(folder)
    if "learned_epoch" not in columns or not (folder / "train.npz").is_file():
        return []
    train = files.read(folder / "train.npz")
    assert isinstance(train, Predictions)
    return analyses.max_logits(train, columns["ids"], columns["learned_epoch"], len(analyses.history(folder)))
