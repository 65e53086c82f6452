"""Files of strangers: nothing they name runs, nothing outside `--out` changes, what is damaged is noticed."""

from __future__ import annotations

import gzip
import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import make_dataclass
from io import BytesIO, StringIO
from pathlib import Path
from select import select
from typing import TypeVar
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZIP_LZMA, ZIP_STORED, ZipFile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pyarrow import csv
from typing_extensions import TypeAliasType

from assay import Outcomes, Predictions, files, maps
from assay._core import manifest, reading, records
from assay._core.arrays import InputError
from assay._core.own_code import located
from assay._core.text import csv_cell, file_name, from_csv_cell, latex, printable
from assay._core.variants import Variant
from assay.cli import main
from assay.cli.consent import agreed
from assay.cli.output import warn_in_a_line
from assay.files import _formats
from assay.nn.data import load
from assay.nn.networks import network
from assay.nn.training import load_run
from assay.scale import tally
from assay.study import Cluster, Study, execute, expand, has_rows, read_study, row_table, rows_file, run_local, run_ray
from assay.study._scores import read_score, write_score
from assay.thresholds import load_threshold

OWN = """
from pathlib import Path
from assay.nn.data import load
Path(__file__).with_name("imported").touch()
def loader(folder, cut): return load("synthetic", cut=cut)
def nothing(folder, cut): pass
"""
STUDY = """
name = "foreign"
data = ["{data}"]
networks = ["mlp"]
recipes = ["cross_entropy"]
seeds = [0]
epochs = 1
n_train = [50]
metrics = ["accuracy"]
"""


@pytest.fixture
def foreign(tmp_path, monkeypatch) -> Path:
    """A study that names code beside it; `imported` appears when that code is imported."""
    (tmp_path / "own_trust.py").write_text(OWN)
    (tmp_path / "study.toml").write_text(STUDY.format(data="own_trust:loader"))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "own_trust", raising=False)
    return tmp_path


def exit_code(*words: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    code = ended.value.code
    assert isinstance(code, int)
    return code


# Reading never imports.


@pytest.mark.parametrize("command", ["status", "check", "clean"])
def test_a_command_that_does_not_train_imports_nothing_that_a_study_names(foreign, command):
    assert exit_code("study", command, "study.toml") == 0
    assert not (foreign / "imported").exists()


def test_check_imports_no_network_that_a_study_names(foreign):
    (foreign / "study.toml").write_text(STUDY.format(data="digits").replace("mlp", "own_trust:factory"))
    assert exit_code("study", "check", "study.toml") == 0
    assert not (foreign / "imported").exists()


@pytest.mark.parametrize("command", [["report"], ["rows", "--to", "rows.csv"]])
def test_a_report_imports_nothing_that_a_study_names(foreign, capsys, command):
    verb, *more = command
    assert exit_code("study", verb, "study.toml", *more) == 2
    assert "no run of foreign" in capsys.readouterr().err
    assert not (foreign / "imported").exists()


@pytest.mark.parametrize("key", ["metric", "calibrator", "against_calibrator", "score"])
def test_claims_name_no_code(foreign, capsys, key):
    claim = {"id": "x", "says": "x", "regime": ["study"], "method": "cross_entropy", "against": "*", "margin": 0.1}
    named = claim | {"metric": "ece", "expects": "lower"} | {key: "own_trust:loader"}
    (foreign / "claims.toml").write_text("[[claim]]\n" + "\n".join(f"{k} = {json.dumps(v)}" for k, v in named.items()))
    keep = ["study", "keep", "study.toml", "--claims", "claims.toml", "--to", "kept"]
    for words in (keep, ["claims", "claims.toml", "--kept", "kept"]):
        assert exit_code(*words) == 2
        assert f"{key}: Value error, 'own_trust:loader' names code" in capsys.readouterr().err
    assert not (foreign / "imported").exists()


def test_check_says_what_it_did_not_try(foreign, capsys):
    exit_code("study", "check", "study.toml")
    assert "not tried: own_trust:loader" in capsys.readouterr().out


@pytest.mark.parametrize("command", [["run"], ["tune", "--to", "tuned.toml"]])
def test_code_of_a_study_needs_consent(foreign, capsys, command):
    verb, *more = command
    assert exit_code("study", verb, "study.toml", *more, "--out", "runs") == 2
    said = capsys.readouterr().err
    assert located("own_trust:loader").digest[:16] in said
    assert "own_trust.py" in said
    assert "--allow-code" in said
    assert not (foreign / "imported").exists()


def test_python_needs_consent_too(foreign):
    study = read_study("study.toml")
    (run,) = expand(study)
    for call in (
        lambda: execute(study, run, foreign),
        lambda: run_local(study, [run], foreign, workers=1),
        lambda: run_ray(study, [run], foreign, workers=1),
    ):
        with pytest.raises(InputError, match="allow_code=True"):
            call()
    assert not (foreign / "imported").exists()


def test_a_study_runs_its_code_with_consent(foreign):
    assert exit_code("study", "run", "study.toml", "--out", "runs", "--allow-code") == 0
    assert (foreign / "imported").exists()


def asked(answer: str) -> int:
    """The exit code of the study's run at a terminal where the question gets this answer."""
    terminal, other = pty.openpty()
    os.write(terminal, f"{answer}\n".encode())
    words = [sys.executable, "-m", "assay", "study", "run", "study.toml", "--out", "runs"]
    with subprocess.Popen(words, stdin=other, stderr=other, stdout=subprocess.DEVNULL) as process:
        os.close(other)
        try:
            while os.read(terminal, 4096):
                pass
        except OSError:  # the other side has closed it
            pass
        return process.wait()


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_consent_is_asked_once_for_exactly_that_code(foreign, monkeypatch):
    study = read_study("study.toml")

    def said_on(answer: str) -> str:
        """What is asked; the study may run, or an error is raised."""
        monkeypatch.setattr(sys, "stdin", Terminal(answer))
        monkeypatch.setattr(sys, "stderr", Terminal())
        assert agreed(study, Path("study.toml"), allow_code=False)
        return sys.stderr.getvalue()

    with pytest.raises(InputError, match="not agreed to"):
        said_on("n\n")
    asked = said_on("y\n")
    assert all(word in asked for word in ("own_trust:loader", "own_trust.py", located("own_trust:loader").digest[:16]))
    assert said_on("") == ""
    (foreign / "own_trust.py").write_text(OWN + "# changed\n")
    with pytest.raises(InputError, match="not agreed to"):
        said_on("\n")
    assert not (foreign / "imported").exists()


def test_the_question_of_consent_holds_no_control_signs(foreign, monkeypatch):
    place = foreign / "\x1b[2J"
    place.mkdir()
    (place / "own_hidden.py").write_text(OWN)
    (place / "study.toml").write_text(STUDY.format(data="own_hidden:loader"))
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    monkeypatch.setattr(sys, "stderr", Terminal())
    with pytest.raises(InputError, match="not agreed to"):
        agreed(read_study(place / "study.toml"), place / "study.toml", allow_code=False)
    asked = sys.stderr.getvalue()
    assert "own_hidden.py" in asked
    assert all(line == printable(line) for line in asked.split("\n"))


@pytest.mark.long
def test_an_answer_is_remembered_until_the_code_changes(foreign):
    assert asked("n") == 2
    assert asked("y") == 0
    assert asked("") == 0
    with (foreign / "own_trust.py").open("a") as code:
        code.write("# changed\n")
    assert asked("") == 2


def test_a_run_that_names_code_is_not_loaded(tmp_path):
    (tmp_path / "run.json").write_text(json.dumps({"names": {"data": "shutil:rmtree", "network": "mlp"}}))
    victim = tmp_path / "victim"
    victim.mkdir()
    for names in (
        {"data": "shutil:rmtree", "network": "mlp", "folder": str(victim)},
        {"data": "digits", "network": "own:factory"},
    ):
        (tmp_path / "run.json").write_text(json.dumps({"names": names}))
        with pytest.raises(InputError, match=r"never calls code that run.json names"):
            load_run(tmp_path)
    assert victim.is_dir()


def test_a_function_that_was_not_written_as_a_loader_is_not_called(tmp_path, monkeypatch):
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path))
    for name in ("shutil:rmtree", "json:load", "os:system", "builtins:open"):
        with pytest.raises(InputError, match=r"must be a function \(folder, cut\)|cannot be imported"):
            load(name)
    with pytest.raises(InputError, match=r"must be a function \(n_classes\)"):
        network("os:remove")
    assert tmp_path.is_dir()


