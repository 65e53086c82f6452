"""What was chosen: a threshold with its promise, or one for each group."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from math import ceil, floor, inf, isfinite, log10, nan

import numpy as np
from numpy.typing import ArrayLike

from assay._core.arrays import InputError, Mask
from assay._core.showing import html_table


@dataclass(frozen=True)
class GroupRisk:
    """A group for which a threshold does not keep its promise: more errors among its accepted samples than promised."""

    group: str
    accepted: int
    wrong: int
    p_value: float  # chance of so many errors if the promise held for this group, corrected for all groups
    risk: float  # share of errors, by weight if rows have weights

    def __str__(self) -> str:
        return f"{self.group}: {self.risk:.2%} errors among {self.accepted:,} (p = {self.p_value:.2g})"


@dataclass(frozen=True)
class Threshold:
    """Accept samples that score at least `value`: `accepted` of `n` held-out samples, of which `wrong` are errors."""

    value: float  # midway between two scores; -inf accepts all, inf none
    guaranteed_risk: float  # the share of errors among accepted samples is at most this ...
    confidence: float  # ... with this probability over held-out sets
    n: int
    accepted: int
    wrong: int
    reason: str = ""  # why nothing is accepted
    # If the requested risk cannot be promised: the smallest bound at 22 fixed coverages (1, 2, 5, 10 ... 100 %), all of
    # which hold together. It is a promise of its own, which the doubt of the refused one does not pay for.
    instead: Threshold | None = None
    broken: tuple[GroupRisk, ...] = ()  # groups in which the risk is higher than promised for all samples together
    map_digest: str | None = None  # `maps.digest` of the maps before it; None if not known, as for a `Ranking`
    weighted: tuple[float, float] | None = None  # coverage and observed risk by weight, if samples have weights

    @property
    def coverage(self) -> float:
        """Share of samples accepted."""
        return self.accepted / self.n if self.weighted is None else self.weighted[0]

    @property
    def workload(self) -> float:
        """Share of samples expected to be left for review."""
        return 1 - self.coverage

    @property
    def observed_risk(self) -> float:
        """Share of errors among accepted samples; nan if there are none."""
        if self.weighted is not None:
            return self.weighted[1]
        return self.wrong / self.accepted if self.accepted else nan

    def _repr_html_(self) -> str:
        figures = {"accept above": self.value, "risk at most": self.guaranteed_risk, "coverage": self.coverage}
        return html_table(str(self), list(figures), [list(figures.values())])

    def __str__(self) -> str:
        if not self.accepted:
            other = self.instead
            rest = f"; at most {other.guaranteed_risk:.2%} can be, on {other.coverage:.1%} of inputs" if other else ""
            return f"accept nothing: {self.reason}{rest}"
        promise = f"at most {self.guaranteed_risk:.2%} errors on {self.coverage:.1%} of inputs"
        rest = f"{self.observed_risk:.2%} seen; {self.workload:.1%} left for review"
        warning = f"; not kept in {', '.join(map(str, self.broken))}" if self.broken else ""
        at = f"at {level(self.confidence)} confidence"
        return f"accept above {spelled(self.value, up=True)}: {promise} {at}, {rest}{warning}"


@dataclass(frozen=True)
class GroupThresholds:
    """One threshold for each group; with probability `confidence` all their promises hold."""

    groups: dict[str, Threshold]
    confidence: float
    shares: dict[str, float]  # of each group among all samples, by weight if they have weights

    @property
    def coverage(self) -> float:
        """Share of all samples accepted."""
        return sum(self.shares[name] * t.coverage for name, t in self.groups.items())

    def accepts(self, scores: ArrayLike, group: ArrayLike) -> Mask:
        """Whether each sample [n] is accepted, by the threshold of its group [n]."""
        names = [str(name) for name in np.asarray(group).tolist()]
        for row, name in enumerate(names):
            if name not in self.groups:
                raise InputError(f"row {row}: there is no threshold for group {name}")
        return np.asarray(np.asarray(scores) >= np.array([self.groups[name].value for name in names]))

    def __str__(self) -> str:
        head = (
            f"{self.coverage:.1%} of inputs accepted; all promises hold together at {level(self.confidence)} confidence"
        )
        return "\n".join([head, *(f"{name}: {threshold}" for name, threshold in self.groups.items())])


def level(confidence: float) -> str:
    """A confidence to read.

    >>> level(0.95), level(0.9875), level(0.999999)
    ('95%', '98.75%', '99.9999%')
    """
    doubt = float(f"{100 * (1 - confidence):.4g}")
    return f"{100 - doubt:.10g}%"


def spelled(value: float, *, up: bool = False, down: bool = False) -> str:
    """A score to read: a confidence with three digits of its distance from 1, any other with six.

    A threshold is rounded `up`: who takes what is written for it accepts no more than was promised; or `down`, where
    the promise is to miss no more.

    >>> spelled(0.87623), spelled(0.87623, up=True), spelled(0.99999995138), spelled(-inf)
    ('0.876', '0.877', '0.9999999514', 'anything')
    >>> spelled(0.8768, down=True)
    '0.876'
    """
    if not isfinite(value) or value == 0:
        return "anything" if value == -inf else f"{value:g}"
    near_one = 0.5 < value < 1
    digits = 2 + ceil(-log10(1 - value)) if near_one else 5 - floor(log10(abs(value)))
    rounding = ROUND_CEILING if up else ROUND_FLOOR if down else ROUND_HALF_EVEN
    written = f"{Decimal(value).quantize(Decimal(1).scaleb(-digits), rounding):f}"
    return written if near_one or "." not in written else written.rstrip("0").rstrip(".")
