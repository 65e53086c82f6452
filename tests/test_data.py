"""Data sets are read from their public formats, split by seed, and reach a network as documented."""

from __future__ import annotations

import gzip
import io
import os
import re
import shutil
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
import torch.nn.functional as F
from PIL import Image
from scipy.ndimage import gaussian_filter, map_coordinates, zoom
from torch import Generator

from assay._core.arrays import InputError
from assay.nn import names
from assay.nn.data import (
    DATA,
    Cut,
    Facts,
    batch_sizes,
    batches,
    crop_and_flip,
    divide,
    flip,
    gaussian_logits,
    gaussians,
    load,
    normalized,
    read_glove,
    samples,
    shuffled_batches,
)
from assay.nn.data._images import Column, Files, decoded
from assay.nn.data._parquet import numbers
from assay.nn.data._samples import chosen
from assay.nn.data._sst import parse
from assay.nn.data._words import numbered, vocabulary
from assay.nn.data.corruptions import CORRUPTIONS, SEVERITIES, corrupted, shifts
from assay.nn.data.corruptions._digital import _displacements

REAL = pytest.mark.skipif("ASSAY_DATA" not in os.environ, reason="ASSAY_DATA names no folder of data sets")
FACTS = Facts(("a", "b", "c"), mean=(0.5, 0.4, 0.3), std=(0.2, 0.25, 0.3))


def seeded(seed: int = 0) -> Generator:
    return Generator().manual_seed(seed)


def some_images(n: int = 10, size: int = 8, seed: int = 0) -> torch.Tensor:
    return torch.randint(256, (n, 3, size, size), generator=seeded(seed), dtype=torch.uint8)


def some_samples(n: int = 10):
    return samples(some_images(n), torch.arange(n) % 3, FACTS)


def encoded(image: torch.Tensor, kind: str = "PNG") -> bytes:
    stream = io.BytesIO()
    array = image.permute(1, 2, 0).numpy()
    Image.fromarray(array.squeeze(2) if array.shape[2] == 1 else array).save(stream, kind)
    return stream.getvalue()


def column_of(*images: bytes | None) -> Column:
    return Column(pa.chunked_array([[{"bytes": image, "path": None} for image in images]]))


def write_images(file: Path, images: torch.Tensor, labels: list[int], *, image: str = "img", label: str = "label"):
    """A Parquet file in the schema of the Hugging Face hub."""
    file.parent.mkdir(parents=True, exist_ok=True)
    column = [{"bytes": encoded(one), "path": None} for one in images]
    pq.write_table(pa.table({image: column, label: labels}), file)


# --- splits ---------------------------------------------------------------------------------------------------------


def test_training_and_held_out_samples_divide_the_data_and_know_their_places():
    whole = some_samples(100)
    train, held_out = divide(whole, Cut(held_out=30, seed=1))
    assert sorted([*train.index.tolist(), *held_out.index.tolist()]) == list(range(100))
    assert len(held_out) == 30
    assert train.x.equal(whole.x[train.index])
    assert held_out.y.equal(whole.y[held_out.index])


def test_a_tenth_is_held_out_by_default():
    assert [len(part) for part in divide(some_samples(100), Cut())] == [90, 10]


def test_the_size_of_the_training_set_changes_neither_the_held_out_samples_nor_the_smaller_sets():
    whole = some_samples(100)
    parts = [divide(whole, Cut(held_out=20, n_train=n)) for n in (10, 40, 80)]
    assert all(held_out.index.equal(parts[0][1].index) for _, held_out in parts)
    small, middle, large = (set(train.index.tolist()) for train, _ in parts)
    assert small < middle < large


def test_the_seed_of_a_cut_decides():
    whole = some_samples(100)
    first, again, other = (divide(whole, Cut(seed=seed))[1].index for seed in (0, 0, 1))
    assert first.equal(again)
    assert not first.equal(other)


@pytest.mark.parametrize("cut", [Cut(held_out=100), Cut(held_out=50, n_train=51), Cut(n_train=0), Cut(held_out=-1)])
def test_a_cut_that_cannot_be_made_says_so(cut):
    with pytest.raises(InputError, match="100 samples cannot be cut into"):
        divide(some_samples(100), cut)


def test_of_a_held_out_split_none_to_all_are_taken():
    train, held_out = some_samples(20), some_samples(10)
    sizes = [len(chosen(train, held_out, Cut(held_out=n))[1]) for n in (None, 0, 3, 10)]
    assert sizes == [10, 0, 3, 10]
    for n in (-1, 11):
        with pytest.raises(InputError, match=f"{n} samples cannot be held out of the 10 that are there for it"):
            chosen(train, held_out, Cut(held_out=n))


def test_labels_outside_the_classes_name_their_row():
    with pytest.raises(InputError, match=r"row 1: label 3 is outside 0\.\.2"):
        samples(some_images(2), torch.tensor([0, 3]), FACTS)


# --- batches --------------------------------------------------------------------------------------------------------


def test_batches_are_the_samples_in_order_normalized():
    whole = some_samples(10)
    parts = list(batches(whole, 4))
    assert [len(part.y) for part in parts] == [4, 4, 2]
    expected = (whole.x / 255 - torch.tensor(FACTS.mean)[:, None, None]) / torch.tensor(FACTS.std)[:, None, None]
    assert torch.allclose(torch.cat([part.x for part in parts]), expected, atol=1e-5)
    assert torch.cat([part.index for part in parts]).equal(torch.arange(10))


def test_inputs_without_mean_go_through_as_they_are():
    x = torch.randn(5, 4)
    (batch,) = batches(samples(x, torch.zeros(5), Facts(("one",))), 8)
    assert batch.x.equal(x)


def test_an_epoch_holds_every_sample_once_and_is_decided_by_its_seed():
    whole = some_samples(50)
    epoch, again, other = (
        list(shuffled_batches(whole, 8, seeded(s), augment=crop_and_flip, epoch=3)) for s in (0, 0, 1)
    )
    rows = torch.cat([batch.index for batch in epoch])
    assert rows.sort().values.equal(torch.arange(50))
    assert torch.cat([batch.y for batch in epoch]).equal(whole.y[rows])
    assert all(a.x.equal(b.x) and a.index.equal(b.index) for a, b in zip(epoch, again, strict=True))
    assert not epoch[0].index.equal(other[0].index)
    assert {batch.epoch for batch in epoch} == {3}


def test_a_last_batch_of_one_joins_the_one_before():
    """BatchNorm has no variance of a single sample."""
    for n, sizes in ((9, [4, 5]), (10, [4, 4, 2]), (5, [5]), (1, [1])):
        found = list(shuffled_batches(some_samples(n), 4, seeded()))
        assert [len(batch.y) for batch in found] == batch_sizes(n, 4) == sizes
        assert torch.cat([batch.index for batch in found]).equal(torch.randperm(n, generator=seeded()))


def test_batches_leave_the_global_random_state_alone():
    before = torch.get_rng_state()
    list(shuffled_batches(some_samples(), 4, seeded(), augment=crop_and_flip))
    assert torch.get_rng_state().equal(before)


