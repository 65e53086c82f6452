"""20 Newsgroups: posts of twenty groups (Ken Lang, ICML 1995), by date, as Parquet with text, label and label_text."""

from __future__ import annotations

from pathlib import Path

import torch

from assay.nn.data._parquet import Hub, column, labels, tables
from assay.nn.data._samples import Cut, Facts, Splits, divide, samples
from assay.nn.data._words import glove, numbered, vocabulary, words

SIZE, LENGTH = 20_000, 1000  # words of the vocabulary, and of a post


def newsgroups(folder: Path | None, cut: Cut) -> Splits:
    """Posts as the numbers of their first 1000 words among the 20,000 most frequent in training; 0 is padding.

    Word vectors are those of GloVe, 100 wide, and zero for words that it does not have.
    """
    found = tables(folder, "20newsgroups", Hub("SetFit/20_newsgroups"), ("train", "test"))
    train, test = ([words(text) for text in column(found[split], "text")] for split in ("train", "test"))
    known = vocabulary(train, SIZE)
    vectors, _ = glove(folder, known, widths=(100,))
    names = dict(zip(column(found["test"], "label"), column(found["test"], "label_text"), strict=True))
    facts = Facts(tuple(names[k] for k in sorted(names)), vectors=torch.cat([torch.zeros_like(vectors[:1]), vectors]))
    whole, tested = (
        samples(numbered(texts, known, LENGTH), labels(found[split]), facts)
        for texts, split in ((train, "train"), (test, "test"))
    )
    return Splits(*divide(whole, cut), tested)