def test_a_loader_that_gives_nothing_is_named(foreign):
    with pytest.raises(InputError, match="own_trust:nothing: a loader must give Splits, and gave NoneType"):
        load("own_trust:nothing")


def test_code_is_located_without_importing_its_package(tmp_path, monkeypatch):
    package = tmp_path / "own_package"
    package.mkdir()
    (package / "__init__.py").write_text("raise SystemExit('imported')")
    (package / "inner.py").write_text("def loader(folder, cut): ...")
    monkeypatch.syspath_prepend(tmp_path)
    before = located("own_package.inner:loader")
    assert before.file == package / "inner.py"
    (package / "__init__.py").write_text("raise SystemExit('changed')")
    assert located("own_package.inner:loader").digest != before.digest


@pytest.mark.parametrize(
    "name", ["os:system", "sys:exit", "nowhere:x", "own.nowhere:x", "a:b:c", "\x1b[2J:x", ":", "a b:c"]
)
def test_what_is_no_file_of_a_user_is_not_located(name):
    with pytest.raises(InputError, match=r"names no code|no module|part of Python itself"):
        located(name)


# Nothing is written or deleted outside the folder of runs.


def study_with(value: str) -> str:
    recipe = f'{{ recipe = "focal", detach_weight = {json.dumps(value)} }}'
    return STUDY.format(data="digits").replace('"cross_entropy"', recipe)


@given(st.text(max_size=300), st.text(max_size=300))
@example("..", ".hidden")
def test_any_text_is_a_safe_name_of_its_own(one, other):
    for text in (one, other):
        name = file_name(text)
        assert not {"/", "\\", "\0", ":"} & set(name)
        assert not name.startswith(".")
        assert 0 < len(name) <= 170
    assert (file_name(one) == file_name(other)) == (one == other)


def test_plain_names_stay_as_they_are():
    assert file_name("focal@mukhoti2020,gamma=5.0,lr=1e-05") == "focal@mukhoti2020,gamma=5.0,lr=1e-05"


def test_a_value_leads_to_no_folder_outside(tmp_path):
    (tmp_path / "study.toml").write_text(study_with("/../../../../victim"))
    (run,) = expand(read_study(tmp_path / "study.toml"))
    assert (tmp_path / "runs" / run.folder).resolve().is_relative_to(tmp_path / "runs")
    assert len(run.folder.parts) == 4


@pytest.mark.parametrize("network", ['{ network = "mlp", width = "/../../../../victim" }', '"../../victim"', '".."'])
def test_a_network_leads_to_no_folder_outside(tmp_path, network):
    (tmp_path / "study.toml").write_text(STUDY.format(data="digits").replace('"mlp"', network))
    (run,) = expand(read_study(tmp_path / "study.toml"))
    assert ".." not in run.folder.parts
    assert len(run.folder.parts) == 4


@pytest.mark.parametrize("shift", ["../../victim", "cifar10_c/../../x", "/etc/passwd", "a\\b", "", "cifar10_c/"])
def test_a_shift_that_is_no_name_is_refused(tmp_path, shift):
    (tmp_path / "study.toml").write_text(STUDY.format(data="digits") + f"shifts = [{json.dumps(shift)}]")
    with pytest.raises(InputError, match="no shift is called"):
        read_study(tmp_path / "study.toml")