def test_a_sampler_says_which_rows_are_loaded():
    def with_partner(rows, labels, generator):
        partners = [(labels == labels[row]).nonzero().squeeze(1) for row in rows]
        return torch.cat([rows, torch.stack([p[torch.randint(len(p), (), generator=generator)] for p in partners])])

    for batch in shuffled_batches(some_samples(12), 4, seeded(), sampler=with_partner):
        assert batch.y[:4].equal(batch.y[4:])
        assert batch.x.shape[0] == batch.index.shape[0] == 8


def test_a_crop_is_a_window_of_the_padded_image_mirrored_or_not():
    images = some_images(60, size=5)
    seen = set()
    for image, crop in zip(images, crop_and_flip(images, seeded(), pad=2), strict=True):
        padded = F.pad(image, (2, 2, 2, 2))
        windows = {
            (down, right, mirrored): padded[:, down : down + 5, right : right + 5].flip(2 if mirrored else ())
            for down in range(5)
            for right in range(5)
            for mirrored in (False, True)
        }
        (found,) = [key for key, window in windows.items() if window.equal(crop)]
        seen.add(found)
    assert len(seen) > 25  # of the 50 there are
    assert crop_and_flip(images, seeded(), pad=2).equal(crop_and_flip(images, seeded(), pad=2))


def test_half_of_the_images_are_mirrored():
    images = some_images(400, size=4)
    same = (flip(images, seeded()) == images).flatten(1).all(1)
    assert 150 < int(same.sum()) < 250
    assert flip(images, seeded())[~same].equal(images[~same].flip(3))


def test_normalized_images_of_a_set_with_its_own_moments_have_mean_0_and_deviation_1():
    images = some_images(50)
    scaled = images / 255
    x = normalized(images, scaled.mean((0, 2, 3)).tolist(), scaled.std((0, 2, 3)).tolist())
    assert x.mean((0, 2, 3)).abs().max() < 1e-5
    assert torch.allclose(x.std((0, 2, 3)), torch.ones(3), atol=1e-5)


# --- embedded sets --------------------------------------------------------------------------------------------------


def test_features_of_a_published_network_are_included():
    """Nearest class means, from 2,000 images, are right on nine of ten others, as the network itself is."""
    splits = load("cifar10_features", cut=Cut(n_train=2000, held_out=1000, seed=1))
    assert (len(splits.train), len(splits.held_out), len(splits.test)) == (2000, 1000, 5000)
    assert splits.test.index.equal(torch.arange(5000, 10000))
    assert not set(splits.train.index.tolist()) & set(splits.held_out.index.tolist())
    x, y = splits.train.x, splits.train.y
    means = torch.stack([x[y == k].mean(0) for k in range(10)])
    nearest = torch.cdist(splits.test.x, means).argmin(1)
    assert (nearest == splits.test.y).float().mean() > 0.9


def test_digits_are_split_by_seed_without_overlap():
    splits, other = load("digits"), load("digits", cut=Cut(seed=1, n_train=100))
    places = [set(part.index.tolist()) for part in (splits.train, splits.held_out, splits.test)]
    assert [len(part) for part in places] == [1295, 143, 359]
    assert splits.train.x.dtype is torch.uint8
    assert splits.train.x.max() == 255
    assert len(other.train) == 100
    assert not splits.test.y.equal(other.test.y)


def test_the_posterior_of_the_synthetic_classes_is_calibrated_and_no_other_temperature_is_better():
    test = gaussians(200_000, generator=seeded(), n_classes=5, separation=1.5)
    logits = gaussian_logits(test.x, separation=1.5)
    p = logits.softmax(1)
    hit = F.one_hot(test.y, 5).float()
    for low in torch.arange(0, 1, 0.1):
        inside = (p > low) & (p <= low + 0.1)
        assert abs(float((p - hit)[inside].mean())) < 0.01
    nll = {t: float(F.cross_entropy(logits / t, test.y)) for t in (0.8, 1.0, 1.25)}
    assert min(nll, key=nll.get) == 1.0


def test_the_parts_of_the_synthetic_set_are_drawn_apart():
    splits = load("synthetic", cut=Cut(held_out=500))
    assert [len(part) for part in (splits.train, splits.held_out, splits.test)] == [9500, 500, 10_000]
    assert not splits.test.x[:100].equal(splits.train.x[:100])


# --- images on disk -------------------------------------------------------------------------------------------------


def test_cifar10_is_read_from_parquet_of_the_hub(tmp_path):
    train, test = some_images(30, 32), some_images(10, 32, seed=1)
    write_images(tmp_path / "cifar10" / "train-00000-of-00002.parquet", train[:20], [k % 10 for k in range(20)])
    write_images(tmp_path / "cifar10" / "train-00001-of-00002.parquet", train[20:], [k % 10 for k in range(10)])
    write_images(tmp_path / "cifar10" / "test-00000-of-00001.parquet", test, list(range(10)))
    splits = load("cifar10", folder=tmp_path)
    assert splits.train.x.equal(train[splits.train.index])
    assert splits.test.x.equal(test)
    assert splits.test.y.tolist() == list(range(10))
    assert splits.train.facts.classes[3] == "cat"
    assert len(splits.held_out) == 3


def test_cifar_is_read_from_its_binary_files(tmp_path):
    images = some_images(7, 32)
    for name, n_labels, folder in (("cifar10", 1, "cifar-10-batches-bin"), ("cifar100", 2, "cifar-100-binary")):
        (tmp_path / folder).mkdir()
        labels = torch.arange(7, dtype=torch.uint8)
        records = torch.cat([torch.full((7, n_labels - 1), 99).byte(), labels[:, None], images.flatten(1)], 1).numpy()
        for file in ("train", "test", "test_batch", *(f"data_batch_{i}" for i in range(1, 6))):
            records.tofile(tmp_path / folder / f"{file}.bin")
        test = load(name, folder=tmp_path, cut=Cut(held_out=1)).test
        assert test.x.equal(images)
        assert test.y.tolist() == list(range(7))
    with (tmp_path / "cifar-100-binary" / "train.bin").open("ab") as stream:
        stream.write(b"more")
    with pytest.raises(InputError, match=r"train\.bin: 21522 bytes are no records of 3074"):
        load("cifar100", folder=tmp_path)


def test_cifar100_has_fine_labels(tmp_path):
    for split in ("train", "test"):
        file = tmp_path / "cifar100" / f"{split}-00000-of-00001.parquet"
        write_images(file, some_images(20, 32), list(range(80, 100)), label="fine_label")
    assert load("cifar100", folder=tmp_path).test.y.tolist() == list(range(80, 100))


def test_svhn_and_tiny_imagenet_are_read_from_parquet(tmp_path):
    for name, split in (("svhn", "train"), ("svhn", "test"), ("tiny-imagenet", "train"), ("tiny-imagenet", "valid")):
        write_images(tmp_path / name / "data" / f"{split}-0.parquet", some_images(10), list(range(10)), image="image")
    assert load("svhn", folder=tmp_path).test.x.equal(some_images(10))
    assert load("tiny_imagenet", folder=tmp_path).test.n_classes == 200


