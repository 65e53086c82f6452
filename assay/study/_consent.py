"""Consent to a study's own code: a study file may name code, and only a user who has agreed to it lets it run."""

from __future__ import annotations

from assay._core.arrays import InputError
from assay._core.own_code import code_in, is_own, look_in
from assay._core.variants import parse_variant
from assay.study._study import Study


def own_code(study: Study) -> list[str]:
    """The names in a study that are code of the user's own, package.module:name, each once."""
    trained = [*study.networks_in_full, *study.methods]
    names = [*study.data, *(variant.name for variant in trained)]
    return list(dict.fromkeys([*(code_in(name) for name in names if is_own(name)), *code_of_rows(study)]))


def code_of_rows(study: Study) -> list[str]:
    """Those that compute numbers from predictions: calibrators, scores and metrics."""
    variants = [*study.corrections, *study.scores_in_full, *map(parse_variant, study.metrics)]
    return list(dict.fromkeys(variant.name for variant in variants if is_own(variant.name)))


def permit_own_code(study: Study, *, allow_code: bool) -> None:
    """Refuse a study that names code, unless it is allowed; code that is allowed is found beside the study."""
    if not allow_code and (names := own_code(study)):
        raise InputError(f"{study.name} calls {', '.join(names)}: code that runs only with allow_code=True")
    look_in(study.places)
