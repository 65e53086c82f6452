"""Files of any size: what is read once, part by part, equals what is read at once, whatever happens on the way."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from assay import Outcomes, Predictions, calibrators, evaluate, files, maps
from assay._core import loops
from assay._core.arrays import InputError
from assay.files import Columns
from assay.scale import Stopped, Tally, added, tallies_in_arrow, tally, tally_files, tally_on_ray
from assay.scale._tally import ORDERED

ROWS = 40_000


def outcomes(n: int = ROWS, seed: int = 0) -> Outcomes:
    rng = np.random.default_rng(seed)
    z = 2 * rng.standard_normal(n) + 1
    confidence = 1 / (1 + np.exp(-np.abs(z)))
    confidence[: n // 10] = np.round(confidence[: n // 10], 2)
    return Outcomes.from_scores(confidence, rng.random(n) < confidence**2)


def frame(o: Outcomes) -> pa.Table:
    return pa.table({"confidence": o.confidence, "correct": o.correct, "note": pa.array(["x"] * len(o))})


@pytest.fixture
def folder(tmp_path) -> Path:
    """Four files with five row groups each."""
    (tmp_path / "rows").mkdir()
    for i in range(4):
        rows = slice(i * ROWS // 4, (i + 1) * ROWS // 4)
        pq.write_table(frame(outcomes()[rows]), tmp_path / "rows" / f"{i}.parquet", row_group_size=2_000)
    return tmp_path / "rows"


@pytest.fixture
def small_parts(monkeypatch) -> None:
    """A part is a row group or two, and the state is written after each."""
    monkeypatch.setattr("assay.scale._parts.ROWS", 4_000)
    monkeypatch.setattr("assay.scale._streaming.EVERY", 0)


def same(a: Tally, b: Tally) -> bool:
    """Whole numbers exactly, sums to 1e-12."""
    x, y = a.cells, b.cells
    alike = np.array_equal(x.table[:, :2], y.table[:, :2]) and np.array_equal(x.mixed, y.mixed)
    return x.level == y.level and alike and np.allclose(x.table[:, 2], y.table[:, 2], rtol=1e-12)


@pytest.mark.parametrize("threads", [1, 3])
def test_row_groups_add_up_to_the_whole_on_any_number_of_threads(folder, small_parts, threads):
    with loops.threads(threads):
        assert same(tally(folder), Tally.of(outcomes()))


def test_sorting_on_the_disk_makes_the_ranking_exact(folder, small_parts, monkeypatch):
    monkeypatch.setattr("assay.scale._sorting.ROWS", 3_000)
    found, exact = tally_files(folder, exact=True), evaluate(outcomes(), ORDERED)
    assert found.cells.mixed.any()
    assert {found.bounds()[key] for key in ORDERED} == {0.0}
    for key, value in evaluate(found, ORDERED).items():
        assert value == pytest.approx(exact[key], rel=1e-12, abs=1e-15), key


def test_a_sum_with_a_sorted_tally_is_no_longer_exact(folder):
    found = tally_files(folder, exact=True)
    assert (found + found).bounds()["fpr95"] > 0


def test_stopped_at_any_time_it_goes_on_and_counts_no_row_twice(folder, small_parts, tmp_path):
    state, stops = tmp_path / "state", random.Random(0)
    for _ in range(20):
        left = stops.randint(1, 4)

        def watch(_: object) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise KeyboardInterrupt

        with suppress(Stopped):
            tally_files(folder, state=state, watch=watch)
    found = tally_files(folder, state=state)
    assert same(found, Tally.of(outcomes()))
    assert same(tally_files(folder, state=state), found)


def test_who_stops_it_is_told_how_far_it_came(folder, tmp_path):
    def watch(_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(Stopped, match=r"stopped after [\d,]+ of 40,000 rows; give --state .*state again"):
        tally_files(folder, state=tmp_path / "state", watch=watch)
    with pytest.raises(Stopped, match="with --state FILE it could go on from here"):
        tally_files(folder, watch=watch)


@pytest.mark.long
def test_killed_at_ten_random_times_it_goes_on_and_counts_no_row_twice(folder, tmp_path):
    whole, state, times = Tally.of(outcomes()), tmp_path / "state", random.Random(0)
    code = (
        "import time, sys, assay.scale._streaming as s, assay.scale._parts as p, assay.scale as scale;"
        "p.ROWS = 2000; s.EVERY = 0; print('begun', flush=True);"
        f"found = scale.tally_files({str(folder)!r}, state=s.Path({str(state)!r}), watch=lambda _: time.sleep(0.02));"
        f"found.save({str(tmp_path / 'found')!r})"
    )
    for _ in range(10):
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as run:
            assert run.stdout is not None
            run.stdout.readline()
            time.sleep(times.uniform(0, 0.3))
            run.send_signal(signal.SIGKILL)
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
    assert same(Tally.load(tmp_path / "found"), whole)


def test_new_files_are_added_to_a_state_and_changed_ones_refused(folder, tmp_path):
    tally_files(folder, state=tmp_path / "state")
    pq.write_table(frame(outcomes(500, seed=1)), folder / "new.parquet")
    assert len(tally_files(folder, state=tmp_path / "state")) == ROWS + 500
    pq.write_table(frame(outcomes(501, seed=2)), folder / "new.parquet")
    with pytest.raises(InputError, match=r"new\.parquet: has changed since it was read; delete .*state"):
        tally_files(folder, state=tmp_path / "state")
    with pytest.raises(InputError, match="other columns"):
        tally_files(folder, Columns(confidence="confidence"), state=tmp_path / "state")
    (folder / "new.parquet").unlink()
    with pytest.raises(InputError, match=r"new\.parquet: has been counted and is not there any more"):
        tally_files(folder, state=tmp_path / "state")
    (tmp_path / "state").write_bytes(b"nothing")
    with pytest.raises(InputError, match="is no state of an audit"):
        tally_files(folder, state=tmp_path / "state")


def test_a_state_whose_parts_do_not_belong_together_is_refused(folder, tmp_path):
    tally_files(folder, state=tmp_path / "state")
    with np.load(tmp_path / "state") as archive:
        arrays = dict(archive)
    changed = arrays["read"].tobytes().replace(b"0.parquet", b"9.parquet")
    with (tmp_path / "state").open("wb") as stream:
        np.savez(stream, **arrays | {"read": np.frombuffer(changed, np.uint8)})
    with pytest.raises(InputError, match="is no state of an audit, or is damaged"):
        tally_files(folder, state=tmp_path / "state")


def spoiled(folder: Path) -> None:
    """A bad row, a missing value, a damaged row group and a damaged file."""
    o = outcomes(9_000, seed=3)
    table = frame(o)
    confidence = table["confidence"].to_pandas().to_numpy().copy()
    confidence[4_321] = 1.5
    correct = pa.array([None if i == 77 else bool(x) for i, x in enumerate(o.correct)])
    table = table.set_column(0, "confidence", pa.array(confidence)).set_column(1, "correct", correct)
    pq.write_table(table, folder / "spoiled.parquet", row_group_size=3_000, compression="none", use_dictionary=False)
    about = pq.ParquetFile(folder / "spoiled.parquet").metadata.row_group(2).column(0)
    content = bytearray((folder / "spoiled.parquet").read_bytes())
    start = about.data_page_offset
    content[start : start + 40] = b"\xff" * 40
    (folder / "spoiled.parquet").write_bytes(content)
    (folder / "torn.parquet").write_bytes((folder / "0.parquet").read_bytes()[:-100])


def test_what_is_bad_is_named_and_left_out_up_to_a_number(folder, small_parts):
    spoiled(folder)
    seen: list[dict[str, list[str]]] = []
    found = tally_files(folder, skip_bad=4, watch=lambda p: seen.append(p.left_out))
    good = np.setdiff1d(np.arange(6_000), [77, 4_321])
    assert same(found, Tally.of(outcomes() + outcomes(9_000, seed=3)[good]))
    places = sorted(place for part in seen[-1].values() for place in part)
    assert "spoiled.parquet: cannot be read as parquet" in places[0]
    assert "(3,000 rows from 6000 on)" in places[0]
    assert "spoiled.parquet: column 'correct', row 77: no value" in places[1]
    assert "spoiled.parquet: row 4321: confidence 1.5 is outside" in places[2]
    assert "torn.parquet: cannot be read" in places[3]
    with pytest.raises(InputError, match="more than 3 bad places"):
        tally_files(folder, skip_bad=3)
    with pytest.raises(InputError, match=r"torn\.parquet"):
        tally_files(folder)


def test_the_first_bad_row_is_named_by_its_place_in_the_file(folder, small_parts):
    o = outcomes(9_000)
    confidence = o.confidence.copy()
    confidence[7_654] = -0.5
    pq.write_table(pa.table({"confidence": confidence, "correct": o.correct}), folder / "p.parquet", row_group_size=500)
    with pytest.raises(InputError, match=r"p\.parquet: row 7654: confidence -0\.5"):
        tally(folder)


def test_addresses_are_read_through_pyarrow(folder):
    for address in (f"file://{folder}", f"file://{folder}/*.parquet", f"file:{folder}"):
        assert same(tally(address), Tally.of(outcomes()))
    with pytest.raises(InputError, match="no way to this address"):
        tally("gopher://somewhere/rows")


def engines(folder: Path):
    import polars

    dataset = pyarrow.dataset.dataset(folder)
    yield "pyarrow dataset", dataset
    yield "table", dataset.to_table()
    yield "reader", pa.RecordBatchReader.from_batches(dataset.schema, dataset.to_batches())
    yield "batches", dataset.to_batches()
    yield "polars lazy", polars.scan_parquet(folder / "*.parquet")
    yield "polars", polars.read_parquet(folder / "*.parquet")
    yield "pandas", dataset.to_table().to_pandas()
    yield "tallies", [tally(file) for file in sorted(folder.iterdir())]
    spark = tallies_in_arrow()
    yield "spark", [Tally.from_bytes(x["tally"][0].as_py()) for x in spark(iter(dataset.to_batches()))]


def test_engines_equal_each_other(folder):
    whole = Tally.of(outcomes())
    for name, source in engines(folder):
        assert same(tally(source), whole), name


def test_duckdb(folder):
    duckdb = pytest.importorskip("duckdb")
    assert same(tally(duckdb.sql(f"select * from '{folder}/*.parquet'")), Tally.of(outcomes()))


def test_nothing_to_count_is_refused():
    with pytest.raises(InputError, match="no rows"):
        tally([])
    with pytest.raises(InputError, match="no rows"):
        added([])
    with pytest.raises(InputError, match="a chunk of rows is"):
        tally(["abc"])
    for source in (3, None, Tally.of(outcomes(3)), pa.record_batch({"confidence": [0.5], "correct": [True]})):
        with pytest.raises(InputError, match=f"an iterator of such chunks or of tallies, not {type(source).__name__}"):
            tally(source)
    with pytest.raises(TypeError):
        Tally.of(outcomes(3)) + 3


class Blocks:
    """What is used of a Ray Dataset, each row in a block of its own."""

    def __init__(self, rows: list[dict[str, object]]):
        self.rows = rows

    def flat_map(self, function):
        return Blocks([each for row in self.rows for each in function(row)])

    def map_batches(self, function, batch_format: str, batch_size: int):
        starts = range(0, len(self.rows), 3)
        batches = (pa.Table.from_pylist(self.rows[start : start + 3]) for start in starts)
        return Blocks([row for batch in batches for row in function(batch).to_pylist()])

    def iter_rows(self):
        return iter(self.rows)


@pytest.fixture
def ray_without_a_cluster(monkeypatch) -> None:
    data = SimpleNamespace(
        range=lambda n, override_num_blocks: Blocks([{"id": i} for i in range(n)]),
        DataContext=SimpleNamespace(get_current=SimpleNamespace),
        read_parquet=lambda read: pyarrow.dataset.dataset(read),
    )
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(is_initialized=lambda: True, data=data))


def said_of(count: Callable[[Path], Tally], source: Path) -> str:
    with pytest.raises(InputError) as problem:
        count(source)
    return str(problem.value)


def with_a_damaged_page(file: Path) -> None:
    """One bit of a number is another: only the checksum of its page tells."""
    files.write(Outcomes.from_scores(np.linspace(0.2, 0.9, 4_000), np.ones(4_000, bool)), file)
    column = pq.read_metadata(file).row_group(0).column(0)
    content = bytearray(file.read_bytes())
    content[column.data_page_offset + column.total_compressed_size // 2] ^= 1
    file.write_bytes(content)


def test_on_ray_the_same_is_refused_with_the_same_words(tmp_path, small_parts, ray_without_a_cluster):
    for name in ("page", "row", "classes", "none"):
        (tmp_path / name).mkdir()
        pq.write_table(frame(outcomes(10))[:0], tmp_path / name / "0.parquet")
    with_a_damaged_page(tmp_path / "page" / "1.parquet")
    worse = frame(outcomes(9_000)).to_pandas()
    worse.loc[7_654, "confidence"] = -0.5
    pq.write_table(pa.Table.from_pandas(worse), tmp_path / "row" / "1.parquet", row_group_size=500)
    for k in (2, 3):
        files.write(Predictions.from_logits(np.eye(k), np.arange(k)), tmp_path / "classes" / f"{k}.npz")
    for name, expected in (
        ("page", r"1\.parquet: cannot be read as parquet: it is damaged"),
        ("row", r"1\.parquet: row 7654: confidence -0\.5"),
        ("classes", r"3\.npz: predictions of 2 classes and of 3"),
        ("none", "none: no rows"),
    ):
        said = said_of(tally_on_ray, tmp_path / name)
        assert re.search(expected, said)
        assert said == said_of(tally_files, tmp_path / name)


def test_on_ray_the_same_files_count_as_on_threads(folder, small_parts, ray_without_a_cluster):
    o = outcomes(100, seed=1)
    pq.write_table(pa.table({"confidence": o.confidence, "correct": o.correct.astype(np.int8)}), folder / "int.parquet")
    for ending in ("csv", "npz"):
        files.write(o, folder / f"more.{ending}")
    assert same(tally_on_ray(folder), Tally.of(outcomes() + o + o + o))


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_on_ray_classes_are_counted_in_the_order_of_the_first_file(tmp_path, ending, ray_without_a_cluster):
    rng = np.random.default_rng(0)
    for i, names in enumerate(("ab", "ba")):
        table = pa.table({f"z_{name}": rng.standard_normal(50) for name in names} | {"labels": ["a", "b"] * 25})
        write = pq.write_table if ending == "parquet" else pyarrow.csv.write_csv
        write(table, tmp_path / f"{i}.{ending}")
    columns = Columns(logits="z_*")
    assert evaluate(tally_on_ray(tmp_path, columns)) == pytest.approx(
        evaluate(tally_files(tmp_path, columns)), nan_ok=True
    )


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Ray warns of its own settings
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_ray_on_two_nodes_one_of_which_is_killed(folder, tmp_path, monkeypatch):
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("RAY_worker_niceness", "0")  # else workers starve beside other programs
    read = tmp_path / "read"
    read.mkdir()

    def slow(batch):
        time.sleep(1)
        (read / str(time.time_ns())).touch()
        return batch

    def batches() -> int:
        return len(list(read.iterdir()))

    def kill() -> None:
        while batches() < 3:
            time.sleep(0.05)
        cluster.remove_node(second)
        at_kill.append(batches())

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2})
    second, at_kill, killer = cluster.add_node(num_cpus=2), [], Thread(target=kill, daemon=True)
    ray.init(address=cluster.address, log_to_driver=False)
    try:
        whole = Tally.of(outcomes())
        files = sorted(map(str, folder.iterdir()))
        assert same(tally(ray.data.read_parquet(files)), whole)
        assert same(tally_on_ray(folder), whole)
        with_a_damaged_page(folder / "damaged.parquet")
        assert said_of(tally_on_ray, folder) == said_of(tally_files, folder)
        none = ray.data.read_parquet(files).limit(0)
        assert said_of(tally, none) == "no rows"
        spoiled = ray.data.read_parquet(files).map_batches(lambda _: 1 / 0, batch_format="pyarrow")
        assert said_of(tally, spoiled) == "the Ray Dataset cannot be read: ZeroDivisionError: division by zero"
        worse = [{"confidence": 0.5 + (i == 39), "correct": True} for i in range(40)]
        said = said_of(tally, ray.data.from_items(worse, override_num_blocks=1))
        assert said.startswith("in a block of the dataset, row 39: confidence 1.5 is outside")
        killer.start()
        rows = ray.data.read_parquet(files, override_num_blocks=16)
        assert same(tally(rows.map_batches(slow, batch_format="pyarrow", batch_size=2_000)), whole)
        assert at_kill
        assert at_kill[0] < ROWS / 2_000 < batches()  # what the node had counted is counted again
        assert len([node for node in ray.nodes() if node["Alive"]]) == 1
    finally:
        ray.shutdown()
        cluster.shutdown()


def test_the_command_says_what_does_not_go_together(folder, tmp_path):
    from assay.cli import app

    def run(*words: str) -> None:
        app(["audit", *words], result_action="return_value", exit_on_error=False, print_error=False)

    file = str(folder / "0.parquet")
    with pytest.raises(InputError, match="--exact is for a folder"):
        run(file, "--exact")
    with pytest.raises(InputError, match="--address is for --engine ray"):
        run(str(folder), "--address", "auto")
    with pytest.raises(InputError, match="--state is for --engine threads"):
        run(str(folder), "--engine", "ray", "--state", str(tmp_path / "s"))
    with pytest.raises(InputError, match="--skip-bad must be 0 or more"):
        run(str(folder), "--skip-bad", "-1")


def test_the_command_lists_what_it_left_out_and_keeps_its_state(folder, tmp_path, capsys):
    from assay.cli import app

    spoiled(folder)
    os.remove(folder / "torn.parquet")
    words = [str(folder), "--skip-bad", "3", "--state", str(tmp_path / "state"), "--exact"]
    for _ in range(2):
        app(["audit", *words], result_action="return_value")
        said = capsys.readouterr()
        assert "left out 3" in said.err
        assert "row 4321" in said.err
        assert "45,998 samples" in said.out
        assert "(auroc)" not in said.out


def with_classes(tmp_path: Path, name: str, seed: int, n: int = 6_000) -> tuple[Path, Predictions]:
    """A folder of two files of logits, with ids, and its rows."""
    rng = np.random.default_rng(seed)
    labels, logits = rng.integers(0, 5, n), 2 * rng.standard_normal((n, 5), dtype=np.float32)
    logits[np.arange(n), labels] += 2
    p = Predictions.from_logits(2 * logits, labels, ids=np.arange(n))
    (tmp_path / name).mkdir()
    for i in (0, 1):
        files.write(p[i * n // 2 : (i + 1) * n // 2], tmp_path / name / f"{i}.parquet")
    return tmp_path / name, p


def test_a_temperature_in_passes_is_that_of_all_rows(tmp_path):
    _, p = with_classes(tmp_path, "rows", 0)
    passes = 0

    def chunks():
        nonlocal passes
        passes += 1
        return (p[start : start + 700] for start in range(0, len(p), 700))

    found = calibrators.streamed_temperature(chunks)
    assert found.t == pytest.approx(calibrators.temperature(p).t, rel=1e-6)
    assert found.fit.after == pytest.approx(calibrators.temperature(p).fit.after, rel=1e-9)
    assert found.fit.n == len(p)
    assert passes <= 3  # the first chunk, and two over all


@pytest.mark.parametrize("first", [1, 50, 1_000])
@pytest.mark.parametrize("order", [1, -1])
def test_a_temperature_takes_a_few_passes_whatever_the_first_chunk_is_like(first, order):
    rng = np.random.default_rng(0)
    z = 3 * rng.standard_normal((20_000, 5))
    labels = (z / 2 + rng.gumbel(size=z.shape)).argmax(1)
    surest_first = np.argsort(order * (z.max(1) - z[np.arange(len(z)), labels]), kind="stable")
    p, passes = Predictions.from_logits(z[surest_first], labels[surest_first]), 0

    def chunks():
        nonlocal passes
        passes += 1
        return p[:first], p[first:]

    found, whole = calibrators.streamed_temperature(chunks), calibrators.temperature(p)
    assert passes <= 6  # the first chunk, and five over all
    assert found.t == pytest.approx(whole.t, rel=1e-9)
    assert (found.fit.before, found.fit.after) == pytest.approx((whole.fit.before, whole.fit.after), rel=1e-12)


@pytest.mark.parametrize("right", [True, False])
def test_without_a_best_temperature_one_pass_tells(right):
    z = np.random.default_rng(0).standard_normal((2_000, 5))
    p, passes = Predictions.from_logits(z, z.argmax(1) if right else z.argmin(1)), 0

    def chunks():
        nonlocal passes
        passes += 1
        return p[:500], p[500:]

    with pytest.warns(UserWarning, match="no finite temperature"):
        found = calibrators.streamed_temperature(chunks)
    assert found.fit.at_bound
    assert (found.t < 1e-5) == right
    assert passes == 2


def test_top_label_maps_from_a_tally_are_those_of_its_rows():
    o = outcomes(8_000)
    counted = Tally.of(o)
    assert counted.cells.level == 0
    x = np.linspace(0.5, 1, 300)
    for ours, theirs in (
        (calibrators.summary_isotonic(counted), calibrators.isotonic(o)),
        (calibrators.summary_histogram(counted), calibrators.histogram(o)),
    ):
        np.testing.assert_allclose(ours(x), theirs(x), rtol=1e-12)
        assert (ours.fit.before, ours.fit.after) == pytest.approx((theirs.fit.before, theirs.fit.after), rel=1e-12)


def test_a_map_is_applied_file_by_file(tmp_path):
    source, p = with_classes(tmp_path, "rows", 0)
    warm = calibrators.temperature(p)
    assert calibrators.apply_to_files(warm, source, tmp_path / "warm") == len(p)
    found = [files.read(tmp_path / "warm" / f"{i}.parquet") for i in (0, 1)]
    whole = maps.apply(warm, p)
    np.testing.assert_array_equal((found[0] + found[1]).values, whole.values)
    np.testing.assert_array_equal((found[0] + found[1]).ids, whole.ids)
    assert found[0].map_digest == whole.map_digest
    with pytest.raises(InputError, match="applied to these predictions before"):
        calibrators.apply_to_files(warm, tmp_path / "warm", tmp_path / "again")
    with pytest.raises(InputError, match="give a folder of its own"):
        calibrators.apply_to_files(warm, source, source)


def test_the_command_calibrates_folders(tmp_path, capsys):
    from assay.cli import app

    held_out, test = with_classes(tmp_path, "held_out", 0)[0], with_classes(tmp_path, "test", 1)[0]
    words = [str(held_out), "--apply", str(test), "--out", str(tmp_path / "out"), "--save", str(tmp_path / "map.json")]
    app(["calibrate", *words], result_action="return_value")
    assert "6,000 rows, of the test set" in capsys.readouterr().out
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == ["0.parquet", "1.parquet"]
    with pytest.raises(InputError, match="share a file"):
        app(["calibrate", str(held_out), "--apply", str(held_out)], result_action="return_value", exit_on_error=False)
    with pytest.raises(InputError, match="vector needs a single file"):
        app(["calibrate", str(held_out), "--method", "vector"], result_action="return_value", exit_on_error=False)


def test_a_threshold_leaves_out_what_the_audit_does(folder, small_parts, capsys):
    from assay.cli import app

    def run(*words: object) -> None:
        app(["threshold", *map(str, words), "--risk", "0.3"], result_action="return_value", exit_on_error=False)

    spoiled(folder)
    run(folder, "--skip-bad", "4")
    said = capsys.readouterr()
    assert "left out 4" in said.err
    assert "45,998" in said.out
    with pytest.raises(InputError, match="more than 3 bad places"):
        run(folder, "--skip-bad", "3")
    with pytest.raises(InputError, match="--skip-bad is for a folder"):
        run(folder / "0.parquet", "--skip-bad", "1")


def test_the_command_chooses_a_threshold_from_a_folder(folder, tmp_path, capsys):
    from assay.cli import app

    words = ["threshold", str(folder), "--risk", "0.3", "--json", str(tmp_path / "t.json")]
    app(words, result_action="return_value")
    found = json.loads((tmp_path / "t.json").read_text())
    o = outcomes()
    accepted = o.confidence >= found["value"]
    assert found["accepted"] == accepted.sum()
    app([*words, "--html", str(tmp_path / "t.html")], result_action="return_value")
    assert f"{100 * found['coverage']:.1f}% of inputs" in (tmp_path / "t.html").read_text()
    with pytest.raises(InputError, match="--by needs the rows"):
        app([*words, "--by", "group"], result_action="return_value", exit_on_error=False)
    with pytest.raises(InputError, match="--precision needs the rows"):
        app(["threshold", str(folder), "--precision", "0.5"], result_action="return_value", exit_on_error=False)


@pytest.mark.filterwarnings("ignore:.*separated by ';'")
def test_packed_and_otherwise_separated_files_count_like_others(tmp_path):
    whole, (a, b) = outcomes(200), (tmp_path / "a.csv.gz", tmp_path / "b.csv")
    lines = [f"{c};{int(r)}" for c, r in zip(whole.confidence.tolist(), whole.correct.tolist(), strict=True)]
    a.write_bytes(gzip.compress("\n".join(["confidence,correct", *lines[:100]]).replace(";", ",").encode()))
    b.write_text("\n".join(["confidence;correct", *lines[100:]]).replace(".", ","))
    assert same(tally_files(tmp_path, Columns(decimal=",")), Tally.of(whole))


def test_of_arrays_beside_each_other_one_is_a_file_of_predictions(tmp_path):
    rng = np.random.default_rng(0)
    z, y = rng.standard_normal((50, 3)), rng.integers(0, 3, 50)
    np.save(tmp_path / "logits.npy", z)
    np.save(tmp_path / "labels.npy", y)
    assert same(tally_files(tmp_path), Tally.of(Predictions.from_logits(z, y)))


@pytest.mark.parametrize("name", files.WHOLE)
def test_what_only_all_rows_tell_is_refused_of_parts(folder, name):
    columns = Columns(**{name: "best"})
    with pytest.raises(InputError, match=f"--{name.replace('_', '-')} needs all rows at once"):
        tally_files(folder, columns)
    with pytest.raises(InputError, match="needs all rows at once"):
        next(files.read_chunks(folder / "0.parquet", columns))


@pytest.mark.parametrize("kind", ["positive", "confidence"])
def test_per_cents_are_read_in_parts(tmp_path, kind):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.02, 0.98, 400)
    truth = rng.uniform(size=400) < p
    for i, rows in enumerate(np.array_split(np.argsort(p), 4)):  # some parts have only small numbers
        table = {kind: 100 * p[rows], "correct" if kind == "confidence" else "labels": truth[rows]}
        pq.write_table(pa.table(table), tmp_path / f"{i}.parquet")
    of = {"positive": Predictions.from_binary_probabilities, "confidence": Outcomes.from_scores}[kind]
    found = tally_files(tmp_path, Columns(percent=True))
    assert evaluate(found)["ece"] == pytest.approx(evaluate(Tally.of(of(p, truth)))["ece"], abs=1e-12)
    pq.write_table(
        pa.table({name: column / 100 if name == kind else column for name, column in table.items()}),
        tmp_path / "0.parquet",
    )
    for file in tmp_path.glob("[1-3].parquet"):
        file.unlink()
    with pytest.raises(InputError, match="there are no per cents"):
        tally_files(tmp_path, Columns(percent=True))


def test_rounded_rows_are_normalized_in_parts(tmp_path):
    rng = np.random.default_rng(0)
    p, y = rng.dirichlet(np.ones(4), 200).round(2), rng.integers(0, 4, 200)
    for i in range(2):
        rows = slice(100 * i, 100 * i + 100)
        pq.write_table(pa.table({"probabilities": p[rows].tolist(), "labels": y[rows]}), tmp_path / f"{i}.parquet")
    with pytest.warns(UserWarning, match="rounded rows; they are divided by their sum"):
        found = tally_files(tmp_path, Columns(normalize=True))
    whole = Predictions.from_probabilities(p / p.sum(1, keepdims=True), y)
    assert evaluate(found)["ece"] == pytest.approx(evaluate(Tally.of(whole))["ece"], abs=1e-12)


DISTRIBUTED = """
import sys
import torch.distributed as distributed
from assay import Outcomes
from assay.nn.distributed import all_added
from assay.scale import Tally
rank, store, out = int(sys.argv[1]), sys.argv[2], sys.argv[3]
distributed.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
rows = Outcomes.from_scores([[0.9, 0.8, 0.7], [0.6]][rank], [[True, True, False], [True]][rank])
all_added(Tally.of(rows)).save(f"{out}{rank}")
"""


@pytest.mark.long
def test_processes_that_train_together_have_the_same_sum(tmp_path):
    runs = [
        subprocess.Popen([sys.executable, "-c", DISTRIBUTED, str(rank), str(tmp_path / "store"), str(tmp_path / "out")])
        for rank in (0, 1)
    ]
    assert [run.wait(timeout=120) for run in runs] == [0, 0]
    whole = Tally.of(Outcomes.from_scores([0.9, 0.8, 0.7, 0.6], [True, True, False, True]))
    for rank in (0, 1):
        assert same(Tally.load(tmp_path / f"out{rank}"), whole)


def test_a_process_alone_has_its_own_sum():
    from assay.nn.distributed import all_added

    own = Tally.of(outcomes(100))
    assert all_added(own) is own


def test_a_true_class_that_cannot_be_has_no_temperature_in_passes_either():
    p = Predictions.from_probabilities([[1.0, 0.0], [0.4, 0.6]], [1, 1])
    with pytest.raises(InputError, match="the true class 1 has probability 0, which no temperature can mend"):
        calibrators.streamed_temperature(lambda: iter([p]))
