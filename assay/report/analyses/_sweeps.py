"""A metric against a varied quantity: a coefficient, the size of a split, the severity of a shift."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from math import nan

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from assay._core.arrays import Floats
from assay.report.analyses._rows import RowKey, by_seed, higher_is_better, only
from assay.report.statistics import Line, line
from assay.study import Variant, within_sem

Curves = dict[RowKey, dict[float, list[float]]]  # by line and x, the seeds' values


def lines(rows: pa.Table, *, over: str, by: Sequence[str]) -> list[Line]:
    """The metric of the rows against the numbers in column `over`, one line for each combination of columns `by`.

    Hyper-parameters are columns of the rows: over="gamma", by=["data"] is wang2021's fig 1 c, over="held_out" its
    fig 3. Rows without a number there are left out.
    """
    return [line(_name(key), values) for key, values in _curves(rows, over, by).items()]


def best_coefficients(rows: pa.Table, coefficient: str) -> list[Line]:
    """The coefficient of the best mean over seeds at each size of the training set, one line a recipe and set-up.

    wang2021, fig 1 d. As there, it is chosen by the very values that are shown, so on the test set.
    """
    choose = max if higher_is_better(only(rows, "metric")) else min
    best: dict[str, dict[float, list[float]]] = defaultdict(dict)
    sized = rows.filter(pc.is_valid(rows["n_train"]))
    for (recipe, setup, n_train), values in _curves(sized, coefficient, ["recipe", "setup", "n_train"]).items():
        means = {x: float(np.mean(seeds)) for x, seeds in values.items() if np.isfinite(seeds).all()}
        if means:
            best[Variant(recipe, setup=setup).full_name][n_train] = [choose(means, key=means.__getitem__)]
    return [line(name, values) for name, values in best.items()]


def severities(rows: pa.Table, *, by: Sequence[str]) -> list[Line]:
    """The metric against the severity of corruptions, mean over kinds, with its spread over seeds; 0 is no shift.

    Only kinds that exist at every severity count, so that severities are comparable.
    """
    keys = [*by, "severity", "seed"]
    means = _at_every_severity(rows).group_by([*keys, "metric"], use_threads=False).aggregate([("value", "mean")])
    return lines(means.rename_columns([*keys, "metric", "value"]), over="severity", by=by)


def severities_within(rows: pa.Table, *, by: Sequence[str]) -> list[Line]:
    """The same, with an error for comparing lines: that of their interaction with the kind of corruption.

    karandikar2021, fig 2: the SEM within kinds of corruption (Masson & Loftus 2003). Kinds are the subjects, each with
    its mean over seeds, and lines are the conditions, so all lines have the same error at one severity. It is nan if
    there is one line or one kind, as without a shift.
    """
    found: dict[float, dict[RowKey, list[float]]] = defaultdict(lambda: defaultdict(list))
    for (*key, severity, _), seeds in by_seed(_at_every_severity(rows), [*by, "severity", "corruption"]).items():
        found[float(severity)][tuple(key)].append(float(np.mean(list(seeds.values()))))
    table = {x: np.array(list(cells.values())).T for x, cells in sorted(found.items())}  # [kinds, lines]
    means, errors = [kinds.mean(0) for kinds in table.values()], tuple(map(_error, table.values()))
    names = [_name(key) for key in next(iter(found.values()), {})]
    return [Line(name, tuple(table), tuple(float(m[i]) for m in means), errors) for i, name in enumerate(names)]


def _curves(rows: pa.Table, over: str, by: Sequence[str]) -> Curves:
    found: Curves = defaultdict(dict)
    only(rows, "metric")
    for (*key, x), seeds in by_seed(rows.filter(pc.is_valid(rows[over])), [*by, over]).items():
        found[tuple(key)][float(x)] = list(seeds.values())
    return found


def _at_every_severity(rows: pa.Table) -> pa.Table:
    """Rows of test and of the corruptions that exist at every severity."""
    pairs = set(zip(rows["corruption"].to_pylist(), rows["severity"].to_pylist(), strict=True))
    shifted = [(kind, severity) for kind, severity in pairs if kind is not None]
    all_of = len({severity for _, severity in shifted})
    kinds = {kind for kind, _ in shifted if sum(kind == other for other, _ in shifted) == all_of}
    kept = pc.or_kleene(
        pc.is_in(rows["corruption"], pa.array(sorted(kinds), pa.string())), pc.equal(rows["severity"], 0)
    )
    return rows.filter(kept)


def _error(kinds: Floats) -> float:
    return within_sem(kinds) if min(kinds.shape) > 1 else nan


def _name(key: RowKey) -> str:
    return ", ".join(str(part) for part in key if part is not None)