def test_tiny_imagenet_is_read_from_the_folders_of_its_archive(tmp_path):
    root = tmp_path / "tiny-imagenet-200"
    images = some_images(20)
    for k, name in enumerate(("n01", "n02")):
        (root / "train" / name / "images").mkdir(parents=True)
        for i in range(8):
            (root / "train" / name / "images" / f"{name}_{i}.png").write_bytes(encoded(images[8 * k + i]))
    (root / "val" / "images").mkdir(parents=True)
    for i in range(2):
        (root / "val" / "images" / f"val_{i}.png").write_bytes(encoded(images[16 + i]))
    (root / "val" / "val_annotations.txt").write_text("val_0.png\tn02\t0\t0\t9\t9\nval_1.png\tn01\t0\t0\t9\t9\n")
    splits = load("tiny_imagenet", folder=tmp_path, cut=Cut(held_out=2))
    assert splits.train.facts.classes == ("n01", "n02")
    assert splits.train.x.equal(images[splits.train.index])
    assert splits.test.x.equal(images[16:18])
    assert splits.test.y.tolist() == [1, 0]


def test_any_parquet_of_images_is_scaled_by_its_own_moments(tmp_path):
    gray = some_images(40)[:, :1]
    for split in ("train", "test", "held_out"):
        write_images(tmp_path / f"{split}.parquet", gray, [i % 4 for i in range(40)], image="image")
    splits = load("parquet", folder=tmp_path)
    assert splits.train.x.equal(gray)
    assert splits.held_out.x.equal(gray)
    assert splits.train.n_classes == 4
    (batch,) = batches(splits.train, 40)
    assert abs(float(batch.x.mean())) < 1e-5
    assert float(batch.x.std(correction=0)) == pytest.approx(1, abs=1e-5)
    assert "fog_3" in splits.shifts


def test_any_parquet_of_numbers_keeps_its_shape(tmp_path):
    x = torch.randn(20, 2, 3)
    for split in ("train", "test"):
        pq.write_table(pa.table({"x": x.tolist(), "label": [i % 2 for i in range(20)]}), tmp_path / f"{split}.parquet")
    splits = load("parquet", folder=tmp_path)
    assert torch.allclose(splits.test.x.float(), x)
    assert not splits.shifts


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32(), pa.int64(), pa.uint8()])
def test_parquet_of_numbers_of_any_kind_goes_to_a_network(tmp_path, kind):
    column = pa.array([[1, 2, 3], [4, 5, 6]] * 10, pa.list_(kind))
    for split in ("train", "test"):
        pq.write_table(pa.table({"x": column, "label": [0, 1] * 10}), tmp_path / f"{split}.parquet")
    train = load("parquet", folder=tmp_path).train
    assert next(batches(train, 18)).x.equal(train.x)
    assert train.x.unique().tolist() == [1, 2, 3, 4, 5, 6]
    assert torch.nn.Linear(3, 2)(train.x).shape == (18, 2)


def test_bytes_of_images_may_stand_in_a_column_of_numbers(tmp_path):
    table = pa.table(
        {"x": pa.array(some_images().tolist(), pa.list_(pa.list_(pa.list_(pa.uint8())))), "label": [0, 1] * 5}
    )
    for split in ("train", "test"):
        pq.write_table(table, tmp_path / f"{split}.parquet")
    test = load("parquet", folder=tmp_path).test
    assert test.x.equal(some_images())
    assert len(test.facts.mean) == 3


def test_lists_of_different_lengths_name_their_row():
    with pytest.raises(InputError, match="row 1, column 'x': lists of 1 to 2 values"):
        numbers(pa.table({"x": [[1.0, 2.0], [3.0], [4.0, 5.0]]}))


def test_names_of_classes_come_from_the_metadata_of_the_hub(tmp_path):
    features = '{"info": {"features": {"label": {"names": ["no", "yes"], "_type": "ClassLabel"}}}}'
    table = pa.table({"x": [[0.0], [1.0]] * 10, "label": [0, 1] * 10})
    for split in ("train", "test"):
        pq.write_table(table.replace_schema_metadata({"huggingface": features}), tmp_path / f"{split}.parquet")
    assert load("parquet", folder=tmp_path).train.facts.classes == ("no", "yes")


def test_damaged_and_odd_images_name_their_row():
    good = encoded(some_images(1)[0])
    with pytest.raises(InputError, match="row 1: cannot be read as an image"):
        decoded(column_of(good, b"no image", good))
    with pytest.raises(InputError, match=r"row 2: an image of \[4, 4\] pixels, the first has \[8, 8\]"):
        decoded(column_of(good, good, encoded(some_images(1, 4)[0])))
    with pytest.raises(InputError, match="row 1: no image"):
        decoded(column_of(good, None))
    with pytest.raises(InputError, match="no images"):
        decoded(Files([]))


def test_a_label_that_is_no_class_names_split_and_row(tmp_path):
    for split, labels in (("train", [str(k) for k in range(10)]), ("test", list(range(10)))):
        write_images(tmp_path / "cifar10" / f"{split}.parquet", some_images(10, 32), labels)
    told = r"cifar10: train: .*train\.parquet, row 0, column 'label': labels must be integers, got '0'"
    with pytest.raises(InputError, match=told):
        load("cifar10", folder=tmp_path)


def test_a_file_that_is_no_parquet_is_named(tmp_path):
    for split in ("train", "test"):
        (tmp_path / f"{split}.parquet").write_bytes(b"nonsense")
    with pytest.raises(InputError, match=r"parquet: .*train\.parquet: cannot be read as Parquet"):
        load("parquet", folder=tmp_path)


def write_numbers(file: Path, x: object, labels: list[int]) -> None:
    file.parent.mkdir(exist_ok=True)
    pq.write_table(pa.table({"x": x, "label": labels}), file)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (float("nan"), "nan is no finite float32 number"),
        (float("-inf"), "-inf is no finite float32 number"),
        (1e300, r"1e\+300 is no finite float32 number"),
        (None, "a value is missing"),
    ],
)
def test_a_value_that_is_no_number_is_named_with_its_file_and_row(tmp_path, value, told):
    good = [[1.0, 2.0]] * 5
    for name in ("train-0", "train-1", "train-2", "test"):
        write_numbers(tmp_path / f"{name}.parquet", good, [0, 1, 0, 1, 0])
    write_numbers(tmp_path / "train-1.parquet", [*good[:3], [1.0, value], good[4]], [0, 1, 0, 1, 0])
    with pytest.raises(InputError, match=rf"train-1\.parquet, row 3, column 'x': {told}"):
        load("parquet", folder=tmp_path)


