"""Title, unit and better direction of every number in a report, from its `Metric` or `EpochFigure` record."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan

from assay.epochs import FIGURES
from assay.metrics import COMPARED, METRICS, Unit, known_metric
from assay.metrics.inference import Interval

SHOWN_AXES = ("calibration", "refinement", "scoring", "description")  # in the order in which tables show them
BRIEF = ("accuracy", "ece", "auroc", "aurc")  # the metrics of a table with little room
ARROWS = {"higher": "↑", "lower": "↓", "-": ""}


@dataclass(frozen=True)
class Quantity:
    """Title, unit and better direction of a number."""

    title: str
    unit: Unit
    better: str = "-"  # higher, lower, or - if neither is

    @property
    def label(self) -> str:
        """The title with an arrow in the better direction."""
        return f"{self.title} {ARROWS[self.better]}".strip()


NO_METRICS: dict[str, Quantity] = {
    "temperature": Quantity("temperature", Unit(1, "", 3)),
    "ece_excess": Quantity("ECE above its noise floor", METRICS["ece"].unit),
    "weight_norm": Quantity("weight norm of the last layer", Unit(1, "", 3)),
}


def quantity(key: str) -> Quantity:
    """The quantity with that key; an unknown key is its own title, without a unit."""
    record = COMPARED.get(key) or FIGURES.get(key) or known_metric(key)
    if record is not None:
        return Quantity(record.title, record.unit, record.better)
    return NO_METRICS.get(key) or Quantity(key.replace("_", " "), Unit(1, "", 4))


def shown_key(key: str) -> str:
    """The key of a metric as tables show it.

    >>> shown_key("ece"), shown_key("auroc")
    ('ece', 'auroc (errors)')
    """
    record = COMPARED.get(key)
    return f"{key} ({record.what})" if record and record.what else key


def heading(key: str) -> str:
    """The key of a number with unit and arrow, for the head of a column: aurc ‰ ↓."""
    shown = quantity(key)
    return " ".join(part for part in (shown_key(key), shown.unit.sign, ARROWS[shown.better]) if part)


def with_arrow(key: str) -> str:
    """The key of a metric with an arrow in the better direction."""
    return f"{shown_key(key)} {ARROWS[quantity(key).better]}".strip()


def number(key: str, value: float) -> str:
    """A value with its unit."""
    return "undefined" if isnan(value) else quantity(key).unit(value)


def named_number(key: str, value: float) -> str:
    """A title and a value with its unit: ECE 2.13%."""
    return f"{quantity(key).title} {number(key, value)}"


def span(key: str, interval: Interval | None) -> str:
    """An interval with its unit; nothing if there is none.

    >>> span("ece", Interval(-0.006, -0.0008))
    '-0.60 to -0.08%'
    """
    unit = quantity(key).unit
    return "" if interval is None else f"{unit.number(interval.low)} to {unit(interval.high)}"


def share(value: float) -> str:
    """A share in per cent."""
    return "undefined" if isnan(value) else METRICS["accuracy"].unit(value)