@pytest.fixture
def run_folder(tmp_path, monkeypatch) -> Path:
    """The folder of a run of the study in the working directory, with two files that assay wrote."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(STUDY.format(data="digits"))
    (run,) = expand(read_study("study.toml"))
    folder = tmp_path / "runs" / run.folder
    with manifest.alone_in(folder):
        write_two(folder)
    return folder


def write_two(folder: Path) -> None:
    (folder / "shift").mkdir(exist_ok=True)
    with manifest.recording(folder, "a.npz", "shift/b.npz"):
        (folder / "a.npz").write_bytes(b"a")
        (folder / "shift/b.npz").write_bytes(b"b")


def test_a_score_leads_to_no_file_outside(run_folder):
    score = Variant("trust_score", {"k": "/../../../victim"})
    write_score(score, {"test": np.ones(2)}, run_folder)
    assert len(list(run_folder.glob("score_trust_score*"))) == 1
    assert read_score(score, run_folder, ["test"])["test"].tolist() == [1, 1]


def test_clean_deletes_a_run(run_folder):
    (run_folder / ".a.npz.0123456789abcdef.tmp").touch()
    assert exit_code("study", "clean", "study.toml") == 0
    assert not run_folder.exists()


def test_clean_keeps_what_assay_did_not_write(run_folder, capsys):
    (run_folder / "notes.txt").write_text("mine")
    (run_folder / ".mine.tmp").write_text("mine")
    assert exit_code("study", "clean", "study.toml") == 0
    assert sorted(file.name for file in run_folder.iterdir()) == [".mine.tmp", "notes.txt"]
    assert "has other files too" in capsys.readouterr().out


def test_clean_follows_no_name_and_no_link_out_of_the_folder(run_folder, tmp_path, capsys):
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "b.npz").write_text("mine")
    (run_folder / "shift/b.npz").unlink()
    (run_folder / "shift").rmdir()
    (run_folder / "shift").symlink_to(victim)
    exit_code("study", "clean", "study.toml")
    assert (victim / "b.npz").read_text() == "mine"
    run_folder.mkdir(parents=True, exist_ok=True)
    (run_folder / "manifest.json").write_text(json.dumps({"files": {"../../../../../victim/b.npz": None}}))
    assert exit_code("study", "clean", "study.toml") == 2
    assert "which assay never writes" in capsys.readouterr().err
    assert (victim / "b.npz").read_text() == "mine"


def test_clean_follows_no_link_out_of_the_folder_of_runs(run_folder, tmp_path, capsys):
    of_data = run_folder.parents[2]
    of_data.rename(tmp_path / "elsewhere")
    of_data.symlink_to(tmp_path / "elsewhere")
    assert exit_code("study", "clean", "study.toml") == 2
    assert "leads out of runs" in capsys.readouterr().err
    assert (run_folder / "a.npz").exists()


def test_pages_of_runs_follow_no_link_out_of_their_folder(run_folder, tmp_path, capsys):
    study = read_study("study.toml")
    names = {"data": "digits", "network": "mlp", "recipe": "cross_entropy", "method": "cross_entropy", "seed": 0}
    kind = {"split": "test", "calibrator": "none", "calibrator_name": "none", "score": "max_probability"}
    write_rows_of(study, run_folder, row_table([names | kind | {"metric": "accuracy", "value": 0.5}]))
    files.write(Predictions.from_logits([[1.0, 0.0]], [0]), run_folder / "test.npz")
    of_data = run_folder.parents[2]
    of_data.rename(tmp_path / "elsewhere")
    of_data.symlink_to(tmp_path / "elsewhere")
    assert exit_code("study", "report", "study.toml", "--html", "r.html", "--pages") == 2
    assert "leads out of runs" in capsys.readouterr().err
    assert not list((tmp_path / "elsewhere").rglob("audit.html"))


def test_clean_deletes_nothing_in_a_folder_that_is_not_of_a_run(run_folder, capsys):
    (run_folder / "manifest.json").unlink()
    assert exit_code("study", "clean", "study.toml") == 2
    assert "is not the folder of a run" in capsys.readouterr().err
    assert (run_folder / "a.npz").exists()


def test_a_link_out_of_the_folder_of_runs_is_not_followed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text(STUDY.format(data="digits"))
    (run,) = expand(read_study("study.toml"))
    victim = tmp_path / "victim"
    for part in ("mlp", *run.folder.parts[2:]):
        victim = victim / part
    victim.mkdir(parents=True)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / run.folder.parts[0]).symlink_to(tmp_path / "victim")
    assert exit_code("study", "run", "study.toml") == 2
    assert "leads out of" in capsys.readouterr().err
    assert not list(victim.iterdir())


def test_a_link_in_place_of_a_log_is_not_followed(run_folder, tmp_path):
    (tmp_path / "victim").write_text("mine")
    (run_folder / "log.txt").symlink_to(tmp_path / "victim")
    with pytest.raises(OSError, match=r"log\.txt"):
        manifest.opened(run_folder / "log.txt")
    assert (tmp_path / "victim").read_text() == "mine"


def test_a_command_writes_its_results_to_no_pipe(tmp_path, capsys):
    files.write(Outcomes.from_scores([0.5, 0.6], [0, 1]), tmp_path / "x.csv")
    os.mkfifo(tmp_path / "pipe")
    assert exit_code("audit", tmp_path / "x.csv", "--json", tmp_path / "pipe") == 2
    assert capsys.readouterr().err.endswith("pipe: cannot be written: it exists and is not a regular file\n")
    assert (tmp_path / "pipe").is_fifo()


def test_latex_is_text():
    assert latex(r"\input{/etc/passwd}$x^2~%") == (
        r"\textbackslash{}input\{/etc/passwd\}\$x\textasciicircum{}2\textasciitilde{}\%"
    )
    assert "\n" not in latex("a\n\\input{x}")


# What a run's folder holds is what was written.


def test_training_in_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "test.npz").write_bytes(b"mine")
    (tmp_path / ".mine.tmp").write_bytes(b"mine")
    with pytest.raises(InputError, match=r"has '.*' and no manifest.json; name another folder"):
        manifest.begin(tmp_path)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == {"test.npz": b"mine", ".mine.tmp": b"mine"}


def test_a_changed_file_is_not_intact(run_folder):
    assert manifest.intact(run_folder, "a.npz")
    assert not list(manifest.damaged(run_folder))
    (run_folder / "a.npz").write_bytes(b"c")
    assert not manifest.intact(run_folder, "a.npz")
    assert list(manifest.damaged(run_folder)) == [f"{run_folder / 'a.npz'}: has changed since it was written"]
    (run_folder / "a.npz").unlink()
    assert list(manifest.damaged(run_folder)) == [f"{run_folder / 'a.npz'}: No such file or directory"]


def test_no_digest_is_listed_while_a_file_is_written(run_folder):
    with manifest.recording(run_folder, "a.npz"):
        (run_folder / "a.npz").write_bytes(b"c")
        claimed = manifest.intact(run_folder, "a.npz"), list(manifest.damaged(run_folder))
    assert claimed == (False, [])
    assert manifest.intact(run_folder, "a.npz")


def test_a_failed_write_leaves_no_digest(run_folder):
    with pytest.raises(InputError), manifest.recording(run_folder, "a.npz"):
        raise InputError("the disk is full")
    assert not manifest.intact(run_folder, "a.npz")
    assert not list(manifest.damaged(run_folder))


def test_a_process_waits_for_another_in_the_same_folder_and_not_for_itself(tmp_path):
    code = f"""
