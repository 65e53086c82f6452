"""Inspect: the `.eval` and `.json` logs of an evaluation, one row a sample and epoch."""

from __future__ import annotations

from collections.abc import Mapping
from math import exp

from assay._core.arrays import InputError
from assay.files._records import Record

VALUES = {"C": 1, "I": 0, "P": 0.5, "N": 0}  # correct, incorrect, partly, no answer


def recognized(content: object) -> bool:
    return isinstance(content, Mapping) and {"eval", "samples"} <= set(content)


def records(content: object) -> list[Record]:
    """The score as `correct`, the `confidence` of its metadata or of the sample's, and `token_probability`.

    The last is that of the tokens that spell the `answer`. It is the confidence if no sample has one in its metadata.
    Of several scorers each has its own `correct.NAME`. Samples of several epochs are clusters.
    """
    if not recognized(content) or not isinstance(content, Mapping):
        raise InputError("is no Inspect log: it needs 'eval' and 'samples'; was it written without samples?")
    samples = content["samples"]
    if not isinstance(samples, list) or not samples:
        raise InputError("the log has no samples")
    rows = [_row(sample, i) for i, sample in enumerate(samples)]
    if all(row["confidence"] is None for row in rows):
        rows = [{**row, "confidence": row["token_probability"]} for row in rows]
    several = len({sample.get("epoch") for sample in samples}) > 1
    if not several:
        return [{"ids": sample["id"], **row} for sample, row in zip(samples, rows, strict=True)]
    ids = [{"ids": f"{sample['id']} {sample.get('epoch')}", "cluster": str(sample["id"])} for sample in samples]
    return [{**own, **row} for own, row in zip(ids, rows, strict=True)]


def _row(sample: object, i: int) -> dict[str, object]:
    if not isinstance(sample, Mapping) or "id" not in sample:
        raise InputError(f"sample {i} has no 'id'")
    scores = sample.get("scores") or {}
    if not scores:  # the sample ended with an error
        return {"correct": False, "confidence": None, "token_probability": None}
    [first, *others] = scores.values()
    verdicts = {f"correct.{name}": _value(score) for name, score in scores.items()} if others else {}
    metadata = {**(sample.get("metadata") or {}), **(first.get("metadata") or {})}
    unanswered = first.get("value") == "N"
    return {
        **(verdicts or {"correct": _value(first)}),
        "confidence": None if unanswered else metadata.get("confidence"),
        "token_probability": None if unanswered else _token_probability(sample, first.get("answer")),
        "answer": None if unanswered else first.get("answer"),
    }


def _value(score: Mapping[str, object]) -> object:
    value = score.get("value")
    return VALUES.get(value, value) if isinstance(value, str) else value


def _token_probability(sample: Mapping[str, object], answer: object) -> float | None:
    """Probability of the last tokens that spell the answer."""
    output = sample.get("output")
    choices = output.get("choices") if isinstance(output, Mapping) else None
    tokens = ((choices[0].get("logprobs") or {}).get("content") or []) if choices else []
    for first in reversed(range(len(tokens))):
        for last in range(first + 1, len(tokens) + 1):
            spelled = "".join(str(token["token"]) for token in tokens[first:last]).strip()
            if spelled and spelled == answer:
                return exp(sum(float(token["logprob"]) for token in tokens[first:last]))
            if len(spelled) > len(str(answer)):
                break
    return None
