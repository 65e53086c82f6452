"""A claim as it stands in a file: what is compared, in which studies, and what would count as an effect."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, ValidationError, field_validator

from assay._core.arrays import InputError
from assay._core.own_code import is_own
from assay._core.reading import require_file
from assay.study import UNCHANGED, USUAL_SCORE

EVERY = "*"  # under `against`: every other recipe of the regime


class Side(NamedTuple):
    """One side of a comparison: the runs of a recipe, corrected and scored in some way."""

    recipe: str
    calibrator: str = UNCHANGED
    score: str = USUAL_SCORE


class Claim(BaseModel):
    """A claim: `method` differs from `against` in `metric` in the way it `expects`, by at least the margin."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    says: str  # the claim, in a sentence
    papers: list[str] = []  # who makes it, and where
    regime: list[str] = Field(min_length=1)  # the studies that decide it
    method: str
    against: str | list[str] | None = None  # recipes to compare with, one by one; None: with 0
    calibrator: str = UNCHANGED
    against_calibrator: str | None = None  # None: the same
    score: str = USUAL_SCORE
    against_score: str | None = None
    metric: str
    split: Literal["test", "corrupted"] = "test"
    epochs: Literal["last", "eighth", "last_less_middle", "last_less_best"] | None = None
    expects: Literal["lower", "higher", "not_lower", "not_higher"]
    margin: NonNegativeFloat  # the smallest difference that counts, in natural units

    @field_validator("metric", "calibrator", "against_calibrator", "score", "against_score")
    @classmethod
    def _no_code(cls, name: str | None) -> str | None:
        if name is not None and is_own(name):
            raise ValueError(f"'{name}' names code, and assay never calls code that a file of claims names")
        return name

    @property
    def side(self) -> Side:
        """What the claim is about."""
        return Side(self.method, self.calibrator, self.score)

    def others(self, recipes: Sequence[str]) -> list[Side]:
        """What it is compared with in a regime of these recipes; nothing if the claim is about 0."""
        if self.against is None:
            return []
        named = [self.against] if isinstance(self.against, str) else self.against
        if named == [EVERY]:
            named = [recipe for recipe in recipes if recipe != self.method]
        calibrator = self.calibrator if self.against_calibrator is None else self.against_calibrator
        return [Side(name, calibrator, self.against_score or self.score) for name in named]

    def sides(self, recipes: Sequence[str]) -> list[Side]:
        """Everything that it compares."""
        return [self.side, *self.others(recipes)]


def read_claims(file: str | Path) -> list[Claim]:
    """The claims of a TOML file, each a table [[claim]]."""
    require_file(Path(file))
    try:
        content = tomllib.loads(Path(file).read_text(encoding="utf-8"))
        claims = [Claim(**entry) for entry in content["claim"]]
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as problem:
        if isinstance(problem, ValidationError):
            first = problem.errors()[0]
            problem = ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}")
        raise InputError(f"{file}: is no file of claims: {problem}") from problem
    twice = [name for name, count in Counter(claim.id for claim in claims).items() if count > 1]
    if twice:
        raise InputError(f"{file}: the claim '{twice[0]}' stands there twice")
    return claims
