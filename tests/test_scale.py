"""A tally of fixed size says what the rows say, however they are split."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from functools import reduce
from itertools import combinations, pairwise
from operator import add
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tallies import BOUNDED, EXACT, answers, cuts, on_the_grid, outcomes_of, same

import assay.examples
from assay import Outcomes, Predictions, audit, choose_threshold, compare, evaluate, files, metrics
from assay._core import loops
from assay._core.arrays import InputError
from assay._core.plain import Grid
from assay.scale import Joint, Tally, tally
from assay.scale._cells import MOST
from assay.scale._grid import lowest

AREAS = ("auroc", "aupr_success", "aupr_error", "aurc", "e_aurc", "augrc")


def many(seed: int = 0, n: int = 60_000, k: int = 4) -> Predictions:
    """More distinct confidences than a tally keeps; a few of exactly 1."""
    rng = np.random.default_rng(seed)
    labels, logits = rng.integers(0, k, n), 3 * rng.standard_normal((n, k))
    logits[np.arange(n), labels] += 3
    logits[: n // 50] *= 100
    return Predictions.from_logits(logits.astype(np.float32), labels)


@given(answers)
def test_few_rows_are_exact(rows):
    o = outcomes_of(rows)
    exact, found = evaluate(o), evaluate(Tally.of(o))
    assert list(exact) == list(found)
    np.testing.assert_allclose(
        list(found.values()), list(exact.values()), rtol=1e-9 if o.weights is not None else 1e-12, atol=1e-12
    )


@given(answers)
def test_on_the_grid_metrics_are_within_their_bounds(rows):
    o = outcomes_of(rows)
    tally, exact = on_the_grid(o), evaluate(o)
    found, bounds = evaluate(tally), tally.bounds()
    assert tally.cells.level == 1
    for key in EXACT:
        assert found[key] == pytest.approx(exact[key], abs=1e-12)
    for key in BOUNDED:
        if not np.isnan(exact[key]):
            assert abs(found[key] - exact[key]) <= bounds[key] + 1e-12, key


@given(answers, cuts, st.randoms(use_true_random=False), st.booleans())
def test_any_split_in_any_order_gives_the_same_tally(rows, cuts, random, grid):
    make = on_the_grid if grid else Tally.of
    whole = outcomes_of(rows)
    random.shuffle(rows)
    ends = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    parts = [make(outcomes_of(rows[a:b])) for a, b in pairwise(ends) if b > a]
    found = reduce(add, parts)
    assert same(found, make(whole))
    assert same(Tally.from_bytes(found.to_bytes()), found)


@given(answers, cuts, st.randoms(use_true_random=False), st.integers(25, 60))
def test_on_any_level_the_split_changes_nothing_and_metrics_are_within_their_bounds(rows, cuts, random, most):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("assay.scale._cells.MOST", most)
        o = outcomes_of(rows)
        whole, exact = Tally.of(o), evaluate(o)
        random.shuffle(rows)
        ends = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
        parts = [Tally.of(outcomes_of(rows[a:b])) for a, b in pairwise(ends) if b > a]
        assert same(reduce(add, parts), whole)
        assert len(whole.cells.table) <= most
        found, bounds = evaluate(whole), whole.bounds()
    for key in ("accuracy", "ece", "mean_confidence", *BOUNDED):
        if not np.isnan(exact[key]):
            assert abs(found[key] - exact[key]) <= bounds[key] + 1e-12, key


def test_many_rows_become_a_grid_however_they_are_split():
    p = many()
    whole, parts = Tally.of(p), [Tally.of(p[rows]) for rows in np.array_split(np.arange(len(p)), [7, 9_000, 30_000])]
    left = (parts[0] + parts[1]) + (parts[2] + parts[3])
    right = parts[3] + (parts[1] + (parts[2] + parts[0]))
    assert whole.cells.level == 1
    assert parts[0].cells.level == 0
    assert same(left, whole)
    assert same(right, whole)


def test_many_rows_on_the_grid():
    p = many()
    tally, exact = Tally.of(p), evaluate(p)
    found, bounds = evaluate(tally), tally.bounds()
    assert list(found) == list(exact)
    for key in ("accuracy", "nll", "brier", "ece", "mean_entropy", "classwise_ece", "tace"):
        assert found[key] == pytest.approx(exact[key], rel=1e-12)
    for key in BOUNDED:
        assert abs(found[key] - exact[key]) <= bounds[key]
    for key in AREAS:
        assert found[key] == pytest.approx(exact[key], abs=1e-6)
    assert found["risk_at_95"] == pytest.approx(exact["risk_at_95"], abs=1e-5)
    assert found["fpr95"] == pytest.approx(exact["fpr95"], abs=1e-3)
    assert found == pytest.approx(exact, abs=1e-3)


@settings(max_examples=20)
@given(st.integers(0, 3), st.integers(0, 3), st.integers(0, 30), st.integers(0, 5))
def test_a_cell_is_expected_to_be_what_its_orders_are_on_average(hits, misses, above, below):
    """Average precision and FPR95 of cells, against the mean over all orders in one of them, by hand."""
    assume(hits + misses > 1)
    around = [(0.99, True)] * above + [(0.2, False)] * below + [(0.98, False), (0.1, True)]
    places = 0.5 + 1e-6 * np.arange(hits + misses)  # in one cell
    found: dict[str, list[float]] = {}
    for right in combinations(range(hits + misses), hits):
        inside = [(c, i in right) for i, c in enumerate(places)]
        for key, value in evaluate(outcomes_of(around + inside), [*AREAS, "fpr95"]).items():
            found.setdefault(key, []).append(value)
        tally = on_the_grid(outcomes_of(around + inside))
    ours = evaluate(tally, [*AREAS, "fpr95"])
    assert ours == pytest.approx({key: np.mean(values) for key, values in found.items()}, abs=1e-12)


def test_cells_of_one_confidence_are_ties():
    rng = np.random.default_rng(0)
    confidence = np.repeat(1 - np.geomspace(1e-7, 0.4, 1_500), 40)  # each in a cell of its own
    o = Outcomes.from_scores(confidence, rng.random(len(confidence)) < confidence)
    tally = on_the_grid(o)
    assert not tally.cells.mixed.any()
    assert set(tally.bounds().values()) == {0.0}
    assert evaluate(tally, BOUNDED) == pytest.approx(evaluate(o, BOUNDED), rel=1e-12)


def test_an_audit_of_a_tally_has_the_same_bars_and_says_how_exact_it_is():
    p = many()[2_000:]  # without answers of probability 1, whose NLL has no interval
    ours, rows = audit(Tally.of(p)), audit(p)
    for key in ("accuracy", "nll", "brier", "ece", "auroc", "aurc"):
        a, b = ours[key].interval, rows[key].interval
        assert a is not None
        assert b is not None
        assert (a.low, a.high) == pytest.approx((b.low, b.high), abs=1e-3)
    assert ours["ece"].bound == 0
    assert 0 < ours["auroc"].bound < 1e-3
    assert rows["auroc"].bound is None


def test_two_classes_have_the_positive_one():
    p = many(k=2)
    found, exact = evaluate(Tally.of(p)), evaluate(p)
    assert found["ece_positive"] == pytest.approx(exact["ece_positive"], rel=1e-12)
    assert found["ada_ece_positive"] == pytest.approx(exact["ada_ece_positive"], abs=1e-4)


def test_the_embedded_example_is_exact():
    p = assay.examples.load()
    assert evaluate(Tally.of(p)) == pytest.approx(evaluate(p), rel=1e-12, nan_ok=True)


@pytest.mark.skipif("ASSAY_DATA" not in os.environ, reason="needs the real networks of ASSAY_DATA")
def test_real_networks_are_within_a_millionth():
    for file in Path(os.environ["ASSAY_DATA"], "predictions").glob("*.npz"):
        p = files.read(file)
        assert evaluate(Tally.of(p)) == pytest.approx(evaluate(p), abs=1e-6, rel=0)


@pytest.mark.skipif("ASSAY_DATA" not in os.environ, reason="needs the real networks of ASSAY_DATA")
def test_areas_of_many_real_rows_are_within_a_millionth_on_the_grid():
    """Nine kinds of images; FPR95 and risks depend on the order in one cell, so only their bound is promised."""
    paths = sorted(Path(os.environ["ASSAY_DATA"], "predictions").glob("cifar10_resnet20_*.npz"))
    o = reduce(add, (replace(files.read(path).outcomes(), ids=None, group=None) for path in paths))
    tally, exact = Tally.of(o), evaluate(o, BOUNDED)
    assert tally.cells.level > 0
    found, bounds = evaluate(tally, BOUNDED), tally.bounds()
    for key in BOUNDED:
        assert abs(found[key] - exact[key]) <= (min(bounds[key], 1e-6) if key in AREAS else bounds[key]), key


@pytest.mark.long
@pytest.mark.skipif("ASSAY_DATA" not in os.environ, reason="needs the real networks of ASSAY_DATA")
@pytest.mark.parametrize(
    "name", ["cifar10_resnet20_clean", "cifar10_resnet20_gaussian_noise_3", "cifar10_resnet56_jpeg_5"]
)
def test_millions_of_rows_of_a_real_network_are_within_a_millionth_on_the_grid(name):
    """Rows are drawn from the network's logits, each a little warmer or cooler, so that confidences differ."""
    p, rng, n = (
        files.read(Path(os.environ["ASSAY_DATA"], "predictions", f"{name}.npz")),
        np.random.default_rng(0),
        2**21,
    )
    assert isinstance(p, Predictions)
    rows, warmth = rng.integers(len(p), size=n), 1 + 0.1 * rng.standard_normal((n, 1), dtype=np.float32)
    o = Predictions.from_logits(p.values[rows] * warmth, p.labels[rows]).outcomes()
    tally, exact = Tally.of(o), evaluate(o, BOUNDED)
    assert tally.cells.level > 0
    found, bounds = evaluate(tally, BOUNDED), tally.bounds()
    for key in BOUNDED:
        assert abs(found[key] - exact[key]) <= bounds[key], key
    for key in AREAS:
        assert found[key] == pytest.approx(exact[key], abs=1e-6), key