from pathlib import Path
from assay._core import manifest
print("asking", flush=True)
lock = manifest.begin(Path({str(tmp_path)!r}))
print("begun")
"""
    with manifest.alone_in(tmp_path), manifest.alone_in(tmp_path):
        other = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        assert other.stdout is not None
        assert other.stdout.readline() == b"asking\n"
        assert not select([other.stdout], [], [], 1.0)[0]
    assert other.communicate()[0] == b"begun\n"


def test_verify_finds_a_changed_file_in_a_whole_study(run_folder, capsys):
    assert exit_code("verify", "runs") == 0
    assert "1 runs, 2 finished files: all as they were written" in capsys.readouterr().out
    (run_folder / "shift/b.npz").write_bytes(b"c")
    assert exit_code("verify", "runs") == 2
    assert "b.npz: has changed since it was written" in capsys.readouterr().out.replace("\n", "")
    (run_folder / "manifest.json").write_text("{")
    assert exit_code("verify", "runs") == 2
    assert exit_code("verify", "nowhere") == 2


def written(file: Path) -> Predictions:
    """Rows with every kind of column, which the file then has."""
    rng = np.random.default_rng(0)
    tags = {"ids": [f"n{i}" for i in range(40)], "group": list("ab" * 20)}
    rows = Predictions.from_logits(rng.normal(size=(40, 3)).astype(np.float32), rng.integers(0, 3, 40), **tags)
    files.write(rows, file)
    return rows


def flipped(content: bytes, bit: int) -> bytes:
    """The content with one bit changed."""
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << (bit % 8)
    return bytes(changed)


def read_flipped(file: Path, content: bytes, bit: int) -> Predictions | None:
    """What is read if one bit of the content is another; None if it is refused."""
    file.write_bytes(flipped(content, bit))
    try:
        found = files.read(file)
    except InputError:
        return None
    assert isinstance(found, Predictions)
    return found


def assert_the_same_or_refused(file: Path, bits: Iterable[int] | None = None) -> None:
    whole, content = written(file), file.read_bytes()
    for bit in range(8 * len(content)) if bits is None else bits:
        found = read_flipped(file, content, bit % (8 * len(content)))
        for name in ("values", "labels", "ids", "group") if found else ():
            np.testing.assert_array_equal(getattr(found, name), getattr(whole, name), err_msg=f"{name}, bit {bit}")


@pytest.mark.parametrize("ending", ["parquet", "npz"])
def test_a_flipped_bit_is_an_error_or_changes_nothing(tmp_path, ending):
    assert_the_same_or_refused(tmp_path / f"x.{ending}", np.random.default_rng(0).integers(0, 10**6, 150).tolist())


def test_a_flipped_bit_in_a_file_of_parts_is_an_error_or_changes_nothing(tmp_path):
    """Written and read part by part, as folders of predictions are."""
    file = tmp_path / "x.parquet"
    rows = written(tmp_path / "whole.npz")
    files.write_chunks([rows[:25], rows[25:]], file)
    content = file.read_bytes()
    kinds = [8 * (place + 1) for place in pages(file)]  # of what a page says that it is there is no checksum
    for bit in [*kinds, *np.random.default_rng(0).integers(0, 8 * len(content), 150).tolist()]:
        file.write_bytes(flipped(content, bit))
        for read in (files.read_rows, lambda file: [files.read(file)]):
            with suppress(InputError):
                found = list(read(file))
                np.testing.assert_array_equal(np.concatenate([part.values for part in found]), rows.values)
                np.testing.assert_array_equal(np.concatenate([part.ids for part in found]), rows.ids)


def test_a_flipped_bit_in_a_file_at_an_address_is_an_error_or_changes_nothing(tmp_path):
    file = tmp_path / "x.parquet"
    files.write_chunks([written(tmp_path / "whole.npz")], file)
    content, whole = file.read_bytes(), tally(f"file://{file}").to_bytes()
    for bit in np.random.default_rng(0).integers(0, 8 * len(content), 50).tolist():
        file.write_bytes(flipped(content, bit))
        with suppress(InputError):
            assert tally(f"file://{file}").to_bytes() == whole, bit


def test_a_column_of_another_name_is_refused(tmp_path):
    """Names stand in what describes the pages, which has no checksum of its own."""
    written(tmp_path / "x.parquet")
    (tmp_path / "x.parquet").write_bytes((tmp_path / "x.parquet").read_bytes().replace(b"group", b"grouq"))
    with pytest.raises(InputError, match="its columns or rows are not those that were written"):
        files.read(tmp_path / "x.parquet")


def pages(file: Path) -> list[int]:
    """Where the columns of the row groups of a Parquet file begin."""
    about = pq.read_metadata(file)
    columns = [about.row_group(i).column(j) for i in range(about.num_row_groups) for j in range(about.num_columns)]
    return [column.data_page_offset for column in columns]


def write_rows_of(study: Study, folder: Path, table: pa.Table) -> Path:
    """Write rows as a run has them, listed in its manifest."""
    file = folder / rows_file(study)
    with manifest.recording(folder, file.name), pa.ipc.new_file(str(file), table.schema) as stream:
        stream.write_table(table)
    return file


def test_a_flipped_bit_in_rows_is_noticed(run_folder):
    study = read_study("study.toml")
    file = write_rows_of(study, run_folder, row_table([{"data": "digits", "metric": "accuracy", "value": 0.5}]))
    assert has_rows(study, run_folder)
    content = file.read_bytes()
    for bit in np.random.default_rng(0).integers(0, 8 * len(content), 50).tolist():
        file.write_bytes(flipped(content, bit))
        assert not has_rows(study, run_folder)


def test_rows_of_other_types_are_not_read(run_folder):
    study = read_study("study.toml")
    right = {"method": pa.array(["x"]), "value": pa.array([0.5]), "gamma": pa.array([2.0])}
    for name, wrong in (("value", pa.float16()), ("gamma", pa.float16()), ("method", pa.binary())):
        write_rows_of(study, run_folder, pa.table(right))
        assert has_rows(study, run_folder)
        write_rows_of(study, run_folder, pa.table(right | {name: pa.nulls(1, wrong)}))
        assert not has_rows(study, run_folder)


@pytest.mark.parametrize("after", [[], ["z"]])
def test_rows_that_lead_out_of_their_buffers_are_not_read(run_folder, after):
    """Also if the manifest, which a stranger may write too, says that they are intact."""
    study = read_study("study.toml")
    file = write_rows_of(study, run_folder, pa.table({"method": ["x" * 4321, "y" * 9, *after]}))
    assert has_rows(study, run_folder)
    before, after = (np.array([4321, end], np.int32).tobytes() for end in (4330, 10**9))
    assert file.read_bytes().count(before) == 1
    with manifest.recording(run_folder, file.name):
        file.write_bytes(file.read_bytes().replace(before, after))
    assert not has_rows(study, run_folder)


@pytest.mark.long
@pytest.mark.parametrize("ending", ["parquet", "npz"])
def test_every_flipped_bit_is_an_error_or_changes_nothing(tmp_path, ending):
    assert_the_same_or_refused(tmp_path / f"x.{ending}")


def test_a_row_group_that_says_another_number_of_rows_is_refused(tmp_path):
    """What describes the pages has no checksum of its own: 40 rows became 8, and only those were read."""
    file = tmp_path / "x.parquet"
    written(file)
    content, refused = file.read_bytes(), 0
    for bit in range(8 * content.rindex(b"parquet-cpp"), 0, -1):
        with suppress(pa.ArrowException, OSError):
            about = pq.read_metadata(BytesIO(flipped(content, bit)))
            if about.num_row_groups == 1 and about.row_group(0).num_rows < about.num_rows == 40:
                refused += read_flipped(file, content, bit) is None
                break
    assert refused == 1


# One line, always.


def test_a_closed_pipe_loses_no_file(tmp_path):
    words = [sys.executable, "-m", "assay", "audit", "--json", str(tmp_path / "audit.json")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait() == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert (tmp_path / "audit.json").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_is_one_line():
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "assay", "audit"], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert (ended.returncode, ended.stderr) == (2, b"assay: output: No space left on device\n")


def test_control_signs_do_not_reach_the_terminal(capsys):
    exit_code("audit", "x\x1bc\u202e.npz")
    assert capsys.readouterr().err == "assay: x\\x1bc\\u202e.npz: no such file\n"


def test_control_signs_in_a_warning_do_not_reach_the_terminal():
    assert warn_in_a_line("x\x1b[31m.csv: columns are\nseparated by ';'") == (
        "assay: x\\x1b[31m.csv: columns are separated by ';'\n"
    )


def test_what_is_no_file_is_called_what_it_is(tmp_path):
    os.mkfifo(tmp_path / "pipe.npz")
    (tmp_path / "folder.npz").mkdir()
    (tmp_path / "loop.npz").symlink_to(tmp_path / "loop.npz")
    for name, what in (("pipe", "is a pipe or a device"), ("folder", "is a folder"), ("loop", "Too many levels")):
        with pytest.raises(InputError, match=what):
            files.read(tmp_path / f"{name}.npz")


def test_a_file_in_a_folder_that_may_not_be_entered_is_one_line(tmp_path, monkeypatch, capsys):
    def refuse(path: Path, **_: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "stat", refuse)
    with pytest.raises(InputError, match=r"x\.npz: cannot be read: Permission denied"):
        files.read(tmp_path / "x.npz")
    assert exit_code("audit", tmp_path / "x.npz") == 2
    assert capsys.readouterr().err == f"assay: {tmp_path / 'x.npz'}: Permission denied\n"


def test_a_file_below_a_file_is_none(tmp_path, capsys):
    (tmp_path / "file").touch()
    assert exit_code("audit", tmp_path / "file" / "x.npz") == 2
    assert capsys.readouterr().err == f"assay: {tmp_path / 'file' / 'x.npz'}: no such file\n"


def test_an_output_that_cannot_be_is_noticed_before_the_work(tmp_path, capsys):
    (tmp_path / "x.npz").write_text("never read")
    assert exit_code("audit", tmp_path / "x.npz", "--json", tmp_path / "nowhere" / "x.json") == 2
    assert "No such file or directory" in capsys.readouterr().err


def test_an_output_that_is_a_pipe_is_noticed_before_the_work(tmp_path, capsys):
    (tmp_path / "x.npz").write_text("never read")
    os.mkfifo(tmp_path / "pipe")
    assert exit_code("audit", tmp_path / "x.npz", "--json", tmp_path / "pipe") == 2
    assert "it exists and is not a regular file" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["[/x]", "[bold]", ":warning:", "a\x1b[31mb", "\u202e"])
def test_a_name_is_text_on_the_terminal_whatever_it_holds(tmp_path, name, capsys):
    rows = Predictions.from_logits([[2.0, 0.0], [0.0, 1.0]] * 20, [0, 0] * 20, group=[name, "b"] * 20)
    files.write(rows, tmp_path / "x.parquet")
    assert exit_code("audit", tmp_path / "x.parquet", "--group", "group") == 0
    shown = capsys.readouterr().out
    assert printable(name) in shown
    assert all(line == printable(line) for line in shown.split("\n"))


def test_square_brackets_in_a_name_are_no_markup(tmp_path, capsys):
    (tmp_path / "[bold]").mkdir()
    files.write(Predictions.from_logits([[2.0, 0.0], [0.0, 1.0]] * 20, [0, 0] * 20), tmp_path / "[bold]" / "x.parquet")
    assert exit_code("audit", tmp_path / "[bold]") == 0
    assert "[bold]: every number is exact" in capsys.readouterr().out


def test_an_error_that_nobody_foresaw_is_one_line_with_its_place(monkeypatch, capsys):
    def broken(*_: object) -> None:
        raise RuntimeError("never\nthought of")

    monkeypatch.setattr(files, "read", broken)
    assert exit_code("audit", "x.npz") == 70
    said = capsys.readouterr().err
    assert said.startswith("assay: RuntimeError in test_trust.py, line ")
    assert said.count("\n") == 1
    monkeypatch.setenv("ASSAY_TRACEBACK", "1")
    with pytest.raises(RuntimeError):
        main(["audit", "x.npz"])


def test_ctrl_c_ends_without_a_traceback(monkeypatch, capsys):
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(files, "read", stopped)
    assert exit_code("audit", "x.npz") == 130
    assert capsys.readouterr().err == "assay: stopped\n"


def test_a_command_that_fills_the_memory_says_so(monkeypatch, capsys):
    def filling(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(files, "read", filling)
    assert exit_code("audit", "x.npz") == 2
    assert capsys.readouterr().err == "assay: the memory is full\n"


@pytest.mark.parametrize("ending", ["npz", "parquet", "csv"])
def test_a_whole_file_is_not_called_damaged_when_memory_is_full(tmp_path, ending, monkeypatch):
    files.write(Predictions.from_logits([[2.0, 0.0]], [0]), tmp_path / f"x.{ending}")
    full = pa.ArrowMemoryError("malloc failed")
    for module, name in ((np.lib.npyio.NpzFile, "__getitem__"), (pq, "read_table"), (csv, "read_csv")):
        monkeypatch.setattr(module, name, lambda *_, **__: (_ for _ in ()).throw(full))
    with pytest.raises(InputError, match="does not fit into memory: malloc failed"):
        files.read(tmp_path / f"x.{ending}")


ARRAYS = {
    "huge": "(1000000000000,)",
    "overflowing": "(9223372036854775807, 9223372036854775807)",
    "negative": "(-1, 2)",
    "of objects": "(1, 2)",
    "no array": "()",
}


@pytest.mark.parametrize("shape", ARRAYS.values(), ids=ARRAYS)
@pytest.mark.parametrize("method", [ZIP_STORED, ZIP_LZMA, ZIP_BZIP2])
def test_an_array_made_to_break_its_reader_is_refused(tmp_path, shape, method):
    kind = "|O" if shape == "(1, 2)" else "<f4"
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".ljust(118) + "\n"
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + bytes(8)
    with ZipFile(tmp_path / "x.npz", "w", method) as archive:
        archive.writestr("logits.npy", content)
        archive.writestr("labels.npy", content)
    with pytest.raises(InputError, match=r"x\.npz"):
        files.read(tmp_path / "x.npz")


@pytest.mark.parametrize("method", [ZIP_DEFLATED, ZIP_LZMA, ZIP_BZIP2])
def test_an_array_that_cannot_be_unpacked_is_refused(tmp_path, method):
    """Each kind of compression has errors of its own."""
    logits, labels = BytesIO(), BytesIO()
    np.save(logits, np.random.default_rng(0).normal(size=(50, 2)))
    np.save(labels, np.zeros(50, dtype=np.int64))
    with ZipFile(tmp_path / "x.npz", "w", method) as archive:
        archive.writestr("logits.npy", logits.getvalue())
        archive.writestr("labels.npy", labels.getvalue())
        packed = archive.getinfo("logits.npy")
    content = bytearray((tmp_path / "x.npz").read_bytes())
    start = packed.header_offset + 30 + len(packed.filename)
    content[start + 9 : start + packed.compress_size] = b"\xff" * (packed.compress_size - 9)
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(InputError, match=r"x\.npz: cannot be read as npz"):
        files.read(tmp_path / "x.npz")


def test_bytes_that_are_no_text_are_one_line(tmp_path, capfd):
    (tmp_path / "x.csv").write_bytes(b"confidence,correct\n0.5,1\n0.5,\xff\xfe,1\n")
    assert exit_code("audit", tmp_path / "x.csv") == 2
    why = "cannot be read as csv: it must be text in UTF-8, separated by ','"
    assert capfd.readouterr().err == f"assay: {tmp_path / 'x.csv'}: {why}\n"


def test_bytes_that_are_no_text_are_shown_with_their_row(tmp_path):
    (tmp_path / "x.csv").write_bytes(b"confidence,correct\n0.5,1\n0.5,\xff\n")
    with pytest.raises(InputError, match=r"x.csv: column 'correct', row 1: b'\\xff' is no text in UTF-8"):
        files.read(tmp_path / "x.csv")


def test_numbers_that_stand_for_no_character_are_refused(tmp_path):
    text = np.array([[0x110000], [0x61]], dtype="<u4").view("<U1")[:, 0]
    np.savez(tmp_path / "x.npz", logits=np.zeros((2, 2)), labels=[0, 1], ids=text)
    with pytest.raises(InputError, match=r"x.npz: column 'ids' holds Python objects or is damaged"):
        files.read(tmp_path / "x.npz")


def test_a_single_value_is_no_column(tmp_path):
    np.savez(tmp_path / "x.npz", logits=np.float32(1), labels=[0, 1])
    with pytest.raises(InputError, match=r"x.npz: 'logits' is a single value, not a column"):
        files.read(tmp_path / "x.npz")


def test_a_file_may_have_a_name_like_a_list(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    files.write(Outcomes.from_scores([0.5, 0.6], [0, 1]), Path("[x].csv"))
    assert exit_code("audit", "[x].csv") == 0
    assert exit_code("board", "[x].csv", "[/y].csv") == 2
    assert capsys.readouterr().err == "assay: [/y].csv: no such file\n"


def test_a_closed_output_loses_no_file(tmp_path):
    words = f"{sys.executable} -m assay audit --json {tmp_path}/a.json >&-"
    assert subprocess.run(words, shell=True, check=False, stderr=subprocess.PIPE).stderr == b""
    assert json.loads((tmp_path / "a.json").read_text())


def test_links_in_a_circle_are_one_line(tmp_path, capsys):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert exit_code("audit", "x.npz", "--json", tmp_path / "loop" / "a.json") == 2
    assert capsys.readouterr().err.count("\n") == 1


FIT = {"kind": "Fit", "objective": "NLL", "before": 1.0, "after": 0.9, "iterations": 1, "n": 9}
BROKEN_MAPS = {
    "a text for a number": {"kind": "Temperature", "fit": FIT, "t": "2", "n_classes": 2},
    "a number that cannot be": {"kind": "Temperature", "fit": FIT, "t": -1.0, "n_classes": 2},
    "a number too large": {"kind": "Logistic", "fit": FIT, "a": 1e308, "b": 1.0, "m": 0.0},
    "a temperature too high": {"kind": "Temperature", "fit": FIT, "t": 1e308, "n_classes": 2},
    "a temperature too low": {"kind": "Temperature", "fit": FIT, "t": 1e-320, "n_classes": 2},
    "true for a number": {"kind": "Temperature", "fit": FIT, "t": True, "n_classes": 2},
    "nothing for a fit": {"kind": "Temperature", "fit": None, "t": 2.0, "n_classes": 2},
    "an unknown field": {"kind": "Temperature", "fit": FIT, "t": 2.0, "n_classes": 2, "x": 1},
    "a missing field": {"kind": "Temperature", "fit": FIT, "t": 2.0},
    "an unknown kind": {"kind": "Popen", "args": ["true"]},
    "unequal lengths": {"kind": "Curve", "fit": FIT, "x": {"tensor": [0.0, 1.0]}, "y": {"tensor": [0.5]}},
    "falling edges": {"kind": "Steps", "fit": FIT, "upper": {"tensor": [1.0, 0.5]}, "value": {"tensor": [0.1, 0.2]}},
    "texts in an array": {"kind": "Curve", "fit": FIT, "x": {"tensor": ["0"]}, "y": {"tensor": [0.5]}},
    "a list": [1, 2],
    "a number": 10**400,
}


@pytest.mark.parametrize("content", BROKEN_MAPS.values(), ids=BROKEN_MAPS)
def test_a_map_that_would_not_work_is_not_loaded(tmp_path, content):
    sys.set_int_max_str_digits(0)
    (tmp_path / "map.json").write_text(json.dumps(content))
    sys.set_int_max_str_digits(4300)
    with pytest.raises(InputError, match=r"map.json: is no calibration map"):
        maps.load(tmp_path / "map.json")


@pytest.mark.parametrize("read", [maps.load, load_threshold, lambda file: manifest.listed(file.parent)])
def test_json_that_is_nested_deeply_is_refused(tmp_path, read):
    for name in ("x.json", "manifest.json"):
        (tmp_path / name).write_text("[" * 100_000)
    with pytest.raises(InputError, match="json"):
        read(tmp_path / "x.json")


PROMISE = {"value": 0.5, "guaranteed_risk": 0.1, "confidence": 0.95, "n": 100, "accepted": 50, "wrong": 2}


@pytest.mark.parametrize(
    "wrong",
    [
        {"n": "9"},
        {"accepted": [1]},
        {"confidence": None},
        {"wrong": 60},
        {"n": 0},
        {"guaranteed_risk": 0.0},
        {"n": 10**30},
    ],
)
def test_a_threshold_that_cannot_be_is_not_loaded(tmp_path, wrong):
    (tmp_path / "t.json").write_text(json.dumps(PROMISE))
    assert load_threshold(tmp_path / "t.json").accepted == 50
    (tmp_path / "t.json").write_text(json.dumps(PROMISE | wrong))
    with pytest.raises(InputError, match=r"t.json: is no threshold"):
        load_threshold(tmp_path / "t.json")


OF_CLASS_1 = {"value": 0.5, "goal": "recall", "promised": 0.9, "confidence": 0.95, "n": 100, "positives": 40}


@pytest.mark.parametrize("wrong", [{"goal": "speed"}, {"hits": 45}, {"promised": 1.5}, {"positives": 200}, {"n": 0}])
def test_a_threshold_of_class_1_that_cannot_be_is_not_loaded(tmp_path, wrong):
    possible = OF_CLASS_1 | {"flagged": 50, "hits": 38}
    (tmp_path / "t.json").write_text(json.dumps(possible))
    assert load_threshold(tmp_path / "t.json").recall == 38 / 40
    (tmp_path / "t.json").write_text(json.dumps(possible | wrong))
    with pytest.raises(InputError, match=r"t.json: is no threshold"):
        load_threshold(tmp_path / "t.json")


def test_a_field_may_have_an_alias_for_its_type():
    """As numpy's NDArray is from numpy 2.5 on."""
    scalar = TypeVar("scalar", bound=np.generic)
    alias = TypeAliasType("alias", np.ndarray[tuple[int, ...], np.dtype[scalar]], type_params=(scalar,))
    made = make_dataclass("Made", [("x", alias[np.float64]), ("y", alias[np.float64] | None)])
    assert records.record(made, {"x": np.zeros(2), "y": None}).y is None
    assert records.record(made, {"x": np.zeros(2), "y": np.ones(3)}).y.sum() == 3
    with pytest.raises(InputError, match=r"Made.x must be an array, got a float"):
        records.record(made, {"x": 1.0, "y": None})


