"""The Stanford Sentiment Treebank: recursive deep models for semantic compositionality over a sentiment treebank.

Richard Socher, Alex Perelygin, Jean Wu, Jason Chuang, Christopher Manning, Andrew Ng, Christopher Potts; EMNLP 2013.

Files train.txt, dev.txt and test.txt have one tree a line: (3 (2 Effective) (2 (2 but) (1 biscuits))). A tree becomes
int64 [nodes, 5]: word or -1, left child or -1, right child or -1, level (leaves 0), label or -1. Children come before
their parents, the root is last, and rows of -1 are padding.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Generator, Tensor

from assay._core.arrays import InputError
from assay.nn.data._samples import Cut, Facts, Samples, Splits, chosen, whereabouts
from assay.nn.data._words import glove

SPLITS = ("train", "dev", "test")
LABELS = {str(label): label for label in range(5)}
Node = tuple[int, int, int, int, int]


def sst2(folder: Path | None, cut: Cut) -> Splits:
    """Negative or positive; trees with a neutral root are left out, nodes within a tree may be neutral."""
    return _sst(folder, cut, (0, 0, 2, 1, 1), ("negative", "positive"), ("neutral",))


def sst5(folder: Path | None, cut: Cut) -> Splits:
    """Five degrees of sentiment."""
    names = ("very negative", "negative", "neutral", "positive", "very positive")
    return _sst(folder, cut, (0, 1, 2, 3, 4), names)


def _sst(
    folder: Path | None, cut: Cut, labels: Sequence[int], classes: tuple[str, ...], of_nodes: tuple[str, ...] = ()
) -> Splits:
    number: dict[str, int] = {}
    trees = [_read(folder, split, number) for split in SPLITS]
    vectors, known = glove(folder, list(number), widths=(300, 200, 100, 50))
    # The code of Tai et al. (2015) draws vectors of unknown words like this.
    drawn = torch.randn(vectors.shape, generator=Generator().manual_seed(0)) * 0.05 - 0.05
    facts = Facts(classes, vectors=torch.where(known[:, None], vectors, drawn), extra_node_classes=of_nodes)
    train, dev, test = (_samples(part, torch.tensor([*labels, -1]), facts) for part in trees)
    return Splits(*chosen(train, dev, cut), test)


def _samples(trees: list[list[Node]], labels: Tensor, facts: Facts) -> Samples:
    """Padded trees with translated labels, without trees whose root has a class of nodes only."""
    x = torch.full((len(trees), max(map(len, trees)), 5), -1)
    for row, tree in zip(x, trees, strict=True):
        row[: len(tree)] = torch.tensor(tree)
    x[:, :, 4] = labels[x[:, :, 4]]
    roots = x[torch.arange(len(x)), (x[:, :, 3] >= 0).sum(1) - 1, 4]
    known = (roots < len(facts.classes)).nonzero().squeeze(1)
    return Samples(x[known], roots[known], known, facts)


def _read(folder: Path | None, split: str, number: dict[str, int]) -> list[list[Node]]:
    """The trees of a file; new words are added to `number`."""
    if folder is None or not (file := folder / "sst" / f"{split}.txt").is_file():
        where = whereabouts(folder, "sst")
        raise InputError(f"no {split}.txt in {where}; get trainDevTestTrees_PTB.zip from nlp.stanford.edu/sentiment")
    trees = []
    # Words may contain no-break spaces and other characters that `splitlines` takes for line ends.
    for i, line in enumerate(file.read_bytes().decode().rstrip("\n").split("\n"), start=1):
        try:
            trees.append(parse(line, number))
        except (ValueError, IndexError, KeyError) as problem:
            raise InputError(f"{file}, line {i}: not a binary tree of labels and words: {line[:60]}") from problem
    return trees


def parse(line: str, number: dict[str, int]) -> list[Node]:
    """The nodes of one tree, children first.

    >>> parse("(3 (2 so) (4 good))", {})
    [(0, -1, -1, 0, 2), (1, -1, -1, 0, 4), (-1, 0, 1, 1, 3)]
    """
    nodes: list[Node] = []
    opened: list[list[int]] = []  # the label and the children of each open node
    for token in line.split(" "):
        if token.startswith("("):
            opened.append([LABELS[token[1:]]])
            continue
        word = token.rstrip(")")
        label = opened.pop()[0]
        nodes.append((number.setdefault(word.lower(), len(number)), -1, -1, 0, label))
        for _ in range(len(token) - len(word) - 1):
            opened[-1].append(len(nodes) - 1)
            label, left, right = opened.pop()
            nodes.append((-1, left, right, 1 + max(nodes[left][3], nodes[right][3]), label))
        if opened:
            opened[-1].append(len(nodes) - 1)
    if opened:
        raise ValueError("a bracket is not closed")
    return nodes
