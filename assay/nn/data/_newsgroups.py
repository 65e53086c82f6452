"""20 Newsgroups: posts of twenty groups (Ken Lang, ICML 1995), as Parquet with text, label and label_text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import torch
from torch import Generator, Tensor

from assay.nn.data._parquet import Hub, column, labels, tables
from assay.nn.data._samples import Cut, Facts, Splits, divide, samples
from assay.nn.data._words import glove, numbered, vocabulary, words

SIZE, LENGTH = 20_000, 1000  # words of the vocabulary, and of a post
RANDOM_TEST = 3999  # posts that mukhoti2020 tests on; it trains on 15,098 and holds 900 out
HEADER = re.compile(r"[A-Z][\w-]*: ")  # how a post with its header begins
BLANK = re.compile(r"\n\n|\t\t")  # ends the header; in some copies a tab stands for the end of a line


def newsgroups(folder: Path | None, cut: Cut) -> Splits:
    """Posts by date, as the numbers of their first 1000 words among the 20,000 most frequent in training.

    0 is padding. Word vectors are those of GloVe, 100 wide, and zero for words that it does not have.
    """
    found = _read(folder)
    whole = pa.concat_tables([found["train"], found["test"]], promote_options="default")
    rows = torch.arange(len(whole))
    first = len(found["train"])
    return _splits(folder, whole, column(whole, "text"), (rows[:first], rows[first:]), cut)


def newsgroups_random(folder: Path | None, cut: Cut) -> Splits:
    """As in mukhoti2020: a random test set of 3,999 posts, or of a fifth of fewer; no headers; their last 1000 words.

    The seed of the cut decides which; posts of one thread may be in both parts. In copies that have tabs for ends of
    lines, one header in a hundred is cut too early, at a field that goes on in a second line.
    """
    found = _read(folder)
    whole = pa.concat_tables([found["train"], found["test"]], promote_options="default")
    order = torch.randperm(len(whole), generator=Generator().manual_seed(cut.seed))
    n_test = min(RANDOM_TEST, len(whole) // 5)
    rows = order[n_test:].sort().values, order[:n_test].sort().values
    return _splits(folder, whole, map(without_header, column(whole, "text")), rows, cut, last=True)


def without_header(post: str) -> str:
    """What comes after the first blank line, if the post begins with a header.

    >>> without_header("From: Ann\\nSubject: On sails\\n\\nThey fill.")
    'They fill.'
    >>> without_header("They fill.\\n\\nAnn")
    'They fill.\\n\\nAnn'
    """
    end = BLANK.search(post) if HEADER.match(post) else None
    return post if end is None else post[end.end() :]


def _read(folder: Path | None) -> dict[str, pa.Table]:
    return tables(folder, "20newsgroups", Hub("SetFit/20_newsgroups"), ("train", "test"))


def _splits(
    folder: Path | None,
    posts: pa.Table,
    texts: Iterable[str],
    rows: tuple[Tensor, Tensor],
    cut: Cut,
    *,
    last: bool = False,
) -> Splits:
    """Training and test posts by their rows; the vocabulary is that of the training posts."""
    said, targets = [words(text) for text in texts], labels(posts)
    known = vocabulary((said[row] for row in rows[0].tolist()), SIZE)
    vectors, _ = glove(folder, known, widths=(100,))
    names = dict(zip(column(posts, "label"), column(posts, "label_text"), strict=True))
    facts = Facts(tuple(names[k] for k in sorted(names)), vectors=torch.cat([torch.zeros_like(vectors[:1]), vectors]))
    whole, tested = (
        samples(numbered([said[row] for row in part.tolist()], known, LENGTH, last=last), targets[part], facts)
        for part in rows
    )
    return Splits(*divide(whole, cut), tested)
