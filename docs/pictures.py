"""Draw the pictures of the README and the documentation: the embedded example, the quickstart study, kept evidence.

    python docs/pictures.py RUNS FOLDER

RUNS is the folder of `assay study run studies/quickstart.toml --out RUNS`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib
from matplotlib import pyplot
from matplotlib.figure import Figure

from assay import examples, maps, metrics
from assay.calibrators import histogram, temperature
from assay.claims import last_values, read_evidence
from assay.report import figures, statistics
from assay.report.statistics import MethodPoint
from assay.study import expand, read_rows, read_study

STUDIES = Path(__file__).parents[1] / "studies"
STUDY = STUDIES / "quickstart.toml"


def both_sides() -> Figure:
    """The reliability of the embedded network, and its risk-coverage curves after two corrections."""
    test, held_out = examples.load(), examples.load(split="held_out")
    corrected = {
        "as trained": test.outcomes(),
        "temperature": maps.apply(temperature(held_out), test).outcomes(),
        "histogram binning": maps.apply(histogram(held_out), test).outcomes(),
    }
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4.6), width_ratios=(1, 1.25), layout="constrained")
    figures.reliability(statistics.reliability(metrics.equal_width(corrected["as trained"])), left)
    left.set_title("Can its confidence be believed?", loc="left")
    curves = {
        f"{name}, ECE {metrics.ece(rows):.1%}": statistics.selective(metrics.ranking(rows))
        for name, rows in corrected.items()
    }
    figures.risk_coverage(curves, right)
    right.set_title("Does it tell right from wrong? (lower is better)", loc="left")
    return figure


def two_axes(runs: Path) -> Figure:
    """Calibration and ranking of each recipe of the quickstart study, before and after temperature scaling."""
    study = read_study(STUDY)
    rows = read_rows(study, [runs / run.folder for run in expand(study)]).to_pylist()
    if not rows:
        raise SystemExit(f"{runs} contains no runs of {STUDY.name}; run `make demo` first")
    figure, axes = pyplot.subplots(1, 2, figsize=(10.5, 5), sharex=True, sharey=True, layout="constrained")
    for ax, calibrator, title in zip(
        axes, ("none", "temperature"), ("as trained", "after temperature scaling"), strict=True
    ):
        found: dict[str, dict[str, list[float]]] = {}
        for row in rows:
            if (row["calibrator"], row["split"]) == (calibrator, "test"):
                found.setdefault(row["method"], {}).setdefault(row["metric"], []).append(row["value"])
        methods = [MethodPoint(name, tuple(of["ece"]), tuple(of["auroc"])) for name, of in found.items()]
        figures.calibration_refinement(methods, ax)
        ax.set_title(title, loc="right")
    axes[1].set_ylabel("")
    return figure


def fine_tuned() -> Figure:
    """Calibration and ranking of a published network that each recipe trained on, one faint mark a seed."""
    evidence = read_evidence(STUDIES / "prove" / "kept", "fine_tuned")
    figure, axes = pyplot.subplots(1, 2, figsize=(10.5, 4.8), layout="constrained")
    for ax, ranking in zip(axes, ("auroc", "aurc"), strict=True):
        methods = [
            MethodPoint(
                recipe.replace("_", " "), *(tuple(last_values(evidence, key, recipe)) for key in ("ece", ranking))
            )
            for recipe in evidence.recipes
        ]
        figures.calibration_refinement(methods, ax, refinement=ranking)
    return figure


def main(runs: Path, folder: Path) -> None:
    matplotlib.use("agg")
    folder.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({"font.size": 10, "font.family": "DejaVu Sans", "axes.titlesize": 11}):
        for name, figure in (("both_sides", both_sides()), ("two_axes", two_axes(runs)), ("fine_tuned", fine_tuned())):
            # Without a date or a version inside, the same data give the same file.
            figure.savefig(folder / f"{name}.png", dpi=120, metadata={"Software": None})
            print(folder / f"{name}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
