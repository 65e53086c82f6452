"""Texts as word numbers, and word vectors.

GloVe: global vectors for word representation. Jeffrey Pennington, Richard Socher, Christopher Manning; EMNLP 2014.
"""

from __future__ import annotations

import gzip
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from assay._core.arrays import InputError
from assay.nn.data._samples import whereabouts

WORD = re.compile(r"[^\W_]+")


def words(text: str) -> list[str]:
    """Runs of letters and digits, in lower case.

    >>> words("Don't panic: it's 42!")
    ['don', 't', 'panic', 'it', 's', '42']
    """
    return WORD.findall(text.lower())


def vocabulary(texts: Iterable[Sequence[str]], size: int) -> list[str]:
    """The most frequent words, at most `size`; of equally frequent words the first."""
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(text)
    return [word for word, _ in counts.most_common(size)]


def numbered(texts: Sequence[Sequence[str]], vocabulary: Sequence[str], length: int, *, last: bool = False) -> Tensor:
    """The numbers, from 1, of the first or last `length` known words of each text, padded with 0: int32 [n, length]."""
    number = {word: i for i, word in enumerate(vocabulary, start=1)}
    rows = np.zeros((len(texts), length), np.int32)
    for row, text in zip(rows, texts, strict=True):
        known = [number[word] for word in text if word in number]
        known = known[-length:] if last else known[:length]
        row[: len(known)] = known
    return torch.from_numpy(rows)


def glove(folder: Path | None, words: Sequence[str], *, widths: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Vectors [words, width], zero for unknown words, and whether each word is known [words].

    They are read from glove/glove.6B.<width>d.txt or .txt.gz in the folder, of the first width that exists.
    """
    names = [f"glove.6B.{width}d.txt{ending}" for width in widths for ending in ("", ".gz")]
    files = [folder / "glove" / name for name in names] if folder else []
    file = next((file for file in files if file.is_file()), None)
    if file is None:
        wanted = f"{' or '.join(names)} in {whereabouts(folder, 'glove')}"
        raise InputError(f"no word vectors, as there is no {wanted}; get glove.6B.zip from nlp.stanford.edu")
    return read_glove(file, words)


def read_glove(file: Path, words: Sequence[str]) -> tuple[Tensor, Tensor]:
    """The same from a file with a word and its numbers on each line; other words are skipped."""
    row = {word: i for i, word in enumerate(words)}
    vectors, known = np.zeros((0, 0), np.float32), np.zeros(len(words), bool)
    with gzip.open(file, "rt", encoding="utf-8") if file.suffix == ".gz" else file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            if number == 1:
                vectors = np.zeros((len(words), line.count(" ")), np.float32)
            # Some words of the larger files contain spaces, so numbers are counted from the end.
            word, *numbers = line.rstrip("\n").rsplit(" ", vectors.shape[1])
            if word not in row:
                continue
            try:
                vectors[row[word]] = [float(x) for x in numbers]
            except ValueError as problem:
                raise InputError(f"{file}, line {number}: {problem}") from problem
            known[row[word]] = True
    return torch.from_numpy(vectors), torch.from_numpy(known)
