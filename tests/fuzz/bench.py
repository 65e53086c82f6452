"""The mutation bench: damaged files of every kind, each read by a command of assay.

Every case must end in success or in one line with exit code 2; where the file carries checksums, success means the same
data. No case may raise, crash, take 5 s of a core, print what controls a terminal, import code that a file names, start
a process, or change a file outside `--out`. In the folder of the tests, `python -m fuzz.bench --cases 50000 --slow` is
the large bench, and `--only N` repeats one case.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

SECONDS = 5  # of a core, that a case may take
MEMORY = 6 * 2**30  # bytes of addresses beyond those in use at the start
CHUNK = 2500  # cases of one process
LONGEST = 1000  # characters of a line


@dataclass
class Ended:
    """How a case ended, and what it did on the way that it must not do."""

    code: object = None
    out: str = ""
    said: str = ""
    wrong: list[str] = field(default_factory=list)


class TooSlow(BaseException):
    """Raised in a case that takes too long."""


class Watch:
    """What Python does while a case runs; an audit hook stays, so it is switched on and off."""

    STARTS = (
        "subprocess.Popen",
        "os.system",
        "os.exec",
        "os.fork",
        "os.posix_spawn",
        "socket.connect",
        "pickle.find_class",
    )
    CHANGES = ("os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.symlink", "os.link", "os.chmod", "os.truncate")

    def __init__(self, *allowed: Path) -> None:
        self.allowed, self.seen, self.on = tuple(str(path) for path in allowed), list[str](), False
        sys.addaudithook(self._hook)

    @contextmanager
    def watching(self) -> Iterator[list[str]]:
        self.seen, self.on = [], True
        try:
            yield self.seen
        finally:
            self.on = False

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.on:
            return
        if event in self.STARTS:
            self.seen.append(f"{event} {arguments!r:.200}")
        elif event in self.CHANGES:
            self._changes(event, *(path for path in arguments[:2] if isinstance(path, str | bytes | os.PathLike)))
        elif event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC):
            self._changes(event, arguments[0])

    def _changes(self, event: str, *paths: Any) -> None:
        for path in paths:
            if not isinstance(path, int):
                whole = os.path.abspath(os.fsdecode(path))
                if not whole.startswith(self.allowed) and whole != os.devnull:
                    self.seen.append(f"{event} {whole}")


class Bench:
    """A folder of whole files, in which one is damaged at a time."""

    def __init__(self, folder: Path, *, slow: bool) -> None:
        from fuzz.targets import prepare, targets

        self.folder = folder / "work"
        if not self.folder.exists():
            self.folder.mkdir(parents=True)
            os.chdir(self.folder)
            prepare(self.folder)
        os.chdir(self.folder)
        sys.path.insert(0, str(self.folder))
        self.targets = {name: target for name, target in targets(self.folder).items() if slow or not target.slow}
        self.stamps = self._listing()
        self.whole = {name: (self.folder / name).read_bytes() for name in self.stamps}
        self.calls = {name: called(target.reader) for name, target in self.targets.items()}
        self.watch = Watch(self.folder / "out", self.folder / "runs", Path("/tmp"), Path("/dev/shm"))
        self.expected = {name: self._expected(name) for name in self.targets}
        _limit_memory()

    def _expected(self, name: str) -> str:
        """What the reader says of the whole file; a reader that refuses it finds nothing in a damaged one."""
        ended = self.ended(self.calls[name])
        if ended.code not in (None, 0):
            raise RuntimeError(f"{name}: {ended}")
        self._restore(self._listing())
        return ended.out

    def case(self, number: int) -> tuple[str, Ended]:
        """The target of a case and how it ended."""
        rng = Random(number)
        name = rng.choices(list(self.targets), [target.share for target in self.targets.values()])[0]
        target, file = self.targets[name], self.folder / self.targets[name].file
        file.write_bytes(target.mutation(rng, self.whole[target.file]))
        touched = [file, *([_sign(file)] if target.signed else [])]
        before = self.stamps | {str(path.relative_to(self.folder)): _stamp(path) for path in touched}
        with _limited():
            ended = self.ended(self.calls[name])
        after = self._listing()
        self._judge(name, ended, before, after)
        self._restore(after)
        return name, ended

    def ended(self, call: Callable[[], object]) -> Ended:
        from assay.cli.errors import errors_as_lines

        ended, out, said = Ended(), StringIO(), StringIO()
        with (
            self.watch.watching() as seen,
            _noted() as notes,
            redirect_stdout(out),
            redirect_stderr(said),
        ):
            try:
                with errors_as_lines():
                    ended.code = call()
            except SystemExit as end:
                ended.code = end.code
            except BaseException as problem:
                ended.wrong.append(f"raised {type(problem).__name__}: {problem!s:.200}")
        ended.out, ended.said = out.getvalue(), said.getvalue()
        ended.wrong += [f"did {what}" for what in seen]
        ended.wrong += [f"warned {what}" for what in notes]
        return ended

    def _judge(self, name: str, ended: Ended, before: dict[str, object], after: dict[str, object]) -> None:
        from assay._core.text import printable

        lines = ended.said.splitlines()
        if ended.code not in (None, 0, 2):
            ended.wrong.append(f"exit code {ended.code}")
        refused = len(lines) == 1 and lines[0].startswith("assay: ")
        if ended.code == 2 and not ended.out and not refused:
            ended.wrong.append(f"{len(lines)} lines")
        if any(len(line) > LONGEST for line in lines):
            ended.wrong.append("a line too long to read")
        if not all(line == printable(line) for line in (*lines, *ended.out.split("\n"))):
            ended.wrong.append("signs that control a terminal")
        if self.targets[name].checked and ended.code in (None, 0) and ended.out != self.expected[name]:
            ended.wrong.append("other data, without a word")
        if "canary" in sys.modules or (self.folder / "imported").exists():
            ended.wrong.append("imported code that a file names")
        changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        if not self.targets[name].deletes:
            ended.wrong += [f"changed {path}" for path in changed]
        else:
            ended.wrong += [f"changed {path}" for path in changed if not path.startswith("runs/") or path in after]

    def _listing(self) -> dict[str, object]:
        """Every file outside `out`, with its size and time."""
        found: dict[str, object] = {}
        folders = [""]
        while folders:
            under = folders.pop()
            for entry in os.scandir(self.folder / under):
                if entry.is_dir(follow_symlinks=False):
                    folders += [f"{under}{entry.name}/"] if entry.name not in ("out", "__pycache__") else []
                else:
                    about = entry.stat(follow_symlinks=False)
                    found[under + entry.name] = about.st_size, about.st_mtime_ns
        return found

    def _restore(self, now: dict[str, object]) -> None:
        """Make every file whole again."""
        for name in now.keys() - self.stamps.keys():
            (self.folder / name).unlink()
        for name in [name for name, stamp in self.stamps.items() if now.get(name) != stamp]:
            file = self.folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(self.whole[name])
            self.stamps[name] = _stamp(file)
        for file in (self.folder / "out").iterdir():
            file.unlink()


def called(reader: str | Callable[[], object]) -> Callable[[], object]:
    """The command of these words, parsed once: that takes most of the time of a short command."""
    if not isinstance(reader, str):
        return reader
    from assay.cli import app

    command, bound, *_ = app.parse_args(reader.split(), print_error=False, exit_on_error=False)
    return lambda: command(*bound.args, **bound.kwargs)


def _stamp(path: Path) -> object:
    about = path.lstat()
    return about.st_size, about.st_mtime_ns


def _sign(file: Path) -> Path:
    """List the digest of a damaged file in the manifest of its run, as a stranger can."""
    from hashlib import sha256

    listing = file.parent / "manifest.json"
    content = json.loads(listing.read_text())
    content["files"][file.name] = sha256(file.read_bytes()).hexdigest()
    listing.write_text(json.dumps(content))
    return listing


@contextmanager
def _noted() -> Iterator[list[str]]:
    """Warnings other than assay's own, which are for people."""
    notes: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("always")

        def note(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
            if category is not UserWarning:
                notes.append(f"{category.__name__}: {message!s:.200}")

        warnings.showwarning = note
        yield notes


@contextmanager
def _limited() -> Iterator[None]:
    """Raise inside the block once it has taken so many seconds of a core."""

    def stop(*_: object) -> None:
        raise TooSlow(f"{SECONDS} s")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _limit_memory() -> None:
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, resource.RLIM_INFINITY))


