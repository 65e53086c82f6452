"""How much faster the Tree-LSTM is by levels than node by node: a ratio in one run on one thread.

    python benchmarks/tree_lstm.py

Exits with an error where the bound of 10 is missed.
"""

from __future__ import annotations

import sys

import torch
import torch.nn.functional as F
from timing import seconds
from torch import Tensor

from assay.nn.networks import tree_lstm
from assay.nn.networks._tree_lstm import TreeLSTM

WORDS, BOUND = 38, 10  # at most, so that the mean is that of SST


def recursive(body: TreeLSTM, tree: Tensor, node: int) -> tuple[Tensor, Tensor]:
    """Hidden state and memory of one node [width], after those of its children."""
    word, left, right, *_ = tree[node].tolist()
    if left < 0:
        memory, o = body.leaf(body.vectors[word]).chunk(2)
        return o.sigmoid() * memory.tanh(), memory
    (h_left, c_left), (h_right, c_right) = recursive(body, tree, left), recursive(body, tree, right)
    update, i, f_left, f_right, *o = (body.left(h_left) + body.right(h_right)).split(body.width)
    memory = i.sigmoid() * update.tanh() + f_left.sigmoid() * c_left + f_right.sigmoid() * c_right
    return (o[0].sigmoid() * memory.tanh() if o else memory.tanh()), memory


def random_trees(n: int, *, n_words: int, vocabulary: int, generator: torch.Generator) -> Tensor:
    """Trees over 1 to `n_words` words whose neighbors are joined in random order."""

    def draw(high: int) -> int:
        return int(torch.randint(high, (), generator=generator))

    trees = torch.full((n, 2 * n_words - 1, 5), -1)
    for tree in trees:
        length = 1 + draw(n_words)
        rows = [[draw(vocabulary), -1, -1, 0, draw(3)] for _ in range(length)]
        roots = list(range(length))
        while len(roots) > 1:
            at = draw(len(roots) - 1)
            left, right = roots[at : at + 2]
            roots[at : at + 2] = [len(rows)]
            rows.append([-1, left, right, 1 + max(rows[left][3], rows[right][3]), draw(3)])
        tree[: len(rows)] = torch.tensor(rows)
    return trees


def ratio(batch: int) -> float:
    """How many times longer a step takes node by node than by levels."""
    generator = torch.Generator().manual_seed(0)
    network = tree_lstm(3, vectors=torch.randn(1000, 300, generator=generator)).eval()
    trees = random_trees(batch, n_words=WORDS, vocabulary=1000, generator=generator)
    labels = torch.randint(3, (batch,), generator=generator)
    last = ((trees[:, :, 3] >= 0).sum(1) - 1).tolist()

    def by_node() -> None:
        hidden = [recursive(network.body, tree, node)[0] for tree, node in zip(trees, last, strict=True)]
        F.cross_entropy(network.head(torch.stack(hidden)), labels).backward()

    slow, fast = seconds(by_node, lambda: F.cross_entropy(network(trees), labels).backward())
    print(f"{batch} trees: node by node {slow * 1e3:.1f} ms, by levels {fast * 1e3:.1f} ms, ratio {slow / fast:.1f}")
    return slow / fast


if __name__ == "__main__":
    torch.set_num_threads(1)
    ratio(25)
    if ratio(100) < BOUND:
        sys.exit(f"below the bound of {BOUND}")
