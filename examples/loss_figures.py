"""The figures of the papers that need no training: losses as functions, and three constructed classifiers.

python examples/loss_figures.py figures
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from matplotlib.figure import Figure

from assay.report import analyses, figures
from assay.report.statistics import Line


def main() -> None:
    """Write one SVG a figure into the folder that is named, and print their paths."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    p, h = "probability of the true class", "entropy / log K"
    curves("wang2021_figure6a", analyses.loss_curves(), folder, over=p, metric="loss")
    curves("mukhoti2020_figure4a", analyses.gradient_factors(), folder, over=p, metric="g(p, γ)")
    curves("karandikar2021_figure3", analyses.soft_memberships(), folder, over="confidence", metric="membership")
    curves("karandikar2021_figure4", analyses.soft_uncertainties(), folder, over=h, metric="t(h)")
    figure = Figure(figsize=(12, 3.6), layout="constrained")
    for ax, each in zip(figure.subplots(1, 3), analyses.scenarios(), strict=True):
        figures.scenario(each, ax)
    save(figure, folder / "singh2021_figure1.svg")


def curves(name: str, lines: Sequence[Line], folder: Path, *, over: str, metric: str) -> None:
    """Draw a family of curves."""
    figure = Figure(figsize=(6, 4), layout="constrained")
    figures.curves(lines, figure.subplots(), over=over, metric=metric)
    save(figure, folder / f"{name}.svg")


def save(figure: Figure, file: Path) -> None:
    """Write the figure and say where."""
    figure.savefig(file)
    print(file)


if __name__ == "__main__":
    main()
