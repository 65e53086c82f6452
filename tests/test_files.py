"""Files: what is written is read back, what is wrong is refused, nothing is left half done."""

from __future__ import annotations

import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from assay import Outcomes, Predictions, files
from assay._core import writing
from assay._core.arrays import InputError, softmax
from assay._core.writing import replacing
from assay.files import Columns


def tables() -> dict[str, Predictions | Outcomes]:
    logits = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    labels = np.arange(50) % 4
    ids, group = [f"row {i}" for i in range(50)], np.arange(50) // 10
    scores = {"confidence": 1 / (1 + np.exp(-logits[:, 0].astype(float))), "correct": labels == 0}
    return {
        "logits": Predictions.from_logits(logits, labels, ids=ids, group=group),
        "probabilities": Predictions.from_probabilities(softmax(logits.astype(float)), labels, ids=np.arange(50)),
        "confidence": Outcomes.from_scores(**scores, group=["ä", 'say "b"'] * 25),
        "score": Outcomes.from_scores(logits[:, 0], labels == 0, is_probability=False, ids=["007", "7", *ids[2:]]),
        "outcomes": Predictions.from_logits(logits, labels, group=["true", "false"] * 25).outcomes(),
        "features": Predictions.from_logits(logits, labels, features=logits[:, :3]),
    }


@pytest.mark.parametrize("ending", ["npz", "parquet", "csv"])
@pytest.mark.parametrize("kind", ["logits", "probabilities", "confidence", "score", "outcomes", "features"])
def test_written_and_read_back_equal(tmp_path, kind, ending):
    given, file = tables()[kind], tmp_path / f"x.{ending}"
    files.write(given, file)
    back = files.read(file)
    assert type(back) is type(given)
    known = ("values", "labels", "features") if isinstance(given, Predictions) else ("confidence", "correct")
    for name in (*known, "nll", "brier", "entropy"):
        if getattr(given, name, None) is not None:
            assert np.array_equal(getattr(back, name), getattr(given, name))
    for name in ("ids", "group"):
        a, b = getattr(given, name), getattr(back, name)
        assert (a is None and b is None) or a.tolist() == b.tolist()
    assert getattr(back, "normalized", None) == getattr(given, "normalized", None)
    assert getattr(back, "is_probability", None) == getattr(given, "is_probability", None)


def test_an_npz_has_the_columns_of_its_predictions_and_no_other_array(tmp_path):
    """numpy 1.26 takes options of np.savez that it does not know for arrays."""
    files.write(Predictions.from_logits([[2.0, 0.0]], [0], ids=["a"]), tmp_path / "x.npz")
    with np.load(tmp_path / "x.npz") as archive:
        assert sorted(archive.files) == ["ids", "labels", "logits"]


def test_parquet_stores_vectors_of_fixed_size(tmp_path):
    files.write(tables()["logits"], tmp_path / "x.parquet")
    schema = pq.read_schema(tmp_path / "x.parquet")
    assert schema.field("logits").type == pa.list_(pa.float32(), 4)


def test_parquet_of_plain_lists_is_read(tmp_path):
    table = pa.table({"logits": [[1.0, 2.0], [0.0, 1.0]], "labels": [0, 1]})
    pq.write_table(table, tmp_path / "x.parquet")
    assert files.read(tmp_path / "x.parquet").values.tolist() == [[1.0, 2.0], [0.0, 1.0]]


def csv(tmp_path, text: str):
    file = tmp_path / "x.csv"
    file.write_text(text)
    return file


def test_csv_columns_are_named_by_flags(tmp_path):
    file = csv(tmp_path, "truth,p_0,p_1,who\n1,.25,.75,a\n0,.5,.5,b\n")
    found = files.read(file, Columns(label="truth", probabilities="p_*", ids="who"))
    assert found.values.tolist() == [[0.25, 0.75], [0.5, 0.5]]
    assert found.ids.tolist() == ["a", "b"]


def test_labels_are_looked_up_among_named_columns(tmp_path):
    file = csv(tmp_path, "y,p_fox,p_eel,p_dog\ndog,.1,.2,.7\nfox,.5,.5,0\neel,.5,.5,0\n")
    found = files.read(file, Columns(label="y", probabilities="p_*"))
    assert found.labels.tolist() == [2, 0, 1]
    assert found.outcomes().correct.tolist() == [True, True, False]


