"""Training and post-hoc maps are one pipeline (wang2021): calibrators one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from assay.maps import Fit, Map, Sequence, apply, parts
from assay.predictions import Predictions


def in_sequence(*calibrators: Callable[[Any], Map]) -> Callable[[Predictions], Sequence]:
    """A calibrator that fits several, each on the result of those before it.

    >>> import assay.examples
    >>> from assay.calibrators import histogram, temperature
    >>> held_out = assay.examples.load(split="held_out")
    >>> print(in_sequence(temperature, histogram)(held_out))
    logits / 2.744, then 15 steps from 0.000 to 0.970
    """

    def fit(held_out: Predictions) -> Sequence:
        fitted = []
        rows: Any = held_out
        for calibrator in calibrators:
            fitted.append(calibrator(rows))
            rows = apply(fitted[-1], rows)
        last = fitted[-1].fit
        report = Fit(last.objective, last.before, last.after, sum(m.fit.iterations for m in fitted), last.n)
        return Sequence(report, tuple(part for mapping in fitted for part in parts(mapping)))

    names = ", then ".join(calibrator.__name__ for calibrator in calibrators)
    fit.__doc__ = f"{names[0].upper()}{names[1:]}, each fitted on the result of the one before."
    return fit