def test_of_several_files_the_damaged_one_is_named(tmp_path):
    write_numbers(tmp_path / "test.parquet", [[1.0], [2.0]], [0, 1])
    write_numbers(tmp_path / "train-0.parquet", [[1.0], [2.0]], [0, 1])
    (tmp_path / "train-1.parquet").write_bytes(b"nonsense")
    with pytest.raises(InputError, match=r"train-1\.parquet: cannot be read as Parquet"):
        load("parquet", folder=tmp_path)
    write_numbers(tmp_path / "train-1.parquet", [["a"], ["b"]], [0, 1])
    with pytest.raises(InputError, match=r"train\*\.parquet differ in their columns"):
        load("parquet", folder=tmp_path)


def test_one_class_is_refused_when_loaded(tmp_path):
    for split in ("train", "test"):
        write_numbers(tmp_path / f"{split}.parquet", [[1.0]] * 20, [0] * 20)
    with pytest.raises(InputError, match="every label is 0, and a classifier needs two classes at least"):
        load("parquet", folder=tmp_path)


@pytest.mark.parametrize("level", [0, 7, 255])
def test_a_channel_that_does_not_vary_becomes_0(tmp_path, level):
    images = some_images(20)
    images[:, 2] = level
    for split in ("train", "test"):
        write_images(tmp_path / f"{split}.parquet", images, [0, 1] * 10)
    (batch,) = batches(load("parquet", folder=tmp_path, cut=Cut(held_out=0)).train, 20)
    assert batch.x[:, 2].abs().max() < 1e-6
    assert torch.allclose(batch.x[:, :2].std((0, 2, 3), correction=0), torch.ones(2), atol=1e-5)


def test_a_gray_image_among_colored_ones_is_spread_over_the_channels():
    color, gray = some_images(1)[0], some_images(1)[0][:1]
    assert decoded(column_of(encoded(color), encoded(gray)))[1].equal(gray.expand(3, 8, 8))


@pytest.fixture
def folder_of_images(tmp_path):
    """Images of different sizes, of one color each."""
    for split, n in (("train", 12), ("test", 4)):
        for i in range(n):
            place = tmp_path / split / ("cat", "dog")[i % 2]
            place.mkdir(parents=True, exist_ok=True)
            color = torch.tensor([10 * i, 100, 200], dtype=torch.uint8)[:, None, None]
            (place / f"{i:02}.png").write_bytes(encoded(color.expand(3, 20 + i, 30)))
    return tmp_path


def test_folders_of_images_are_read_at_one_size_by_class_and_name(folder_of_images):
    splits = load("image_folder", folder=folder_of_images, cut=Cut(held_out=2))
    assert [len(part) for part in (splits.train, splits.held_out, splits.test)] == [10, 2, 4]
    assert splits.test.y.tolist() == [0, 0, 1, 1]
    (batch,) = batches(replace(splits.test, facts=replace(splits.test.facts, mean=(), std=())), 8)
    assert batch.x.shape == (4, 3, 224, 224)
    assert batch.x.float().mean((2, 3))[:, 0].tolist() == [0, 20, 10, 30]


def test_a_damaged_file_and_an_unknown_class_are_named(folder_of_images):
    (folder_of_images / "test" / "cat" / "00.png").write_bytes(b"nonsense")
    test = load("image_folder", folder=folder_of_images).test
    with pytest.raises(InputError, match=r"test/cat/00\.png: cannot be read as an image"):
        list(batches(test, 2))
    (folder_of_images / "test" / "cow").mkdir()
    with pytest.raises(InputError, match="test/cow: a class that the training images do not have"):
        load("image_folder", folder=folder_of_images)


def test_one_class_is_none(folder_of_images):
    for split in ("train", "test"):
        shutil.rmtree(folder_of_images / split / "dog")
    with pytest.raises(InputError, match="train: one folder, cat, and a classifier needs two classes at least"):
        load("image_folder", folder=folder_of_images)


def test_a_damaged_file_is_named_in_a_line_whoever_reads_it(folder_of_images):
    (folder_of_images / "test" / "cat" / "00.png").write_bytes(b"nonsense")
    test = load("image_folder", folder=folder_of_images).test
    messages = []
    for workers in (0, 1):
        with pytest.raises(InputError) as refusal:
            list(batches(test, 2, workers=workers))
        messages.append(str(refusal.value).split(" cannot identify")[0])
    assert messages[0] == messages[1] == f"{folder_of_images}/test/cat/00.png: cannot be read as an image:"


def test_worker_processes_change_nothing_but_the_time(folder_of_images):
    train = load("image_folder", folder=folder_of_images).train

    def epoch(workers):
        return list(shuffled_batches(train, 4, seeded(), augment=train.facts.augment, workers=workers))

    for here, there in zip(epoch(0), epoch(2), strict=True):
        assert here.x.equal(there.x)
        assert here.index.equal(there.index)


def test_a_training_image_is_a_random_part_and_a_test_image_the_middle(tmp_path):
    ramp = torch.arange(100, dtype=torch.uint8).expand(3, 100, 100)
    for split in ("train", "test"):
        for i in range(10):
            place = tmp_path / split / ("one", "two")[i % 2]
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{i}.png").write_bytes(encoded(ramp))
    images = load("image_folder", folder=tmp_path).test.x
    middle = images.read(0, None)
    assert middle.float().mean() == pytest.approx(49.5, abs=0.6)
    assert int(middle.min()) == pytest.approx(6, abs=1)
    assert images.read(0, None).equal(middle)
    parts = [images.read(0, seed).float().mean() for seed in range(5)]
    assert len({float(part) for part in parts}) == 5
    assert images.read(0, 3).equal(images.read(1, 3))


def test_imagenet_and_its_second_version_are_read_from_folders(tmp_path):
    names = [f"n{k:03}" for k in range(12)]
    for split in ("train", "val"):
        for name in names:
            (tmp_path / "imagenet" / split / name).mkdir(parents=True)
            (tmp_path / "imagenet" / split / name / "a.JPEG").write_bytes(encoded(some_images(1, 40)[0], "JPEG"))
    for k in (10, 2):
        (tmp_path / "imagenetv2-top-images-format-val" / str(k)).mkdir(parents=True)
        (tmp_path / "imagenetv2-top-images-format-val" / str(k) / "b.jpeg").write_bytes(
            encoded(some_images(1, 40)[0], "JPEG")
        )
    splits = load("imagenet", folder=tmp_path)
    assert splits.train.facts.classes == tuple(names)
    assert list(splits.shifts) == [*shifts(splits.test), "imagenet_v2/top-images"]
    assert splits.shifts["imagenet_v2/top-images"]().y.tolist() == [2, 10]


def test_imagenet_c_is_read_as_it_is_also_from_the_folders_of_groups(tmp_path):
    """Its images were cropped when they were made: nothing of their edges is cut off."""
    framed = torch.zeros(3, 224, 224, dtype=torch.uint8)
    framed[:, 8:-8, 8:-8] = 200
    for split in ("imagenet/train", "imagenet/val", "ImageNet-C/fog/2", "ImageNet-C/blur/glass_blur/5"):
        for name in ("n01", "n02"):
            (tmp_path / split / name).mkdir(parents=True)
            (tmp_path / split / name / "a.png").write_bytes(encoded(framed))
    splits = load("imagenet", folder=tmp_path)
    assert [name for name in splits.shifts if "/" in name] == ["imagenet_c/glass_blur_5", "imagenet_c/fog_2"]
    shifted = splits.shifts["imagenet_c/fog_2"]()
    assert shifted.y.tolist() == [0, 1]
    assert shifted.x.read(0, None).equal(framed)
    assert (splits.test.x.read(0, None) > 0).all(), "of the validation images the middle is taken"


