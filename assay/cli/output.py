"""The one place where text reaches the terminal: names from files are text there, never markup or control signs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment

from assay._core.text import printable

LONGEST = 600  # characters of a line


@dataclass(frozen=True)
class Safe:
    """What is shown, with every sign that would control the terminal spelled out."""

    shown: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for part in console.render(self.shown, options):
            yield part if part.control else Segment("\n".join(map(printable, part.text.split("\n"))), part.style)


def console(*, stderr: bool = False) -> Console:
    """A console on which square brackets and colons mean themselves."""
    return Console(stderr=stderr, markup=False, emoji=False)


def show(what: RenderableType, style: str = "", *, stderr: bool = False, soft_wrap: bool = False) -> None:
    """Print a text or a view."""
    console(stderr=stderr).print(Safe(what), style=style or None, soft_wrap=soft_wrap)


@contextmanager
def working(doing: str = "") -> Iterator[Callable[[str], None]]:
    """A spinner on stderr while the block runs; the yielded function changes what it says."""
    with console(stderr=True).status(Safe(doing)) as status:
        yield lambda now: status.update(Safe(now))


def warn_in_a_line(message: Warning | str, *_: object, **__: object) -> str:
    """A warning as the command prints it; takes what `warnings.formatwarning` is given."""
    return f"assay: {line(str(message))}\n"


def line(text: str) -> str:
    """A text from anywhere in one line that people can read."""
    words = " ".join(text.split())
    return printable(words if len(words) <= LONGEST else f"{words[: LONGEST - 100]} ... {words[-100:]}")


def fail(message: str, code: int = 2) -> None:
    """End with one line on stderr."""
    print(f"assay: {line(message)}", file=sys.stderr)
    sys.exit(code)
