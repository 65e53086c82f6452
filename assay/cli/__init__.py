"""The command `assay`: one file a command, imported when it is called; errors are one line and exit code 2."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence

from cyclopts import App, Parameter

import assay
from assay.cli.errors import errors_as_lines
from assay.cli.output import warn_in_a_line
from assay.cli.streams import make_patient

COMMANDS = {
    "audit": "Tell how far the confidence of one or several models can be trusted.",
    "compare": "Say whether a second model is better calibrated or ranks its errors better than the first.",
    "board": "Rank many models by accuracy, calibration and refinement, and say which cannot be told apart.",
    "judge": "Say how far a judge's verdicts can be trusted, and how many answers are right, from a few human labels.",
    "plan": "Tell how many samples it takes to show a difference.",
    "calibrate": "Fit a calibrator on held-out predictions, and judge it on both axes.",
    "threshold": "Choose the confidence above which answers are accepted, with a guarantee on their errors.",
    "check": "Check requirements on predictions, for continuous integration.",
    "recheck": "Say whether a threshold keeps its promise on new rows, and whether it is time to recalibrate.",
    "export": "Write a model, a map and a threshold to one ONNX file.",
    "list": "List metrics, calibrators, scores, recipes, networks or data sets, a line each.",
    "train": "Train a network and write its predictions.",
    "claims": "Judge claims from what is kept of the runs that decide them.",
    "verify": "Say whether the files of a run, or of all runs of a study, are as they were written.",
}


EXAMPLES = {
    "audit": "assay audit predictions.csv --probabilities 'p_*' --label y --html audit.html",
    "compare": "assay compare old.npz new.npz --html compare.html",
    "board": "assay board answers.parquet --by model --confidence stated --html board.html",
    "judge": "assay judge answers.csv --judge score --human label",
    "plan": "assay plan pilot.npz --detect ece=0.01",
    "calibrate": "assay calibrate held_out.npz --method auto --save map.json --html before_after.html",
    "threshold": "assay threshold other.npz --map map.json --risk 0.01 --json threshold.json",
    "check": "assay check predictions.npz --require 'ece<=0.05' --strict",
    "recheck": "assay recheck new.npz --map map.json --threshold threshold.json",
    "export": "assay export model.onnx --map map.json --threshold threshold.json --out shipped.onnx",
    "list": "assay list calibrators",
    "train": "assay train --data digits --network mlp --recipe focal --out run",
    "claims": "assay claims claims.toml --kept kept --html claims.html",
    "verify": "assay verify runs",
}


def version() -> str:
    """The version, and whether the compiled loops are used."""
    from assay._core import loops

    return f"{assay.__version__}, {'with' if loops.AVAILABLE else 'without'} compiled loops"


AS_TYPED = Parameter(json_list=False, json_dict=False)  # a file may be called [x].npz
app = App(
    name="assay",
    help=assay.__doc__,
    version=version,
    help_format="plaintext",
    default_parameter=AS_TYPED,
    suppress_keyboard_interrupt=False,
)
for name, line in COMMANDS.items():
    app.command(f"assay.cli.{name}:{name}_command", name=name, help=line, help_epilogue=f"Example: {EXAMPLES[name]}")
app.command("assay.cli.study:study_app", name="study", help="Run a study of many trainings, and report its results.")
app.register_install_completion_command(
    add_to_startup=False, help="Install completion of this command for the shell in use."
)


def main(words: Sequence[str] | None = None) -> None:
    """Run the command with these words, by default those of the command line.

    Wrong input or usage is one line on stderr and exit code 2.
    """
    warnings.formatwarning = warn_in_a_line
    make_patient()
    with errors_as_lines():
        app(sys.argv[1:] if words is None else words, print_error=False, exit_on_error=False)
