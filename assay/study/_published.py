"""The published figure to show beside one of ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from assay import published
from assay._core.variants import Variant, parse_variant
from assay.published import Figure
from assay.study._study import Study

Beside = Callable[[Mapping[str, Any], str, str, str, str], Figure | None]
"""(the point on the other axes, method, calibrator, score, metric) -> the published figure, if there is one."""
ELSEWHERE = {"test": "none"}  # our name of the split: the shift in the published tables


def no_figure(point: Mapping[str, Any], method: str, calibrator: str, score: str, metric: str) -> Figure | None:
    """No published figure."""
    return None


def published_beside(study: Study) -> Beside:
    """Figures of the tables that the study names; if several tables have a figure, that of the first.

    Our names are looked up as the names they `stands_for` in the study, without the set-up (@...). Values must be
    equal: focal(gamma=1) belongs to focal,gamma=1.0 and to nothing else.
    """
    figures = [figure for figure in published.load() if _table(figure) in study.published]
    figures.sort(key=lambda figure: study.published.index(_table(figure)), reverse=True)
    by_name = {(f.data, f.network, *f.variants, f.score, f.shift, f.metric): f for f in figures}
    calibrators = {str(variant): _their_name(study, variant) for variant in study.corrections}
    methods = {str(variant): variant for variant in study.methods}

    def beside(point: Mapping[str, Any], method: str, calibrator: str, score: str, metric: str) -> Figure | None:
        split = ELSEWHERE.get(point["split"], point["split"])
        ours = (point["data"], point["network"], score, split)
        data, network, score, shift = (study.stands_for.get(name, name) for name in ours)
        named = methods[method]
        theirs = _their_name(study, study.at(point["data"], point["network"], named), named)
        return by_name.get((data, network, theirs, calibrators[calibrator], score, shift, parse_variant(metric).name))

    return beside


def _table(figure: Figure) -> str:
    return f"{figure.paper}/{figure.table}"


def _their_name(study: Study, variant: Variant, named: Variant | None = None) -> Variant:
    """What a variant stands for: by its name in the study, without values chosen for the data, or by all its values."""
    stands_for = {parse_variant(ours): parse_variant(theirs) for ours, theirs in study.stands_for.items()}
    found = stands_for.get(named or variant, stands_for.get(variant, variant))
    return replace(found, setup=None)
