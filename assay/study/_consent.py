"""Consent to a study's own code: a study file may name code, and only a user who has agreed to it lets it run."""

from __future__ import annotations

from assay._core.arrays import InputError
from assay._core.own_code import code_of, is_own, look_in
from assay._core.variants import parse_variant
from assay.study._study import Study


def own_code(study: Study) -> list[str]:
    """The names in a study that are code of the user's own, package.module:name, each once."""
    trained = [("network", each.name) for each in study.networks_in_full]
    trained += [("recipe", each.name) for each in study.methods]
    named = [*(("data set", name) for name in study.data), *trained, *names_of_rows(study)]
    own = (code_of(kind, name) for kind, name in named if is_own(name))
    return list(dict.fromkeys(filter(None, own)))


def names_of_rows(study: Study) -> list[tuple[str, str]]:
    """Kinds and names of what computes numbers from predictions: calibrators, scores and metrics."""
    calibrators = [("calibrator", each.name) for each in study.corrections]
    scores = [("score", each.name) for each in study.scores_in_full]
    return [*calibrators, *scores, *(("metric", parse_variant(name).name) for name in study.metrics)]


def permit_own_code(study: Study, *, allow_code: bool) -> None:
    """Refuse a study that names code, unless it is allowed; code that is allowed is found beside the study."""
    if not allow_code and (names := own_code(study)):
        raise InputError(f"{study.name} calls {', '.join(names)}: code that runs only with allow_code=True")
    look_in(study.places)
