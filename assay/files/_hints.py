"""Flags that the names of columns suggest: said in an error, never taken."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Collection

LABEL = re.compile(r"y|y_?true|(true_?|gold_?)?(label|class|target)s?|truth|gold|is_.*|.*_label", re.IGNORECASE)
SURE = re.compile(r".*conf.*", re.IGNORECASE)
CHANCE = re.compile(r"p|.*(prob|score|p1|p_1).*|y_?(pred|hat|score).*", re.IGNORECASE)
LOGIT = re.compile(r"z|logits?|.*logit.*", re.IGNORECASE)
RIGHT = re.compile(r".*(correct|right|hit|ok).*", re.IGNORECASE)


def suggested(names: Collection[str]) -> str:
    """The flags for columns of these names, with NAME for what none of them suggests; empty if none suggests anything.

    >>> suggested(["p_cat", "p_dog", "y"]), suggested(["is_fraud", "probability"]), suggested(["a", "b"])
    ("--probabilities 'p_*' --label y", '--positive probability --label is_fraud', '')
    """
    label = next((name for name in names if LABEL.fullmatch(name)), "NAME")
    rest = [name for name in names if name != label]
    stems = Counter(found[1] for name in rest if (found := re.fullmatch(r"(.*[_.\- ]).+", name)))
    pattern = next((stem for stem, n in stems.items() if n > 1 and _of_classes(stem)), None)
    if pattern is not None:
        flag = "--logits" if LOGIT.fullmatch(pattern[:-1]) else "--probabilities"
        return shlex.join([flag, f"{pattern}*", "--label", label])
    right = next((name for name in rest if RIGHT.fullmatch(name)), "NAME")
    for flag, kind, other in (
        ("--confidence", SURE, ["--correct", right]),
        ("--logits", LOGIT, ["--label", label]),
        ("--positive", CHANCE, ["--label", label]),
    ):
        for name in rest:
            if kind.fullmatch(name):
                return shlex.join([flag, name, *other])
    return ""


def _of_classes(stem: str) -> bool:
    return bool(LOGIT.fullmatch(stem[:-1]) or CHANCE.fullmatch(stem[:-1]))
