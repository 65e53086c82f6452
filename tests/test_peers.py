"""Our values against those of other libraries, where definitions agree; `make verify` computes theirs anew."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from assay import Predictions, evaluate, examples

STORED = json.loads((Path(__file__).parent / "frozen_values.json").read_text())
# torchmetrics sums in single precision; relplot's bandwidth is on a grid of 1/1024, its integral on one of 1/200.
TOLERANCE = {"torchmetrics": 2e-6, "relplot": 1e-3}
PAIRS = [(key, peer) for key, peers in STORED["values"].items() for peer in peers]


@pytest.fixture(scope="module")
def ours():
    example = examples.load("label_smoothing")[: STORED["rows"]]
    return evaluate(Predictions.from_logits(example.values.astype(float), example.labels))


@pytest.mark.parametrize(("key", "peer"), PAIRS)
def test_value_of_another_library(ours, key, peer):
    assert ours[key] == pytest.approx(STORED["values"][key][peer], abs=TOLERANCE.get(peer, 1e-9), rel=0)
