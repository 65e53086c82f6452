"""The study that has the values chosen, as a file."""

from __future__ import annotations

import json
import os
from pathlib import Path

from assay.study._study import Study
from assay.study._tuning import Tuned


def tuned_study(study: Study, file: Path, found: Tuned, to: Path, *, on: str, metric: str) -> str:
    """TOML of a study that extends the tuned one."""
    (tuned,) = found.best.values()
    lines = []
    for recipe in tuned.values():
        values = "".join(f", {name} = {_toml(value)}" for name, value in recipe.values)
        lines.append(f"  {{ recipe = {_toml(recipe.name)}{values} }},")
    base = os.path.relpath(file.resolve(), to.resolve().parent)
    how = f"values of {', '.join(study.tune)} chosen on {on} by {metric}"
    head = [f"# The {how}.", f"extends = {_toml(base)}", f"name = {_toml(study.name + '_tuned')}"]
    names = {**study.stands_for, **{str(new): study.stands_for.get(old, old) for old, new in tuned.items()}}
    stands_for = ", ".join(f"{_toml(name)} = {_toml(other)}" for name, other in names.items())
    rest = [f"assumed = {_toml([*study.assumed, how])}", f"stands_for = {{ {stands_for} }}"]
    if study.baseline:
        rest.append(f"baseline = {_toml(str(tuned[study.baseline]))}")
    return "\n".join([*head, "recipes = [", *lines, "]", *rest, ""])


def _toml(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
