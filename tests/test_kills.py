"""What is written survives kills and power cuts, and is never seen half: the atomic writer at each of its steps."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from kills import kill_bench

from assay import Predictions, files
from assay._core import manifest, writing

STEPS = ("open", "fsync", "replace", "close", "unlink")  # of the system, by which a file comes to be


@contextmanager
def before_each_step(call: Callable[[str, tuple[object, ...]], None]) -> Iterator[None]:
    """Inside the block, `call` is told of each step before it is made."""
    real = {name: getattr(os, name) for name in STEPS}

    def told(name: str) -> Callable[..., object]:
        def step(*arguments: object, **more: object) -> object:
            call(name, arguments)
            return real[name](*arguments, **more)

        return step

    for name in STEPS:
        setattr(os, name, told(name))
    try:
        yield
    finally:
        for name, function in real.items():
            setattr(os, name, function)


def rows(of: float) -> Predictions:
    return Predictions.from_logits(np.full((4, 2), of, dtype=np.float32), np.zeros(4, dtype=np.int64))


def write_run(folder: Path, of: float) -> None:
    """What a run writes: two files and the manifest that lists their digests."""
    with manifest.alone_in(folder), manifest.recording(folder, "test.npz", "held_out.npz"):
        files.write(rows(of), folder / "test.npz")
        files.write(rows(-of), folder / "held_out.npz")


def killed_at(step: int, work: Callable[[], None]) -> bool:
    """Whether a process that does the work was killed before its step of that number; it ends well if it has fewer."""
    child = os.fork()
    if child == 0:
        left = [step]

        def count(*_: object) -> None:
            left[0] -= 1
            if left[0] < 0:
                os.kill(os.getpid(), signal.SIGKILL)

        try:
            with before_each_step(count):
                work()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded")
def test_a_kill_at_any_step_leaves_the_old_files_or_the_new(tmp_path):
    """The children are forked and only write: no thread of another library is needed in them."""
    write_run(tmp_path / "before", 1.0)
    kills = 0
    for step in range(200):
        folder = tmp_path / f"killed{step}"
        shutil.copytree(tmp_path / "before", folder)
        if not killed_at(step, lambda folder=folder: write_run(folder, 2.0)):
            break
        kills += 1
        assert not list(manifest.damaged(folder))
        for name in ("test.npz", "held_out.npz"):
            assert abs(files.read(folder / name).values[0, 0]) in (1.0, 2.0)
        write_run(folder, 2.0)
        assert all(manifest.intact(folder, name) for name in ("test.npz", "held_out.npz"))
    assert kills > 15


def test_a_file_is_on_the_disk_before_it_has_its_name_and_the_folder_after(tmp_path):
    made: list[tuple[str, object]] = []
    with before_each_step(lambda name, arguments: made.append((name, arguments[0]))):
        files.write(rows(1.0), tmp_path / "x.npz")
    names = [name for name, _ in made]
    place = names.index("replace")
    assert names[:place].count("fsync") == 1
    assert "fsync" in names[place:]
    opened_after = [path for name, path in made[place:] if name == "open"]
    assert opened_after == [tmp_path]


CALLS = re.compile(r"^(?:\[pid +\d+\] )?(?:\d+ +)?(openat|fsync|rename\w*)\((.*)\) += (-?\d+)", re.MULTILINE)


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.long
def test_the_system_is_asked_in_this_order(tmp_path):
    """Traced by strace: every rename is of a synced file, and its folder is synced after it."""
    words = ["train", "--data", "synthetic", "--network", "mlp", "--recipe", "cross_entropy", "--epochs", "2"]
    trace = ["strace", "-f", "-y", "-e", "trace=openat,fsync,rename,renameat,renameat2", "-o", str(tmp_path / "trace")]
    command = [sys.executable, "-m", "assay", *words, "--n-train", "60", "--out", str(tmp_path / "run")]
    subprocess.run([*trace, *command], check=True, capture_output=True)
    synced: set[str] = set()
    waiting: list[str] = []
    renames = 0
    for call, arguments, _ in CALLS.findall((tmp_path / "trace").read_text()):
        if call == "fsync":
            place = re.search(r"<(.*)>", arguments)
            assert place is not None
            synced.add(place.group(1))
            waiting = [folder for folder in waiting if folder != place.group(1)]
        elif call.startswith("rename"):
            old, new = re.findall(r'"([^"]*)"', arguments)
            if str(tmp_path / "run") in new:
                renames += 1
                assert old in synced, f"{old} was not synced"
                waiting.append(str(Path(new).parent))
    assert renames >= 6
    assert not waiting


def test_readers_see_whole_files_while_eight_threads_and_another_process_write(tmp_path):
    file, size = tmp_path / "x", 50_000
    code = f"""
from pathlib import Path
from assay._core.writing import replacing
for i in range(40):
    with replacing(Path({str(file)!r})) as stream:
        stream.write(b"p" * {size})
"""
    with writing.replacing(file) as stream:
        stream.write(b"0" * size)
    other = subprocess.Popen([sys.executable, "-c", code])

    def write(sign: bytes) -> None:
        for _ in range(25):
            with writing.replacing(file) as stream:
                for _ in range(10):
                    stream.write(sign * (size // 10))

    threads = [threading.Thread(target=write, args=(b"%d" % i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    looks = 0
    while other.poll() is None or any(thread.is_alive() for thread in threads):
        content = file.read_bytes()
        looks += 1
        assert len(content) == size
        assert len(set(content)) == 1
    assert other.wait() == 0
    assert looks > 50
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


@pytest.mark.long
@pytest.mark.parametrize(("name", "kills"), [("train", 40), ("study", 40), ("audit", 20)])
def test_kills_at_random_times_change_nothing(name, kills, tmp_path):
    _, wrong = kill_bench(name, tmp_path, kills)
    assert not wrong, "\n".join(wrong)