def test_a_tally_is_small():
    """Nearly every cell has samples; of two classes, class 1 has a table of its own."""
    rng, n = np.random.default_rng(0), 2_000_000
    odds = np.exp2(rng.uniform(-8, 28, n))
    rows = Outcomes.from_scores(odds / (1 + odds), rng.random(n) < 0.5)
    of_two = Predictions.from_binary_logits(rng.uniform(-20, 20, n), rng.integers(0, 2, n))
    for found in (rows[:MOST], rows[: n // 10], rows, of_two[:MOST], of_two):
        assert len(Tally.of(found).to_bytes()) <= 256_000


def test_bytes_and_files_give_it_back(tmp_path):
    for p in (many(), many(k=2), many(n=50), Outcomes.from_scores([3.0, -1.0], [True, False], is_probability=False)):
        tally = Tally.of(p)
        tally.save(tmp_path / "state")
        for other in (Tally.from_bytes(tally.to_bytes()), Tally.load(tmp_path / "state")):
            assert same(other, tally)
            assert evaluate(other) == pytest.approx(evaluate(tally), nan_ok=True)


def test_what_is_no_tally_is_refused(tmp_path):
    (tmp_path / "state").write_bytes(b"PK nothing")
    with pytest.raises(InputError, match="state: is no stored tally"):
        Tally.load(tmp_path / "state")
    with pytest.raises(InputError, match="No such file"):
        Tally.load(tmp_path / "none")


def test_too_many_scores_are_refused():
    scores = Outcomes.from_scores(np.arange(MOST + 1.0), np.ones(MOST + 1), is_probability=False)
    with pytest.raises(InputError, match="no tally can be made"):
        Tally.of(scores)
    with pytest.raises(InputError, match="do not add up"):
        Tally.of(scores[:2]) + Tally.of(Outcomes.from_scores([0.5], [True]))


def test_cells_end_at_the_edges_of_the_bins_and_follow_the_confidence():
    edges = np.arange(1, 15) / 15
    below, above = Grid.cell(edges), Grid.cell(np.nextafter(edges, 1))
    assert (above > below).all()
    rising = Grid.cell(np.array([0, 1e-300, 1e-3, 0.1, 0.5, 0.9, 1 - 1e-9, 1 - 1e-15, np.nextafter(1.0, 0), 1.0]))
    assert rising[0] == 0
    assert rising[-1] == Grid.CELLS - 1
    assert (np.diff(rising) > 0).all()


@pytest.mark.skipif(not loops.AVAILABLE, reason="no C compiler when the package was installed")
@given(answers)
def test_compiled_cells_are_those_of_numpy(rows):
    o = outcomes_of(rows)
    ours = on_the_grid(o)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loops, "AVAILABLE", False)
        assert same(on_the_grid(o), ours)


def test_a_threshold_from_a_tally_accepts_what_it_counted():
    o = many().outcomes()
    chosen = choose_threshold(Tally.of(o), risk=0.4)
    accepted = o.confidence >= chosen.value
    assert (accepted.sum(), (accepted & ~o.correct).sum()) == (chosen.accepted, chosen.wrong)
    assert chosen.accepted > 0.98 * choose_threshold(o, risk=0.4).accepted


def test_the_next_number_below_the_lowest_of_a_cell_is_in_a_cell_below():
    """Near 1 there are cells between two numbers, so the lowest of these may be in a cell above."""
    least, cells = lowest(), np.arange(Grid.CELLS)
    assert (Grid.cell(least) >= cells).all()
    assert (Grid.cell(np.nextafter(least[1:], 0)) < cells[1:]).all()
    assert (Grid.cell(least) == cells).mean() > 0.9


def test_one_metric_from_a_tally():
    p = many()
    assert metrics.ece(Tally.of(p)) == pytest.approx(metrics.ece(p), rel=1e-12)
    assert metrics.ece(Tally.of(p), 10) == pytest.approx(metrics.ece(p, 10), abs=1e-3)


@pytest.mark.parametrize("ending", [".parquet", ".npz", ".csv"])
def test_shards_of_a_folder_or_a_pattern_add_up_to_the_whole(tmp_path, ending):
    p = many(n=900).outcomes()
    for i, rows in enumerate(np.array_split(np.arange(900), 3)):
        files.write(p[rows], tmp_path / f"part_{i}{ending}")
    (tmp_path / "notes.txt").write_text("no predictions")
    for source in (tmp_path, str(tmp_path / f"part_*{ending}")):
        assert same(tally(source), Tally.of(p))
    with pytest.raises(InputError, match="no files of predictions"):
        tally(str(tmp_path / "other_*"))


def test_chunks_of_a_file_and_threads_change_nothing(tmp_path):
    p = replace(many(n=30_000), ids=np.arange(30_000))
    files.write(p, tmp_path / "p.parquet")
    whole = Tally.of(p)
    for rows, n in ((1_000, 1), (7_001, 3)):
        chunks = files.read_chunks(tmp_path / "p.parquet", rows=rows)
        with loops.threads(n):
            assert same(tally(chunks), whole)
        assert same(tally(tmp_path / "p.parquet"), whole)


def test_a_bad_row_of_a_stream_is_named(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    confidence = np.full(3_000, 0.5)
    confidence[2_345] = 1.5
    pq.write_table(pa.table({"confidence": confidence, "correct": np.ones(3_000, bool)}), tmp_path / "p.parquet")
    with pytest.raises(InputError, match=r"p\.parquet: of the rows from 2000 on, row 345: confidence 1\.5"):
        tally(files.read_chunks(tmp_path / "p.parquet", rows=1_000))


def test_only_needed_columns_are_read(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    odd = pa.array([[1], None, [1, 2]])
    pq.write_table(
        pa.table({"confidence": [0.5, 0.6, 0.7], "correct": [1, 0, 1], "odd": odd, "ids": [1, 1, 1]}),
        tmp_path / "p.parquet",
    )
    assert len(tally(tmp_path / "p.parquet")) == 3


def test_rows_in_clusters_are_refused():
    rows = Outcomes.from_scores([0.9, 0.8, 0.7], [True, True, False], cluster=["a", "a", "b"])
    with pytest.raises(InputError, match="in clusters; audit them in one file"):
        Tally.of(rows)


def test_no_rows_are_refused():
    with pytest.raises(InputError, match="no rows"):
        tally(iter([]))


def test_the_command_audits_a_folder_and_a_pattern_as_one_model(tmp_path, capsys):
    from assay.cli import app

    p = many(n=900).outcomes()
    (tmp_path / "shards").mkdir()
    for i, rows in enumerate(np.array_split(np.arange(900), 3)):
        files.write(p[rows], tmp_path / "shards" / f"part_{i}.parquet")
    for source in (tmp_path / "shards", tmp_path / "shards" / "*.parquet"):
        app(["audit", str(source), "--json", str(tmp_path / "found.json")], result_action="return_value")
        assert "every number is exact" in capsys.readouterr().out
        found = json.loads((tmp_path / "found.json").read_text())
        [content] = found.values() if "measurements" not in found else [found]
        assert content["n"] == 900


def test_groups_are_tallied_and_tested_as_their_rows_are(tmp_path):
    p = many(n=9_000)[200:]
    group = np.random.default_rng(1).integers(0, 3, len(p))
    warm = replace(p, group=np.array(["a", "b", "c"])[group], values=p.values * np.where(group == 2, 3, 1)[:, None])
    parts = [Tally.of(warm[rows]) for rows in np.array_split(np.arange(len(p)), 3)]
    whole = Tally.from_bytes((parts[0] + parts[1] + parts[2]).to_bytes())
    ours, rows = audit(whole, draws=100), audit(warm, draws=100)
    assert ours.groups.keys() == rows.groups.keys()
    for name in rows.groups:
        assert ours.groups[name].to_dict() == pytest.approx(rows.groups[name].to_dict(), rel=1e-9)
    there = {(f.group, f.metric): f for f in rows.findings if f.metric != "calibration_part"}
    found = {(f.group, f.metric): f for f in ours.findings}
    assert ("c", "over_confidence") in there
    assert found.keys() == there.keys()
    for key, finding in found.items():
        assert (finding.value, finding.rest) == pytest.approx((there[key].value, there[key].rest), abs=1e-9)
    assert not ours.by_label


def test_groups_that_are_the_label_are_known_as_such():
    p = many(n=3_000)
    a, b = (Tally.of(replace(p, group=p.labels)[rows]) for rows in (slice(0, 10), slice(10, None)))
    assert (a + b).by_label
    assert audit(Tally.from_bytes((a + b).to_bytes()), draws=100).by_label
    other = Tally.of(replace(p, group=(p.labels + 1) % 4))
    assert not (a + other).by_label


def test_summaries_stand_side_by_side():
    a, b = Tally.of(many()), Tally.of(many(seed=1))
    found = compare(a, b)
    assert found["ece"].value == pytest.approx(evaluate(b)["ece"] - evaluate(a)["ece"])
    assert {verdict.word for verdict in found.verdicts} == {"cannot tell"}
    assert "needs the rows" in found["auroc"].note
    with pytest.raises(InputError, match="with another summary only"):
        compare(a, many())
    with pytest.raises(InputError, match="60000 rows against 50"):
        compare(a, Tally.of(many(n=50)))


def test_means_of_summaries_are_compared_in_pairs_as_from_the_rows():
    p, q = many(n=4_000)[100:], many(n=4_000, seed=1)[100:]
    q = replace(p, values=p.values + q.values / 4)
    parts = [Joint.of(p[rows], q[rows]) for rows in np.array_split(np.arange(len(p)), 3)]
    rows, ours = compare(p, q), compare(Tally.of(p), Tally.of(q), joint=parts[0] + parts[1] + parts[2])
    for key in ("nll", "brier", "accuracy"):
        assert ours[key].p_value == pytest.approx(rows[key].p_value, rel=1e-6)
        assert ours[key].estimate.error == pytest.approx(rows[key].estimate.error, rel=1e-9)
    words = {verdict.axis: verdict.word for verdict in ours.verdicts}
    assert words["accuracy"] != "cannot tell"
    assert words["refinement"] == words["calibration"] == "cannot tell"
    with pytest.raises(InputError, match="joint has counted 2 rows"):
        compare(Tally.of(p), Tally.of(q), joint=Joint.of(p[:2], q[:2]))
