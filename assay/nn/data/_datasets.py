"""Data of others: a torch map-style Dataset, or a DataLoader, whose items are (x, y) or dicts with a label."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Generator, Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset, RandomSampler, SequentialSampler, default_collate

from assay._core.arrays import InputError
from assay.nn.data._samples import Cut, Facts, Samples, Splits, divide

LABELS = ("labels", "label", "y")  # what dicts call the label
Data = Dataset[Any] | DataLoader[Any]
Inputs = Tensor | Mapping[str, Tensor]
"""The inputs of a batch: one tensor, or several by the names that the network gives them."""


@dataclass(frozen=True, eq=False)
class Items:
    """Inputs of a dataset, read on demand; a random transform by torch draws from the seed of the item."""

    dataset: Dataset[Any]
    places: Tensor  # [n] int64, in the dataset

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, rows: Tensor) -> Items:
        return replace(self, places=self.places[rows])

    def read(self, row: int, seed: int | None) -> Tensor:
        """The input of an item, by its own seed or by its place: never by torch's state."""
        with torch.random.fork_rng([]):
            torch.default_generator.manual_seed(row if seed is None else seed)
            return one_input(labeled(self.dataset[int(self.places[row])])[0])


def samples_of(data: Data, *, classes: Sequence[str] | None = None) -> Samples:
    """A dataset as samples, which are read when they are needed; every label is read once at the start.

    Without names of the classes, they are those that the dataset calls `classes`, or numbers up to the highest label.
    """
    dataset = _plain_dataset(data)
    y = torch.tensor([int(labeled(dataset[place])[1]) for place in range(_length(dataset))], dtype=torch.int64)
    names = classes or getattr(dataset, "classes", None) or range(int(y.max()) + 1 if len(y) else 0)
    facts = Facts(tuple(map(str, names)), augment=_as_read)
    places = torch.arange(len(y))
    return Samples(Items(dataset, places), y, places, facts)


def splits_of(train: Data, *, held_out: Data | None = None, test: Data | None = None, cut: Cut = Cut()) -> Splits:  # noqa: B008 (frozen)
    """The parts of a data set from datasets; without one to hold out, a part of the training samples is held out.

    >>> from torch.utils.data import TensorDataset
    >>> splits = splits_of(TensorDataset(torch.randn(50, 4), torch.arange(50) % 3))
    >>> len(splits.train), len(splits.held_out), splits.train.n_classes
    (45, 5, 3)
    """
    all_train = samples_of(train)
    names = all_train.facts.classes
    if held_out is None:
        kept, apart = divide(all_train, cut)
    else:
        kept, apart = divide(all_train, replace(cut, held_out=0))[0], samples_of(held_out, classes=names)
    return Splits(kept, apart, all_train.first(0) if test is None else samples_of(test, classes=names))


def labeled_batches(data: Data, batch_size: int, workers: int) -> Iterator[tuple[Inputs, Tensor]]:
    """Inputs and labels, as a loader gives them; a dataset in its order, in batches of that size."""
    if isinstance(data, IterableDataset):
        raise InputError("an IterableDataset is read by a DataLoader; give that")
    if not isinstance(data, DataLoader):
        data = DataLoader(data, batch_size, num_workers=workers, generator=Generator())
    for batch in data:
        yield labeled(batch)


def labeled(item: Any) -> tuple[Any, Any]:
    """Input and label of an item or a batch: (x, y), or a dict."""
    if isinstance(item, Mapping):
        name = next((name for name in LABELS if name in item), None)
        if name is None:
            raise InputError(f"an item has {', '.join(map(str, item))} and no label; call it {' or '.join(LABELS)}")
        return {key: value for key, value in item.items() if key != name}, item[name]
    if isinstance(item, tuple | list) and len(item) == 2:
        return item[0], item[1]
    size = f" of {len(item)}" if isinstance(item, tuple | list) else ""
    raise InputError(f"an item of a dataset is (x, y) or a dict with a label, got a {type(item).__name__}{size}")


def one_input(x: Any) -> Tensor:
    """The input of an item as a tensor; of a dict, which must have one."""
    if isinstance(x, Mapping):
        if len(x) != 1:
            names = ", ".join(map(str, x))
            raise InputError(f"training takes one input a sample, got {names}; put them into one tensor")
        (x,) = x.values()
    return torch.as_tensor(x)


def _plain_dataset(data: Data) -> Dataset[Any]:
    """The map-style dataset; a loader that changes which samples are seen, or how, is refused."""
    dataset: Dataset[Any] = data.dataset if isinstance(data, DataLoader) else data
    if isinstance(data, DataLoader):
        plain = data.collate_fn is default_collate and type(data.sampler) in (RandomSampler, SequentialSampler)
        if not plain:
            raise InputError("this DataLoader has a sampler or a collate_fn of its own; give its dataset")
    if isinstance(dataset, IterableDataset) or not hasattr(dataset, "__getitem__"):
        raise InputError(f"training needs a map-style dataset, with a length and items, got {type(dataset).__name__}")
    return dataset


def _length(dataset: Dataset[Any]) -> int:
    if not isinstance(dataset, Sized):
        raise InputError(f"{type(dataset).__name__} has no length")
    return len(dataset)


def _as_read(x: Tensor, generator: Generator) -> Tensor:
    """The dataset's own transform is the augmentation: each epoch reads an item by another seed."""
    return x
