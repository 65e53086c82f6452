"""lm-evaluation-harness: the `samples_*.jsonl` that `--log_samples` writes, one row a question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from assay._core.arrays import InputError
from assay.files._records import Record

CORRECT = ("acc", "exact_match")  # the metric that says whether the answer is right, the first that is there


def recognized(content: object) -> bool:
    first = content[0] if isinstance(content, list) and content else None
    return isinstance(first, Mapping) and {"doc_id", "filtered_resps"} <= set(first)


def records(content: object) -> list[Record]:
    """Of multiple choice, the log-likelihoods of the choices as logits, if all questions have equally many.

    Otherwise the probability of the likeliest choice as the confidence. Of generated answers the text is `response`:
    it may state a confidence.
    """
    if not recognized(content) or not isinstance(content, list):
        raise InputError("is no file of lm-eval samples: it has no rows with 'doc_id' and 'filtered_resps'")
    _refuse_repeated(content)
    metric = next((name for name in CORRECT if name in content[0]), None)
    if metric is None:
        raise InputError(f"row 0 has none of the metrics {', '.join(CORRECT)}; one must say whether an answer is right")
    found = [_choices(row, i) for i, row in enumerate(content)]
    generated = [i for i, choices in enumerate(found) if choices is None]
    if 0 < len(generated) < len(found):
        raise InputError(f"row {generated[0]} has no log-likelihoods and others have: these are two tasks")
    rows: list[Record] = [{"ids": row["doc_id"], "correct": _verdict(row, metric, i)} for i, row in enumerate(content)]
    if generated:
        return [{**made, "response": _text(row)} for made, row in zip(rows, content, strict=True)]
    choices = [each for each in found if each is not None]
    labels = [_index(row) for row in content]
    even = len({len(each) for each in choices}) == 1 and all(label is not None for label in labels)
    if even and _agree(choices, labels, rows):
        return [{**made, "logits": z, "labels": y} for made, z, y in zip(rows, choices, labels, strict=True)]
    return [{**made, "confidence": _top(each)} for made, each in zip(rows, choices, strict=True)]


def _refuse_repeated(content: Sequence[Record]) -> None:
    """Rows of several filters or tasks in one file have the same `doc_id`."""
    (value, count), *_ = Counter(str(row.get("doc_id")) for row in content).most_common(1)
    if count > 1:
        filters = sorted({str(row.get("filter")) for row in content})
        rest = f"keep the rows of one filter ({', '.join(filters)})" if len(filters) > 1 else "keep one task a file"
        raise InputError(f"doc_id {value} occurs {count} times; {rest}")


def _choices(row: Record, i: int) -> list[float] | None:
    """Log-likelihood of each choice, whether written as numbers or as text."""
    responses = row.get("filtered_resps")
    if not isinstance(responses, list) or not responses:
        raise InputError(f"row {i}: 'filtered_resps' must be a list of responses")
    if len(responses) < 2 or not all(isinstance(response, list) and len(response) == 2 for response in responses):
        return None
    try:
        values = [float(response[0]) for response in responses]
    except (TypeError, ValueError):
        return None
    if not np.isfinite(values).all():
        raise InputError(f"row {i}: a log-likelihood is {next(x for x in values if not np.isfinite(x))}")
    return values


def _verdict(row: Record, metric: str, i: int) -> object:
    if metric not in row:
        raise InputError(f"row {i} has no '{metric}' and row 0 has: these are two tasks")
    return row[metric]


def _index(row: Record) -> int | None:
    target = str(row.get("target"))
    return int(target) if target.isdecimal() else None


def _agree(choices: list[list[float]], labels: list[int | None], rows: list[Record]) -> bool:
    """Whether the likeliest choice is the target just where the harness says so; a target may be no index."""
    k = len(choices[0])
    right = [y is not None and y < k and int(np.argmax(z)) == y for z, y in zip(choices, labels, strict=True)]
    inside = all(y is not None and y < k for y in labels)
    return inside and right == [bool(row["correct"]) for row in rows]


def _top(choices: list[float]) -> float:
    z = np.array(choices)
    return float(1 / np.exp(z - z.max()).sum())


def _text(row: Record) -> str:
    responses = row["resps"] if "resps" in row else row["filtered_resps"]
    while isinstance(responses, list) and responses:
        responses = responses[0]
    return str(responses)