@pytest.mark.parametrize("said", ["[1]", "{}", '{"log": 3}', '{"log": [[]], "ended": 7}', "[" * 100_000])
def test_a_record_of_failure_that_says_nothing_is_shown_as_such(run_folder, said, capsys):
    (run_folder / "failed.json").write_text(said)
    assert exit_code("study", "status", "study.toml") == 0


@pytest.mark.parametrize("key", ["ece,n_bins=1000000000", "ece,n_bins=0", "ece,n_bins=many", "ece,norm=x"])
def test_a_metric_with_values_that_cannot_be_is_refused_before_the_work(tmp_path, key):
    text = STUDY.format(data="digits").replace('"accuracy"', json.dumps(key))
    (tmp_path / "study.toml").write_text(text)
    with pytest.raises(InputError, match=r"study\.toml: "):
        read_study(tmp_path / "study.toml")


@pytest.mark.parametrize("command", ["run", "tune"])
def test_a_folder_of_runs_that_cannot_be_made_is_noticed_before_the_work(tmp_path, capsys, command):
    (tmp_path / "study.toml").write_text(STUDY.format(data="digits"))
    (tmp_path / "file").touch()
    to = ["--to", tmp_path / "tuned.toml"] if command == "tune" else []
    assert exit_code("study", command, tmp_path / "study.toml", *to, "--out", tmp_path / "file" / "runs") == 2
    assert "runs: cannot be written" in capsys.readouterr().err


