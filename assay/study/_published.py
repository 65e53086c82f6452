"""The published figure to show beside one of ours."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

from assay import published
from assay.published import Figure
from assay.study._study import PLAIN, Study

Beside = Callable[[Mapping[str, Any], str, str, str], Figure | None]
"""(the point on the other axes, method, calibrator, metric) -> the published figure, if there is one."""
ELSEWHERE = {"test": "none"}  # our name of the split: the shift in the published tables


def nothing(point: Mapping[str, Any], method: str, calibrator: str, metric: str) -> Figure | None:
    """No published figure."""
    return None


def published_beside(study: Study) -> Beside:
    """Figures of the tables that the study names; if several tables have a figure, that of the first.

    Our names are looked up as the names they `stands_for` in the study, without the set-up (@...). Settings must be
    equal: focal(gamma=1) belongs to focal,gamma=1.0 and to nothing else.
    """
    by_name: dict[tuple[str, ...], list[Figure]] = defaultdict(list)
    for figure in published.load():
        if f"{figure.paper}/{figure.table}" in study.published:
            words = (figure.data, figure.network, figure.method, figure.calibrator, figure.score, figure.shift)
            by_name[*(_parted(word)[0] for word in words), figure.metric].append(figure)

    def beside(point: Mapping[str, Any], method: str, calibrator: str, metric: str) -> Figure | None:
        split = ELSEWHERE.get(point["split"], point["split"])
        ours = (point["data"], point["network"], method, calibrator, point.get("score", PLAIN), split)
        names, settings = zip(*(_parted(study.stands_for.get(name, name)) for name in ours), strict=True)
        there = by_name.get((*names, metric), [])
        same = [figure for figure in there if _settings(figure) == settings[2:4]]
        return min(same, key=lambda figure: study.published.index(f"{figure.paper}/{figure.table}"), default=None)

    return beside


def _settings(figure: Figure) -> tuple[dict[str, float | str], ...]:
    """The settings of a figure's method and of its calibrator."""
    return tuple(_parted(name)[1] for name in (figure.method, figure.calibrator))


def _parted(name: str) -> tuple[str, dict[str, float | str]]:
    """A name without its set-up, and its settings; names are ours, focal@wang2021,gamma=1.0, or focal(gamma=1)."""
    first = re.split(r"[(,]", name, maxsplit=1)[0]
    settings = re.findall(r"(\w+)=(\([^)]*\)|[^,)]*)", name.removeprefix(first))
    return first.partition("@")[0], {key: _number(value) for key, value in settings}


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
