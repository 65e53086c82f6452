"""What a page shows of a sample: its text, or its picture as a thumbnail inside the page."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

from assay._core.arrays import Array, InputError

TYPES = {".png": "png", ".jpg": "jpeg", ".jpeg": "jpeg", ".gif": "gif", ".webp": "webp"}
LARGEST = 100_000  # bytes of a picture that is embedded as it is
LONGEST = 300  # characters of a text


def shown_by(column: Array, folder: Path) -> Callable[[int], str]:
    """For each row its text, or the picture whose file it names, here or in the folder of the predictions."""

    def show(row: int) -> str:
        text = str(column[row])
        kind = TYPES.get(Path(text).suffix.lower())
        file = next((path for path in (Path(text), folder / text) if kind and path.is_file()), None)
        if file is None or kind is None:
            return text if len(text) <= LONGEST else text[: LONGEST - 4] + " ..."
        return _embedded(file, kind)

    return show


def _embedded(file: Path, kind: str) -> str:
    content = file.read_bytes()
    if len(content) > LARGEST:
        raise InputError(f"{file}: a page embeds pictures of up to {LARGEST // 1000} kB; name smaller ones")
    return f"data:image/{kind};base64,{b64encode(content).decode()}"