@pytest.mark.parametrize("ending", ["npz", "parquet", "csv"])
def test_named_classes_are_written_by_their_names(tmp_path, ending):
    file = csv(tmp_path, "y,p_fox,p_eel,p_dog\ndog,.1,.2,.7\nfox,.5,.5,0\neel,.5,.5,0\n")
    found = files.read(file, Columns(label="y", probabilities="p_*"))
    files.write(found, tmp_path / f"back.{ending}")
    back = files.read(tmp_path / f"back.{ending}")
    assert back.classes == ("fox", "eel", "dog")
    assert np.array_equal(back.values, found.values)
    assert np.array_equal(back.labels, found.labels)


def test_classes_are_put_in_order_by_name(tmp_path):
    one = files.read(csv(tmp_path, "y,p_fox,p_eel,p_dog\ndog,.1,.2,.7\nfox,.5,.4,.1\n"), Columns("y", None, "p_*"))
    two = files.read(csv(tmp_path, "y,p_dog,p_fox,p_eel\ndog,.7,.1,.2\nfox,.1,.5,.4\n"), Columns("y", None, "p_*"))
    moved = two.in_order(one.classes)
    assert np.array_equal(moved.values, one.values)
    assert np.array_equal(moved.labels, one.labels)
    with pytest.raises(InputError, match="only one of the two has 'cow'"):
        two.in_order(("dog", "fox", "cow"))


def test_numbered_columns_are_classes_by_number_not_by_place(tmp_path):
    names = [f"p_{j}" for j in (0, 1, 10, 2, 3, 4, 5, 6, 7, 8, 9)]
    file = csv(tmp_path, f"labels,{','.join(names)}\n10,0,0,1,0,0,0,0,0,0,0,0\n")
    found = files.read(file, Columns(probabilities="p_*"))
    assert found.outcomes().correct.tolist() == [True]


