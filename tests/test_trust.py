"""Files of strangers: nothing they name runs, nothing outside `--out` changes, what is damaged is noticed."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from assay._core.arrays import InputError
from assay._core.own_code import located
from assay.cli import main
from assay.nn.data import load
from assay.nn.networks import network
from assay.nn.training import load_run
from assay.study import execute, expand, read_study, run_local

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


def test_a_report_imports_nothing_that_a_study_names(foreign, capsys):
    assert exit_code("study", "report", "study.toml") == 2
    assert "no run of foreign" in capsys.readouterr().err
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
    for call in (lambda: execute(study, run, foreign), lambda: run_local(study, [run], foreign, workers=1)):
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
