"""A board: every model with every confidence, measured alone and ranked against the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

from assay._core.arrays import InputError
from assay.boards._measuring import Measured, measure
from assay.boards._ranks import RankRange, rank_ranges
from assay.files import Sheet


@dataclass(frozen=True)
class BoardLine:
    """One model with one confidence."""

    model: str
    confidence: str
    asked: int
    measured: Measured
    ranks: dict[str, RankRange]  # by what is ranked; empty if there are too few errors to compare


@dataclass(frozen=True)
class Board:
    """Lines in the order of AURC, the best first."""

    lines: tuple[BoardLine, ...]

    def __str__(self) -> str:
        best = [line for line in self.lines if line.ranks and line.ranks["aurc"].high == 1]
        named = f"{best[0].model} by {best[0].confidence} is the best" if best else "no single line is the best"
        return f"{len(self.lines)} lines; by AURC {named}"


def board(
    sheets: Sequence[Sheet], *, workers: int = 1, seed: int = 0, done: Callable[[int], object] = lambda count: None
) -> Board:
    """Measure every sheet and rank them; `done` is called with the number of sheets that are measured."""
    if not sheets:
        raise InputError("there are no answers with a usable confidence")
    names = [(sheet.model, sheet.confidence) for sheet in sheets]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"model {twice[0]} with confidence {twice[1]} is there twice")
    if workers == 1:
        measured = _counted(map(measure, sheets), done)
    else:
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            measured = _counted(pool.map(measure, sheets, chunksize=4), done)
    ranks = rank_ranges(sheets, seed=seed)
    lines = [
        BoardLine(sheet.model, sheet.confidence, sheet.asked, own, rank)
        for sheet, own, rank in zip(sheets, measured, ranks, strict=True)
    ]
    return Board(tuple(sorted(lines, key=lambda line: line.measured.cells["aurc"].value)))


def _counted(measured: Iterable[Measured], done: Callable[[int], object]) -> list[Measured]:
    found: list[Measured] = []
    for each in measured:
        found.append(each)
        done(len(found))
    return found
