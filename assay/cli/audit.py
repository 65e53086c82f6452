"""The command `assay audit`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from assay import examples, files
from assay._core import loops
from assay._core.arrays import InputError
from assay._core.writing import not_over
from assay.auditing import Audit, audit, calibrated
from assay.cli.advice import advise, command
from assay.cli.counting import counted
from assay.cli.inputs import STANDARD, ColumnNames, Everything, Threads, refuse_among, refuse_columns, short_names
from assay.cli.output import console, working
from assay.cli.output import show as tell
from assay.files import Columns
from assay.metrics import METRICS
from assay.predictions import Outcomes, Predictions
from assay.report import terminal
from assay.report.summaries import exactness, promisable, within_groups
from assay.scale import Tally, is_sharded, tally_files, tally_on_ray
from assay.side_by_side import side_by_side


@Parameter(name="*")
@dataclass(frozen=True)
class Counting:
    """How the rows of many files are counted.

    Parameters
    ----------
    exact
        Of many files: sort the rows on the disk, so that the metrics of the ranking of all rows are exact too.
    state
        Of many files: keep in this file what has been counted; after a kill the same command goes on from there.
    skip_bad
        Of many files: leave out and list up to so many bad rows, row groups and files; else the first is an error.
    engine
        Of many files: count them on threads of this machine, or on a cluster by Ray.
    address
        The Ray cluster to use; by default the one that Ray finds, or else this machine.
    """

    exact: Annotated[bool, Parameter(negative="")] = False
    state: Path | None = None
    skip_bad: int = 0
    engine: Literal["threads", "ray"] = "threads"
    address: str | None = None

    def check(self, predictions: Sequence[Path]) -> None:
        """Refuse what does not go together."""
        if self.skip_bad < 0:
            raise InputError(f"--skip-bad must be 0 or more, got {self.skip_bad}")
        options = {"--exact": self.exact, "--state": self.state, "--skip-bad": self.skip_bad}
        given = [flag for flag, value in options.items() if value]
        if self.address and self.engine != "ray":
            raise InputError("--address is for --engine ray")
        if given and self.engine == "ray":
            raise InputError(f"{given[0]} is for --engine threads; Ray itself counts lost blocks again")
        if (given or self.engine == "ray") and not all(map(is_sharded, predictions)):
            raise InputError(
                f"{[*given, '--engine'][0]} is for a folder, a pattern or an address; files are read whole"
            )
        if self.state and len(predictions) > 1:
            raise InputError("--state keeps one tally; give one folder or pattern")

    def tally(self, name: str, file: Path, columns: Columns) -> Tally:
        if self.engine == "ray":
            return tally_on_ray(file, columns, self.address)
        with counted(name) as watch:
            return tally_files(file, columns, exact=self.exact, state=self.state, skip_bad=self.skip_bad, watch=watch)


def audit_command(
    *predictions: Path,
    columns: ColumnNames = STANDARD,
    json: Path | None = None,
    html: Path | None = None,
    show: str | None = None,
    everything: Everything = False,
    seed: int = 0,
    counting: Counting = Counting(),
    threads: Threads = None,
) -> None:
    """Tell how far the confidence of one or several models can be trusted; without a file, of an embedded example.

    Parameters
    ----------
    predictions
        Files of predictions: .npz, .parquet or .csv, or what an evaluation of a language model leaves. Of one file
        several confidences (--confidence stated,log_probability) are compared by paired tests. A folder, a pattern in
        quotes ('shards/*.parquet') or an address (s3://bucket/folder) is one model in many files: they are read part
        by part, in memory that does not grow.
    json
        Write all numbers to this file.
    html
        Write an interactive page to this file.
    show
        Column of texts, or of names of image files, which the page shows beside the mistakes.
    seed
        Seed of the random draws of the noise floor.
    """
    if seed < 0:
        raise InputError(f"--seed must be 0 or more, got {seed}")
    if show is not None and (html is None or not _all_rows(columns)):
        raise InputError("--show is for the page of --html, of a file whose rows are all used")
    written = (json, html, counting.state)
    not_over(*written, reading=predictions)
    refuse_among(*written, reading=predictions)
    counting.check(predictions)
    with loops.threads(threads):
        loaded, tallies = _read(predictions, columns, counting, show)
    audits: dict[str, Audit] = {}
    with loops.threads(threads), working() as say:
        for name, rows in (loaded | tallies).items():
            say(f"auditing {name}")
            audits[name] = audit(rows, seed=seed)
    several = _several(columns)
    pairs = side_by_side({name: rows.outcomes() for name, rows in loaded.items()}) if several else ()
    tell(terminal.audit_view(audits, everything=everything, width=console().width))
    if pairs:
        tell(terminal.pairs_view(pairs))
    for name in tallies:
        tell(f"{name}: {_exactness(audits[name], everything, sorted_rows=counting.exact)}", "dim")
    if json is not None:
        from assay.report.jsons import write_json

        write_json(audits, json, pairs)
    if html is not None:
        from assay.report.page import audit_page

        given = _sources(predictions, columns, loaded)
        commands = {
            name: command("threshold", file, columns=named)
            for name, (file, named) in given.items()
            if _promisable(audits[name])
        }
        samples = {} if show is None else {name: _samples(file, show, columns) for name, (file, _) in given.items()}
        audit_page({**loaded, **tallies}, audits, html, pairs, commands=commands, show=samples)
    if len(predictions) == len(audits) == 1:
        _advise(audits, predictions[0], columns)


def _read(
    predictions: Sequence[Path], columns: Columns, counting: Counting, show: str | None
) -> tuple[dict[str, Predictions | Outcomes], dict[str, Tally]]:
    """The rows of each file, and the summary of each folder; without either, the embedded example."""
    loaded: dict[str, Predictions | Outcomes] = {}
    tallies: dict[str, Tally] = {}
    for name, file in short_names(predictions).items():
        if is_sharded(file):
            _refuse_what_needs_rows(file, columns, show)
            tallies[name] = counting.tally(name, file, columns)
        elif _several(columns):
            loaded |= _confidences(predictions, columns)
        else:
            loaded[name] = files.read(file, columns)
    if not predictions:
        refuse_columns(columns)
        tell("No file given: this is the embedded example, a small ResNet on CIFAR-10.", "dim")
        loaded = {"cross_entropy": examples.load()}
    return loaded, tallies


def _several(columns: Columns) -> bool:
    """Whether several confidences of one file are named."""
    return "," in (columns.confidence or "")


def _all_rows(columns: Columns) -> bool:
    """Whether every row of a file is audited."""
    return columns.ignore is None and columns.unanswered != "drop" and columns.samples == "all"


def _sources(predictions: Sequence[Path], columns: Columns, loaded: Iterable[str]) -> dict[str, tuple[Path, Columns]]:
    """The file and the columns of each audit: one a file, or one a confidence of a file."""
    plain = replace(columns, group=None)
    if _several(columns):
        return {name: (predictions[0], replace(plain, confidence=name)) for name in loaded}
    return {name: (file, plain) for name, file in short_names(predictions).items()}


def _samples(file: Path, show: str, columns: Columns) -> Callable[[int], str]:
    from assay.report.page import shown_by

    return shown_by(files.read_column(file, show, columns), file.parent)


def _advise(audits: dict[str, Audit], file: Path, columns: Columns) -> None:
    """Correct what is miscalibrated; of the rest choose a threshold, which may need all rows in one file."""
    [found] = audits.values()
    off = found.tables is not None and calibrated(found.tables) is False
    columns = replace(columns, group=None)
    if off:
        method = "isotonic" if is_sharded(file) else "auto"  # of many files it is fitted on their summary
        advise("calibrate", file, "--method", method, "--save", "map.json", columns=columns)
    else:
        rows = file if _promisable(found) else "ONE_FILE"
        advise("threshold", rows, "--risk", "0.01", "--json", "threshold.json", columns=columns)


def _promisable(found: Audit) -> bool:
    return found.tables is not None and promisable(found.tables)


def _confidences(predictions: Sequence[Path], columns: Columns) -> Mapping[str, Outcomes]:
    if len(predictions) > 1:
        raise InputError("several confidences are audited in one file; for many models use `assay board`")
    return files.read_confidences(predictions[0], columns)


def _refuse_what_needs_rows(file: Path, columns: Columns, show: str | None) -> None:
    several = columns.confidence if _several(columns) else None
    needed = {"--cluster": columns.cluster, "--show": show, "--confidence A,B": several}
    for flag, given in needed.items():
        if given is not None:
            raise InputError(f"{file}: is summarized, and {flag} needs the rows; give a file instead of a folder")


def _exactness(found: Audit, everything: bool, *, sorted_rows: bool) -> str:
    """How far the numbers that are printed of a summary can be from those of the rows."""
    done = "the rows have been sorted" + (", though not those of each group" if found.groups else "")
    how = [done if sorted_rows else "--exact sorts the rows", within_groups(found)]
    shown = {key: m.bound for key, m in found.measurements.items() if everything or METRICS[key].headline}
    return exactness(shown, "; ".join(filter(None, how)))
