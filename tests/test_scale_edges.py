"""Tallies where files, tallies or models do not fit together: an error that says so, and never a wrong number."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from tallies import on_the_grid, same

from assay import Outcomes, Predictions, audit, calibrators, choose_threshold, compare, evaluate, files
from assay._core.arrays import InputError
from assay.cli import app
from assay.files import Columns
from assay.scale import Filling, Joint, Tally, added, chunks_of, shards, tally, tally_files
from assay.scale._sorting import sorted_order
from assay.scale._tally import ORDERED

ANIMALS = ("cat", "dog", "eel")


def outcomes(n: int = 300, seed: int = 0) -> Outcomes:
    draws = np.random.default_rng(seed)
    confidence = draws.uniform(0.3, 1, n)
    return Outcomes.from_scores(confidence, draws.random(n) < confidence)


def with_classes(n: int = 300, k: int = 3, seed: int = 0) -> Predictions:
    draws = np.random.default_rng(seed)
    logits = draws.normal(0, 2, (n, k))
    labels = np.where(draws.random(n) < 0.6, logits.argmax(1), draws.integers(0, k, n))
    return replace(Predictions.from_logits(logits, labels), classes=ANIMALS[:k])


def write_named(p: Predictions, file: Path, order: list[int]) -> None:
    """One column a class, in this order of the classes, and labels by name."""
    named = p.in_order(tuple(p.classes[i] for i in order))
    columns = {f"p_{name}": named.probabilities[:, i] for i, name in enumerate(named.classes)}
    table = pa.table(columns | {"labels": [named.classes[label] for label in named.labels]})
    if file.suffix == ".parquet":
        pq.write_table(table, file)
    else:
        pa.csv.write_csv(table, file)


def command(*words: object) -> None:
    app([str(word) for word in words], result_action="return_value", exit_on_error=False)


@pytest.fixture
def bad_csv(tmp_path) -> Path:
    """Three files of 100 rows, more than fit into the cells of these tests; one row is bad."""
    folder = tmp_path / "rows"
    folder.mkdir()
    for i in range(3):
        files.write(outcomes(100, seed=i), folder / f"{i}.csv")
    lines = (folder / "1.csv").read_text().splitlines()
    lines[8] = "1.5" + lines[8][lines[8].index(",") :]
    (folder / "1.csv").write_text("\n".join(lines) + "\n")
    return folder


def test_a_state_resumed_with_exact_sorts_the_files_in_which_a_row_was_left_out(bad_csv, tmp_path, monkeypatch):
    monkeypatch.setattr("assay.scale._cells.MOST", 50)
    tally_files(bad_csv, state=tmp_path / "state", skip_bad=3)
    found = tally_files(bad_csv, state=tmp_path / "state", skip_bad=3, exact=True)
    good = np.delete(np.arange(300), 107)
    whole = evaluate((outcomes(100) + outcomes(100, 1) + outcomes(100, 2))[good])
    assert found.cells.mixed.any()
    assert {key: evaluate(found)[key] for key in ORDERED} == pytest.approx({key: whole[key] for key in ORDERED})


def test_what_a_state_left_out_counts_towards_what_may_be_left_out(bad_csv, tmp_path):
    tally_files(bad_csv, state=tmp_path / "state", skip_bad=1)
    with pytest.raises(InputError, match="1 bad places have been left out of it; say --skip-bad 1 or more"):
        tally_files(bad_csv, state=tmp_path / "state")


def test_rows_that_are_not_those_that_were_counted_are_not_sorted():
    o = outcomes(60)
    cells = on_the_grid(o).cells.on(9)
    assert cells.mixed.any()
    with pytest.raises(InputError, match=r"60 rows with .* were counted, and 59 with .* read again.*have changed"):
        sorted_order(cells, [o[:59]])
    above = Outcomes.from_scores([0.2, 1.0], [True, True])
    with pytest.raises(InputError, match="higher than all that were counted; the files have changed"):
        sorted_order(cells, [above])


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("k", [2, 3])
def test_named_classes_are_counted_by_name_whatever_their_order_in_a_file(tmp_path, ending, k):
    p = with_classes(k=k)
    write_named(p[:100], tmp_path / f"a.{ending}", list(range(k)))
    write_named(p[100:], tmp_path / f"b.{ending}", list(range(k))[::-1])
    columns = Columns(probabilities="p_*")
    found = tally_files(tmp_path, columns)
    assert found.classes == ANIMALS[:k]
    assert evaluate(found) == pytest.approx(evaluate(Tally.of(p)), rel=1e-9, nan_ok=True)
    chunks = [p[:100], p[100:].in_order(ANIMALS[:k][::-1])]
    assert evaluate(tally(chunks)) == pytest.approx(evaluate(Tally.of(p)), rel=1e-9, nan_ok=True)


def test_rows_are_sorted_with_their_classes_in_one_order(tmp_path, monkeypatch):
    """Of tied classes the first is the answer, so the order decides what is right."""
    monkeypatch.setattr("assay.scale._cells.MOST", 20)
    draws = np.random.default_rng(0)
    p = np.repeat(draws.uniform(0.34, 0.49, (60, 1)), 2, 1)
    rows = Predictions.from_probabilities(np.hstack([p, 1 - p.sum(1, keepdims=True)]), draws.integers(0, 3, 60))
    rows = replace(rows, classes=ANIMALS)
    write_named(rows[:30], tmp_path / "a.csv", [0, 1, 2])
    write_named(rows[30:], tmp_path / "b.csv", [1, 0, 2])
    found = tally_files(tmp_path, Columns(probabilities="p_*"), exact=True)
    assert evaluate(found)["auroc"] == pytest.approx(evaluate(rows)["auroc"])


def test_tallies_of_other_classes_do_not_add_up(tmp_path):
    p, two = with_classes(), with_classes(k=2)
    a = Tally.from_bytes(Tally.of(p).to_bytes())
    with pytest.raises(InputError, match="class 0 is 'cat' in one tally and 'eel' in the other; bring the rows"):
        a + Tally.of(p.in_order(ANIMALS[::-1]))
    with pytest.raises(InputError, match="predictions of 3 classes and of 2 do not add up"):
        a + Tally.of(two)
    files.write(replace(p, classes=None), tmp_path / "a.npz")
    files.write(replace(two, classes=None), tmp_path / "b.npz")
    with pytest.raises(InputError, match=r"b\.npz: predictions of 3 classes and of 2"):
        tally_files(tmp_path)
    with pytest.raises(InputError, match="these rows have 3 and 2"):
        calibrators.streamed_temperature(lambda: chunks_of(tmp_path, Columns()))


@pytest.mark.parametrize("column", ["group", "weights"])
def test_a_file_without_a_column_that_others_have_is_named(tmp_path, column):
    o = outcomes(20)
    files.write(o, tmp_path / "a.parquet")
    files.write(
        replace(o, **{column: np.arange(1, 21.0) if column == "weights" else np.repeat("x", 20)}), tmp_path / "b.npz"
    )
    with pytest.raises(InputError, match=r"b\.npz: rows with .* and rows without do not add up"):
        tally_files(tmp_path)
    with pytest.raises(InputError, match="do not add up"):
        tally(chunk for file in shards(tmp_path) for chunk in files.read_chunks(file))


def test_folders_and_patterns_reach_into_subfolders(tmp_path):
    o = outcomes()
    for i, place in enumerate(("a.parquet", "date=1/b.parquet", "date=1/hour=2/c.parquet")):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        files.write(o[100 * i : 100 * i + 100], tmp_path / place)
    for place in ("_delta_log/log.parquet", ".hidden.parquet"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_bytes(b"no data")
    for source in (tmp_path, f"{tmp_path}/**/[abc].parquet", f"file://{tmp_path}"):
        assert same(tally(source), Tally.of(o))
    for source in (f"{tmp_path}/*=1", f"{tmp_path}/date=1", f"file://{tmp_path}/d*/**/*.parquet"):
        assert same(tally(source), Tally.of(o[100:]))
    (tmp_path / "linked").mkdir()
    os.symlink(tmp_path / "date=1", tmp_path / "linked" / "there")
    os.symlink(tmp_path / "linked", tmp_path / "linked" / "round")
    assert same(tally(tmp_path / "linked"), Tally.of(o[100:]))
    for source in (f"{tmp_path}/*/*.parquet", f"file://{tmp_path}/*/b*"):
        assert [Path(file).name for file in shards(source)][-1] == "b.parquet"


def test_a_joint_is_of_the_same_rows_and_of_the_models_that_are_compared():
    p = replace(with_classes(), ids=np.arange(300))
    q = replace(p, values=p.values + with_classes(seed=1).values)
    shuffled = np.random.default_rng(0).permutation(300)
    np.testing.assert_array_equal(Joint.of(p, q[shuffled]).counts, Joint.of(p, q).counts)
    with pytest.raises(InputError, match="not the same samples: row 0 has label"):
        Joint.of(replace(p, ids=None), replace(q, ids=None)[np.argsort(p.labels == p.labels[0], kind="stable")])
    a, b = Tally.of(p), Tally.of(q)
    assert a.cells.n_wrong != b.cells.n_wrong
    for joint in (Joint.of(q, p), Joint.of(p, p), Joint.of(p[:100], q[:100])):
        with pytest.raises(InputError, match=r"joint has counted .* errors of the .* model"):
            compare(a, b, joint=joint)
    with pytest.raises(InputError, match="joint is for summaries"):
        compare(p, q, joint=Joint.of(p, q))
    with pytest.raises(InputError, match="rows with cluster in memory"):
        Joint.of(replace(p, cluster=p.labels), replace(q, cluster=p.labels))
    weighted = [Tally.of(replace(rows, weights=np.ones(300))) for rows in (p, q)]
    with pytest.raises(InputError, match="summaries are of weighted rows"):
        compare(*weighted, joint=Joint.of(p, q))


@pytest.mark.parametrize("name", files.WHOLE)
def test_what_only_all_rows_tell_is_refused_of_objects_as_of_files(name):
    table = pa.table({"confidence": [0.9, 0.8], "correct": [True, False]})
    for source in (table, table.to_pandas(), pa.dataset.dataset(table), [table]):
        with pytest.raises(InputError, match="needs all rows at once"):
            tally(source, Columns(**{name: "best"}))


def test_shares_that_are_called_per_cents_are_refused_of_objects_as_of_files():
    table = pa.table({"confidence": [0.9, 0.8], "correct": [True, False]})
    with pytest.raises(InputError, match="per cent"):
        tally(table, Columns(percent=True))


def test_a_bad_file_that_was_mended_is_read_and_one_that_was_counted_must_not_change(tmp_path):
    folder, state = tmp_path / "rows", tmp_path / "state"
    folder.mkdir()
    files.write(outcomes(20), folder / "a.csv")
    for spoiled in ("confidence,correct\n7,1\n", "confidence\n0.5\n"):
        (folder / "b.csv").write_text(spoiled)
        with pytest.raises(InputError, match=r"b\.csv"):
            tally_files(folder, state=state)
    (folder / "c#1.csv").write_text("nothing\n1\n")
    files.write(outcomes(30, 1), folder / "b.csv")
    with pytest.raises(InputError, match=r"c#1\.csv"):
        tally_files(folder, state=state)
    assert len(tally_files(folder, state=state, skip_bad=1)) == 50
    files.write(outcomes(40, 2), folder / "c#1.csv")
    assert len(tally_files(folder, state=state)) == 90
    files.write(outcomes(41, 2), folder / "c#1.csv")
    with pytest.raises(InputError, match=r"c#1\.csv: has changed since it was read"):
        tally_files(folder, state=state)


def test_a_file_of_data_is_no_state_and_nobody_is_told_to_delete_it(tmp_path):
    files.write(outcomes(20), tmp_path / "a.npz")
    with pytest.raises(InputError, match="is no state of an audit") as problem:
        tally_files(tmp_path, state=tmp_path / "a.npz")
    assert "delete" not in str(problem.value)


def test_no_map_is_judged_on_files_it_was_fitted_on_however_they_are_named(tmp_path, monkeypatch):
    (tmp_path / "rows").mkdir()
    files.write(outcomes(), tmp_path / "rows" / "a.parquet")
    os.symlink(tmp_path / "rows", tmp_path / "link")
    monkeypatch.chdir(tmp_path)
    for other in (tmp_path / "rows", "link", "rows/a.parquet", "./rows/*.parquet"):
        with pytest.raises(InputError, match="share a file"):
            command("calibrate", "rows", "--method", "isotonic", "--apply", other)


def test_no_map_is_judged_on_copies_of_files_it_was_fitted_on(tmp_path):
    none = {"confidence": pa.array([], pa.float64()), "correct": pa.array([], pa.bool_())}
    for name in ("held_out", "test"):
        (tmp_path / name).mkdir()
        pq.write_table(pa.table(none), tmp_path / name / "none.parquet")
    files.write(outcomes(), tmp_path / "held_out" / "a.parquet")
    files.write(outcomes(seed=1), tmp_path / "test" / "a.parquet")
    words = ("calibrate", tmp_path / "held_out", "--method", "isotonic", "--apply", tmp_path / "test")
    command(*words)
    (tmp_path / "test" / "b.parquet").write_bytes((tmp_path / "held_out" / "a.parquet").read_bytes())
    with pytest.raises(
        InputError, match=r"b\.parquet is a copy: .* share a file; judge on rows that were not fitted on"
    ):
        command(*words)


def test_no_rows_are_a_tally_that_adds_nothing():
    o = outcomes()
    none, some = Tally.of(o[:0]), Tally.of(o)
    stored = Tally.from_bytes(none.to_bytes())
    assert len(stored) == len(Filling().tally()) == 0
    weighted = Tally.of(replace(o, weights=np.arange(1, 301.0), group=np.repeat(["x", "y"], 150)))
    for tally_of_rows in (some, weighted, none):
        assert stored + tally_of_rows is tally_of_rows or not len(tally_of_rows)
        assert tally_of_rows + stored is tally_of_rows or not len(tally_of_rows)
    assert same(added([none.to_bytes(), some.to_bytes(), none]), some)
    for read in (evaluate, audit, choose_threshold, lambda rows: compare(rows, rows)):
        for rows in (none, stored, o[:0]):
            with pytest.raises(InputError, match="no rows"):
                read(rows)


def test_files_without_rows_count_for_nothing(tmp_path):
    rows = tmp_path / "rows"
    rows.mkdir()
    none = {"confidence": pa.array([], pa.float64()), "correct": pa.array([], pa.bool_())}
    pq.write_table(pa.table(none), rows / "0.parquet")
    (rows / "1.csv").write_text("confidence,correct\n")
    np.savez(rows / "2.npz", confidence=np.zeros(0), correct=np.zeros(0, bool))
    with pytest.raises(InputError, match="rows: no rows"):
        tally_files(rows)
    o = outcomes()
    files.write(o, rows / "3.parquet")
    for skip_bad in (0, 1):
        assert same(tally_files(rows, skip_bad=skip_bad, state=tmp_path / str(skip_bad)), Tally.of(o))
    assert sum(map(len, chunks_of(rows, Columns()))) == len(o)
    mapping = calibrators.summary_isotonic(Tally.of(o))
    assert calibrators.apply_to_files(mapping, rows, tmp_path / "out") == len(o)
    assert [file.name for file in (tmp_path / "out").iterdir()] == ["3.parquet"]


def test_engines_without_rows_are_refused():
    import polars

    none = pa.table({"confidence": pa.array([], pa.float64()), "correct": pa.array([], pa.bool_())})
    for source in (none, pa.dataset.dataset(none), polars.from_arrow(none), polars.from_arrow(none).lazy()):
        with pytest.raises(InputError, match="no rows"):
            tally(source)


def stored_with(found: Tally, **changed: np.ndarray) -> bytes:
    with np.load(BytesIO(found.to_bytes())) as archive:
        arrays = dict(archive)
    stream = BytesIO()
    np.savez_compressed(stream, **arrays | changed)
    return stream.getvalue()


def test_damaged_bytes_are_never_a_tally_and_always_said_to_be_damaged():
    found = Tally.of(with_classes())
    stored, draws = found.to_bytes(), np.random.default_rng(0)
    plain = BytesIO()
    np.save(plain, np.arange(3))
    for bad in (b"", stored[:-1], stored[:100], plain.getvalue()):
        with pytest.raises(InputError, match="no stored tally, or is damaged"):
            Tally.from_bytes(bad)
    for _ in range(400):
        flipped = bytearray(stored)
        flipped[draws.integers(len(stored))] ^= 1 << int(draws.integers(8))
        with suppress(InputError):
            assert same(Tally.from_bytes(bytes(flipped)), found)  # a bit that says nothing, as the time of writing


@pytest.mark.parametrize("grid", [False, True])
def test_what_no_rows_add_up_to_is_no_tally(grid):
    found = on_the_grid(outcomes()) if grid else Tally.of(outcomes())
    with np.load(BytesIO(found.to_bytes())) as archive:
        counts, mixed, values = archive["counts"], archive["mixed"], archive["values"]
    more_errors = counts.copy()
    more_errors[1] = counts[0] + 1
    nonsense = {
        "counts": [more_errors, np.zeros_like(counts)],
        "flags": [np.array([77, 1]), np.array([-1, 1]), np.array([9, 1]), np.array([int(grid), 7])],
        "mixed": [mixed[:3], np.zeros(len(mixed) + 1, np.uint8)],
        "values": [np.full_like(values, 0x40), values[:7]] + ([] if grid else [255 - values, np.zeros_like(values)]),
        "sums": [np.zeros((3, 2, 4))],
    }
    assert same(Tally.from_bytes(stored_with(found)), found)
    for name, arrays in nonsense.items():
        for array in arrays:
            with pytest.raises(InputError, match="no stored tally, or is damaged"):
                Tally.from_bytes(stored_with(found, **{name: array}))


@pytest.mark.parametrize("weighted", [False, True])
def test_sums_that_no_rows_have_are_no_tally(weighted):
    p = with_classes()
    found = Tally.of(replace(p, weights=np.linspace(0.5, 2, len(p))) if weighted else p)
    right, wrong = (0, 0, 0), (0, 1, 0)
    for place, value in ((right, -1e4), (wrong, -np.inf), (right, np.inf), (right, np.nan), ((1, 1, 0), np.inf)):
        sums = found.sums.copy()
        sums[place] = value
        with pytest.raises(InputError, match="no stored tally, or is damaged"):
            Tally.from_bytes(stored_with(found, sums=sums))
    impossible = Predictions.from_probabilities([[1.0, 0.0], [0.0, 1.0]], [1, 1])
    above_1 = Predictions.from_probabilities([[1.0009, 0.0], [0.0, 1.0009]], [0, 1])
    for rows in (impossible, above_1, p, p.outcomes(), outcomes()):
        kept = Tally.of(replace(rows, weights=np.linspace(0.5, 2, len(rows))) if weighted else rows)
        np.testing.assert_array_equal(Tally.from_bytes(kept.to_bytes()).sums, kept.sums)


def test_exact_says_that_groups_have_not_been_sorted(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("assay.scale._cells.MOST", 50)
    o = outcomes(2_000)
    files.write(replace(o, group=np.repeat(["x", "y"], 1_000)), tmp_path / "a.parquet")
    command("audit", tmp_path, "--exact")
    assert "sorted, though not those of each group" in " ".join(capsys.readouterr().out.split())


def test_calibrated_files_go_to_an_empty_folder_and_a_single_file_to_a_file(tmp_path):
    for name in ("held_out", "test/deep", "out", "full"):
        (tmp_path / name).mkdir(parents=True)
    files.write(outcomes(), tmp_path / "held_out" / "a.parquet")
    files.write(outcomes(seed=1), tmp_path / "test" / "deep" / "b.csv")
    (tmp_path / "full" / "mine").touch()
    words = ("calibrate", tmp_path / "held_out", "--method", "histogram", "--apply")
    command(*words, tmp_path / "test", "--out", tmp_path / "out")
    many = files.read(tmp_path / "out" / "deep" / "b.parquet")
    command(*words, tmp_path / "test" / "deep" / "b.csv", "--out", tmp_path / "one.parquet")
    np.testing.assert_array_equal(many.confidence, files.read(tmp_path / "one.parquet").confidence)
    with pytest.raises(InputError, match=r"o\.parquet: is the name of a file, but .* go to a folder"):
        command(*words, tmp_path / "test", "--out", tmp_path / "o.parquet")
    with pytest.raises(InputError, match=r"o\.npz: .* to a \.parquet file only"):
        command(*words, tmp_path / "test" / "deep" / "b.csv", "--out", tmp_path / "o.npz", "--save", tmp_path / "map")
    assert not {"o.parquet", "map"} & {file.name for file in tmp_path.iterdir()}
    with pytest.raises(InputError, match="full: cannot be written"):
        command(*words, tmp_path / "test", "--out", tmp_path / "full")
    with pytest.raises(InputError, match="give a folder of its own"):
        calibrators.apply_to_files(calibrators.histogram(outcomes()), tmp_path / "test", tmp_path / "test" / "new")


def test_thresholds_of_groups_need_the_rows():
    grouped = Tally.of(replace(outcomes(), group=np.repeat(["x", "y"], 150)))
    with pytest.raises(InputError, match="groups or classes need the rows"):
        choose_threshold(grouped, risk=0.3, by="group")