def test_a_folder_of_runs_that_may_not_be_written_is_noticed_before_the_work(tmp_path, monkeypatch, capsys):
    (tmp_path / "study.toml").write_text(STUDY.format(data="digits"))
    monkeypatch.setattr(os, "access", lambda place, mode: place != tmp_path / "runs")
    assert exit_code("study", "run", tmp_path / "study.toml", "--out", tmp_path / "runs") == 2
    assert capsys.readouterr().err == f"assay: {tmp_path / 'runs'}: cannot be written: it is not writable\n"


def test_ray_leaves_the_end_of_a_study_to_the_study(tmp_path, monkeypatch):
    """Its own answer to SIGTERM would dump a stack; that of the study says how to go on and exits with 130."""
    (tmp_path / "study.toml").write_text(STUDY.format(data="digits"))
    answers = []

    class Ray:
        init = staticmethod(lambda **_: signal.signal(signal.SIGTERM, lambda *_: None))
        remote = staticmethod(lambda **_: lambda task: task)
        shutdown = staticmethod(lambda: answers.append(signal.getsignal(signal.SIGTERM)))

    monkeypatch.setattr("assay.study._ray.needs", lambda name: Ray)
    before = signal.getsignal(signal.SIGTERM)
    try:
        run_ray(read_study(tmp_path / "study.toml"), [], tmp_path, workers=1)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert answers == [before]


