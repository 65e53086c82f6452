"""Seeded damage to files: to bytes, text, the values of JSON, and members of archives whose checksums fit."""

from __future__ import annotations

import json
import re
import struct
import zipfile
from collections.abc import Callable
from io import BytesIO
from random import Random
from typing import Any

Mutation = Callable[[Random, bytes], bytes]

TOKEN = re.compile(rb'"[^"\n]*"|[\w.+-]+')
WORDS = (
    *("", "0", "-1", "1e999", "nan", "inf", "-inf", "true", "null", "9" * 5000, "1000000000", "0x10", "1_0", ".5"),
    *("'", '"', "[/x]", "[bold]", "\x1b[2J", "\u202e", "=1+1", "\\input{x}", "<script>", "%s{}", "\0", "\ufeff"),
    *("../../victim", "/etc/passwd", "canary:loader", "shutil:rmtree", "ece,bins=1000000000", "a=b,c", "*", "x" * 300),
    *("[" * 3000, "{" * 3000, "]", "}", ",", ";", "\n", "\r", "\t", "#"),
)
QUOTED = tuple(json.dumps(word) for word in WORDS if word.isprintable())
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 0.5, 1e308, -1e308, 1e-320, float("nan"), float("inf"), 10**30, 10**400, 2**63),
    *("", "x", "nan", "Infinity", "../../victim", "canary:loader", "[/x]", "\x1b[2J", "\ud800", "x" * 3000),
    *([], {}, [[]], [1, "x"], [0.5] * 3, {"kind": "Fit"}, {"tensor": [1.0]}, {"a": {"b": {}}}, [[1.0], [1.0, 2.0]]),
)
SHAPES = (b"()", b"(0,)", b"(-1, 3)", b"(60, 1)", b"(1000000000000,)", b"(9223372036854775807, 9223372036854775807)")
KINDS = (
    *(b"'|O'", b"'<U1000000000'", b"'>f4'", b"'<f2'", b"'<c16'"),
    *(b"'|S3'", b"'<M8[s]'", b"'|V8'", b"[('a', '<f4')]"),
)


def damaged_bytes(rng: Random, content: bytes) -> bytes:
    """One to three small changes anywhere."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        content = rng.choice((_flip, _flip, _set, _number, _cut, _repeat, _insert, _truncate))(rng, content)
    return content


def one_bit(rng: Random, content: bytes) -> bytes:
    """One bit flipped."""
    return _flip(rng, content)


def damaged_text(rng: Random, content: bytes) -> bytes:
    """One to three words, lines or bytes replaced."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        content = rng.choice((_word, _word, _quoted, _line, damaged_bytes))(rng, content)
    return content


def damaged_json(rng: Random, content: bytes) -> bytes:
    """One to three values of a document replaced, dropped, renamed, repeated or nested; sometimes its text instead."""
    if rng.random() < 0.15:
        return damaged_text(rng, content)
    document = json.loads(content)
    for _ in range(rng.choice((1, 1, 2, 3))):
        document = changed(rng, document)
    if rng.random() < 0.03:
        return b"[" * 100_000
    return json.dumps(document).encode(errors="surrogatepass")


def damaged_lines(rng: Random, content: bytes) -> bytes:
    """One line of JSON Lines damaged."""
    lines = content.splitlines()
    place = rng.randrange(len(lines))
    lines[place] = damaged_json(rng, lines[place])
    return b"\n".join(lines)


def in_archive(inside: Mutation) -> Mutation:
    """A member of a zip archive damaged, renamed, dropped or repeated; all checksums fit."""

    def damaged(rng: Random, content: bytes) -> bytes:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            members = [(name, archive.read(name)) for name in archive.namelist()]
        place = rng.randrange(len(members))
        name, data = members[place]
        what = rng.choice(("inside", "inside", "inside", "inside", "name", "drop", "repeat", "packed"))
        if what == "drop":
            del members[place]
        elif what == "repeat":
            members.append((name, data))
        elif what == "name":
            members[place] = (_word(rng, name.encode()).decode(errors="replace") or "x", data)
        else:
            members[place] = (name, inside(rng, data))
        method = rng.choice((zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2)) if what == "packed" else zipfile.ZIP_STORED
        return _zipped(members, method)

    return damaged