def test_images_on_demand_are_corrupted_when_they_are_read_whatever_the_order(folder_of_images):
    splits = load("image_folder", folder=folder_of_images)
    corrupted_test = splits.shifts["gaussian_noise_5"]()
    images = corrupted_test.x
    first, last = images.read(0, None), images.read(3, None)
    again = corrupted_test[torch.tensor([3, 0])].x
    assert again.read(1, None).equal(first)
    assert again.read(0, None).equal(last)
    noise = last.float() - splits.test.x.read(3, None).float()
    assert not noise.equal(first.float() - splits.test.x.read(0, None).float()), "each image has its own noise"
    assert noise[1].std() / 255 == pytest.approx(0.38, rel=0.2), "as in ImageNet-C, less what is cut off"


# --- errors and the hub ---------------------------------------------------------------------------------------------


def test_a_missing_set_says_where_it_was_looked_for_and_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    monkeypatch.delenv("ASSAY_DATA", raising=False)
    with pytest.raises(InputError, match=r"cifar10: no train\*\.parquet in .*/cifar10; .* install `datasets`"):
        load("cifar10", folder=tmp_path)
    for name in ("cifar100", "svhn", "tiny_imagenet", "imagenet", "newsgroups", "sst2"):
        with pytest.raises(InputError, match="ASSAY_DATA names \\(it names none\\)"):
            load(name)
    for name in ("parquet", "image_folder"):
        with pytest.raises(InputError, match="name the folder"):
            load(name)
    with pytest.raises(InputError, match="needs train"):
        load("parquet", folder=tmp_path)


def test_a_split_that_is_missing_is_named(tmp_path):
    write_images(tmp_path / "cifar10" / "train.parquet", some_images(10, 32), list(range(10)))
    with pytest.raises(InputError, match=r"no test\*\.parquet"):
        load("cifar10", folder=tmp_path)


def test_the_environment_names_the_folder(tmp_path, monkeypatch):
    for split in ("train", "test"):
        write_images(tmp_path / "cifar10" / f"{split}.parquet", some_images(10, 32), list(range(10)))
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path))
    assert len(load("cifar10").test) == 10


def test_what_is_not_on_disk_comes_from_the_hub(monkeypatch):
    column = [{"bytes": encoded(one), "path": None} for one in some_images(10, 32)]
    part = SimpleNamespace(data=SimpleNamespace(table=pa.table({"img": column, "label": list(range(10))})))
    hub = ModuleType("datasets")
    hub.load_dataset = lambda path, configuration: {"uoft-cs/cifar10": {"train": part, "test": part}}[path]
    monkeypatch.setitem(sys.modules, "datasets", hub)
    monkeypatch.delenv("ASSAY_DATA", raising=False)
    assert load("cifar10").test.x.equal(some_images(10, 32))
    with pytest.raises(InputError, match="ufldl-stanford/svhn cannot be downloaded"):
        load("svhn")


def test_an_unknown_set_suggests_the_nearest():
    with pytest.raises(InputError, match=r"unknown data set 'cifar01'; did you mean 'cifar10'\?"):
        load("cifar01")


