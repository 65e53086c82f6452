"""Several samples of one question: the share of them that agree (self-consistency), and the best of n.

Wang et al., "Self-Consistency Improves Chain of Thought Reasoning in Language Models", ICLR 2023.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np

from assay._core.arrays import Floats, InputError
from assay.files._formats import LazyTable
from assay.predictions import Outcomes, Predictions

Samples = Literal["all", "best"]
NEEDS = "needs the question of each row: name its column by --cluster"


def agreement(table: LazyTable, answer: str, question: str) -> Floats:
    """The share of a question's samples that give the same answer, itself included; nan where there is no answer.

    Answers are the same if their texts are, without the space around them. A sample without an answer counts in the
    number of samples.
    """
    if question not in table:
        raise InputError(f"--agreement {NEEDS}")
    if answer not in table:
        raise InputError(f"no column '{answer}'; name the column of answers by --agreement")
    empty, share = table.missing(answer), np.full(len(table[question]), np.nan)
    _, asked = np.unique(table[question].astype(str), return_inverse=True)
    if not empty.all():
        texts = np.char.strip(table.picked(~empty)[answer].astype(str))
        _, told = np.unique(texts, return_inverse=True)
        _, same, alike = np.unique(asked[~empty] * (told.max() + 1) + told, return_inverse=True, return_counts=True)
        share[~empty] = alike[same] / np.bincount(asked)[asked[~empty]]
    return share


def best_of_each(rows: Outcomes | Predictions) -> Outcomes | Predictions:
    """Of the samples of each question the most confident, the first of equals; questions are then independent."""
    if rows.cluster is None:
        raise InputError(f"--samples best {NEEDS}")
    falling = np.argsort(-rows.outcomes().confidence, kind="stable")
    _, first = np.unique(rows.cluster[falling], return_index=True)
    return replace(rows[np.sort(falling[first])], cluster=None)