def damaged_array(rng: Random, content: bytes) -> bytes:
    """The header or the numbers of an npy file damaged."""
    if content[:6] != b"\x93NUMPY" or rng.random() < 0.2:
        return damaged_bytes(rng, content)
    end = 10 + struct.unpack("<H", content[8:10])[0]
    header, numbers = content[10:end], content[end:]
    if rng.random() < 0.3:
        return content[:end] + damaged_bytes(rng, numbers)
    shape, kind = re.compile(rb"\([\d, ]*\)"), re.compile(rb"'[<>|]\w+'")
    changed = rng.choice(
        (
            lambda: shape.sub(lambda _: rng.choice(SHAPES), header),
            lambda: kind.sub(lambda _: rng.choice(KINDS), header),
            lambda: damaged_text(rng, header),
        )
    )()[:60_000]
    return content[:8] + struct.pack("<H", len(changed)) + changed + numbers


def _zipped(members: list[tuple[str, bytes]], method: int) -> bytes:
    out = BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in members:
            info = zipfile.ZipInfo(name.replace("\0", "0") or "x")
            info.compress_type = method
            with _no_warning_of_repeats():
                archive.writestr(info, data)
    return out.getvalue()


def _no_warning_of_repeats() -> Any:
    from warnings import catch_warnings

    return catch_warnings(action="ignore")


def _flip(rng: Random, content: bytes) -> bytes:
    if not content:
        return b"\0"
    bit = rng.randrange(8 * len(content))
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << (bit % 8)
    return bytes(changed)


def _set(rng: Random, content: bytes) -> bytes:
    place, size = rng.randrange(len(content) + 1), rng.randrange(1, 9)
    return content[:place] + rng.choice((b"\0", b"\xff", b"\x7f", rng.randbytes(1))) * size + content[place + size :]


def _number(rng: Random, content: bytes) -> bytes:
    """A length or offset of another size."""
    place, (size, values) = rng.randrange(len(content) + 1), rng.choice(((4, "<I"), (8, "<Q")))
    number = struct.pack(values, rng.choice((0, 1, 2**31 - 1, 2**31, 2**32 - 1)))
    return content[:place] + number + content[place + size :]


def _cut(rng: Random, content: bytes) -> bytes:
    place = rng.randrange(len(content) + 1)
    return content[:place] + content[place + rng.randrange(1, 64) :]


def _repeat(rng: Random, content: bytes) -> bytes:
    place = rng.randrange(len(content) + 1)
    return content[:place] + content[max(place - rng.randrange(1, 64), 0) :]


def _insert(rng: Random, content: bytes) -> bytes:
    place = rng.randrange(len(content) + 1)
    return content[:place] + rng.randbytes(rng.randrange(1, 16)) + content[place:]


def _truncate(rng: Random, content: bytes) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def _word(rng: Random, content: bytes) -> bytes:
    return _instead_of_a_word(rng, content, rng.choice(WORDS))


def _quoted(rng: Random, content: bytes) -> bytes:
    return _instead_of_a_word(rng, content, rng.choice(QUOTED))


def _instead_of_a_word(rng: Random, content: bytes, new: str) -> bytes:
    found = list(TOKEN.finditer(content))
    if not found:
        return content + new.encode()
    word = rng.choice(found)
    return content[: word.start()] + new.encode() + content[word.end() :]


def _line(rng: Random, content: bytes) -> bytes:
    """A line dropped, repeated, or put elsewhere."""
    lines = content.split(b"\n")
    place = rng.randrange(len(lines))
    what = rng.choice(("drop", "repeat", "move"))
    line = lines.pop(place) if what != "repeat" else lines[place]
    if what != "drop":
        lines.insert(rng.randrange(len(lines) + 1), line)
    return b"\n".join(lines)


def changed(rng: Random, value: Any) -> Any:
    """The value with one place inside it changed."""
    if not isinstance(value, dict | list) or not value or rng.random() < 0.03:
        return _other(rng, value)
    places = list(value) if isinstance(value, dict) else list(range(len(value)))
    place = rng.choice(places)
    what = rng.choice(("inside", "inside", "inside", "inside", "inside", "inside", "replace", "drop", "rename"))
    copy = dict(value) if isinstance(value, dict) else list(value)
    if what == "inside":
        copy[place] = changed(rng, value[place])
    elif what == "replace":
        copy[place] = rng.choice((*VALUES, value[rng.choice(places)]))
    elif what == "drop":
        del copy[place]
    elif isinstance(copy, dict):
        copy[str(rng.choice(WORDS))] = copy.pop(place)
    else:
        copy.append(copy[place])
    return copy


def _other(rng: Random, value: Any) -> Any:
    """Mostly another value of the same kind, sometimes of any."""
    if rng.random() < 0.25:
        return rng.choice((rng.choice(VALUES), [value], {"x": value}))
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float) and abs(value) < 1e300:
        return rng.choice((-value, value + 1, value / 2, 1.001 * value, 0, 1, float("nan"), float("inf"), 1e308))
    return rng.choice(WORDS) if isinstance(value, str) else rng.choice(VALUES)
