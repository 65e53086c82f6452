"""Which rows a map was fitted on, told by their content: nobody should judge a map on them."""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

from assay._core.arrays import Array
from assay.predictions import Outcomes, Predictions


def shared_rows(fitted_on: Predictions | Outcomes, judged_on: Predictions | Outcomes) -> int:
    """How many rows of the second set are in the first, by content: ids are often counted from 0 in both.

    Rows that may be alike by chance (a probability of exactly 1, or a bare confidence of at most six digits) count only
    if their ids agree too, or if the two sets are alike in all rows.
    """
    scores = isinstance(fitted_on, Predictions) and isinstance(judged_on, Predictions)
    with_ids = fitted_on.ids is not None and judged_on.ids is not None
    first, second = (_fingerprints(rows if scores else rows.outcomes(), with_ids) for rows in (fitted_on, judged_on))
    if len(first) == len(second) and sorted(first) == sorted(second):
        return len(judged_on)
    seen = {row for row, telling in first if telling}
    return sum(row in seen for row, _ in second)


def rows_digest(rows: Predictions | Outcomes) -> str:
    """A digest that is the same for the same rows in any order."""
    contents = sorted(content for (content, _), _ in _fingerprints(rows, False))
    return blake2b(b"".join(contents), digest_size=8).hexdigest()


def _fingerprints(rows: Predictions | Outcomes, with_ids: bool) -> list[tuple[tuple[bytes, str], bool]]:
    """For each row the hash of its content, its id if the content may be another row's too, and whether both tell."""
    content: Array
    beside: Array
    if isinstance(rows, Predictions):
        content, beside = rows.values.astype(np.float32), rows.labels
        telling = content.max(1) < 1 if rows.normalized else np.ones(len(rows), dtype=np.bool_)
    else:
        content, beside = rows.confidence, rows.correct
        telling = np.abs(rows.confidence - rows.confidence.round(6)) > 1e-12
    ids = rows.ids.astype(str).tolist() if with_ids and rows.ids is not None else [""] * len(rows)
    return [
        ((blake2b(row.tobytes() + label.tobytes(), digest_size=16).digest(), "" if tells else name), tells or with_ids)
        for row, label, name, tells in zip(content, beside, ids, telling.tolist(), strict=True)
    ]
