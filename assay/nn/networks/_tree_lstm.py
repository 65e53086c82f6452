"""Improved semantic representations from tree-structured long short-term memory networks.

Kai Sheng Tai, Richard Socher, Christopher Manning; ACL 2015. The binary form, over constituency trees.

Trees are int64 [n, nodes, 5]; a node is (word or -1, left child or -1, right child or -1, level, label or -1). Children
come before their parents, a leaf has level 0 and an inner node one more than the higher of its children, the root is
the last node, and behind it stand rows of level -1.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from assay.nn.networks._network import Network


def roots(trees: Tensor) -> Tensor:
    """Which node of each tree is its root, [n]."""
    return (trees[:, :, 3] >= 0).sum(1) - 1


class TreeLSTM(nn.Module):
    """Hidden states of trees from the leaves up, all nodes of one level in all trees at once."""

    def __init__(self, vectors: Tensor, width: int, *, output_gate: bool, train_vectors: bool):
        super().__init__()
        self.vectors = nn.Parameter(vectors.clone(), requires_grad=train_vectors)
        self.leaf = nn.Linear(vectors.shape[1], 2 * width)  # memory, output gate
        parts = 5 if output_gate else 4  # update, and the gates: input, forget left, forget right, output
        self.left, self.right = nn.Linear(width, parts * width), nn.Linear(width, parts * width)
        self.dropout = nn.Dropout(0.5)
        self.width = width

    def forward(self, trees: Tensor) -> Tensor:
        """Hidden states of the roots [n, width]."""
        return self.hidden(trees)[torch.arange(len(trees), device=trees.device), roots(trees)]

    def hidden(self, trees: Tensor) -> Tensor:
        """Hidden states of all nodes [n, nodes, width]; zero where there is none."""
        n, nodes, _ = trees.shape
        word, left, right, level = trees[:, :, :4].reshape(-1, 4).unbind(1)
        by_level = level.argsort(stable=True)
        padding, leaves, *inner = torch.split(by_level, (level + 1).bincount(minlength=2).tolist())
        place = by_level.argsort() - len(padding)  # of a node among the states
        first = torch.arange(0, n * nodes, nodes, device=trees.device).repeat_interleave(nodes)
        weight, bias = torch.cat([self.left.weight, self.right.weight], 1), self.left.bias + self.right.bias
        h, c = self._read(word[leaves])
        for at in inner:
            children = place[torch.stack([left[at], right[at]], 1) + first[at, None]].flatten()
            h_pair, c_pair = (state.index_select(0, children).view(len(at), -1) for state in (h, c))
            h_new, c_new = self._compose(h_pair, c_pair, weight, bias)
            h, c = torch.cat([h, h_new]), torch.cat([c, c_new])
        hidden = h.new_zeros(n * nodes, self.width).index_copy(0, by_level[len(padding) :], h)
        dropped: Tensor = self.dropout(hidden.view(n, nodes, self.width))
        return dropped

    def _read(self, word: Tensor) -> tuple[Tensor, Tensor]:
        """Hidden state and memory of leaves."""
        c, o = self.leaf(F.embedding(word, self.vectors)).chunk(2, 1)
        return o.sigmoid() * c.tanh(), c

    def _compose(self, h: Tensor, c: Tensor, weight: Tensor, bias: Tensor) -> tuple[Tensor, Tensor]:
        """Hidden state and memory of nodes from those of their left and right children side by side [m, 2 width]."""
        update, gates = F.linear(h, weight, bias).tensor_split((self.width,), 1)
        i, f_left, f_right, *o = torch.split(gates.sigmoid(), self.width, 1)
        c_left, c_right = c.chunk(2, 1)
        c = i * update.tanh() + f_left * c_left + f_right * c_right
        return (o[0] * c.tanh() if o else c.tanh()), c


class TreeNetwork(Network):
    """A network over trees, which labels a tree by its root and can label every node.

    A node may have one of `extra` further classes, such as neutral, that no tree has: they have a head of their own, so
    the label of a tree is never one of them.
    """

    body: TreeLSTM

    def __init__(self, body: TreeLSTM, n_classes: int, extra: int):
        super().__init__(body, nn.Linear(body.width, n_classes))
        self.extra = nn.Linear(body.width, extra) if extra else None

    def nodes(self, trees: Tensor) -> Tensor:
        """The logits of every node [n, nodes, k + extra]."""
        hidden = self.body.hidden(trees)
        logits: Tensor = self.head(hidden)
        return logits if self.extra is None else torch.cat([logits, self.extra(hidden)], -1)


def tree_lstm(
    n_classes: int,
    *,
    vectors: Tensor,
    extra_node_classes: int = 0,
    width: int = 150,
    train_vectors: bool = True,
    output_gate: bool = True,
) -> TreeNetwork:
    """The binary Tree-LSTM of the paper over words of the given vectors [words, inputs], which it tunes.

    Without `output_gate`, h = tanh c in inner nodes, as a widely used implementation has it.
    """
    body = TreeLSTM(vectors, width, output_gate=output_gate, train_vectors=train_vectors)
    return TreeNetwork(body, n_classes, extra_node_classes)
