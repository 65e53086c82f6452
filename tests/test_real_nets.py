"""Public networks on the CIFAR-10 test set, whose error and ECE are known; run where ASSAY_DATA names the data."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from assay import compare, evaluate, files, maps
from assay.calibrators import temperature

FOLDER = Path(os.environ.get("ASSAY_DATA", "")) / "predictions"
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
