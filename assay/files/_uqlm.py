"""uqlm: the csv of its results, with one column a scorer; whether an answer is right is added by the user."""

from __future__ import annotations

from collections.abc import Collection

from assay._core.arrays import InputError

TEXTS = ({"prompt", "response"}, {"prompts", "responses"})
NOT_SCORES = (
    "prompt",
    "response",
    "judge",
    "sampled",
    "raw",
    "logprob",
    "multiple",
    "correct",
    "label",
    "ids",
    "group",
)


def recognized(names: Collection[str]) -> bool:
    """Whether the columns are those of a data frame of uqlm's results."""
    return any(texts <= set(names) for texts in TEXTS) and "confidence" not in names


def scorer(names: Collection[str]) -> str:
    """The only column of a scorer; of several the user chooses. The index that pandas writes has no name."""
    scorers = [name for name in names if name and not name.startswith(NOT_SCORES)]
    if len(scorers) != 1:
        has = f"the scorers {', '.join(scorers)}" if scorers else "no column of a scorer"
        raise InputError(f"has {has}; name one by --confidence, and the column of right answers by --correct")
    return scorers[0]
