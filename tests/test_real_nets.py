"""Public networks on the CIFAR-10 test set, whose error and ECE are known; run where ASSAY_DATA names the data."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TypeVar

import numpy as np
import pytest

from assay import Outcomes, Predictions, compare, evaluate, files, maps
from assay.calibrators import CALIBRATORS, TOP_LABEL, auto, temperature
from assay.files import Columns
from assay.metrics import ece

FOLDER = Path(os.environ.get("ASSAY_DATA", "")) / "predictions"
Rows = TypeVar("Rows", Predictions, Outcomes)
KNOWN = {20: (5.32, 8.27), 32: (5.08, 7.37), 44: (4.69, 6.90), 56: (4.64, 6.61)}  # ECE and error, per cent


pytestmark = pytest.mark.skipif(
    not os.environ.get("ASSAY_DATA"), reason="ASSAY_DATA does not name a folder with predictions"
)


@pytest.mark.parametrize("depth", KNOWN)
def test_resnet_on_cifar10(depth):
    found = evaluate(files.read(FOLDER / f"cifar10_resnet{depth}_clean.npz"))
    ece, error = KNOWN[depth]
    assert round(100 * found["ece"], 2) == pytest.approx(ece, abs=0.0051)
    assert round(100 * (1 - found["accuracy"]), 2) == error


def test_temperature_from_one_half_mends_the_other():
    predictions = files.read(FOLDER / "cifar10_resnet20_clean.npz")
    fit_on, test = predictions[0::2], predictions[1::2]
    after = maps.apply(temperature(fit_on), test)
    assert evaluate(after)["ece"] < 0.015
    words = {verdict.axis: verdict.word for verdict in compare(test, after).verdicts}
    assert words["calibration"] == "better"
    assert words["accuracy"] == "none shown"
    assert words["refinement"] in ("better", "none shown")


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("net", sorted(file.stem for file in FOLDER.glob("*.npz")))
def test_auto_is_as_good_as_the_best_of_the_family(net: str, seed: int):
    """Within the standard error of the NLL, on the half that nothing was fitted on."""
    fit_on, test = halves(files.read(FOLDER / f"{net}.npz"), seed)
    family = set(CALIBRATORS) - set(TOP_LABEL) - {"temperature_histogram"}
    family -= {"dirichlet", "matrix"} if test.n_classes == 1000 else set()  # a million weights for 2,500 rows
    losses = [maps.apply(CALIBRATORS[name](fit_on), test).outcomes().nll for name in family]
    found = maps.apply(auto(fit_on), test).outcomes().nll
    assert found.mean() <= min(loss.mean() for loss in losses) + found.std() / len(found) ** 0.5


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.filterwarnings("ignore:higher confidences are right less often")
@pytest.mark.parametrize("confidence", ["stated", "log_probability", "wording"])
def test_auto_mends_language_models_as_well_as_isotonic(confidence: str, seed: int):
    """No set stays above 3 % where isotonic is below, no order is reversed, and the NLL is as good on average."""
    losses: dict[str, list[float]] = {"auto": [], "isotonic": []}
    file = FOLDER.parent / "llm" / "mmlu_pro.parquet"
    for sheet in files.read_sheets(file, Columns(confidence=confidence, ids="question"), by="model"):
        if len(sheet.rows) < 2000:
            continue
        fit_on, test = halves(sheet.rows, seed)
        after = {name: maps.apply(CALIBRATORS[name](fit_on), test) for name in losses}
        assert not (ece(after["auto"]) > 0.03 >= ece(after["isotonic"])), sheet.model
        ordered = after["auto"].confidence[np.argsort(test.confidence, kind="stable")]
        assert (np.diff(ordered) >= 0).all(), sheet.model
        for name, rows in after.items():
            losses[name].append(log_loss(rows))
    assert len(losses["auto"]) > 30
    assert np.mean(losses["auto"]) <= np.mean(losses["isotonic"]) + 0.002


def halves(rows: Rows, seed: int) -> tuple[Rows, Rows]:
    order = np.random.default_rng(seed).permutation(len(rows))
    return rows[order[: len(rows) // 2]], rows[order[len(rows) // 2 :]]


def log_loss(rows: Outcomes) -> float:
    """Of the answers being right; isotonic says 0 and 1 too, and pays for at most 1e-6 of doubt."""
    right = np.where(rows.correct, rows.confidence, 1 - rows.confidence)
    return float(-np.log(np.maximum(right, 1e-6)).mean())