def run(folder: Path, first: int, last: int, *, slow: bool, tell: bool = False) -> None:
    """Run the cases of one process; its reports are lines of JSON in the folder."""
    bench = Bench(folder, slow=slow)
    with (folder / "current").open("w") as current, (folder / "ended.jsonl").open("a") as reports:
        for number in range(first, last):
            current.seek(0)
            current.write(f"{number:10d}")
            current.flush()
            name, ended = bench.case(number)
            reports.write(json.dumps([number, name, ended.code, ended.wrong, ended.said[-300:]]) + "\n")
            reports.flush()
            if tell:
                print(name, ended, sep="\n", file=sys.stderr)


def _environment() -> dict[str, str]:
    """Modules of the tests and of the package are found wherever the bench was started."""
    here = Path(__file__).parents[1]
    places = [str(here), str(here.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(places), "OMP_NUM_THREADS": "1"}


def run_all(cases: int, first: int = 0, *, slow: bool = False) -> tuple[Counter[tuple[str, str]], list[str]]:
    """How many cases of each target ended how, and what was wrong, a line a case."""
    with TemporaryDirectory(prefix="assay-fuzz-") as name:
        folder = Path(name)
        number, last, crashes = first, first + cases, list[str]()
        while number < last:
            stop = min(number + CHUNK, last)
            words = ["-m", "fuzz.bench", "--folder", name, "--first", str(number), "--last", str(stop)]
            words += ["--slow"] if slow else []
            child = subprocess.run([sys.executable, *words], check=False, env=_environment())
            if child.returncode == 0:
                number = stop
                continue
            if child.returncode > 0 or not (folder / "current").exists():
                raise RuntimeError(f"the bench itself ended with {child.returncode}")
            at = int((folder / "current").read_text())
            crashes.append(f"case {at}: the process ended with {child.returncode}")
            shutil.rmtree(folder / "work")  # one file in it is damaged
            number = at + 1
        reports = [json.loads(line) for line in (folder / "ended.jsonl").read_text().splitlines()]
    counts = Counter(
        (name, "wrong" if wrong else "refused" if code == 2 else "read") for _, name, code, wrong, _ in reports
    )
    return counts, crashes + [
        f"case {n}, {name}: {'; '.join(wrong)}: {said}" for n, name, _, wrong, said in reports if wrong
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", type=int)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--last", type=int)
    parser.add_argument("--slow", action="store_true", help="also commands that take a second each, such as exports")
    given = parser.parse_args()
    if given.only is not None:
        with TemporaryDirectory(prefix="assay-fuzz-") as name:
            run(Path(name), given.only, given.only + 1, slow=given.slow, tell=True)
        return
    if given.folder is not None:
        run(given.folder, given.first, given.last, slow=given.slow)
        return
    counts, wrong = run_all(given.cases, given.first, slow=given.slow)
    for name in dict.fromkeys(name for name, _ in sorted(counts)):
        print(f"{name:24}", *(f"{counts[name, how]:6} {how}" for how in ("read", "refused", "wrong")))
    print(*wrong, sep="\n")
    print(f"{given.cases} cases, {len(wrong)} wrong")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
