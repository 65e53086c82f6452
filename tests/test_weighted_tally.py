"""A tally of weighted rows says what the weighted rows say, however they are split."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from functools import reduce
from operator import add
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tallies import BOUNDED, EXACT, on_the_grid, outcomes_of, same, weighted_answers

from assay import Outcomes, Predictions, audit, choose_threshold, compare, evaluate, files
from assay._core.arrays import InputError
from assay.calibrators import histogram, isotonic, streamed_temperature, summary_histogram, summary_isotonic
from assay.metrics import METRICS
from assay.scale import Filling, Joint, Tally, tally, tally_files
from assay.scale._cells import MOST

AREAS = ("auroc", "aupr_success", "aurc", "e_aurc", "augrc")


def many(seed: int = 0, n: int = 60_000, k: int = 4) -> Predictions:
    """More distinct confidences than a tally keeps, with weights between .5 and 3."""
    rng = np.random.default_rng(seed)
    labels, logits = rng.integers(0, k, n), 3 * rng.standard_normal((n, k))
    logits[np.arange(n), labels] += 3
    weights = rng.uniform(0.5, 3, n)
    return Predictions.from_logits(logits.astype(np.float32), labels, weights=weights)


@given(weighted_answers, st.booleans())
def test_weights_of_one_are_none(rows, grid):
    make = on_the_grid if grid else Tally.of
    weighted = outcomes_of([(confidence, correct, 1.0) for confidence, correct, _ in rows])
    plain = evaluate(make(replace(weighted, weights=None)))
    assert evaluate(make(weighted)) == pytest.approx(plain, rel=1e-9, abs=1e-12, nan_ok=True)


@given(weighted_answers)
def test_a_weight_of_two_is_the_row_twice(rows):
    """But for metrics that count samples instead of shares."""
    twos = outcomes_of([(confidence, correct, 2.0 if correct else 1.0) for confidence, correct, _ in rows])
    repeated = replace(twos[np.repeat(np.arange(len(twos)), twos.weights.astype(int))], weights=None)
    keys = (*EXACT, "auroc", "aupr_success", "aupr_error", "augrc", "fpr95", "ada_ece", "mmce")
    found, expected = evaluate(Tally.of(twos), keys), evaluate(Tally.of(repeated), keys)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True)


@pytest.mark.parametrize("k", [2, 4])
def test_many_weighted_rows_on_the_grid(k):
    p = many(k=k)
    parts = [Tally.of(p[rows]) for rows in np.array_split(np.arange(len(p)), [7, 9_000, 30_000])]
    whole = Tally.from_bytes(reduce(add, parts).to_bytes())
    assert same(whole, Tally.of(p))
    assert whole.cells.level > 0
    found, exact, bounds = evaluate(whole), evaluate(p), whole.bounds()
    assert list(found) == list(exact)
    for key in ("accuracy", "nll", "brier", "ece", "mean_entropy", "classwise_ece", "tace"):
        assert found[key] == pytest.approx(exact[key], rel=1e-12), key
    for key in BOUNDED:
        assert abs(found[key] - exact[key]) <= bounds[key], key
    for key in AREAS:
        assert found[key] == pytest.approx(exact[key], abs=1e-6), key
    assert found == pytest.approx(exact, abs=1e-3)


@pytest.mark.parametrize("rows", [many(n=3_000), many(n=3_000, k=2), many(), many(n=15)], ids=str)
def test_an_audit_has_the_intervals_and_floors_of_the_weighted_rows(rows):
    ours, there = audit(Tally.of(rows), draws=100), audit(rows, draws=100)
    assert ours.keys() == there.keys()
    for key in METRICS.keys() & there.keys():
        a, b = ours[key], there[key]
        assert (a.floor is None) == (b.floor is None)
        assert (a.floor or 0) == pytest.approx(b.floor or 0, rel=1e-4)
        if key in ("ece_l2_mass", "debiased_ece"):
            assert a.interval is None
            assert a.note
        elif b.interval is None:
            assert a.note == b.note
        else:
            assert a.interval is not None, key
            assert (a.interval.low, a.interval.high) == pytest.approx((b.interval.low, b.interval.high), abs=1e-4), key
    assert ours.calibrated_p == pytest.approx(there.calibrated_p, abs=0.03)


def test_weighted_groups_are_tested_as_their_rows_are():
    p = many(n=9_000)
    group = np.random.default_rng(1).integers(0, 3, len(p))
    warm = replace(p, group=np.array(["a", "b", "c"])[group], values=p.values * np.where(group == 2, 3, 1)[:, None])
    ours, rows = audit(Tally.of(warm), draws=100), audit(warm, draws=100)
    for name in rows.groups:
        assert ours.groups[name].to_dict() == pytest.approx(rows.groups[name].to_dict(), rel=1e-9)
    there = {(f.group, f.metric): f for f in rows.findings if f.metric != "calibration_part"}
    found = {(f.group, f.metric): f for f in ours.findings}
    assert ("c", "over_confidence") in there
    assert found.keys() == there.keys()
    for key, finding in found.items():
        assert (finding.value, finding.rest) == pytest.approx((there[key].value, there[key].rest), abs=1e-9)
    assert ours.detectable == pytest.approx(rows.detectable, rel=0.05)


def test_files_with_a_column_of_weights_are_one_weighted_tally(tmp_path):
    p = many(n=30_000).outcomes()
    for i, rows in enumerate(np.array_split(np.arange(len(p)), 3)):
        files.write(p[rows], tmp_path / f"part_{i}.parquet")
    whole = tally(tmp_path)
    assert same(whole, Tally.of(p))
    exact, found = evaluate(p, BOUNDED), evaluate(tally_files(tmp_path, exact=True), BOUNDED)
    assert found == pytest.approx(exact, rel=1e-9)
    state = tmp_path / "state"
    again = tally_files(str(tmp_path / "*.parquet"), state=state)
    assert same(again, whole)
    assert same(tally_files(str(tmp_path / "*.parquet"), state=state), whole)


def test_the_command_takes_a_column_of_weights_of_many_files(tmp_path):
    from assay.cli import app

    p = many(n=900).outcomes()
    (tmp_path / "shards").mkdir()
    for i, rows in enumerate(np.array_split(np.arange(900), 3)):
        lines = zip(p.confidence[rows], p.correct[rows].astype(int), p.weights[rows], strict=True)
        text = "\n".join(["confidence,correct,w", *(f"{c!r},{x},{w!r}" for c, x, w in lines)])
        (tmp_path / "shards" / f"part_{i}.csv").write_text(text.replace("np.float64(", "").replace(")", ""))
    command = ["audit", str(tmp_path / "shards"), "--weight", "w", "--json", str(tmp_path / "found.json")]
    app(command, result_action="return_value")
    found = json.loads((tmp_path / "found.json").read_text())
    [content] = found.values() if "measurements" not in found else [found]
    assert content["measurements"]["ece"]["value"] == pytest.approx(evaluate(p)["ece"], rel=1e-12)


def test_what_a_weighted_tally_cannot_tell_is_refused():
    p = many(n=100)
    with pytest.raises(InputError, match="do not add up to one tally; give weights to all"):
        Tally.of(p) + Tally.of(replace(p, weights=None))
    filling = Filling()
    filling.add(p)
    with pytest.raises(InputError, match="give weights to all"):
        filling.add(replace(p, weights=None))
    with pytest.raises(InputError, match="not enough for a promise; give the rows"):
        choose_threshold(Tally.of(p), risk=0.1)
    with pytest.raises(InputError, match="weighted rows must be in memory"):
        streamed_temperature(lambda: [p])
    with pytest.raises(InputError, match="compare rows with weights in memory"):
        Joint.of(p, p)
    assert "needs the rows" in compare(Tally.of(p), Tally.of(p))["auroc"].note


def test_top_label_maps_from_a_weighted_tally_are_those_of_its_rows():
    o, c = many(n=5_000).outcomes(), np.linspace(0.3, 1, 200)
    summary = Tally.of(o)
    for ours, rows in ((summary_isotonic(summary), isotonic(o)), (summary_histogram(summary), histogram(o))):
        np.testing.assert_allclose(ours(c), rows(c), rtol=1e-9)


def test_a_weighted_tally_takes_at_most_41_bytes_a_cell():
    rng = np.random.default_rng(0)
    odds = np.exp2(rng.uniform(-8, 28, 200_000))  # every cell has samples
    o = Outcomes.from_scores(odds / (1 + odds), rng.random(200_000) < 0.5, weights=rng.uniform(0.5, 3, 200_000))
    for rows in (o[:MOST], o):
        assert len(Tally.of(rows).to_bytes()) <= 41 * MOST


@pytest.mark.skipif("ASSAY_DATA" not in os.environ, reason="needs the real networks of ASSAY_DATA")
def test_weighted_rows_of_real_networks():
    """Each alone is exact; all together are on the grid, where the AUPR of errors is within its bound only."""
    paths = sorted(Path(os.environ["ASSAY_DATA"], "predictions").glob("cifar10_resnet20_*.npz"))
    parts = [replace(files.read(path), ids=None, group=None) for path in paths]
    rng = np.random.default_rng(0)
    weighted = [replace(p, weights=rng.uniform(0.5, 3, len(p))) for p in parts]
    for p in weighted:
        assert evaluate(Tally.of(p)) == pytest.approx(evaluate(p), abs=1e-9, rel=0)
    tallied, rows = reduce(add, map(Tally.of, weighted)), reduce(add, (p.outcomes() for p in weighted))
    found, exact, bounds = evaluate(tallied, BOUNDED), evaluate(rows, BOUNDED), tallied.bounds()
    assert tallied.cells.level > 0
    for key in BOUNDED:
        assert abs(found[key] - exact[key]) <= (min(bounds[key], 1e-6) if key in AREAS else bounds[key]), key


def test_of_a_weighted_score_the_ranking_is_tallied():
    o = Outcomes.from_scores([3.0, -1.0, 2.0], [True, False, False], is_probability=False, weights=[1.0, 2.0, 5.0])
    assert evaluate(Tally.of(o)) == pytest.approx(evaluate(o), rel=1e-12)
