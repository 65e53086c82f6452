"""Which calibrator? The simplest that is as good as the best on rows it was not fitted on."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from math import inf, isfinite, sqrt
from typing import Any

import numpy as np

from assay._core.arrays import Floats, InputError, Mask, log
from assay.calibrators._cross import fold_of
from assay.calibrators._ensemble import ensemble_temperature
from assay.calibrators._matrix import dirichlet, matrix
from assay.calibrators._structured import structured_matrix, structured_vector
from assay.calibrators._temperature import temperature
from assay.calibrators._top_label import beta, isotonic, platt, spline, without_ties
from assay.calibrators._vector import vector
from assay.maps import Candidate, Fit, Map, Sequence, apply
from assay.metrics.inference import design_of
from assay.predictions import Outcomes, Predictions

Calibrator = Callable[[Any], Map]

# Simplest first, and those that may change a label after those that cannot. None ties answers that were told apart.
OF_CONFIDENCE: tuple[Calibrator, ...] = tuple(map(without_ties, (platt, beta, spline, isotonic)))
FAMILY: tuple[Calibrator, ...] = (
    *(temperature, ensemble_temperature),
    *OF_CONFIDENCE,
    *(structured_vector, vector, structured_matrix, dirichlet, matrix),
)
OF_PAIRS = (structured_matrix, dirichlet, matrix)  # a number for each pair of classes
ROWS_PER_CLASS = 10  # below which those learn nothing but noise
MATTERS = 1e-4  # of NLL: a map must gain more than this over a simpler one
FAR = 5.0  # standard errors behind the best, after which a candidate cannot win
UNCHANGED = "unchanged"


def auto(
    held_out: Predictions | Outcomes,
    *,
    folds: int = 5,
    seed: int = 0,
    progress: Callable[[str], None] | None = None,
) -> Map:
    """The simplest calibrator whose cross-validated NLL is as low as the best one's; none, if that is enough.

    As low means within one standard error of the difference, sample by sample; within two if the difference is below
    .001; or within .0001. What a map of the confidence leaves to the other classes is shared out in their proportion. A
    candidate that is far behind after a fold is not fitted again, and one with a number for each pair of classes needs
    ten rows a class. Splines, isotonic curves and constants are tilted by a ten-thousandth of the given confidence, so
    that they tie no answers. All candidates are in the map's `fit.chosen_from`, the reason of the choice in `fit.why`.

    For confidences alone, or if a true class has probability 0, only maps of the confidence are compared, by the
    top-label log loss. Four maps of one number that keep its order need no preference for the simplest: unless no map
    is as good, the one of least loss is taken.
    """
    family = FAMILY if isinstance(held_out, Predictions) else OF_CONFIDENCE
    before = held_out.outcomes()
    if before.nll is not None and np.isinf(before.nll).any():
        # A true class of probability 0, whose NLL no map can mend: confidences alone can still be calibrated.
        held_out, family = replace(before, nll=None), OF_CONFIDENCE
    try:
        fold = fold_of(held_out, folds, seed)
    except InputError as problem:
        return _too_few(held_out, problem)
    race = _Race(held_out, family, fold, progress or (lambda _: None))
    table = race.run()
    as_low = [c for c in table if not c.note and isfinite(c.loss) and c.behind <= _allowed(c.error)]
    if family is OF_CONFIDENCE:
        as_low.sort(key=lambda c: (c.name != UNCHANGED, c.behind))
    chosen = as_low[0] if as_low else table[0]
    if not isfinite(chosen.loss) and race.refused:
        raise race.refused[0]
    why = _why(chosen, table)
    if chosen.name == UNCHANGED:
        return Sequence(Fit("NLL", chosen.loss, chosen.loss, 0, len(held_out), chosen_from=table, why=why), ())
    mapping = {calibrator.__name__: calibrator for calibrator in family}[chosen.name](held_out)
    return replace(mapping, fit=replace(mapping.fit, chosen_from=table, why=why))


def _too_few(held_out: Predictions | Outcomes, problem: InputError) -> Map:
    """No map: nothing can be compared."""
    before = held_out.outcomes()
    if not before.is_probability:
        raise problem
    loss = float(_loss(before, before).mean())
    return Sequence(Fit("NLL", loss, loss, 0, len(held_out), why=f"{problem}, so nothing was compared"), ())


class _Race:
    """Losses of all candidates, fold by fold; those that cannot win any more are left out of later folds."""

    def __init__(
        self,
        held_out: Predictions | Outcomes,
        family: tuple[Calibrator, ...],
        fold: Any,
        progress: Callable[[str], None],
    ):
        self.held_out, self.fold, self.progress = held_out, fold, progress
        self.before = held_out.outcomes()
        self.weights = _weights(self.before)
        self.running = {calibrator.__name__: calibrator for calibrator in family}
        self.losses = {name: np.full(len(held_out), np.nan) for name in (UNCHANGED, *self.running)}
        self.notes = dict.fromkeys(self.losses, "")
        self.refused: list[InputError] = []

    def run(self) -> tuple[Candidate, ...]:
        if isinstance(self.held_out, Predictions) and len(self.held_out) < ROWS_PER_CLASS * self.held_out.n_classes:
            for of_pairs in OF_PAIRS:
                self._leave_out(of_pairs.__name__, f"not tried: fewer than {ROWS_PER_CLASS} rows a class")
        if self.before.is_probability:
            self.losses[UNCHANGED] = _loss(self.before, self.before)
        else:
            self._leave_out(UNCHANGED, "the score is no probability")
        n_folds = int(self.fold.max()) + 1
        for i in range(n_folds):
            for name, calibrator in tuple(self.running.items()):
                self.progress(f"fold {i + 1} of {n_folds}: {name}")
                self._fit(name, calibrator, self.fold == i)
            self._drop(self.fold <= i, f"dropped after {i + 1} of {n_folds} folds")
        return self._table()

    def _fit(self, name: str, calibrator: Calibrator, left_out: Mask) -> None:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                mapping = calibrator(self.held_out[~left_out])
        except InputError as problem:  # the calibrator cannot be fitted on these rows
            self.refused.append(problem)
            self._leave_out(name, f"cannot be fitted: {problem}")
        else:
            after = apply(mapping, self.held_out[left_out]).outcomes()
            self.losses[name][left_out] = _loss(self.before[left_out], after)

    def _leave_out(self, name: str, note: str) -> None:
        self.running.pop(name, None)
        self.losses[name][:] = inf
        self.notes[name] = note

    def _drop(self, seen: Mask, note: str) -> None:
        """Leave out what is far behind after these rows."""
        if seen.all():
            return
        compared = [self.losses[name][seen] for name in (UNCHANGED, *self.running)]
        best = min(compared, key=self._mean(seen))
        for name in tuple(self.running):
            found = _candidate(name, self.losses[name][seen], best, self.before[seen])
            if not isfinite(found.loss) or found.behind > max(FAR * found.error, MATTERS):
                self.running.pop(name)
                self.notes[name] = note

    def _mean(self, rows: Mask) -> Callable[[Floats], float]:
        return lambda loss: float(np.average(loss, weights=self.weights[rows]))

    def _table(self) -> tuple[Candidate, ...]:
        """Candidates in order; those that were dropped are compared with the best on the rows that they have seen."""
        everywhere = {name: loss for name, loss in self.losses.items() if not np.isnan(loss).any()}
        best = min(everywhere.values(), key=self._mean(np.ones(len(self.fold), bool)))
        table = []
        for name, loss in self.losses.items():
            seen = ~np.isnan(loss)
            found = _candidate(name, loss[seen], best[seen], self.before[seen])
            table.append(replace(found, note=self.notes[name]))
        return tuple(table)


def _allowed(error: float) -> float:
    """How far behind the best a simpler candidate may be."""
    return max(error, min(2 * error, 10 * MATTERS), MATTERS)


def _why(chosen: Candidate, table: tuple[Candidate, ...]) -> str:
    """The choice in words: what the best and the next simpler candidate have."""
    best = min(table, key=lambda c: c.behind)
    before = table[: table.index(chosen)]
    simpler = min((c for c in before if isfinite(c.behind)), key=lambda c: c.behind, default=None)
    much = "the least" if best is chosen else f"{chosen.behind:.4f} more than {best.name}, which is within noise"
    text = f"{chosen.name} has a cross-validated NLL of {chosen.loss:.4f}, {much}"
    if simpler is None:
        return f"{text}; nothing simpler is finite" if before else text
    return f"{text}; of what is simpler, {simpler.name} is {simpler.behind - chosen.behind:.4f} behind it"


def _loss(before: Outcomes, after: Outcomes) -> Floats:
    """NLL of each row [n]."""
    if after.nll is not None:
        return after.nll
    right, c = after.correct, after.confidence
    if before.nll is None:
        return -log(np.where(right, c, 1 - c))
    # The true class keeps its share of what the others have: at most all of it, also where rounding left them nothing.
    with np.errstate(divide="ignore", invalid="ignore"):
        share = -before.nll - np.log1p(-before.confidence)
        share = np.minimum(np.nan_to_num(share, nan=-inf, posinf=0, neginf=-inf), 0)
        return -np.where(right, np.log(c), np.log1p(-c) + share)


def _candidate(name: str, loss: Floats, best: Floats, rows: Outcomes) -> Candidate:
    weights = _weights(rows)
    mean = float(np.average(loss, weights=weights))
    if not isfinite(mean):
        return Candidate(name, inf, inf, 0.0)
    behind = loss - best
    center = float(np.average(behind, weights=weights))
    design = design_of(rows)
    if design is not None and design.cluster is not None:
        return Candidate(name, mean, center, design.mean(behind).error)
    n = float(weights.sum()) ** 2 / float(weights @ weights)
    error = sqrt(float(np.average((behind - center) ** 2, weights=weights)) / max(n - 1, 1))
    return Candidate(name, mean, center, error)


def _weights(rows: Outcomes) -> Floats:
    return np.ones(len(rows)) if rows.weights is None else rows.weights