def test_binary_csv_with_one_column(tmp_path):
    found = files.read(csv(tmp_path, "labels,p\n1,.75\n0,.25\n"), Columns(positive="p"))
    assert found.values.tolist() == [[0.25, 0.75], [0.75, 0.25]]


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        ("labels,p_0,p_1\n0,.5,.5\n1,.5,.6\n", Columns(probabilities="p_*"), "row 1: probabilities sum to 1.1, not 1"),
        ("labels,p_0,p_1\n0,.5,.5\n2,.5,.5\n", Columns(probabilities="p_*"), "row 1: label 2 is outside 0..1"),
        (
            "labels,p_0,p_1\n0.5,.5,.5\n",
            Columns(probabilities="p_*"),
            "labels must be integer class indices, got float64",
        ),
        ("labels,p_0,p_1\n0,.5,\n", Columns(probabilities="p_*"), "column 'p_1', row 0: no value"),
        ("labels,p_0,p_1\n0,.5,x\n", Columns(probabilities="p_*"), "must be numbers"),
        ("labels,p_1,p_2\n0,.5,.5\n", Columns(probabilities="p_*"), "must be numbered 0 to 1, got p_1, p_2"),
        ("labels,z_0,z_1\n0,1,nan\n", Columns(logits="z_*"), "row 0, class 1: logit is nan"),
        ("label,z_0,z_1\n0,1,2\n", Columns(logits="z_*"), "no column 'labels'; did you mean 'label'?"),
        ("labels,a,b\n0,1,2\n", Columns(logits="z_*"), "no column matches 'z_*'; it has labels, a, b"),
        ("labels,a,b\n0,1,2\n", Columns(), "needs one of logits, probabilities, positive, confidence, score, has only"),
        ("labels,z_0,z_1\n", Columns(logits="z_*"), "no rows"),
        (
            "labels,z_0,z_1\n0,1\n",
            Columns(logits="z_*"),
            "x.csv: row 0 (from 0): 2 values, but 3 columns are named",
        ),
        ("labels,z_0\n0,1\n1,2,3\n", Columns(logits="z_*"), "row 1 (from 0): 3 values, but 2 columns are named"),
        ("", Columns(), "x.csv: is empty"),
        (
            "labels,p_fox,p_eel\nfox,.5,.5\ncow,.5,.5\n",
            Columns(probabilities="p_*"),
            "row 1: label 'cow' is none of the classes that columns 'p_*' name (fox, eel); write these names as labels",
        ),
        (
            "labels,p_fox,p_eel\n0,.5,.5\n1,.5,.5\n",
            Columns(probabilities="p_*"),
            "row 0: label '0' is none of the classes that columns 'p_*' name (fox, eel); write these names as labels, "
            "or number the columns p_0 to p_1 as the labels count",
        ),
        (
            "labels,p_0,p_1\n0,.5,.5\ncat,.5,.5\n",
            Columns(probabilities="p_*"),
            "row 1: label 'cat' is no number, but columns 'p_*' are numbered; number the labels from 0, or name",
        ),
        ("labels,p_0,p_1\n0,20,80\n", Columns(probabilities="p_*"), "sum to 100, not 1; divide per cents by 100"),
        ("labels,p_1,p_2\n1,.5,.5\n", Columns(probabilities="p_*"), "got p_1, p_2; classes count from 0"),
        (
            "labels,prob_0,prob_1,prob_max\n0,.5,.5,.5\n",
            Columns(probabilities="prob_*"),
            "'prob_*' matches numbered columns and 'prob_max'; rename that one or the classes",
        ),
        ("labels,p_0\n0,.5\n", Columns(probabilities="*_*"), "'*_*' has two stars"),
        (
            "labels,p_0,p_1\n1,.5,.5\n2,.5,.5\n",
            Columns(probabilities="p_*"),
            "row 1: label 2 is outside 0..1; classes count from 0, so take 1 off each label",
        ),
        (
            "confidence,correct\n87,1\n12,0\n",
            Columns(),
            "row 0: confidence 87 is outside [0, 1]; divide per cents by 100, and name a score that is no probability "
            "by --score",
        ),
        (
            "labels,p\n1,87\n",
            Columns(positive="p"),
            "row 0: probability 87.0 is outside [0, 1]; divide per cents by 100",
        ),
        (
            "labels,p\n1,.7\n",
            Columns(probabilities="p"),
            "'p' is one column of probabilities; of two classes say --positive",
        ),
        ("labels,p_1\n1,.7\n", Columns(probabilities="p_*"), "must be numbered 0 to 0, got p_1"),
        (
            "labels,p_0\n0,.7\n",
            Columns(probabilities="p_*"),
            "'p_*' is one column of probabilities; of two classes say",
        ),
        ("labels,z\n1,.7\n", Columns(logits="z"), "'z' is one column of logits; there must be one column a class"),
        ("y,z_0,z_1\n1,.7,.2\n", Columns(logits="z_*"), "no column 'labels'; it has y, z_0, z_1; name it by --label"),
        ("confidence,correct\n.5,perhaps\n", Columns(), "correct must be numbers"),
        ("confidence,score,correct\n.5,1,1\n", Columns(), "has confidence and score together"),
    ],
)
def test_bad_csv_is_named(tmp_path, text, columns, message):
    file = csv(tmp_path, text)
    with pytest.raises(InputError) as caught:
        files.read(file, columns)
    assert str(caught.value).startswith(f"{file}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("ending", ["npz", "parquet"])
@pytest.mark.parametrize("keep", [0, 10, 0.5, 0.98])
def test_truncated_files_are_named(tmp_path, ending, keep):
    file = tmp_path / f"x.{ending}"
    files.write(tables()["logits"], file)
    whole = file.read_bytes()
    file.write_bytes(whole[: keep if keep in (0, 10) else int(keep * len(whole))])
    with pytest.raises(InputError, match=f"x.{ending}: cannot be read as {ending}: ") as caught:
        files.read(file)
    assert not any(word in str(caught.value) for word in ("pickle", "thrift", "magic", "Arrow", "snappy"))


def test_pickled_arrays_are_refused(tmp_path):
    np.savez(tmp_path / "x.npz", logits=np.array([{}, {}], dtype=object), labels=np.array([0, 1]))
    with pytest.raises(InputError, match=r"x\.npz: column 'logits' holds Python objects .* one array of numbers$"):
        files.read(tmp_path / "x.npz")


def test_a_pickle_is_no_archive(tmp_path):
    (tmp_path / "x.npz").write_bytes(pickle.dumps({"logits": [1.0]}))
    with pytest.raises(
        InputError, match=r"cannot be read as npz: it is no archive of arrays, as np\.savez writes them$"
    ):
        files.read(tmp_path / "x.npz")


def test_other_keys_are_named_beside_those_expected(tmp_path):
    np.savez(tmp_path / "x.npz", preds=np.zeros((2, 3)), y=np.array([0, 1]))
    wanted = "needs one of logits, .*, has only preds, y; say which column is what by flags, as in --logits NAME"
    with pytest.raises(InputError, match=wanted):
        files.read(tmp_path / "x.npz")
    assert len(files.read(tmp_path / "x.npz", Columns(logits="preds", label="y"))) == 2


def test_one_hot_labels_are_named_by_their_shape(tmp_path):
    np.savez(tmp_path / "x.npz", logits=np.zeros((2, 3)), labels=np.eye(3)[:2])
    with pytest.raises(
        InputError, match=r"labels have shape \[2, 3\], not \[n\]; of one-hot rows give labels.argmax\(1\)"
    ):
        files.read(tmp_path / "x.npz")


def test_messages_do_not_list_a_thousand_columns(tmp_path):
    np.savez(tmp_path / "x.npz", **{f"a{i}": np.zeros(2) for i in range(1000)})
    with pytest.raises(InputError, match="a9 and 990 more; say"):
        files.read(tmp_path / "x.npz")


def test_lists_of_unequal_length_are_named(tmp_path):
    pq.write_table(pa.table({"logits": [[1.0, 2.0], [0.0, 1.0, 2.0]], "labels": [0, 1]}), tmp_path / "x.parquet")
    with pytest.raises(InputError, match=r"x\.parquet: column 'logits', row 1: 3 values, row 0 has 2"):
        files.read(tmp_path / "x.parquet")


def test_unknown_endings_and_missing_files_are_named(tmp_path):
    (tmp_path / "x.txt").touch()
    with pytest.raises(InputError, match=r"unknown kind of file '\.txt'; use \.npz, \.parquet, \.csv"):
        files.read(tmp_path / "x.txt")
    with pytest.raises(InputError, match=r"x\.npz: no such file"):
        files.read(tmp_path / "x.npz")


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    file = tmp_path / "x.npz"
    files.write(tables()["logits"], file)
    before = file.read_bytes()

    def fail(table, stream):
        stream.write(b"half")
        raise RuntimeError("the disk went away")

    monkeypatch.setitem(files.WRITERS, ".npz", fail)
    with pytest.raises(RuntimeError):
        files.write(tables()["score"], file)
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


def test_writing_where_one_cannot_is_named(tmp_path):
    with pytest.raises(InputError, match="cannot be written: No such file or directory"):
        files.write(tables()["logits"], tmp_path / "nowhere" / "x.npz")


def put(file, content: bytes = b"new") -> None:
    with replacing(file) as stream:
        stream.write(content)


def test_a_new_file_has_the_permissions_that_the_umask_gives(tmp_path):
    before = os.umask(0o027)
    try:
        put(tmp_path / "x")
    finally:
        os.umask(before)
    assert (tmp_path / "x").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("mode", [0o600, 0o664, 0o444])
def test_a_replaced_file_keeps_its_permissions(tmp_path, mode):
    (tmp_path / "x").write_bytes(b"old")
    (tmp_path / "x").chmod(mode)
    put(tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == b"new"
    assert (tmp_path / "x").stat().st_mode & 0o777 == mode


def test_what_replaces_a_private_file_is_private_while_it_is_written(tmp_path):
    (tmp_path / "x").touch(0o600)
    with replacing(tmp_path / "x"):
        assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_a_pipe_or_a_folder_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    for name in ("pipe", "folder", "link"):
        with pytest.raises(InputError, match=f"{name}: cannot be written: it exists and is not a regular file"):
            put(tmp_path / name)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["folder", "link", "pipe"]
    assert (tmp_path / "pipe").is_fifo()


def test_a_device_is_not_replaced():
    with pytest.raises(InputError, match="/dev/null: cannot be written: it exists and is not a regular file"):
        put(Path("/dev/null"))


def test_a_temporary_name_that_is_taken_is_left_alone(tmp_path, monkeypatch):
    tokens = iter(["taken", "free"])
    monkeypatch.setattr(writing, "token_hex", lambda size: next(tokens))
    (tmp_path / ".x.taken.tmp").symlink_to(tmp_path / "elsewhere")
    put(tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == b"new"
    assert (tmp_path / ".x.taken.tmp").is_symlink()
    assert not (tmp_path / "elsewhere").exists()


def test_a_name_of_full_length_is_written(tmp_path):
    put(tmp_path / ("x" * 255))
    assert [len(file.name) for file in tmp_path.iterdir()] == [255]


def test_threads_that_write_one_file_leave_one_of_their_contents(tmp_path):
    contents = [bytes([i]) * 100_000 for i in range(16)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda content: put(tmp_path / "x", content), contents))
    assert (tmp_path / "x").read_bytes() in contents
    assert len(list(tmp_path.iterdir())) == 1


def test_file_and_folder_are_synced_in_that_order(tmp_path, monkeypatch):
    synced, sync = [], os.fsync

    def note(descriptor: int) -> None:
        synced.append((os.fstat(descriptor).st_ino, (tmp_path / "x").exists()))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    put(tmp_path / "x")
    assert synced == [((tmp_path / "x").stat().st_ino, False), (tmp_path.stat().st_ino, True)]


def test_a_failed_sync_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    (tmp_path / "x").write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(InputError, match="x: cannot be written: No space left on device"):
        put(tmp_path / "x")
    assert (tmp_path / "x").read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_writer_may_close_the_stream(tmp_path):
    with replacing(tmp_path / "x") as stream:
        stream.write(b"new")
        stream.close()
    assert (tmp_path / "x").read_bytes() == b"new"


def test_a_file_that_is_read_is_not_written(tmp_path):
    read, other = tmp_path / "a", tmp_path / "b"
    writing.not_over(other, None, reading=[read, None])
    with pytest.raises(InputError, match="is read or written already"):
        writing.not_over(tmp_path / "." / "a", reading=[read])
    with pytest.raises(InputError, match="is read or written already"):
        writing.not_over(other, other, reading=[read])


def test_a_column_of_scores_of_another_length_is_named(tmp_path):
    np.savez(tmp_path / "x.npz", confidence=[0.5, 0.6], correct=[1, 0], nll=[0.1])
    with pytest.raises(InputError, match="2 rows of confidence but 1 of nll"):
        files.read(tmp_path / "x.npz")


@pytest.mark.parametrize("text", ["confidence,correct,gr\xe9\n.5,1,a\n", "confidence,correct,group\n.5,1,\xe9\n"])
def test_text_that_is_not_utf8_is_said_to_be_none(tmp_path, text):
    (tmp_path / "x.csv").write_bytes(text.encode("latin1"))
    with pytest.raises(InputError, match=r"x\.csv: cannot be read as csv: it must be text in UTF-8, separated by ','$"):
        files.read(tmp_path / "x.csv")


def test_columns_nobody_asked_for_may_hold_anything(tmp_path):
    file = csv(tmp_path, "confidence,correct,note\n.5,1,\n.6,0,x\n")
    assert len(files.read(file)) == 2
    ragged = pa.table({"confidence": [0.5, 0.6], "correct": [1, 0], "tokens": [[1], [1, 2]], "nothing": [None, None]})
    pq.write_table(ragged, tmp_path / "x.parquet")
    assert len(files.read(tmp_path / "x.parquet")) == 2
    objects = np.array([{}, {}], dtype=object)
    np.savez(tmp_path / "x.npz", confidence=[0.5, 0.6], correct=[1, 0], other=objects)
    assert len(files.read(tmp_path / "x.npz")) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("confidence,correct,correct\n.5,1,1\n", "two columns are called 'correct'"),
        ("confidence,correct\n" + ".5,1\n" * 1000 + "oops,1\n", "row 1000: confidence must be numbers, got 'oops'"),
        ("confidence,correct,group\n.5,1,a\n.5,1,\n", "column 'group', row 1: no value"),
    ],
)
def test_the_bad_cell_is_named(tmp_path, text, message):
    with pytest.raises(InputError) as caught:
        files.read(csv(tmp_path, text))
    assert message in str(caught.value)


def test_an_array_is_no_archive(tmp_path):
    with (tmp_path / "x.npz").open("wb") as stream:
        np.save(stream, np.zeros((2, 2)))
    with pytest.raises(InputError, match="is a single array"):
        files.read(tmp_path / "x.npz")


def test_ids_with_leading_zeros_stay_as_they_are_written(tmp_path):
    """007 and 7 are two ids; numbers as Python writes them are numbers."""
    (tmp_path / "coded.csv").write_text("confidence,correct,ids\n0.9,1,007\n0.8,0,7\n")
    (tmp_path / "counted.csv").write_text("confidence,correct,ids\n0.9,1,17\n0.8,0,7\n")
    assert files.read(tmp_path / "coded.csv").ids.tolist() == ["007", "7"]
    assert files.read(tmp_path / "counted.csv").ids.tolist() == [17, 7]
