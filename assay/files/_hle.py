"""Humanity's Last Exam: the JSON of judged answers, by the id of the question."""

from __future__ import annotations

from collections.abc import Mapping

from assay._core.arrays import InputError
from assay.files._records import Record

VERDICTS = {"yes": 1, "no": 0}


def recognized(content: object) -> bool:
    first = next(iter(content.values()), None) if isinstance(content, Mapping) else None
    return isinstance(first, Mapping) and "judge_response" in first


def records(content: object) -> list[Record]:
    """The judge's verdict and the confidence that it read from the answer, in per cent."""
    if not recognized(content) or not isinstance(content, Mapping):
        raise InputError("is no file of HLE judgements: its entries have no 'judge_response'")
    return [_row(str(name), entry) for name, entry in content.items()]


def _row(name: str, entry: object) -> Record:
    judged = entry.get("judge_response") if isinstance(entry, Mapping) else None
    if judged is None:  # the judge gave no verdict
        return {"ids": name, "correct": False, "confidence": None}
    if not isinstance(judged, Mapping) or str(judged.get("correct")).strip().lower() not in VERDICTS:
        raise InputError(f"question {name}: the judge's 'correct' must be yes or no")
    percent = judged.get("confidence")
    if percent is not None and not (isinstance(percent, int | float) and 0 <= percent <= 100):
        raise InputError(f"question {name}: confidence {percent} is no per cent")
    return {
        "ids": name,
        "correct": VERDICTS[str(judged["correct"]).strip().lower()],
        "confidence": None if percent is None else percent / 100,
    }