def test_ray_starts_a_cluster_of_its_own_whatever_runs_on_this_machine(tmp_path, monkeypatch):
    """Without an address Ray would join a cluster that it finds, whose size it must not be told."""
    (tmp_path / "study.toml").write_text(STUDY.format(data="digits"))
    asked = []

    class Ray:
        @staticmethod
        def init(**size: object) -> None:
            asked.append(size)
            raise RuntimeError("no room")

    monkeypatch.setattr("assay.study._ray.needs", lambda name: Ray)
    with pytest.raises(InputError, match="no Ray cluster could be started: no room"):
        run_ray(read_study(tmp_path / "study.toml"), [], tmp_path, workers=2, threads=3)
    assert [(size["address"], size["num_cpus"]) for size in asked] == [("local", 6)]


def test_a_cluster_that_nobody_answers_for_is_refused_at_once(tmp_path, capsys):
    (tmp_path / "study.toml").write_text(STUDY.format(data="digits"))
    study = read_study(tmp_path / "study.toml")
    start = time.monotonic()
    with pytest.raises(InputError, match=r"no Ray cluster at '127\.0\.0\.1:9'"):
        run_ray(study, expand(study), tmp_path, workers=1, cluster=Cluster("127.0.0.1:9"))
    assert time.monotonic() - start < 60


# Text that leaves for a spreadsheet.


@given(st.text())
def test_a_cell_of_csv_is_never_a_formula_and_gives_its_text_back(text):
    assert csv_cell(text)[:1] not in ("=", "+", "-", "@", "\t", "\r")
    assert from_csv_cell(csv_cell(text)) == text


def test_formulas_in_ids_are_text_in_csv_and_read_back(tmp_path):
    ids = ["=1+1", "+2", "-3", "@x", "'=4", "plain"]
    rows = Predictions.from_logits([[2.0, -1.0]] * 6, [0] * 6, ids=ids)
    files.write(rows, tmp_path / "x.csv")
    cells = [line.split(",")[-1].strip('"') for line in (tmp_path / "x.csv").read_text().splitlines()[1:]]
    assert cells == ["'=1+1", "'+2", "'-3", "'@x", "''=4", "plain"]
    assert files.read(tmp_path / "x.csv").ids.tolist() == ids


DEEP = {"nested": "x = " + "[" * 20_000, "digits": "epochs = 1" + "0" * 5000, "large": "#" * 1_000_001}


@pytest.mark.parametrize("text", DEEP.values(), ids=DEEP)
def test_a_study_made_to_break_its_reader_is_refused(tmp_path, text):
    (tmp_path / "study.toml").write_text(text)
    with pytest.raises(InputError, match=r"study.toml: (cannot be read|is larger)"):
        read_study(tmp_path / "study.toml")


