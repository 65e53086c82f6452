"""Datasets and loaders of torch: they train and are predicted as the same samples."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

from assay import predict, train
from assay._core.arrays import InputError
from assay.nn.data import Cut, load, samples_of, splits_of
from assay.nn.networks import network
from assay.nn.recipes import recipe
from assay.nn.training import initialized


class Flipping(torch.utils.data.Dataset):
    """A dataset of dicts with a random transform."""

    def __init__(self, samples) -> None:
        self.samples = samples

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, place: int) -> dict[str, torch.Tensor]:
        sign = 1 if torch.rand(()) < 0.5 else -1
        return {"pixels": sign * self.samples.x[place].float(), "label": self.samples.y[place]}


def test_a_dataset_of_torch_trains_as_the_same_samples():
    given = load("synthetic", cut=Cut(n_train=60))
    parts = [TensorDataset(part.x, part.y) for part in (given.train, given.held_out, given.test)]
    loaders = [DataLoader(part, 16, shuffle=True) for part in parts]
    short = replace(recipe("cross_entropy"), epochs=2, batch_size=16)
    found = []
    for splits in (given, splits_of(parts[0], held_out=parts[1], test=loaders[2])):
        made = initialized(network("mlp"), splits.train, seed=0)
        found.append(train(made, splits, short, seed=0))
    assert np.array_equal(found[0].test.values, found[1].test.values)
    assert np.array_equal(predict(made, loaders[2].dataset).values, found[1].test.values)
    assert sorted(predict(made, loaders[2]).labels) == sorted(found[1].test.labels)


def test_random_transforms_of_a_dataset_are_decided_by_the_seed():
    data = Flipping(load("synthetic", cut=Cut(n_train=30)).train)
    short = replace(recipe("cross_entropy"), epochs=2, batch_size=8)
    weights = []
    for state in (1, 2):
        torch.manual_seed(state)
        made = initialized(network("mlp"), samples_of(data), seed=0)
        train(made, data, short, seed=0)
        weights.append(torch.cat([p.flatten() for p in made.parameters()]))
    assert weights[0].equal(weights[1])


class Named(torch.nn.Module):
    """Takes its inputs by name and returns a record, as language models do."""

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"logits": ids * mask}


def test_dicts_reach_the_network_by_name():
    items = [{"ids": torch.tensor([1.0, 2.0]), "mask": torch.tensor([1.0, 0.0]), "labels": i % 2} for i in range(5)]
    found = predict(Named(), items, batch_size=2)
    assert found.labels.tolist() == [0, 1, 0, 1, 0]
    assert found.values.tolist() == [[1.0, 0.0]] * 5


@pytest.mark.parametrize(
    ("items", "says"),
    [
        ([(torch.zeros(2), 0, 1)], "got a tuple of 3"),
        ([{"x": torch.zeros(2)}], "an item has x and no label; call it labels or label or y"),
        ([{"a": torch.zeros(2), "b": torch.zeros(2), "y": 0}] * 20, "one input a sample, got a, b"),
    ],
)
def test_items_that_cannot_be_trained_on_are_named(items, says):
    with pytest.raises(InputError, match=says):
        train(torch.nn.Linear(2, 2), items, replace(recipe("cross_entropy"), epochs=1))


def test_a_loader_that_chooses_samples_is_not_taken_for_its_dataset():
    data = TensorDataset(torch.zeros(4, 2), torch.tensor([0, 1, 0, 1]))
    with pytest.raises(InputError, match="give its dataset"):
        train(torch.nn.Linear(2, 2), DataLoader(data, sampler=WeightedRandomSampler([1, 0, 0, 1], 4)), recipe("focal"))
