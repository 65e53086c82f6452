"""Confidences stated in words: "90%", "0.9", "Confidence: 9/10"."""

from __future__ import annotations

import re

NUMBER = r"(?P<number>\d+(?:\.\d+)?|\.\d+)"
STATED = rf"{NUMBER}\s*(?P<unit>%|percent|per cent|/\s*(?P<of>\d+)|out of\s*(?P<most>\d+))?"
AFTER_THE_WORD = re.compile(rf"confidence(?:\s+[^\W\d]+){{0,3}}\W{{0,4}}{STATED}", re.IGNORECASE)
ALONE = re.compile(rf"\W*{STATED}\W*", re.IGNORECASE)
PERCENT = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>%|percent\b|per cent\b)", re.IGNORECASE)


def stated_confidence(text: str) -> float | None:
    """The confidence that a text states, in [0, 1], or None.

    A number alone, the last one that follows the word confidence, or else the only percentage. A number above 1 needs
    its unit, % or /10: without one it would be a guess.

    >>> [stated_confidence(text) for text in ("90%", "0.9", "Answer: B. Confidence: 9/10", "I am 85 % sure")]
    [0.9, 0.9, 0.9, 0.85]
    >>> [stated_confidence(text) for text in ("quite sure", "90", "between 60% and 80%", "150%")]
    [None, None, None, None]
    """
    alone = ALONE.fullmatch(text.strip())
    if alone:
        return _value(alone)
    named = list(AFTER_THE_WORD.finditer(text))
    if named:
        return _value(named[-1])
    found = {_value(match) for match in PERCENT.finditer(text)}
    return found.pop() if len(found) == 1 else None


def _value(match: re.Match[str]) -> float | None:
    groups = match.groupdict()
    most = groups.get("of") or groups.get("most")
    unit = 100.0 if groups["unit"] and not most else float(most or 1)
    value = float(groups["number"]) / unit if unit else 2.0
    return value if value <= 1 else None
