"""Parquet tables in the schema of the Hugging Face hub, from a folder or from the hub itself."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from assay._core.arrays import InputError
from assay.nn.data._images import Column, decoded
from assay.nn.data._samples import Cut, Facts, Splits, chosen, divide, samples, whereabouts
from assay.nn.data.corruptions import shifts

if TYPE_CHECKING:
    import pyarrow as pa

IMAGES = ("img", "image")  # columns of {bytes, path}
FILES = b"assay.files"  # key of a table's metadata: the names and lengths of its files


class Hub(NamedTuple):
    """The address of a data set on the hub."""

    path: str
    configuration: str | None = None


def tables(folder: Path | None, name: str, hub: Hub, splits: Sequence[str]) -> dict[str, pa.Table]:
    """The splits of a data set, from <name>/<split>*.parquet in the folder or else from the hub by `datasets`."""
    where = whereabouts(folder, name)
    if folder is not None:
        found = {split: table for split in splits if (table := read_split(folder / name, split)) is not None}
        if len(found) == len(splits):
            return found
        if found:
            missing = [split for split in splits if split not in found]
            raise InputError(f"{where}: no {' and '.join(f'{split}*.parquet' for split in missing)}")
    return from_hub(hub, splits, f"no {splits[0]}*.parquet in {where}")


def from_hub(hub: Hub, splits: Sequence[str], lacking: str) -> dict[str, pa.Table]:
    """The splits of a data set of the hub, mapped from its local cache; `lacking` begins the message of a failure."""
    try:
        import datasets  # type: ignore[import-not-found, unused-ignore]
    except ImportError as problem:
        raise InputError(f"{lacking}; put it there, or install `datasets` to download {hub.path}") from problem
    try:
        downloaded = datasets.load_dataset(hub.path, hub.configuration)
    except Exception as problem:  # whatever goes wrong in a download
        raise InputError(f"{lacking}, and {hub.path} cannot be downloaded: {problem}") from problem
    return {split: downloaded[split].data.table for split in splits}


def read_split(folder: Path, split: str) -> pa.Table | None:
    """The rows of all files of a split, in the order of their names; None if there is no such file."""
    import pyarrow as pa

    files = sorted(file for place in (folder, folder / "data") for file in place.glob(f"{split}*.parquet"))
    if not files:
        return None
    parts = [_read(file) for file in files]
    try:
        table = pa.concat_tables(parts)
    except pa.ArrowInvalid as problem:
        raise InputError(f"{folder}: {split}*.parquet differ in their columns: {problem}") from problem
    lengths = json.dumps([(str(file), len(part)) for file, part in zip(files, parts, strict=True)])
    return table.replace_schema_metadata({**(table.schema.metadata or {}), FILES: lengths})


def _read(file: Path) -> pa.Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_table(file)
    except (OSError, pa.ArrowInvalid) as problem:
        raise InputError(f"{file}: cannot be read as Parquet: {str(problem).splitlines()[0]}") from problem


def place(table: pa.Table, row: int) -> str:
    """The row for a message, counted within its file if the table has files."""
    for file, length in json.loads((table.schema.metadata or {}).get(FILES, b"[]")):
        if row < length:
            return f"{file}, row {row}"
        row -= length
    return f"row {row}"


def column(table: pa.Table, name: str) -> list[Any]:
    """A column as a list without missing values."""
    if name not in table.column_names:
        raise InputError(f"no column '{name}'; there are {', '.join(table.column_names)}")
    values: list[Any] = table[name].to_pylist()
    if None in values:
        raise InputError(f"{place(table, values.index(None))}, column '{name}': no value")
    return values


def labels(table: pa.Table, name: str = "label") -> Tensor:
    """A column of class numbers, int64 [n]."""
    values = column(table, name)
    for row, value in enumerate(values):
        if not isinstance(value, int):
            raise InputError(f"{place(table, row)}, column '{name}': labels must be integers, got '{value}'")
    return torch.tensor(values)


def images(table: pa.Table) -> Tensor:
    """The images of a table, uint8 [n, c, h, w]."""
    name = next((name for name in IMAGES if name in table.column_names), None)
    if name is None:
        raise InputError(f"no column of images, {' or '.join(IMAGES)}; there are {', '.join(table.column_names)}")
    return decoded(Column(table[name]))


def labeled_images(found: Mapping[str, pa.Table], split: str, label: str = "label") -> tuple[Tensor, Tensor]:
    """Images and labels of a split."""
    try:
        return images(found[split]), labels(found[split], label)
    except InputError as problem:
        raise InputError(f"{split}: {problem}") from problem


def numbers(table: pa.Table) -> Tensor:
    """Column `x` of equally long lists, or lists of lists, of numbers: images if uint8 [n, c, h, w], else float32."""
    import pyarrow as pa
    import pyarrow.compute as pc

    array, shape = table["x"].combine_chunks(), [len(table)]
    while pa.types.is_list(array.type) or pa.types.is_large_list(array.type) or pa.types.is_fixed_size_list(array.type):
        lengths = pc.list_value_length(array).to_numpy(zero_copy_only=False)
        if not (lengths == lengths[0]).all():
            row = int((lengths != lengths[0]).argmax()) // (len(lengths) // len(table))
            few, many = lengths.min(), lengths.max()
            raise InputError(f"{place(table, row)}, column 'x': lists of {few:.0f} to {many:.0f} values")
        shape.append(int(lengths[0]))
        array = array.flatten()
    if array.null_count:
        row = array.is_null().index(True).as_py() // (len(array) // len(table))
        raise InputError(f"{place(table, row)}, column 'x': a value is missing")
    found = torch.tensor(array.to_numpy(zero_copy_only=False)).view(shape)
    if found.dtype is torch.uint8 and found.ndim == 4:
        return found
    values = found.float()
    if not values.isfinite().all():
        at = tuple(values.isfinite().logical_not().nonzero()[0].tolist())
        where, value = place(table, at[0]), found[at].item()
        raise InputError(
            f"{where}, column 'x': {value} is no finite float32 number; leave such rows out or fill them in"
        )
    return values


def class_names(table: pa.Table, label: str, n_classes: int) -> tuple[str, ...]:
    """Names from the hub's metadata, or the numbers."""
    metadata = json.loads((table.schema.metadata or {}).get(b"huggingface", b"{}"))
    names = metadata.get("info", {}).get("features", {}).get(label, {}).get("names")
    return tuple(names or map(str, range(n_classes)))