def test_columns_in_large_numbers_are_read_in_time(tmp_path):
    table = {f"logits_{j}": np.zeros(2) for j in range(4000)} | {"labels": np.zeros(2, dtype=np.int64)}
    np.savez(tmp_path / "x.npz", **table)
    start = time.process_time()
    files.read(tmp_path / "x.npz")
    assert time.process_time() - start < 5


def test_a_file_that_unpacks_to_far_more_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "LARGE", 10**6)
    for ending in ("npz", "parquet"):
        zeros = Predictions.from_logits(np.zeros((400_000, 2), dtype=np.float32), np.zeros(400_000, dtype=np.int64))
        files.write(zeros, tmp_path / f"x.{ending}")
        with pytest.raises(InputError, match=r"unpacks to .* refused"):
            files.read(tmp_path / f"x.{ending}")


def test_lists_that_unpack_to_far_more_are_refused(tmp_path, monkeypatch):
    """A file of few rows: it is their length that fills memory."""
    monkeypatch.setattr(reading, "LARGE", 10**6)
    files.write(Predictions.from_logits(np.zeros((40, 20_000), dtype=np.float32), [0] * 40), tmp_path / "x.parquet")
    with pytest.raises(InputError, match=r"x.parquet: unpacks to .* refused"):
        files.read(tmp_path / "x.parquet")


def test_lists_of_any_length_that_unpack_to_far_more_are_refused(tmp_path, monkeypatch):
    lists = pa.array([[0.0] * 20_000] * 40, pa.list_(pa.float64()))
    pq.write_table(pa.table({"logits": lists, "labels": [0] * 40}), tmp_path / "x.parquet")
    assert files.read(tmp_path / "x.parquet").values.shape == (40, 20_000)
    monkeypatch.setattr(reading, "LARGE", 10**6)
    with pytest.raises(InputError, match=r"x.parquet: unpacks to .* refused"):
        files.read(tmp_path / "x.parquet")


@pytest.mark.parametrize("made", [pa.ipc.new_file, pa.ipc.new_stream])
def test_an_arrow_file_that_unpacks_to_far_more_is_refused(tmp_path, monkeypatch, made):
    monkeypatch.setattr(reading, "LARGE", 10**6)
    table = pa.table({"confidence": np.zeros(400_000), "correct": np.zeros(400_000, dtype=bool)})
    with made(str(tmp_path / "x.arrow"), table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as file:
        file.write_table(table, max_chunksize=50_000)
    with pytest.raises(InputError, match=r"x.arrow: unpacks to .* refused"):
        files.read(tmp_path / "x.arrow")
    monkeypatch.undo()
    assert len(files.read(tmp_path / "x.arrow")) == 400_000


def test_a_small_file_may_unpack_to_anything(tmp_path):
    zeros = Predictions.from_logits(np.zeros((400_000, 2), dtype=np.float32), np.zeros(400_000, dtype=np.int64))
    files.write(zeros, tmp_path / "x.npz")
    assert (tmp_path / "x.npz").stat().st_size < zeros.values.nbytes / reading.MOST
    assert len(files.read(tmp_path / "x.npz")) == 400_000


@pytest.mark.parametrize("ending", ["npz", "parquet", "csv.gz"])
def test_a_large_file_that_unpacks_to_little_more_is_read(tmp_path, monkeypatch, ending):
    monkeypatch.setattr(reading, "LARGE", 10**4)
    rng = np.random.default_rng(0)
    rows = Outcomes.from_scores(rng.random(2000), rng.random(2000) < 0.5)
    files.write(rows, tmp_path / "x.csv")
    if ending == "csv.gz":
        (tmp_path / "x.csv.gz").write_bytes(gzip.compress((tmp_path / "x.csv").read_bytes()))
    else:
        files.write(rows, tmp_path / f"x.{ending}")
    np.testing.assert_array_equal(files.read(tmp_path / f"x.{ending}").correct, rows.correct)


@pytest.mark.parametrize(
    ("name", "row"), [("x.csv.gz", b"1,1\n"), ("x.jsonl.gz", b'{"confidence": 1, "correct": 1}\n')]
)
def test_a_text_that_unpacks_to_far_more_is_refused(tmp_path, monkeypatch, name, row):
    monkeypatch.setattr(reading, "LARGE", 10**5)
    head = b"confidence,correct\n" if "csv" in name else b""
    (tmp_path / name).write_bytes(gzip.compress(head + row * 10**5))
    with pytest.raises(InputError, match=r"unpacks to .* refused"):
        files.read(tmp_path / name)


def test_a_log_that_unpacks_to_far_more_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "LARGE", 10**6)
    with ZipFile(tmp_path / "x.eval", "w", ZIP_BZIP2) as archive:
        archive.writestr("header.json", '{"eval": {}}')
        for i in range(4):
            archive.writestr(f"samples/{i}.json", "[" + " " * 10**6 + "]")
    with pytest.raises(InputError, match=r"x.eval: unpacks to .* refused"):
        files.read(tmp_path / "x.eval")


class Name(str):
    """A name that counts how often it is compared."""

    looks = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Name.looks += 1
        return str.__eq__(self, other)


def test_a_column_is_found_without_a_look_at_all_names():
    names = [f"logits_{j}" for j in range(1000)]
    table = _formats.LazyTable([Name(name) for name in names], lambda name: np.zeros(2))
    assert all(Name(name) in table for name in names)
    assert Name.looks < 5 * len(names)


@pytest.mark.parametrize("ending", ["npz", "csv"])
def test_each_of_many_columns_is_read_once(tmp_path, ending, monkeypatch):
    rows = Predictions.from_logits(np.zeros((2, 300)), [0, 1])
    table = {f"logits_{j}": rows.values[:, j] for j in range(300)} | {"labels": rows.labels}
    if ending == "npz":
        np.savez(tmp_path / "x.npz", **table)
    else:
        files.write(rows, tmp_path / "x.csv")
    opened, read = [], []
    load, convert, column = np.load, _formats._from_arrow_column, _formats._npz_column
    monkeypatch.setattr(np, "load", lambda *a, **k: opened.append(a) or load(*a, **k))
    monkeypatch.setattr(_formats, "_npz_column", lambda *a: read.append(a) or column(*a))
    monkeypatch.setattr(_formats, "_from_arrow_column", lambda *a: read.append(a) or convert(*a))
    assert files.read(tmp_path / f"x.{ending}").n_classes == 300
    assert len(opened) <= 1
    assert 301 <= len(read) < 2 * 301


def test_side_columns_of_another_length_are_refused():
    with pytest.raises(InputError, match="2 rows of confidence but 3 of nll"):
        Outcomes(np.array([0.1, 0.2]), np.array([True, False]), nll=np.zeros(3))