def test_an_own_set_is_found_by_its_path(tmp_path, monkeypatch):
    code = "from assay.nn.data import load\ndef small(folder, cut): return load('digits', cut=cut)\n"
    (tmp_path / "own_data.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    assert len(load("own_data:small", cut=Cut(n_train=50)).train) == 50
    with pytest.raises(InputError, match="has no attribute 'big'"):
        load("own_data:big")


# --- words and trees ------------------------------------------------------------------------------------------------


def write_glove(folder: Path, width: int, vectors: dict[str, float]) -> None:
    (folder / "glove").mkdir(exist_ok=True)
    lines = [" ".join([word, *[str(value + i) for i in range(width)]]) for word, value in vectors.items()]
    with gzip.open(folder / "glove" / f"glove.6B.{width}d.txt.gz", "wt", encoding="utf-8") as stream:
        stream.write("\n".join(lines) + "\n")


def test_the_vocabulary_is_the_most_frequent_words_and_numbers_start_at_1():
    texts = [["b", "a", "b"], ["c", "a", "d"]]
    assert vocabulary(texts, 3) == ["b", "a", "c"]
    assert numbered(texts, ["b", "a", "c"], 4).tolist() == [[1, 2, 1, 0], [3, 2, 0, 0]]
    assert numbered(texts, ["b", "a", "c"], 2).tolist() == [[1, 2], [3, 2]]


def test_glove_gives_vectors_of_the_wanted_words_in_their_order(tmp_path):
    file = tmp_path / "glove.txt"
    file.write_text("the 1 2\n. . . 3 4\nof 5 6\n")
    vectors, known = read_glove(file, ["of", "unknown", ". . .", "the"])
    assert vectors.tolist() == [[5, 6], [0, 0], [3, 4], [1, 2]]
    assert known.tolist() == [True, False, True, True]


def test_a_damaged_line_of_glove_is_named(tmp_path):
    file = tmp_path / "glove.txt"
    file.write_text("the 1 2\nof 5 six\n")
    with pytest.raises(InputError, match=r"glove\.txt, line 2: .*'six'"):
        read_glove(file, ["of"])


def test_newsgroups_become_word_numbers_with_vectors(tmp_path):
    (tmp_path / "20newsgroups").mkdir()
    table = {
        "text": ["Ships sail, ships sink!", "Sail on"] * 10,
        "label": [1, 0] * 10,
        "label_text": ["sea", "air"] * 10,
    }
    for split in ("train", "test"):
        pq.write_table(pa.table(table), tmp_path / "20newsgroups" / f"{split}-00000-of-00001.parquet")
    write_glove(tmp_path, 100, {"ships": 1.0, "sail": 2.0, "other": 3.0})
    test = load("newsgroups", folder=tmp_path).test
    assert test.x.shape == (20, 1000)
    assert test.x[0, :5].tolist() == [1, 2, 1, 3, 0]  # ships, sail, ships, sink
    assert test.facts.classes == ("air", "sea")
    assert test.facts.vectors[:, 0].tolist() == [0, 1, 2, 0, 0]  # none, ships, sail, sink, on


def test_a_tree_lists_children_before_parents_and_the_root_last():
    number: dict[str, int] = {}
    nodes = parse("(3 (2 Not) (1 (2 7\xa01/2) (0 Bad)))", number)
    assert number == {"not": 0, "7\xa01/2": 1, "bad": 2}
    assert nodes == [(0, -1, -1, 0, 2), (1, -1, -1, 0, 2), (2, -1, -1, 0, 0), (-1, 1, 2, 1, 1), (-1, 0, 3, 2, 3)]
    assert parse("(4 Great)", {}) == [(0, -1, -1, 0, 4)]


def test_newsgroups_may_be_split_at_random(tmp_path):
    (tmp_path / "20newsgroups").mkdir()
    write_glove(tmp_path, 100, {"word": 1.0})
    for split, count in (("train", 15), ("test", 10)):
        table = {"text": [f"word {split}{i}" for i in range(count)], "label": [0, 1] * (count // 2) + [0] * (count % 2)}
        table["label_text"] = [f"group{label}" for label in table["label"]]
        pq.write_table(pa.table(table), tmp_path / "20newsgroups" / f"{split}-00000-of-00001.parquet")
    found = load("newsgroups_random", folder=tmp_path, cut=Cut(held_out=2))
    assert (len(found.train), len(found.held_out), len(found.test)) == (18, 2, 5)
    by_date = load("newsgroups", folder=tmp_path, cut=Cut(held_out=2))
    assert (len(by_date.train), len(by_date.held_out), len(by_date.test)) == (13, 2, 10)


def test_random_newsgroups_have_no_headers_and_end_where_the_posts_end(tmp_path):
    (tmp_path / "20newsgroups").mkdir()
    write_glove(tmp_path, 100, {"word": 1.0})
    posts = [
        "From: Ann\nSubject: hull\n\nship sails",
        "From: Bob\tSubject: hull\t\tship sinks",
        "first " + "last " * 1000,
    ]
    for split in ("train", "test"):
        table = {"text": posts * 5, "label": [0, 1, 0] * 5, "label_text": ["sea", "air", "sea"] * 5}
        pq.write_table(pa.table(table), tmp_path / "20newsgroups" / f"{split}-00000-of-00001.parquet")
    found = load("newsgroups_random", folder=tmp_path)
    assert {tuple(row[row > 0].tolist()) for row in found.train.x} == {(2, 3), (2, 4), (1,) * 1000}
    assert len(found.train.facts.vectors) == 1 + 5  # last, ship, sails, sinks, first


def write_sst(folder: Path, train: str) -> None:
    (folder / "sst").mkdir()
    (folder / "sst" / "train.txt").write_text(train)
    for split in ("dev", "test"):
        (folder / "sst" / f"{split}.txt").write_text("(4 (2 so) (4 good))\n(2 fine)\n(0 bad)\n")
    write_glove(folder, 50, {"so": 1.0, "good": 2.0})


def test_binary_sst_leaves_neutral_roots_out_and_has_neutral_nodes(tmp_path):
    write_sst(tmp_path, "(2 (2 it) (2 is))\n(1 (3 good) (2 not))\n(4 (2 so) (4 (2 so) (4 good)))\n")
    splits = load("sst2", folder=tmp_path)
    assert splits.train.y.tolist() == [0, 1]
    assert splits.train.index.tolist() == [1, 2]
    assert splits.train.x[0, :, 4].tolist() == [1, 2, 0, -1, -1]
    assert splits.train.facts.classes == ("negative", "positive")
    assert splits.train.facts.extra_node_classes == ("neutral",)
    assert splits.train.x[0, 3:].eq(-1).all()
    assert splits.held_out.y.tolist() == splits.test.y.tolist() == [1, 0]
    so, good = splits.test.x[0, :2, 0]
    assert splits.test.facts.vectors[[so, good], 0].tolist() == [1, 2]
    unknown = splits.test.facts.vectors[splits.test.x[1, 0, 0]]
    assert unknown.abs().min() > 0
    assert abs(float(unknown.mean()) + 0.05) < 0.03
    fine = load("sst5", folder=tmp_path)
    assert fine.train.y.tolist() == [2, 1, 4]


@pytest.mark.parametrize("line", ["(2 (2 one) (2 two)", "(9 word)", "word", "(2 (2 a) (2 b) (2 c))", ""])
def test_a_line_that_is_no_tree_is_named(tmp_path, line):
    write_sst(tmp_path, f"(4 good)\n{line}\n(0 bad)\n")
    with pytest.raises(InputError, match=r"train\.txt, line 2: not a binary tree"):
        load("sst2", folder=tmp_path)


# --- shift ----------------------------------------------------------------------------------------------------------


def natural_images(n: int = 24, size: int = 32, channels: int = 3) -> torch.Tensor:
    """Smooth colors with some sharp edges."""
    generator = seeded(5)
    smooth = F.interpolate(torch.rand(n, channels, 5, 5, generator=generator), size, mode="bicubic").clamp(0.1, 0.9)
    mask = F.interpolate(torch.rand(n, 1, 6, 6, generator=generator), size, mode="bicubic") > 0.6
    return torch.where(mask, 1 - smooth, smooth).mul(255).to(torch.uint8)


def distance(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a.float() - b.float()).square().mean())


def test_corruptions_are_those_that_reports_know_by_name():
    assert tuple(CORRUPTIONS) == names.CORRUPTIONS


@pytest.mark.parametrize("name", CORRUPTIONS)
def test_a_corruption_keeps_shape_and_kind_and_is_decided_by_its_seed(name):
    corruption = CORRUPTIONS[name]
    for images in (natural_images(3), natural_images(2, 8, 1), natural_images(2, 48)):
        once, again = (corrupted(images, corruption, 3, seeded(1)) for _ in range(2))
        assert once.dtype is torch.uint8
        assert once.shape == images.shape
        assert once.equal(again)


# By the constants of CIFAR-10-C, each severity of these trades one kind of distance for another.
UNEVEN = ("glass_blur", "motion_blur", "frost", "elastic_transform")


@pytest.mark.parametrize("name", [name for name in CORRUPTIONS if name not in UNEVEN])
def test_severity_moves_images_farther(name):
    images = natural_images()
    distances = [distance(corrupted(images, CORRUPTIONS[name], s, seeded(1)), images) for s in SEVERITIES]
    assert distances[0] > 0
    assert all(a < b for a, b in pairwise(distances))


@pytest.mark.parametrize("name", UNEVEN)
def test_every_severity_moves_images(name):
    images = natural_images()
    assert all(distance(corrupted(images, CORRUPTIONS[name], s, seeded(1)), images) > 10 for s in SEVERITIES)


@pytest.mark.parametrize(
    "name", ["defocus_blur", "zoom_blur", "brightness", "contrast", "pixelate", "jpeg_compression"]
)
def test_without_randomness_images_together_equal_images_one_by_one(name):
    images = natural_images(5)
    together = corrupted(images, CORRUPTIONS[name], 4, seeded(0))
    one_by_one = [corrupted(image[None], CORRUPTIONS[name], 4, seeded(9)) for image in images]
    assert distance(together, torch.cat(one_by_one)) < 1e-3  # the last digit of a rare pixel


def test_noise_has_the_published_size():
    gray = torch.full((20, 3, 32, 32), 128, dtype=torch.uint8)
    noise = corrupted(gray, CORRUPTIONS["gaussian_noise"], 5, seeded()).float().sub(128).std() / 255
    assert float(noise) == pytest.approx(0.10, rel=0.02)
    shot = corrupted(gray, CORRUPTIONS["shot_noise"], 5, seeded()).float().std() / 255
    assert float(shot) == pytest.approx((128 / 255 / 50) ** 0.5, rel=0.02)
    impulse = corrupted(gray, CORRUPTIONS["impulse_noise"], 5, seeded())
    assert float((impulse != 128).float().mean()) == pytest.approx(0.07, rel=0.05)
    assert set(impulse.unique().tolist()) == {0, 128, 255}


def test_large_images_have_the_constants_of_imagenet_c():
    gray = torch.full((1, 3, 224, 224), 128, dtype=torch.uint8)
    noise = corrupted(gray, CORRUPTIONS["gaussian_noise"], 1, seeded()).float().sub(128).std() / 255
    assert noise == pytest.approx(0.08, rel=0.02)
    assert corrupted(gray, CORRUPTIONS["brightness"], 5, seeded()).unique().tolist() == [255]
    disk = CORRUPTIONS["defocus_blur"](point(224), 5, seeded())
    assert (disk > disk.max() / 2).sum() == pytest.approx(np.pi * 10**2, rel=0.05), "a radius of ten pixels"
    trail = CORRUPTIONS["motion_blur"](point(224), 1, seeded())
    assert 8 <= (trail > 0).sum() <= 2 * 10 + 1


def point(side: int) -> torch.Tensor:
    """A white pixel in the middle."""
    image = torch.zeros(1, 1, side, side, dtype=torch.float64)
    image[:, :, side // 2, side // 2] = 1
    return image


def test_contrast_and_brightness_are_what_their_formulas_say():
    images = natural_images(4)
    mean = images.float().mean((2, 3), keepdim=True)
    low = corrupted(images, CORRUPTIONS["contrast"], 5, seeded())
    assert low.equal((mean + 0.15 * (images - mean)).to(torch.uint8))
    bright = corrupted(images, CORRUPTIONS["brightness"], 1, seeded())
    raised = (images.float().amax(1) + 0.05 * 255).clamp(max=255)
    assert bright.amax(1).equal(raised.to(torch.uint8))


def test_values_are_truncated_to_levels_as_by_numpy():
    """np.uint8 of the published code; .2 of 255 is 51, which float64 reaches from some grays and not from others."""
    images = natural_images(2)
    assert corrupted(images, lambda x, *_: x + 0.9 / 255, 1, seeded()).equal(images)
    assert corrupted(images, lambda x, *_: x - 0.1 / 255, 1, seeded()).equal(images - 1)
    gray = np.arange(256, dtype=np.uint8)
    bright = corrupted(torch.from_numpy(gray).expand(1, 3, 1, 256), CORRUPTIONS["brightness"], 4, seeded())[0, 0, 0]
    assert bright.tolist() == np.uint8(np.clip(gray / 255.0 + 0.2, 0, 1) * 255).tolist()
    assert 0 < int((bright[:200] == torch.arange(50, 250)).sum()) < 200


def test_motion_is_rounded_as_by_imagemagick():
    levels = CORRUPTIONS["motion_blur"](natural_images(2).double() / 255, 3, seeded()) * 255
    assert torch.allclose(levels, levels.round(), atol=1e-9)


@pytest.mark.parametrize("severity", SEVERITIES)
def test_zoom_blur_is_the_published_one(severity):
    """clipped_zoom and zoom_blur of hendrycks/robustness, make_cifar_c.py, by scipy."""

    def clipped_zoom(image: np.ndarray, factor: float) -> np.ndarray:
        part = int(np.ceil(32 / factor))
        top = (32 - part) // 2
        large = zoom(image[top : top + part, top : top + part], (factor, factor, 1), order=1)
        trim = (len(large) - 32) // 2
        return large[trim : trim + 32, trim : trim + 32]

    factors = np.arange(1, (1.06, 1.11, 1.16, 1.21, 1.26)[severity - 1], 0.01)
    assert len(factors) == (7, 12, 16, 21, 26)[severity - 1]
    images = natural_images(4)
    blurred = corrupted(images, CORRUPTIONS["zoom_blur"], severity, seeded())
    for image, found in zip(as_arrays(images), as_arrays(blurred), strict=True):
        x = (image / 255.0).astype(np.float32)
        total = np.zeros_like(x)
        for factor in factors:
            total += clipped_zoom(x, factor)
        assert np.array_equal(found, np.uint8(np.clip((x + total) / (len(factors) + 1), 0, 1) * 255))


@pytest.mark.parametrize("sigma", [6.4, 1.92, 1.28, 0.96])
def test_displacements_are_smoothed_up_to_three_sigma_and_repeat_the_edge(sigma):
    """The published field, skimage's gaussian(mode='reflect', truncate=3), here as sums over a padded field."""
    field = 2 * torch.rand(3, 2, 32, 32, generator=seeded(), dtype=torch.float64).numpy() - 1
    reach = int(3 * sigma + 0.5)
    weights = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * sigma**2))
    padded = np.pad(field, ((0, 0), (0, 0), (reach, reach), (reach, reach)), mode="symmetric")
    windows = np.lib.stride_tricks.sliding_window_view(padded, (2 * reach + 1, 2 * reach + 1), axis=(2, 3))
    smooth = np.einsum("nchwij,i,j->nhwc", windows, weights, weights) / weights.sum() ** 2
    assert np.allclose(_displacements(3, 32, 32, sigma, seeded()).numpy(), smooth, atol=1e-12)


@pytest.mark.parametrize("severity", SEVERITIES)
def test_elastic_transform_is_the_published_one(severity):
    """An affine warp that moves three points, reflected like d c b | a b c d, then a displacement, both by scipy."""
    strength, sigma, reach = (
        (0, 0, 0.08),
        (0.05, 0.2, 0.07),
        (0.08, 0.06, 0.06),
        (0.1, 0.04, 0.05),
        (0.1, 0.03, 0.03),
    )[severity - 1]
    images, generator = natural_images(4), seeded()
    moves = 2 * torch.rand(4, 3, 2, generator=generator, dtype=torch.float64).numpy() - 1
    fields = 2 * torch.rand(4, 2, 32, 32, generator=generator, dtype=torch.float64).numpy() - 1
    points = np.array([[26.0, 26.0], [26.0, 6.0], [6.0, 6.0]])
    y, x = np.mgrid[:32, :32]
    expected = []
    for image, move, field in zip(images.numpy(), moves, fields, strict=True):
        forth = np.vstack([np.linalg.solve(np.c_[points, np.ones(3)], points + 32 * reach * move).T, [0, 0, 1]])
        from_x, from_y, _ = np.einsum("ij,jhw->ihw", np.linalg.inv(forth), np.stack([x, y, np.ones_like(x)]))
        right, down = (32 * strength * gaussian_filter(f, 32 * sigma, mode="reflect", truncate=3) for f in field)
        for channel in np.float32(image / 255.0):
            warped = map_coordinates(channel, [from_y, from_x], order=1, mode="mirror")
            moved = map_coordinates(warped, [y + down, x + right], order=1, mode="reflect")
            expected.append(np.uint8(np.clip(moved, 0, 1) * 255))
    found = corrupted(images, CORRUPTIONS["elastic_transform"], severity, seeded()).flatten(0, 1).numpy()
    different = np.abs(found.astype(int) - np.stack(expected))
    assert different.max() <= 1
    assert different.mean() < 1e-3  # values that are whole but for the last digit


@pytest.mark.parametrize("severity", SEVERITIES)
def test_glass_blur_is_the_published_one(severity):
    """Two Gaussian blurs by scipy, and between them levels that overwrite each other, the last pixel first."""
    sigma, times = ((0.05, 1), (0.25, 1), (0.4, 1), (0.25, 2), (0.4, 2))[severity - 1]
    images, generator = natural_images(2), seeded()
    x = np.uint8(gaussian_filter(images.numpy() / 255.0, (0, 0, sigma, sigma), mode="nearest") * 255)
    for _ in range(times):
        down, right = torch.randint(-1, 1, (2, 2, 32, 32), generator=generator).numpy()
        for i, row, column in (
            (i, row, column) for i in range(2) for row in range(31, 1, -1) for column in range(31, 1, -1)
        ):
            x[i, :, row, column] = x[i, :, row + down[i, row, column], column + right[i, row, column]]
    expected = np.uint8(np.clip(gaussian_filter(x / 255.0, (0, 0, sigma, sigma), mode="nearest"), 0, 1) * 255)
    assert np.array_equal(corrupted(images, CORRUPTIONS["glass_blur"], severity, seeded()).numpy(), expected)


@pytest.mark.parametrize("severity", SEVERITIES)
def test_pixelate_is_that_of_pillow(severity):
    images = natural_images(4)
    few = int(32 * (0.95, 0.9, 0.85, 0.75, 0.65)[severity - 1])
    for image, found in zip(
        as_arrays(images), as_arrays(corrupted(images, CORRUPTIONS["pixelate"], severity, seeded())), strict=True
    ):
        small = Image.fromarray(image).resize((few, few), Image.Resampling.BOX)
        assert np.array_equal(found, np.array(small.resize((32, 32), Image.Resampling.BOX)))


def test_blurs_keep_a_flat_image_flat():
    flat = torch.full((2, 3, 32, 32), 77, dtype=torch.uint8)  # of some levels zoom and glass lose one, as published
    for name in ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur", "elastic_transform", "pixelate"):
        assert corrupted(flat, CORRUPTIONS[name], 5, seeded()).equal(flat), name


def test_corruptions_refuse_what_is_no_image_and_no_severity():
    with pytest.raises(InputError, match="severity must be 1 to 5, got 6"):
        corrupted(natural_images(1), CORRUPTIONS["fog"], 6, seeded())
    with pytest.raises(InputError, match=r"uint8 images \[n, c, h, w\], got torch.float32"):
        corrupted(torch.rand(1, 3, 8, 8), CORRUPTIONS["fog"], 1, seeded())


def test_an_image_set_offers_every_corruption_of_its_test_images():
    splits = load("digits")
    assert len(splits.shifts) == 75
    shifted = splits.shifts["gaussian_noise_2"]()
    assert shifted.y.equal(splits.test.y)
    assert shifted.x.equal(splits.shifts["gaussian_noise_2"]().x)
    assert not shifted.x.equal(splits.test.x)


@pytest.fixture
def cifar_folder(tmp_path):
    for split in ("train", "test"):
        write_images(tmp_path / "cifar10" / f"{split}.parquet", some_images(10, 32), list(range(10)))
    return tmp_path


def as_arrays(images: torch.Tensor) -> np.ndarray:
    return images.permute(0, 2, 3, 1).numpy()


def test_cifar10_c_holds_the_test_set_once_a_severity(cifar_folder):
    (cifar_folder / "CIFAR-10-C").mkdir()
    images = some_images(50, 32)
    np.save(cifar_folder / "CIFAR-10-C" / "fog.npy", as_arrays(images))
    np.save(cifar_folder / "CIFAR-10-C" / "labels.npy", np.tile(np.arange(10, dtype=np.uint8), 5))
    shifts = load("cifar10", folder=cifar_folder).shifts
    fog = shifts["cifar10_c/fog_3"]()
    assert fog.x.equal(images[20:30])
    assert fog.y.tolist() == list(range(10))
    np.save(cifar_folder / "CIFAR-10-C" / "fog.npy", as_arrays(images[:49]))
    with pytest.raises(InputError, match=r"fog\.npy: 49 images for 50 labels"):
        shifts["cifar10_c/fog_3"]()


def test_the_newer_test_sets_of_cifar10_are_read(cifar_folder):
    images = some_images(6, 32)
    for place in ("CIFAR-10.1", "CIFAR-10.2"):
        (cifar_folder / place).mkdir()
    np.save(cifar_folder / "CIFAR-10.1" / "cifar10.1_v6_data.npy", as_arrays(images))
    np.save(cifar_folder / "CIFAR-10.1" / "cifar10.1_v6_labels.npy", np.arange(6, dtype=np.int32))
    np.savez(cifar_folder / "CIFAR-10.2" / "cifar102_test.npz", images=as_arrays(images), labels=np.arange(6))
    shifts = load("cifar10", folder=cifar_folder).shifts
    for name in ("cifar10_1", "cifar10_2"):
        assert shifts[name]().x.equal(images)
        assert shifts[name]().y.tolist() == list(range(6))


# --- real data, where there are any ---------------------------------------------------------------------------------


@REAL
@pytest.mark.parametrize(
    ("name", "sizes"), [("sst2", (6920, 872, 1821)), ("sst5", (8544, 1101, 2210)), ("newsgroups", (10183, 1131, 7532))]
)
def test_real_texts_have_the_published_sizes(name, sizes):
    splits = load(name)
    assert (len(splits.train), len(splits.held_out), len(splits.test)) == sizes


@REAL
def test_nodes_of_the_real_treebank_have_the_labels_of_its_files():
    """Negative, positive and neutral nodes of the trees whose root is not neutral, counted in the text itself."""
    splits = load("sst2")
    for split, name in ((splits.train, "train"), (splits.held_out, "dev"), (splits.test, "test")):
        lines = (Path(os.environ["ASSAY_DATA"]) / "sst" / f"{name}.txt").read_text().rstrip("\n").split("\n")
        labels = "".join("".join(re.findall(r"\((\d) ", line)) for line in lines if line[1] != "2")
        counted = [labels.count("0") + labels.count("1"), labels.count("3") + labels.count("4"), labels.count("2")]
        assert split.x[:, :, 4][split.x[:, :, 3] >= 0].bincount().tolist() == counted


@REAL
def test_real_cifar10_has_a_thousand_test_images_a_class():
    assert load("cifar10", cut=Cut(n_train=10)).test.y.bincount().tolist() == [1000] * 10


def test_every_loader_has_a_sentence_that_defines_it():
    assert all(loader.__doc__ for loader in DATA.values())
