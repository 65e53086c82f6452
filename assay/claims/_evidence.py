"""What is kept of the runs of a regime: answers with their confidence, and numbers. Small enough for a repository."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy.special import expit, logit

from assay import files
from assay._core.arrays import Floats, InputError, Mask
from assay._core.reading import require_file
from assay._core.variants import Variant, parse_variant
from assay._core.writing import replacing
from assay.claims._claims import Claim, Side
from assay.maps import Temperature, apply
from assay.metrics import METRICS, evaluate
from assay.predictions import Outcomes, Predictions
from assay.report.analyses import history, sample_columns
from assay.study import (
    FITTED,
    LEARNED,
    UNCHANGED,
    USUAL_SCORE,
    Run,
    Study,
    correction,
    expand,
    published_beside,
    state,
)
from assay.study._scores import PROBABILITIES, read_score
from assay.study._shifts import MADE

MIDDLE = 2**15  # the kept number of a confidence of 1/2
FARTHEST = 40.0  # log-odds whose confidence is 1 in double precision
EVEN = 4.0  # log-odds up to which steps are about the same; beyond, they grow with the log-odds
STEPS = (MIDDLE - 1) / np.arcsinh(FARTHEST / EVEN)
PRINTED = "printed"  # the split of numbers that a paper prints, in the tables that the study names
NUMBERS = pa.schema(
    {
        **dict.fromkeys(("recipe", "method"), pa.string()),
        "n_train": pa.int64(),
        "seed": pa.int64(),
        **dict.fromkeys(("split", "calibrator", "name"), pa.string()),
        "epoch": pa.int64(),
        "value": pa.float64(),
    }
)
SAMPLES = pa.schema(
    {
        **dict.fromkeys(("recipe", "calibrator", "score"), pa.string()),
        "seed": pa.int64(),
        "probability": pa.bool_(),
        "packed": pa.binary(),
        "correct": pa.binary(),
        "n": pa.int64(),
    }
)
Number = dict[str, Any]
RunKey = tuple[str, int | None, int]  # method, training samples and seed


@dataclass(frozen=True)
class Evidence:
    """Kept answers of each side and seed of a regime on the test samples, and kept numbers."""

    samples: dict[tuple[Side, int], Outcomes]
    numbers: list[Number]

    @property
    def recipes(self) -> list[str]:
        """Recipes of the regime, in the order of the study."""
        return list(dict.fromkeys(number["recipe"] for number in self.numbers))

    def seeds(self, side: Side) -> list[int]:
        return sorted(seed for known, seed in self.samples if known == side)

    def number(self, name: str, **wanted: Any) -> dict[int, Floats]:
        """Values of a number by seed, in the order of epochs where it has them."""
        found: dict[int, list[tuple[int, float]]] = {}
        for row in self.numbers:
            if row["name"] == name and all(row[key] == value for key, value in wanted.items()):
                found.setdefault(row["seed"], []).append((row["epoch"] or 0, row["value"]))
        return {seed: np.array([value for _, value in sorted(rows)]) for seed, rows in sorted(found.items())}


def kept_already(runs: Sequence[Run], evidence: Evidence) -> list[Run]:
    """The runs whose evidence is there."""
    known = {_run_of(number) for number in evidence.numbers}
    return [run for run in runs if _key_of(run) in known]


def joined(study: Study, before: Evidence, now: Evidence) -> Evidence:
    """The evidence of now, and from before that of the other runs of the study; in the order of the study."""
    order = {_key_of(run): place for place, run in enumerate(expand(study))}
    again = {_run_of(number) for number in now.numbers}
    stay = [number for number in before.numbers if _run_of(number) in order.keys() - again]
    numbers = sorted([*stay, *now.numbers], key=lambda number: order[_run_of(number)])
    seeds = {(number["recipe"], number["seed"]) for number in stay}
    samples = {key: o for key, o in before.samples.items() if (key[0].recipe, key[1]) in seeds}
    return Evidence(samples | now.samples, numbers)


def _key_of(run: Run) -> RunKey:
    return str(run.method), run.n_train, run.seed


def _run_of(number: Number) -> RunKey:
    return number["method"], number["n_train"], number["seed"]


def gather(study: Study, root: Path, claims: Sequence[Claim]) -> Evidence:
    """Everything that these claims read from the finished runs of a study."""
    recipes = list(dict.fromkeys(method.name for method in study.methods))
    sides = dict.fromkeys(side for claim in claims for side in claim.sides(recipes))
    done = [run for run in expand(study) if state(study, root / run.folder) == "done"]
    samples: dict[tuple[Side, int], Outcomes] = {}
    numbers: list[Number] = []
    for run in done:
        folder, own = root / run.folder, [side for side in sides if side.recipe == run.method.name]
        test, held_out = _predictions(folder / "test.npz"), _held_out(run, folder)
        if len(study.n_train) == 1 and len(study.methods) == len(recipes):  # else a recipe is no side by itself
            for side in own:
                samples[side, run.seed] = _outcomes(side, study, folder, test, test, held_out)
        found = [*_numbers(study, folder, own, test, held_out)]
        found += _shifted(study, folder, {Side(run.method.name): None, **dict.fromkeys(own)}, claims, test, held_out)
        found += printed(study, run)
        numbers += [_number(run, **number) for number in found]
    return Evidence(samples, numbers)


def _number(run: Run, **number: Any) -> Number:
    known = {"recipe": run.method.name, "method": str(run.method), "n_train": run.n_train, "seed": run.seed}
    return {"split": "test", "calibrator": UNCHANGED, "epoch": None} | known | number


def _predictions(file: Path) -> Predictions:
    found = files.read(file)
    assert isinstance(found, Predictions), "a run writes predictions"
    return found


def _held_out(run: Run, folder: Path) -> Predictions | None:
    return None if run.held_out == 0 else _predictions(folder / "held_out.npz")


def _outcomes(
    side: Side, study: Study, folder: Path, fit_on: Predictions, judged: Predictions, held_out: Predictions | None
) -> Outcomes:
    """Answers of a side on some split; `fit_on` are the test samples."""
    if side.score == USUAL_SCORE:
        parts = [outcomes for outcomes, _ in corrected(parse_variant(side.calibrator), fit_on, judged, held_out)]
        return parts[0] if len(parts) == 1 else parts[0] + parts[1]
    score = next(score for score in study.scores_in_full if score.name == side.score and score.name in LEARNED)
    column = (read_score(score, folder, ["test"]) or {})["test"]
    correct = judged.outcomes().correct
    return Outcomes.from_scores(column, correct, is_probability=score.name in PROBABILITIES)


def corrected(
    calibrator: Variant, test: Predictions, judged: Predictions, held_out: Predictions | None
) -> Iterator[tuple[Outcomes, float | None]]:
    """Answers under a calibrator, and its temperature if it is one.

    Without held-out samples it is fitted on the first half of the test samples and judged on the second, and the other
    way round. `judged` are the same samples as `test`, possibly corrupted.
    """
    if held_out is not None or calibrator.name not in FITTED:
        splits = [(held_out, slice(None))]
    else:
        middle = len(test) // 2
        splits = [(test[middle:], slice(None, middle)), (test[:middle], slice(middle, None))]
    for fit_on, rows in splits:
        mapping = correction(calibrator, fit_on)(judged[rows])
        after = judged[rows] if mapping is None else apply(mapping, judged[rows])
        yield after.outcomes(), mapping.t if isinstance(mapping, Temperature) else None


def _numbers(
    study: Study, folder: Path, sides: Iterable[Side], test: Predictions, held_out: Predictions | None
) -> Iterator[Number]:
    for key, value in evaluate(test, [name for name in study.metrics if name in METRICS]).items():
        yield {"name": key, "value": value}
    for row in history(folder):
        for name in row.keys() - {"epoch"}:
            yield {"name": name, "epoch": int(row["epoch"]), "value": row[name]}
    learned = sample_columns(folder).get("learned_epoch")
    if learned is not None:
        yield {"name": "learned_epoch_spread", "value": float(np.std(learned[np.isfinite(learned)]))}
    for side in sides:
        if "temperature" in side.calibrator:
            logs = [log(t) for _, t in corrected(parse_variant(side.calibrator), test, test, held_out) if t is not None]
            yield {"name": "temperature_distance", "calibrator": side.calibrator, "value": abs(float(np.mean(logs)))}


def _shifted(
    study: Study,
    folder: Path,
    sides: Iterable[Side],
    claims: Sequence[Claim],
    test: Predictions,
    held_out: Predictions | None,
) -> Iterator[Number]:
    """Numbers of the sides on shifted samples: those of the claims, and those of the study as it is."""
    claimed = {claim.metric for claim in claims if claim.split == MADE}
    metrics = [*dict.fromkeys([*(name for name in study.metrics if name in METRICS), *sorted(claimed)])]
    for shift in study.shifts:
        judged = _predictions(folder / f"{shift}.npz")
        for side in sides:
            outcomes = _outcomes(side, study, folder, test, judged, held_out)
            for name, value in evaluate(outcomes, metrics).items():
                yield {"name": name, "split": shift, "calibrator": side.calibrator, "value": value}


def printed(study: Study, run: Run) -> Iterator[Number]:
    """What a paper prints of the same recipe as trained."""
    beside, point = published_beside(study), {"data": run.data, "network": run.network, "split": "test"}
    for name in study.metrics:
        figure = beside(point, str(run.method), UNCHANGED, USUAL_SCORE, name)
        if figure is not None:
            yield {"name": name, "split": PRINTED, "value": figure.mean}


def pack(confidence: Floats) -> NDArray[np.uint16]:
    """Confidences as steps of their log-odds, which keep apart what is next to 0 or 1.

    The odds are kept within 1/5400 where they are even, and within 1/540 at 1 - 1e-16.

    >>> unpack(pack(np.array([0.0, 0.25, 0.999, 1.0]))).round(4)
    array([0.   , 0.25 , 0.999, 1.   ])
    """
    odds = np.clip(logit(confidence), -FARTHEST, FARTHEST)
    packed: NDArray[np.uint16] = np.round(np.arcsinh(odds / EVEN) * STEPS + MIDDLE).astype(np.uint16)
    return packed


def unpack(packed: NDArray[np.uint16]) -> Floats:
    """The confidences again."""
    confidence: Floats = expit(EVEN * np.sinh((packed.astype(np.float64) - MIDDLE) / STEPS))
    return confidence


def write_evidence(evidence: Evidence, folder: Path, regime: str) -> None:
    """Write the answers and numbers of a regime."""
    rows = [
        {
            **side._asdict(),
            "seed": seed,
            "probability": o.is_probability,
            "packed": pack(o.confidence).tobytes() if o.is_probability else o.confidence.tobytes(),
            "correct": np.packbits(o.correct).tobytes(),
            "n": len(o),
        }
        for (side, seed), o in evidence.samples.items()
    ]
    for name, content, schema in (("samples", rows, SAMPLES), ("numbers", evidence.numbers, NUMBERS)):
        with replacing(folder / f"{regime}.{name}.parquet") as stream:
            table = pa.Table.from_pylist(content, schema=schema)
            pq.write_table(table, stream, compression="zstd", compression_level=19, write_page_checksum=True)


def has_evidence(folder: Path, regime: str) -> bool:
    return (folder / f"{regime}.numbers.parquet").exists()


def read_evidence(folder: Path, regime: str) -> Evidence:
    """What `write_evidence` wrote."""
    samples, numbers = (folder / f"{regime}.{name}.parquet" for name in ("samples", "numbers"))
    with _whole(samples):
        kept = {_key(row): _kept(row) for row in _rows(samples, SAMPLES)}
    with _whole(numbers):
        return Evidence(kept, _rows(numbers, NUMBERS))


def _rows(file: Path, schema: pa.Schema) -> list[dict[str, Any]]:
    table = pq.read_table(file, page_checksum_verification=True)
    if table.schema != schema:
        raise InputError("is no evidence of this version")
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


@contextmanager
def _whole(file: Path) -> Iterator[None]:
    """Inside the block the file is read; errors name it, whatever is wrong with what it holds."""
    require_file(file, "; nothing is kept of this regime")
    try:
        yield
    except (OSError, ValueError, TypeError, pa.ArrowException) as problem:
        raise InputError(f"{file}: cannot be read: {str(problem).splitlines()[0]}") from problem


def _key(row: dict[str, Any]) -> tuple[Side, int]:
    return Side(row["recipe"], row["calibrator"], row["score"]), row["seed"]


def _kept(row: dict[str, Any]) -> Outcomes:
    correct: Mask = np.unpackbits(np.frombuffer(row["correct"], np.uint8), count=row["n"]).astype(bool)
    if row["probability"]:
        return Outcomes.from_scores(unpack(np.frombuffer(row["packed"], np.uint16)), correct)
    return Outcomes.from_scores(np.frombuffer(row["packed"]), correct, is_probability=False)
