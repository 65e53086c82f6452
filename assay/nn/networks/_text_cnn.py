"""Network in network. Min Lin, Qiang Chen, Shuicheng Yan; ICLR 2014: global pooling, here over the words of a text.

Texts are word numbers [n, length]; the vectors [words, width] of the words are given and stay as they are.
"""

from __future__ import annotations

from itertools import pairwise

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from assay.nn.networks._network import Network, kaiming


class Words(nn.Module):
    """Fixed word vectors as channels: [n, length] -> [n, width, 1, length].

    A text is an image of height 1 whose channels come last in memory, as the vectors of its words lie there already:
    convolutions and pools then take two thirds of the time of `Conv1d` and `MaxPool1d`.
    """

    def __init__(self, vectors: Tensor):
        super().__init__()
        self.vectors = nn.Parameter(vectors.clone(), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        return F.embedding(x, self.vectors).unsqueeze(1).permute(0, 3, 1, 2)


class MaxOfConvolution(nn.Module):
    """The highest value of each channel of a convolution over words: [n, inputs, 1, length] -> [n, channels].

    Where gradients are asked for, the windows with the highest values are looked for without, and computed again with:
    only these have a gradient, and a convolution would spend two thirds of its time on the zeros of all others.
    """

    def __init__(self, convolution: nn.Conv2d):
        super().__init__()
        self.convolution = convolution

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():
            values = self.convolution(x)  # [n, channels, 1, length]
            # The pool reads channels that come last in memory five times faster than `max` does.
            highest, place = F.max_pool2d(values, (1, values.shape[3]), return_indices=True)
        if not torch.is_grad_enabled():
            return highest.flatten(1)
        place = place.flatten(1)
        words = x.squeeze(2).transpose(1, 2)  # [n, length, inputs]
        n, length, inputs = words.shape
        channels, _, _, width = self.convolution.weight.shape
        first = place.T + length * torch.arange(n, device=x.device)  # [channels, n] among the words of all texts
        rows = (first[..., None] + torch.arange(width, device=x.device)).flatten()
        windows = words.reshape(n * length, inputs).index_select(0, rows).view(channels, n, width * inputs)
        weight = self.convolution.weight.permute(0, 3, 2, 1).reshape(channels, width * inputs)
        found = torch.einsum("cnk,ck->nc", windows, weight)  # `windows @ weight` takes three times as long
        return found if self.convolution.bias is None else found + self.convolution.bias


class ByLength(nn.Module):
    """A body that ends in a maximum over positions, on texts of similar length together, without most of their padding.

    The result is the same: beyond `reach` words after the end of a text, every window of the body sees padding alone,
    and one such window is as good as many. Posts fill a quarter of their 1000 places, so this saves most of the time.
    Texts go through the body in parts of up to `places` places, which stay in the cache of a core.
    """

    def __init__(self, body: nn.Module, reach: int, places: int = 5000):
        super().__init__()
        self.body, self.reach, self.places = body, reach, places

    def forward(self, x: Tensor) -> Tensor:
        words = torch.arange(1, x.shape[1] + 1, device=x.device)
        lengths, order = torch.where(x != 0, words, 0).amax(1).sort()
        found, first = [], 0
        ends = (lengths + self.reach).tolist()
        for last, end in enumerate(ends, start=1):
            # With the next text, which is as long or longer, the texts at hand would fill too many places.
            if last == len(ends) or (last + 1 - first) * ends[last] > self.places:
                found.append(self.body(x[order[first:last], :end]))
                first = last
        return torch.cat(found)[order.argsort()]


def gp_cnn(n_classes: int, *, vectors: Tensor) -> Network:
    """The global-pooling CNN that Kumar et al. (2018) and Mukhoti et al. (2020) train on 20 Newsgroups."""
    pooled = nn.Sequential(
        Words(vectors),
        *(nn.Conv2d(vectors.shape[1], 128, (1, 5)), nn.ReLU(inplace=True), nn.MaxPool2d((1, 5), stride=1)),
        *(nn.Conv2d(128, 128, (1, 5)), nn.ReLU(inplace=True), nn.MaxPool2d((1, 5), stride=1)),
        *(MaxOfConvolution(nn.Conv2d(128, 128, (1, 5))), nn.ReLU()),
    )
    # Three convolutions and two pools of width 5 see 5 * 5 - 4 words.
    body = nn.Sequential(ByLength(pooled, reach=21), nn.Linear(128, 128), nn.ReLU(inplace=True), nn.Dropout(0.3))
    return kaiming(Network(body, nn.Linear(128, n_classes)))


def text_cnn8(n_classes: int, *, vectors: Tensor) -> Network:
    """Seven convolutions over words and a linear layer.

    Wang et al. (2021) train an "8-layer 1D-CNN" on 20 Newsgroups and do not print it; this one is our own.
    """
    widths = (vectors.shape[1], 128, 128, 128, 128, 256, 256, 256)
    layers: list[nn.Module] = [Words(vectors)]
    for i, (inputs, outputs) in enumerate(pairwise(widths), start=1):
        convolution = nn.Conv2d(inputs, outputs, (1, 5), padding=(0, 2))
        layers += [convolution, nn.BatchNorm2d(outputs), nn.ReLU(inplace=True)]
        if i in (2, 4, 6):
            layers.append(nn.MaxPool2d((1, 4)))
    body = nn.Sequential(*layers, nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Dropout(0.3))
    return kaiming(Network(body, nn.Linear(widths[-1], n_classes)))
