"""Consent to a study's own code: a study file may name code, and only a user who has agreed to it lets it run."""

from __future__ import annotations

from assay._core.arrays import InputError
from assay._core.own_code import is_own
from assay.study._study import Study


def own_code(study: Study) -> list[str]:
    """The names in a study that are code of the user's own, package.module:name, each once."""
    variants = [*study.networks_in_full, *study.methods, *study.corrections, *study.scores_in_full]
    names = [*study.data, *(variant.name for variant in variants)]
    return [name for name in dict.fromkeys(names) if is_own(name)]


def refuse_own_code(study: Study, *, allow_code: bool) -> None:
    """Refuse a study that names code, unless it is allowed."""
    if not allow_code and (names := own_code(study)):
        raise InputError(f"{study.name} calls {', '.join(names)}: code that runs only with allow_code=True")