def parquet(folder: Path | None, cut: Cut) -> Splits:
    """Any data set of train*.parquet, test*.parquet and optionally held_out*.parquet in the folder itself.

    Its columns are `label` and images in `img` or `image`, or numbers of any shape in `x`, which are images if they are
    uint8 [c, h, w]. Images are normalized by the mean and standard deviation of the training set.
    """
    if folder is None:
        raise InputError("name the folder of train*.parquet and test*.parquet")
    found = {split: read_split(folder, split) for split in ("train", "held_out", "test")}
    if found["train"] is None or found["test"] is None:
        raise InputError(f"{folder}: needs train*.parquet and test*.parquet")
    present = {split: table for split, table in found.items() if table is not None}
    y = {split: labels(table) for split, table in present.items()}
    x = {split: numbers(table) if "x" in table.column_names else images(table) for split, table in present.items()}
    n_classes = 1 + max(int(part.max()) for part in y.values())
    facts = Facts(class_names(present["train"], "label", n_classes), *_moments(x["train"]))
    parts = {split: samples(x[split], y[split], facts) for split in present}
    train, test = parts["train"], parts["test"]
    if train.n_classes < 2:
        raise InputError(f"{folder}: every label is 0, and a classifier needs two classes at least")
    halves = chosen(train, parts["held_out"], cut) if "held_out" in parts else divide(train, cut)
    return Splits(*halves, test, shifts(test) if facts.mean else {})


def _moments(x: Tensor) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation (1 if it is 0) of each channel of uint8 images; empty for other numbers."""
    if x.dtype is not torch.uint8:
        return (), ()
    by_channel = x.transpose(0, 1).flatten(1)
    counts = torch.stack([channel.int().bincount(minlength=256) for channel in by_channel]).double()
    share, value = counts / counts.sum(1, keepdim=True), torch.arange(256).double() / 255
    mean = share @ value
    std = (share * (value - mean[:, None]) ** 2).sum(1).sqrt()
    return tuple(mean.tolist()), tuple(std.where(std > 0, 1).tolist())
