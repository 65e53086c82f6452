"""The loop: equal to a bare one, resumable to the bit, the same in two processes, and right in what it writes down."""

from __future__ import annotations

import ctypes
import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.amp import GradScaler
from torch.optim import SGD, Optimizer

from assay import evaluate, files
from assay._core.arrays import InputError
from assay.calibrators import temperature_by_ece, temperature_optimal_on_test
from assay.maps import apply
from assay.metrics import Tables, ece
from assay.nn import networks
from assay.nn.data import Cut, Facts, Splits, crop_and_flip, load, noise_images, samples, shuffled_batches
from assay.nn.losses import cross_entropy, focal
from assay.nn.networks import mlp, resnet8
from assay.nn.objectives import Batch, every_node, of_loss
from assay.nn.optim import SAM, cyclical, multistep, recompute_batch_norm, scaled_step
from assay.nn.recipes import recipe
from assay.nn.training import (
    FIGURES,
    NOTHING,
    Diverged,
    EpochEnd,
    Hardware,
    Recipe,
    Record,
    Start,
    Trained,
    _folder,
    _stage,
    averaged,
    best,
    discard_unreadable,
    fitting,
    initialized,
    last,
    last_linear,
    load_weights,
    predict,
    read_weights,
    seed_of,
    started_from,
    train,
)
from assay.nn.training._configuration import described
from assay.nn.training._hardware import reused_memory
from assay.predictions import Predictions

FULL = Record(tuple(FIGURES), ("train", "held_out", "test"), gradient_norms_at=(1,), reliability_at=(0, 2))


def sgd(model: nn.Module) -> Optimizer:
    return SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)


def sam(model: nn.Module) -> Optimizer:
    return SAM(sgd(model), rho=0.5)


PLAIN = Recipe("plain", of_loss(cross_entropy), sgd, epochs=3, batch_size=48)


@pytest.fixture(scope="module")
def digits() -> Splits:
    return load("digits", cut=Cut(n_train=200, held_out=100))


@pytest.fixture(scope="module")
def cropped(digits: Splits) -> Splits:
    """With augmentation, which digits usually go without."""
    facts = replace(digits.train.facts, augment=partial(crop_and_flip, pad=1))
    return replace(digits, train=replace(digits.train, facts=facts))


def dropping() -> nn.Module:
    """A user's own network: BatchNorm and dropout, so that order, statistics and randomness all matter."""
    torch.manual_seed(0)
    hidden = (nn.Linear(64, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2))
    return nn.Sequential(nn.Flatten(), *hidden, nn.Linear(32, 10))


def weights(model: nn.Module) -> Tensor:
    return torch.cat([w.detach().double().flatten() for w in model.state_dict().values()])


# The loop


@pytest.mark.parametrize("optimizer", [sgd, sam])
def test_the_loop_is_a_bare_loop(cropped: Splits, optimizer: Callable[[nn.Module], Optimizer]):
    """Same weights to the bit, and train figures from the first evaluation of each batch."""
    by_hand, logits = dropping(), torch.zeros(200, 10)
    schedule, augment = multistep((1 / 3,)), cropped.train.facts.augment
    stepped = optimizer(by_hand)
    for epoch in range(3):
        torch.manual_seed(seed_of(7, epoch, 1))
        order = torch.Generator().manual_seed(seed_of(7, epoch))
        for group in stepped.param_groups:
            group["lr"] = 0.05 * schedule(epoch, 3)
        losses = []
        for batch in shuffled_batches(cropped.train, 48, order, augment=augment):

            def closure(batch: Batch = batch, seen: list[Tensor] = []) -> Tensor:  # noqa: B006 (once a batch)
                stepped.zero_grad()
                z = by_hand(batch.x)
                seen.append(z.detach())
                logits[batch.index] = seen[0]
                loss = F.cross_entropy(z, batch.y)
                loss.backward()
                return loss

            closure.__defaults__ = (batch, [])
            losses.append(stepped.step(closure).item() * len(batch.y))
    recipe = replace(PLAIN, optimizer=optimizer, schedule=schedule)
    trained = train(dropping(), cropped, recipe, seed=7)
    assert torch.equal(weights(trained.network), weights(by_hand))
    row = trained.history.epochs[-1]
    assert row["loss"] == pytest.approx(sum(losses) / 200, rel=1e-6)
    assert row["train_accuracy"] == pytest.approx((logits.argmax(1) == cropped.train.y).double().mean().item())
    assert row["train_nll"] == pytest.approx(F.cross_entropy(logits.double(), cropped.train.y).item(), rel=1e-6)


def test_the_seed_decides_and_the_state_of_torch_is_left_alone(cropped: Splits):
    torch.manual_seed(1)
    network = dropping()
    before = torch.get_rng_state()
    first = train(network, cropped, PLAIN, seed=3, record=NOTHING)
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(5)
    again, other = (train(dropping(), cropped, PLAIN, seed=seed, record=NOTHING) for seed in (3, 4))
    assert torch.equal(weights(first.network), weights(again.network))
    assert not torch.equal(weights(first.network), weights(other.network))
    assert torch.equal(
        weights(initialized(mlp, cropped.train, seed=3)), weights(initialized(mlp, cropped.train, seed=3))
    )


def test_inputs_in_double_precision_train_a_network_in_single(digits: Splits):
    """As a user's own loader may give them."""
    facts = replace(digits.train.facts, mean=(), std=())
    parts = (replace(part, x=part.x.double(), facts=facts) for part in (digits.train, digits.held_out, digits.test))
    trained = train(dropping(), Splits(*parts), replace(PLAIN, keep=averaged(start=0.5)))
    assert trained.test.values.dtype == np.float32


@pytest.mark.parametrize("keep", [last, averaged(start=0.5)])
def test_one_sample_more_than_a_batch_is_no_batch_of_its_own(digits: Splits, tmp_path: Path, keep: Callable):
    """A single sample has no variance, which BatchNorm needs; a run that was killed goes on in the same batches."""
    chosen = replace(PLAIN, batch_size=199, keep=keep)
    train(dropping(), digits, chosen, seed=5, out=tmp_path / "whole", record=FULL)
    dies(kill_at, 2, digits, chosen, tmp_path / "killed")
    assert train(dropping(), digits, chosen, seed=5, out=tmp_path / "killed", record=FULL).resumed_at == 1
    assert_same_run(tmp_path / "whole", tmp_path / "killed")


def test_augmentation_is_the_recipes_to_leave_out(cropped: Splits, digits: Splits):
    without = train(dropping(), cropped, replace(PLAIN, augment=False), record=NOTHING)
    assert torch.equal(weights(without.network), weights(train(dropping(), digits, PLAIN, record=NOTHING).network))


class Watching(SGD):
    """Keeps the learning rate of each step."""

    rates: list[float]

    def step(self, closure: Callable[[], Tensor]) -> Tensor:  # type: ignore[override]
        self.rates = [*getattr(self, "rates", []), self.param_groups[0]["lr"]]
        return super().step(closure)


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallopt"), reason="only glibc can be told to keep memory")
def test_what_a_step_frees_serves_the_next_and_goes_back_in_the_end():
    def fresh_pages() -> int:
        """Pages that the system had to supply for 64 MB: 16,384, or 32 where they are huge ones."""
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        torch.ones(2**24)
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    with reused_memory():
        assert np.median([fresh_pages() for _ in range(9)]) < 16  # a page or two are other memory than these 64 MB
    assert fresh_pages() > 20


def test_the_rate_is_set_at_every_step(digits: Splits):
    made: list[Watching] = []

    def watching(model: nn.Module) -> Watching:
        made.append(Watching(model.parameters(), lr=0.1))
        return made[-1]

    cycles = replace(PLAIN, optimizer=watching, schedule=cyclical(high=1.0, low=0.2), epochs=2, batch_size=50)
    train(dropping(), digits, cycles, record=NOTHING)
    assert made[-1].rates == pytest.approx([0.1, 0.08, 0.06, 0.04] * 2)


@pytest.mark.parametrize("precision", ["32-true", "16-mixed"])
def test_the_gradient_is_clipped(digits: Splits, precision: str):
    """A step of SGD without momentum is as long as the rate times the clipped norm, whatever the gradient."""
    one = replace(PLAIN, optimizer=lambda m: SGD(m.parameters(), lr=1.0), epochs=1, batch_size=200, clip_norm=1e-3)
    network = mlp(10, inputs=64)
    before = nn.utils.parameters_to_vector(network.parameters()).detach().clone()
    train(network, digits, one, record=NOTHING, hardware=Hardware("cpu", precision))
    moved = nn.utils.parameters_to_vector(network.parameters()).detach() - before
    assert moved.norm().item() == pytest.approx(1e-3, rel=1e-2)


def test_each_precision_trains_and_its_weights_load(digits: Splits, tmp_path: Path):
    half = ("bf16-mixed", torch.float32), ("16-mixed", torch.float32)
    for precision, dtype in (*half, ("64-true", torch.float64)):
        run = tmp_path / precision
        trained = train(dropping(), digits, PLAIN, out=run, hardware=Hardware("cpu", precision))
        assert next(trained.network.parameters()).dtype == dtype
        loaded = dropping()
        load_weights(loaded, run)
        assert np.array_equal(predict(loaded, digits.test).values, trained.test.values)


@pytest.mark.parametrize("optimizer", [sgd, sam])
def test_float16_stays_close_to_float32_and_goes_on_with_its_scale(digits, tmp_path, monkeypatch, optimizer):
    record = replace(NOTHING, gradient_norms_at=(1,))

    def run(precision: str) -> Trained:
        out, hardware = tmp_path / precision, Hardware("cpu", precision)
        return train(dropping(), digits, replace(PLAIN, optimizer=optimizer), out=out, record=record, hardware=hardware)

    whole, half = run("32-true"), run("16-mixed")
    assert [row["loss"] for row in half.history.epochs] == pytest.approx(
        [row["loss"] for row in whole.history.epochs], rel=0.02
    )
    norms = [trained.history.gradient_norms[1].mean().item() for trained in (half, whole)]
    assert norms[0] == pytest.approx(norms[1], rel=0.05), "those of the loss, not of the scaled one"
    scaler = scaler_state(tmp_path / "16-mixed")
    assert scaler["_growth_tracker"] == 3 * 5, "steps since the scale last changed"
    shutil.rmtree(tmp_path / "16-mixed")
    epoch = _stage.Stage.epoch

    def stopping(stage: _stage.Stage, number: int, *rest: object) -> Tensor:
        if number == 2:
            raise KeyboardInterrupt
        return epoch(stage, number, *rest)

    monkeypatch.setattr(_stage.Stage, "epoch", stopping)
    with pytest.raises(KeyboardInterrupt):
        run("16-mixed")
    monkeypatch.undo()
    resumed = run("16-mixed")
    assert resumed.resumed_at == 2
    assert torch.equal(weights(resumed.network), weights(half.network))
    assert scaler_state(tmp_path / "16-mixed") == scaler


def scaler_state(run: Path) -> dict[str, object]:
    return torch.load(run / "checkpoint.pt", weights_only=True)["stages"][0]["scaler"]


@pytest.mark.parametrize("optimizer", [sgd, sam])
def test_a_step_that_overflows_in_float16_is_left_out_and_the_scale_falls(optimizer: Callable):
    network, scaler = nn.Linear(2, 2), GradScaler("cpu")
    before, stepped = weights(network), optimizer(network)

    def closure(size: float) -> Tensor:
        stepped.zero_grad()
        loss = size * network(torch.ones(1, 2)).sum()
        scaler.scale(loss).backward()
        return loss.detach()

    scaled_step(stepped, partial(closure, 1e38), scaler)
    assert torch.equal(weights(network), before)
    assert scaler.get_scale() == 2**15
    scaled_step(stepped, partial(closure, 1.0), scaler)
    assert weights(network) - before == pytest.approx(-0.05 * torch.ones(6).double(), rel=1e-3)


def test_a_nan_loss_stops_the_run_and_leaves_the_last_good_epoch(digits: Splits, tmp_path: Path):
    def objective(model: nn.Module, batch: Batch) -> Tensor:
        loss = F.cross_entropy(model(batch.x), batch.y)
        return loss * float("nan") if batch.epoch == 1 and 0 in batch.index else loss

    broken = replace(PLAIN, name="broken", objective=lambda task: objective)
    order = torch.randperm(200, generator=torch.Generator().manual_seed(seed_of(0, 1)))
    step = int((order == 0).nonzero()) // 48
    with pytest.raises(Diverged, match=f"recipe broken: the loss is nan in epoch 1, batch {step}"):
        train(dropping(), digits, broken, out=tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["checkpoint.pt", "lock", "manifest.json", "run.json"]
    assert len(torch.load(tmp_path / "checkpoint.pt", weights_only=True)["history"]["epochs"]) == 1


def test_recipes_check_what_they_are_given():
    with pytest.raises(InputError, match="epochs must be at least 1, got 0"):
        replace(PLAIN, epochs=0)
    with pytest.raises(InputError, match="clip_norm must be > 0, got -1"):
        replace(PLAIN, clip_norm=-1)
    with pytest.raises(InputError, match="unknown figure 'acuracy'"):
        Record(("acuracy",))
    with pytest.raises(InputError, match="epoch 3 is to be recorded, but epochs are 0 to 2"):
        Record(reliability_at=(3,)).refuse_beyond(3)
    with pytest.raises(InputError, match="nothing is averaged every 3 epochs where only the last 2 of 4 are"):
        replace(PLAIN, epochs=4, keep=averaged(start=0.5, every=3))


def test_a_network_without_a_last_layer_is_refused_before_it_is_trained(digits: Splits, tmp_path: Path):
    network = nn.Sequential(nn.Conv2d(1, 10, 8), nn.Flatten())
    for record in (Record(), replace(NOTHING, gradient_norms_at=(1,))):
        with pytest.raises(InputError, match=r"no linear layer.*: neither weight_norm nor gradient_norms_at"):
            train(network, digits, PLAIN, out=tmp_path / "run", record=record)
    assert not (tmp_path / "run").exists()
    train(network, digits, PLAIN, record=Record(weight_norm=False))


# Which weights are kept


def after(epochs: int, digits: Splits) -> nn.Module:
    """With a constant rate, a shorter run is the beginning of a longer one."""
    return train(dropping(), digits, replace(PLAIN, epochs=epochs), record=NOTHING).network


def test_the_best_epoch_on_held_out_samples_is_kept(digits: Splits):
    wild = replace(PLAIN, schedule=lambda epoch, epochs: 1.0 if epoch < 3 else 100.0, epochs=4, keep=best())
    trained = train(dropping(), digits, wild)
    accuracies = [row["held_out_accuracy"] for row in trained.history.epochs]
    assert evaluate(trained.held_out)["accuracy"] == max(accuracies) > accuracies[-1]
    with pytest.raises(InputError, match="held-out samples, of which there are none"):
        train(nn.Identity(), replace(digits, held_out=digits.held_out[torch.arange(0)]), wild)  # before it is looked at


def kept_of(values: list[float], l1: Predictions) -> float:
    """The epoch of which `best` keeps the weights where it has these values."""
    left, network = iter(values), nn.Linear(1, 1, bias=False)
    keeper = best(lambda _: next(left))()
    for epoch in range(len(values)):
        nn.init.constant_(network.weight, epoch)
        keeper.look(EpochEnd(network, epoch, len(values), lambda: l1))
    keeper.finish(network, [])
    return network.weight.item()


def test_an_epoch_of_nan_is_not_the_best(l1):
    assert kept_of([float("nan"), 0.2, float("nan"), 0.7, 0.1], l1) == 3
    with pytest.warns(UserWarning, match="no epoch is best on held-out samples, all are nan; the last is kept"):
        assert kept_of([float("nan")] * 3, l1) == 2


def test_of_equally_good_epochs_the_first_is_kept(l1):
    keeper, network = best()(), nn.Linear(1, 1, bias=False)
    for epoch in range(3):
        nn.init.constant_(network.weight, epoch)
        keeper.look(EpochEnd(network, epoch, 3, lambda: l1))
    keeper.finish(network, [])
    assert network.weight.item() == 0


@pytest.mark.parametrize(("start", "every", "epochs"), [(0.5, 1, (3, 4)), (0.0, 2, (2, 4)), (0.75, 1, (4,))])
def test_the_average_is_that_of_the_weights_after_epochs(
    digits: Splits, start: float, every: int, epochs: tuple[int, ...]
):
    averaging = replace(PLAIN, epochs=4, keep=averaged(start=start, every=every))
    found = train(dropping(), digits, averaging, record=NOTHING).network
    mean = [torch.stack(w).mean(0) for w in zip(*(after(n, digits).parameters() for n in epochs), strict=True)]
    for a, b in zip(found.parameters(), mean, strict=True):
        assert torch.allclose(a, b, atol=1e-6)
    by_hand = after(4, digits)
    for w, m in zip(by_hand.parameters(), mean, strict=True):
        w.data.copy_(m)
    recompute_batch_norm(by_hand, [b.x for b in shuffled_batches(digits.train, 200, torch.Generator())])
    assert torch.allclose(found[2].running_mean, by_hand[2].running_mean, atol=1e-5)


def test_a_clean_pass_over_the_training_set_may_be_recorded_and_reliability_in_any_bins(digits: Splits):
    record = Record(("nll",), ("train",), reliability_at=(2,), reliability_bins=25, clean_train=True)
    trained = train(dropping(), digits, PLAIN, record=record)
    clean = evaluate(predict(trained.network, digits.train), ["nll"])["nll"]
    assert trained.history.epochs[-1]["clean_train_nll"] == pytest.approx(clean, abs=1e-9)
    assert trained.history.epochs[-1]["train_nll"] != pytest.approx(clean, rel=1e-3)
    assert len(trained.history.reliability[2].count) == 25


def test_the_optimal_ece_is_below_every_tuned_one(digits: Splits):
    """wang2021, fig 4: it searches the pool that the calibrator chooses from, on the samples themselves."""
    trained = train(dropping(), digits, PLAIN, record=NOTHING)
    tuned = apply(temperature_by_ece(trained.held_out, step=0.01), trained.test)
    assert FIGURES["optimal_ece"](Tables(trained.test)) <= evaluate(tuned, ["ece"])["ece"]


def test_a_start_is_the_checkpoint_of_another_recipe(digits: Splits):
    """The first epochs are those of the other recipe, at the same length; then the optimizer is a new one."""
    other = replace(PLAIN, name="other", schedule=multistep((0.25,)), epochs=99)
    from_other = replace(PLAIN, name="from_other", epochs=4, optimizer=sam, start=Start(other, 0.5))
    rows = train(dropping(), digits, from_other).history.epochs
    assert rows[:2] == train(dropping(), digits, replace(other, epochs=4)).history.epochs[:2]
    assert rows[1]["learning_rate"] == pytest.approx(0.005)
    assert rows[2]["learning_rate"] == 0.05


# Killed and resumed


def kill_at(step: int, splits: Splits, recipe: Recipe, out: Path) -> None:
    """Train until the given step of the run, and die in it as by a power cut."""
    plain, taken = _stage.Stage.step, [0]

    def mortal(self: _stage.Stage, batch: Batch, weight: float) -> Tensor:
        loss = plain(self, batch, weight)
        taken[0] += 1
        if taken[0] == step:
            os.kill(os.getpid(), signal.SIGKILL)
        return loss

    _stage.Stage.step = mortal  # type: ignore[method-assign]
    train(dropping(), splits, recipe, seed=5, out=out, record=FULL)


def kill_while_writing(splits: Splits, recipe: Recipe, out: Path) -> None:
    """Train until the second checkpoint is half written, and die."""
    plain, saved = Path.replace, [0]

    def mortal(temporary: Path, target: Path) -> Path:
        saved[0] += target.name == "checkpoint.pt"
        if saved[0] == 2:
            os.truncate(temporary, 1000)
            os.kill(os.getpid(), signal.SIGKILL)
        return plain(temporary, target)

    Path.replace = mortal  # type: ignore[method-assign]
    train(dropping(), splits, recipe, seed=5, out=out, record=FULL)


def dies(target: Callable[..., None], *args: object) -> None:
    child = multiprocessing.get_context("fork").Process(target=target, args=args)
    child.start()
    child.join()
    assert child.exitcode == -signal.SIGKILL


def assert_same_run(a: Path, b: Path) -> None:
    states = [torch.load(run / "checkpoint.pt", weights_only=True) for run in (a, b)]
    for name, weight in states[0]["network"].items():
        assert torch.equal(weight, states[1]["network"][name]), name
    for file in ("history.json", "run.json"):
        assert (a / file).read_bytes() == (b / file).read_bytes(), file
    for file in ("held_out.npz", "test.npz", "samples.npz"):
        with np.load(a / file) as x, np.load(b / file) as y:
            assert set(x) == set(y)
            assert all(np.array_equal(x[key], y[key]) for key in x), file
    assert not list(b.glob(".*"))


@pytest.mark.parametrize("name", ["cross_entropy", "sam", "fmfp", "crl", "mixup", "cs_kd"])
def test_a_run_killed_at_a_random_point_ends_as_if_it_had_not_been(cropped: Splits, tmp_path: Path, name: str):
    chosen = replace(recipe(name), epochs=5, batch_size=48)
    train(dropping(), cropped, chosen, seed=5, out=tmp_path / "whole", record=FULL)
    step = random.SystemRandom().randrange(6, 21)  # of 25: five epochs of five
    dies(kill_at, step, cropped, chosen, tmp_path / "killed")
    done = (step - 1) // 5
    dies(kill_at, 5 * (5 - done), cropped, chosen, tmp_path / "killed")  # in the very last step
    resumed = train(dropping(), cropped, chosen, seed=5, out=tmp_path / "killed", record=FULL)
    assert resumed.resumed_at == 4, f"killed in step {step}"
    assert_same_run(tmp_path / "whole", tmp_path / "killed")


def test_a_run_killed_while_it_writes_goes_on_from_the_checkpoint_before(cropped: Splits, tmp_path: Path):
    train(dropping(), cropped, PLAIN, seed=5, out=tmp_path / "whole", record=FULL)
    dies(kill_while_writing, cropped, PLAIN, tmp_path / "killed")
    assert list((tmp_path / "killed").glob(".*.tmp"))
    resumed = train(dropping(), cropped, PLAIN, seed=5, out=tmp_path / "killed", record=FULL)
    assert resumed.resumed_at == 1
    assert_same_run(tmp_path / "whole", tmp_path / "killed")


def test_a_finished_run_is_not_trained_again(digits: Splits, tmp_path: Path):
    chosen = replace(PLAIN, keep=averaged(start=0.5))
    first = train(dropping(), digits, chosen, out=tmp_path)
    again = train(dropping(), digits, chosen, out=tmp_path)
    assert again.resumed_at == 3
    assert torch.equal(weights(first.network), weights(again.network))
    assert np.array_equal(files.read(tmp_path / "test.npz").values, again.test.values)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"epochs": 4}, "recipe.epochs is 3 there and 4 here"),
        ({"objective": of_loss(partial(focal, gamma=3.0))}, "recipe.objective.objective.loss"),
        ({"schedule": multistep((0.5,))}, "recipe.schedule"),
    ],
)
def test_a_checkpoint_of_another_recipe_is_refused(digits: Splits, tmp_path: Path, changed: dict, said: str):
    train(dropping(), digits, PLAIN, out=tmp_path, record=NOTHING)
    with pytest.raises(InputError, match=f"holds another run: {said}"):
        train(dropping(), digits, replace(PLAIN, **changed), out=tmp_path, record=NOTHING)


def test_a_checkpoint_of_another_seed_network_or_data_is_refused(digits: Splits, tmp_path: Path):
    train(dropping(), digits, PLAIN, out=tmp_path, record=NOTHING)
    with pytest.raises(InputError, match="seed is 0 there and 1 here"):
        train(dropping(), digits, PLAIN, out=tmp_path, record=NOTHING, seed=1)
    with pytest.raises(InputError, match=r"network\.weights is \d+ there and \d+ here"):
        train(mlp(10, inputs=64), digits, PLAIN, out=tmp_path, record=NOTHING)
    others = load("digits", cut=Cut(n_train=200, held_out=100, seed=1))
    with pytest.raises(InputError, match=r"data\.train\.which"):
        train(dropping(), others, PLAIN, out=tmp_path, record=NOTHING)
    inverted = replace(digits, test=replace(digits.test, x=255 - digits.test.x))
    with pytest.raises(InputError, match=r"another run: data\.test\.inputs is \w+ there and \w+ here$"):
        train(dropping(), inverted, PLAIN, out=tmp_path, record=NOTHING)
    raw = replace(digits.train, facts=replace(digits.train.facts, mean=(0.0,), std=(1.0,)))
    with pytest.raises(InputError, match=r"another run: data\.mean is"):
        train(dropping(), replace(digits, train=raw), PLAIN, out=tmp_path, record=NOTHING)
    smooth = dropping()
    smooth[3] = nn.Tanh()
    with pytest.raises(InputError, match=r"another run: network\.layers is \w+ there and \w+ here$"):
        train(smooth, digits, PLAIN, out=tmp_path, record=NOTHING)


def functions_of_a_user() -> list[Callable]:
    """What an edited line of a script leaves of the same name."""

    def one(x: Tensor, rate: float = 0.1) -> Tensor:
        return 2 * x

    def two(x: Tensor, rate: float = 0.1) -> Tensor:
        return 3 * x

    def three(x: Tensor, rate: float = 0.2) -> Tensor:
        return 2 * x

    for function in (two, three):
        function.__qualname__ = one.__qualname__
    weighing = [partial(F.cross_entropy, weight=weight) for weight in (torch.ones(3), torch.arange(3.0))]
    return [one, two, three, *weighing]


def test_what_is_described_tells_apart_what_differs():
    texts = [json.dumps(described(function)) for function in functions_of_a_user()]
    assert len(set(texts)) == len(texts)
    assert texts == [json.dumps(described(function)) for function in functions_of_a_user()]


def test_a_function_that_holds_itself_is_described():
    def again(n: int) -> int:
        return n and again(n - 1)

    assert described(again)["again"] == "itself"


def test_a_finished_run_says_who_trained_it(digits: Splits, tmp_path: Path):
    train(dropping(), digits, PLAIN, out=tmp_path, record=NOTHING)
    about = json.dumps(json.loads((tmp_path / "run.json").read_text()) | {"threads": [101]}, indent=1)
    (tmp_path / "run.json").write_text(about)
    train(dropping(), digits, PLAIN, out=tmp_path, record=NOTHING)
    assert (tmp_path / "run.json").read_text() == about


def test_a_resumed_run_keeps_all_its_numbers_of_threads(digits: Splits, tmp_path: Path):
    dies(kill_while_writing, digits, PLAIN, tmp_path)
    about = json.loads((tmp_path / "run.json").read_text())
    (tmp_path / "run.json").write_text(json.dumps(about | {"threads": [101]}))
    assert train(dropping(), digits, PLAIN, seed=5, out=tmp_path, record=FULL).resumed_at == 1
    assert json.loads((tmp_path / "run.json").read_text())["threads"] == [101, torch.get_num_threads()]


def test_a_checkpoint_that_cannot_be_read_now_is_not_thrown_away(
    digits: Splits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    train(dropping(), digits, PLAIN, out=tmp_path, record=NOTHING)

    def out_of_descriptors(*_: object, **__: object) -> None:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patched:
        patched.setattr(_folder.torch, "load", out_of_descriptors)
        with pytest.raises(InputError, match="Too many open files"):
            discard_unreadable(tmp_path)
    discard_unreadable(tmp_path)
    assert (tmp_path / "checkpoint.pt").is_file()
    os.truncate(tmp_path / "checkpoint.pt", 1000)
    discard_unreadable(tmp_path)
    assert not (tmp_path / "checkpoint.pt").exists()


def test_processes_share_the_order_and_crop_and_flip_each_for_itself(cropped: Splits):
    def first(rank: int) -> Batch:
        seeded, facts = torch.Generator().manual_seed(3), cropped.train.facts
        same = replace(cropped.train, x=cropped.train.x[:1].expand(200, -1, -1, -1))  # what differs is the cropping
        return next(shuffled_batches(same, 48, seeded, augment=facts.augment, rank=rank))

    one, two, three = (first(rank) for rank in range(3))
    assert one.index.equal(two.index)
    assert two.index.equal(three.index)
    assert not one.x.equal(two.x)
    assert not two.x.equal(three.x)
    assert two.x.equal(first(1).x)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda n_classes: 10, "a factory must give an nn.Module, and gave int"),
        (lambda n_classes: nn.Flatten(), "Flatten has no weights to train"),
        (lambda n_classes: nn.Sequential(nn.Flatten(), nn.Linear(64, 3)), "3 logits for 10 classes"),
    ],
)
def test_what_does_not_fit_says_why(
    digits: Splits, monkeypatch: pytest.MonkeyPatch, made: Callable[[int], object], said: str
):
    monkeypatch.setattr(networks, "NETWORKS", {"mine": made})
    with pytest.raises(InputError, match=f"mine.*{said}"):
        fitting("mine", digits.train, "digits", seed=0)


def test_a_full_disk_is_named(digits: Splits, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    plain = os.open

    def open_full(path: Path, flags: int, *mode: int) -> int:
        return plain("/dev/full", os.O_WRONLY) if "checkpoint" in str(path) else plain(path, flags, *mode)

    monkeypatch.setattr(os, "open", open_full)
    with pytest.raises(InputError, match="cannot be written: No space left on device"):
        train(dropping(), digits, PLAIN, out=tmp_path, record=NOTHING)


def test_a_step_of_one_sample_alone_is_named(digits: Splits):
    with pytest.raises(InputError, match=r"recipe plain: Expected more than 1 value.*choose another batch size"):
        train(dropping(), digits, replace(PLAIN, batch_size=1), record=NOTHING)


def test_predictions_that_are_no_numbers_name_recipe_and_epoch(digits: Splits):
    def broken(model: nn.Module, batch: Batch) -> Tensor:
        loss = F.cross_entropy(model(batch.x), batch.y)
        with torch.no_grad():
            next(model.parameters()).fill_(float("nan") if batch.epoch else 0.01)
        return loss

    slow = Recipe("slow", lambda task: broken, lambda model: SGD(model.parameters(), lr=0.0), epochs=3, batch_size=200)
    with pytest.raises(InputError, match="recipe slow, after epoch 1: row 0, class 0: logit is nan"):
        train(mlp(10, inputs=64), digits, slow, record=Record(("accuracy",), ("test",)))


def test_a_broken_checkpoint_is_an_error_that_names_it(digits: Splits, tmp_path: Path):
    (tmp_path / "checkpoint.pt").write_bytes(b"no checkpoint")
    with pytest.raises(InputError, match=r"checkpoint\.pt: cannot be read"):
        train(dropping(), digits, PLAIN, out=tmp_path, record=NOTHING)
    with pytest.raises(InputError, match="no such file"):
        load_weights(dropping(), tmp_path / "nowhere")


@pytest.mark.parametrize("state", [{}, [1.0], {"configuration": {}, "network": {}}])
def test_a_checkpoint_that_lacks_something_is_named(digits: Splits, tmp_path: Path, state: object):
    torch.save(state, tmp_path / "checkpoint.pt")
    with pytest.raises(InputError, match=r"checkpoint\.pt: is no checkpoint of assay"):
        train(dropping(), digits, PLAIN, out=tmp_path, record=NOTHING)


def test_a_flipped_bit_in_a_finished_checkpoint_is_noticed(digits: Splits, tmp_path: Path):
    train(dropping(), digits, PLAIN, out=tmp_path, record=NOTHING)
    file, predictions = tmp_path / "checkpoint.pt", (tmp_path / "test.npz").read_bytes()
    content = file.read_bytes()
    for bit in np.random.default_rng(0).integers(0, 8 * len(content), 48).tolist():
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << (bit % 8)
        file.write_bytes(flipped)
        with pytest.raises(InputError, match="has changed since it was written"):
            load_weights(dropping(), tmp_path)
    with pytest.raises(InputError, match="has changed since it was written"):
        train(dropping(), digits, PLAIN, out=tmp_path, record=NOTHING)
    assert (tmp_path / "test.npz").read_bytes() == predictions


def test_a_flipped_bit_in_a_checkpoint_under_way_is_an_error_or_changes_nothing(digits: Splits, tmp_path: Path):
    """It changes with every epoch, and has no digest but the checksums of its archive."""
    train(dropping(), digits, PLAIN, out=tmp_path, record=NOTHING)
    file = tmp_path / "checkpoint.pt"
    (tmp_path / "manifest.json").write_text('{"files": {"checkpoint.pt": null}}')
    trained = dropping()
    load_weights(trained, tmp_path)
    content = file.read_bytes()
    for bit in np.random.default_rng(0).integers(0, 8 * len(content), 48).tolist():
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << (bit % 8)
        file.write_bytes(flipped)
        again = dropping()
        with suppress(InputError):
            load_weights(again, tmp_path)
            assert torch.equal(weights(again), weights(trained)), bit


def test_other_files_are_not_taken_for_a_run(digits: Splits, tmp_path: Path):
    mine = {"test.npz": b"mine", ".mine.tmp": b"mine too"}
    for name, content in mine.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match="is not the folder of a run"):
        train(dropping(), digits, PLAIN, out=tmp_path, record=NOTHING)
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == mine


def test_run_json_says_all_that_the_run_depends_on(digits: Splits, tmp_path: Path):
    chosen = replace(PLAIN, objective=of_loss(partial(focal, gamma=5.0)), clip_norm=2.0)
    train(dropping(), digits, chosen, seed=11, out=tmp_path, record=NOTHING, names={"data": "digits"})
    about = json.loads((tmp_path / "run.json").read_text())
    assert about["recipe"]["objective"]["objective"]["loss"]["gamma"] == 5.0
    assert (about["seed"], about["recipe"]["clip_norm"], about["names"]) == (11, 2.0, {"data": "digits"})
    assert about["threads"] == [torch.get_num_threads()]
    assert about["versions"]["torch"] == torch.__version__


# Several processes

PROCESSES = """
import sys
from pathlib import Path
import torch
from torch.optim import SGD
from assay.nn.data import Cut, load
from assay.nn.losses import cross_entropy
from assay.nn.networks import mlp
from assay.nn.objectives import of_loss
from assay.nn.training import Hardware, Recipe, initialized, train

torch.set_num_threads(1)
digits = load("digits", cut=Cut(n_train=203, held_out=20))
recipe = Recipe("plain", of_loss(cross_entropy), lambda m: SGD(m.parameters(), lr=0.1, momentum=0.9), 1, batch_size=32)
hardware = Hardware("cpu", "64-true")
train(initialized(mlp, digits.train, seed=0), digits, recipe, out=Path(sys.argv[1]), hardware=hardware)
"""


def in_one_and_in_two_processes(text: str, folder: Path) -> None:
    """Run a script with `folder/one` for its argument, and again with `folder/two` under torchrun."""
    script = folder / "processes.py"
    script.write_text(text)
    several = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    for run, launcher in (("one", []), ("two", several)):
        environment = os.environ | {"OMP_NUM_THREADS": "1"}
        command = [sys.executable, *launcher, str(script), str(folder / run)]
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr


def checkpoint(run: Path) -> dict:
    return torch.load(run / "checkpoint.pt", weights_only=True)


def test_two_processes_equal_one(tmp_path: Path):
    """On the same global batches, of which the last, of 11, is cut into 6 and 5."""
    in_one_and_in_two_processes(PROCESSES, tmp_path)
    one, two = (checkpoint(tmp_path / run) for run in ("one", "two"))
    for name, weight in one["network"].items():
        assert weight.dtype == torch.float64
        assert torch.allclose(weight, two["network"][name], rtol=0, atol=1e-6)
    rows = [state["history"]["epochs"][0] for state in (one, two)]
    assert rows[0] == pytest.approx(rows[1], abs=1e-6, nan_ok=True)
    assert torch.equal(one["history"]["learned_epoch"], two["history"]["learned_epoch"])


MEMORY_AND_TREES = """
import sys
from pathlib import Path
import torch
from torch.optim import SGD
from assay.nn.data import Cut, Facts, Splits, load, samples
from assay.nn.losses import cross_entropy
from assay.nn.networks import mlp, tree_lstm
from assay.nn.objectives import crl, every_node
from assay.nn.training import Hardware, Recipe, initialized, train

def sgd(model):
    return SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)

torch.set_num_threads(1)
out, hardware = Path(sys.argv[1]), Hardware("cpu", "64-true")
digits = load("digits", cut=Cut(n_train=203, held_out=20))
train(initialized(mlp, digits.train, seed=0), digits, Recipe("crl", crl(), sgd, 2), out=out / "crl", hardware=hardware)

tree = [[0, -1, -1, 0, 1], [1, -1, -1, 0, 0], [-1, 0, 1, 1, -1]]
x = torch.tensor(tree).repeat(24, 1, 1)
x[:, :2, 0] = torch.arange(48).view(24, 2) % 7
x[:, 2, 4] = x[:, 0, 0] % 2
trees = samples(x, x[:, 2, 4], Facts(("bad", "good"), vectors=torch.eye(7)))
network = initialized(tree_lstm, trees, seed=0)
network.body.dropout.p = 0.0
recipe = Recipe("trees", every_node(cross_entropy), sgd, 2, batch_size=8)
train(network, Splits(trees, trees, trees), recipe, out=out / "trees", hardware=hardware)
"""


@pytest.mark.long
def test_two_processes_remember_and_look_at_trees_as_one_does(tmp_path: Path):
    """Where a sample was right counts for CRL in both; in its first epoch CRL is cross-entropy, however it is cut."""
    in_one_and_in_two_processes(MEMORY_AND_TREES, tmp_path)
    states = [[checkpoint(tmp_path / run / name) for name in ("crl", "trees")] for run in ("one", "two")]
    (crl_one, trees_one), (crl_two, trees_two) = states
    counts = [stage["objective"]["count"] for stage in (*crl_one["stages"], *crl_two["stages"])]
    assert counts[0].sum() > 20
    assert torch.equal(counts[0], counts[1])
    assert torch.equal(counts[0], counts[2])
    for name, weight in trees_one["network"].items():
        assert torch.allclose(weight, trees_two["network"][name], rtol=0, atol=1e-6)
    for a, b in zip(trees_one["history"]["epochs"], trees_two["history"]["epochs"], strict=True):
        assert a == pytest.approx(b, abs=1e-6, nan_ok=True)


# History


def test_of_trees_the_roots_are_recorded():
    """With a rate of 0 the figures of the training pass, which looks at every node, are those of the network."""
    x = torch.tensor([[[0, -1, -1, 0, 1], [1, -1, -1, 0, 0], [-1, 0, 1, 1, 1]]]).repeat(6, 1, 1)
    x[3:] = torch.tensor([[2, -1, -1, 0, 0], [-1] * 5, [-1] * 5])  # of one node
    trees = samples(x, torch.tensor([1] * 3 + [0] * 3), Facts(("bad", "good"), vectors=torch.eye(3)))
    network = fitting("tree_lstm", trees, "trees", seed=0)
    network.body.dropout.p = 0.0
    chosen = Recipe("trees", every_node(cross_entropy), lambda m: SGD(m.parameters(), lr=0.0), 1, batch_size=4)
    row = train(network, Splits(trees, trees, trees), chosen).history.epochs[0]
    assert row["train_nll"] == pytest.approx(row["held_out_nll"], rel=1e-6)


def test_history_of_held_out_and_test_samples_is_that_of_the_predictions(digits: Splits):
    trained = train(dropping(), digits, PLAIN, record=FULL)
    row = trained.history.epochs[-1]
    for split, predictions in (("held_out", trained.held_out), ("test", trained.test)):
        values, outcomes = evaluate(predictions), predictions.outcomes()
        for key in ("accuracy", "nll", "ece", "auroc", "aurc"):
            assert row[f"{split}_{key}"] == pytest.approx(values[key], abs=1e-12)
        for kind, rows in (("correct", outcomes.correct), ("wrong", ~outcomes.correct)):
            assert row[f"{split}_nll_{kind}"] == pytest.approx(outcomes.nll[rows].mean().item())
            assert row[f"{split}_entropy_{kind}"] == pytest.approx(outcomes.entropy[rows].mean().item())
        true = np.take_along_axis(predictions.probabilities.astype(float), predictions.labels[:, None], 1)
        assert row[f"{split}_true_class"] == pytest.approx(true.mean().item())
        fit = temperature_optimal_on_test(predictions, ece, step=0.01).fit
        assert row[f"{split}_optimal_ece"] == fit.after <= row[f"{split}_ece"]
    assert row["weight_norm"] == pytest.approx(last_linear(trained.network, digits.train).weight.norm().item())


def test_each_item_of_the_history_can_be_left_out(digits: Splits):
    nothing = train(dropping(), digits, PLAIN, record=NOTHING).history
    assert [set(row) for row in nothing.epochs] == [{"epoch", "learning_rate", "loss"}] * 3
    assert nothing.learned_epoch is None
    some = train(dropping(), digits, PLAIN, record=replace(NOTHING, figures=("aurc",), on=("test",))).history
    assert set(some.epochs[0]) == {"epoch", "learning_rate", "loss", "test_aurc"}


class Remembering:
    """Cross-entropy that keeps the training pass's logits, by epoch and sample."""

    def __init__(self) -> None:
        self.logits: dict[int, Tensor] = {}

    def __call__(self, model: nn.Module, batch: Batch) -> Tensor:
        z = model(batch.x)
        self.logits.setdefault(batch.epoch, torch.zeros(200, 10))[batch.index] = z.detach()
        return F.cross_entropy(z, batch.y)


def test_learned_epoch_and_reliability_come_from_the_training_pass(digits: Splits):
    seen = Remembering()
    history = train(dropping(), digits, replace(PLAIN, epochs=5, objective=lambda task: seen), record=FULL).history
    right = torch.stack([logits.argmax(1) == digits.train.y for logits in seen.logits.values()])  # [5, n]
    by_hand = [next(e for e in range(6) if bool(right[e:, i].all())) for i in range(200)]
    assert history.learned_epoch.tolist() == by_hand
    assert 0 < history.learned_epoch.min() + 1 <= history.learned_epoch.max() <= 5
    assert set(history.reliability) == {0, 2}
    confidence = seen.logits[2].softmax(1).amax(1)
    assert history.reliability[2].count.sum() == 200
    assert history.reliability[2].correct.sum() == right[2].sum()
    assert history.reliability[2].confidence.sum() == pytest.approx(confidence.sum().item(), rel=1e-6)


def test_gradient_norms_are_those_of_each_sample_alone(digits: Splits):
    """Against the gradient of each sample's loss by autograd, without BatchNorm, which would mix the samples."""
    one = replace(PLAIN, epochs=1, optimizer=lambda m: SGD(m.parameters(), lr=0.0))
    network = mlp(10, inputs=64)
    history = train(network, digits, one, record=replace(NOTHING, gradient_norms_at=(0,))).history
    x = next(shuffled_batches(digits.train[torch.arange(200)], 200, torch.Generator().manual_seed(0)))
    for i in range(10):
        network.zero_grad()
        F.cross_entropy(network(x.x[i : i + 1]), x.y[i : i + 1]).backward()
        by_hand = network.head.weight.grad.norm().item()
        assert history.gradient_norms[0][x.index[i]].item() == pytest.approx(by_hand, rel=1e-4)


def test_of_cs_kd_the_samples_count_and_not_their_partners(digits: Splits):
    """The mean loss of cross-entropy with weight 0 of distillation is that of the samples; so is their accuracy."""
    chosen = replace(recipe("cs_kd"), epochs=1, batch_size=200, optimizer=lambda m: SGD(m.parameters(), lr=0.0))
    network = mlp(10, inputs=64)
    row = train(network, digits, chosen).history.epochs[0]
    assert row["train_accuracy"] == pytest.approx(evaluate(predict(network, digits.train))["accuracy"])


# Prediction and progress


def test_predict_leaves_the_modes_alone_and_names_the_samples(digits: Splits):
    network = dropping()
    network[2].eval()
    predictions = predict(network, digits.test, batch_size=100)
    assert [m.training for m in (network, network[2], network[4])] == [True, False, True]
    assert predictions.ids.tolist() == digits.test.index.tolist()
    whole = predict(network.eval(), digits.test, batch_size=359)
    assert np.allclose(predictions.values, whole.values, atol=1e-6)


def test_features_are_what_enters_the_last_layer(digits: Splits):
    network = resnet8(10, channels=1).eval()
    predictions = predict(network, digits.test, features=True)
    assert predictions.features.shape == (359, 64)
    logits = network.head(torch.from_numpy(predictions.features)).detach().numpy()
    assert np.allclose(logits, predictions.values, atol=1e-5)
    with pytest.raises(InputError, match="no linear layer"):
        last_linear(nn.Sequential(nn.Conv2d(1, 10, 8), nn.Flatten()), digits.test)


def test_the_last_layer_is_the_one_that_samples_come_to_last(digits: Splits):
    class HeadFirst(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head, self.body = nn.Linear(16, 10), nn.Linear(64, 16)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.body(x.flatten(1)))

    network = HeadFirst()
    assert last_linear(network, digits.test) is network.head
    assert predict(network, digits.test, features=True).features.shape == (359, 16)
    assert not network.head._forward_pre_hooks


def test_a_network_must_give_logits(digits: Splits):
    class Pair(nn.Flatten):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
            return super().forward(x), x

    with pytest.raises(InputError, match="the model returned 2 values and nothing called logits"):
        predict(Pair(), digits.test)
    with pytest.raises(InputError, match=r"Identity must give logits \[n, k\], and gave \[359, 1, 8, 8\]"):
        predict(nn.Identity(), digits.test)


def test_training_is_quiet_where_there_is_no_terminal(
    digits: Splits, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    train(dropping(), digits, PLAIN, record=NOTHING)
    assert capfd.readouterr() == ("", "")
    monkeypatch.setenv("FORCE_COLOR", "1")  # which makes rich believe in one
    train(dropping(), digits, PLAIN, record=NOTHING)
    out, err = capfd.readouterr()
    assert out == ""
    assert "plain" in err
    assert "100%" in err


# Given weights


def public_names(network) -> dict[str, torch.Tensor]:
    """The weights of a ResNet under the names of pytorch_resnet_cifar10, written out for one block a stage."""
    own = network.state_dict()
    layers = {"body.0.0.0": "conv1", "body.0.0.1": "bn1", "head": "linear"}
    for stage in range(3):
        for place, number in ((0, 1), (2, 2)):
            layers[f"body.1.{stage}.0.branch.{place}.0"] = f"layer{stage + 1}.0.conv{number}"
            layers[f"body.1.{stage}.0.branch.{place}.1"] = f"layer{stage + 1}.0.bn{number}"
    split = {name: name.rpartition(".") for name in own if not name.endswith("num_batches_tracked")}
    return {f"{layers[layer]}.{kind}": own[name].clone() for name, (layer, _, kind) in split.items()}


@pytest.fixture
def public_file(tmp_path) -> Path:
    """Weights of a ResNet-8 under public names."""
    file = tmp_path / "weights" / "net.safetensors"
    file.parent.mkdir()
    torch.manual_seed(3)
    save_file(public_names(resnet8(10)), file, {"normalization": "mean .4 .5 .6, std .1 .2 .3"})
    return file


def test_a_network_starts_from_weights_under_public_names_and_their_normalization(public_file, tmp_path, monkeypatch):
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path))
    weights = read_weights("weights/net.safetensors")
    network = resnet8(10)
    noise = noise_images(10, 8, n=40)
    splits = started_from(weights, network, noise)
    assert splits.train.facts.mean == splits.test.facts.mean == (0.4, 0.5, 0.6)
    assert splits.train.facts.std == (0.1, 0.2, 0.3)
    torch.manual_seed(3)
    same = resnet8(10)
    assert all(
        torch.equal(a, b) for a, b in zip(network.state_dict().values(), same.state_dict().values(), strict=True)
    )
    own = tmp_path / "own.safetensors"
    save_file(network.state_dict(), own)
    assert started_from(read_weights(own), resnet8(10), noise) is noise


@pytest.mark.parametrize(
    ("network", "message"),
    [
        (
            lambda: resnet8(10, channels=1),
            r"weights 'body\.0\.0\.0\.weight' are \[16, 3, 3, 3\] there and \[16, 1, 3, 3\]",
        ),
        (lambda: mlp(10, inputs=4), r"no weights '.*' of this network"),
    ],
)
def test_weights_of_another_network_are_refused(public_file, network, message):
    with pytest.raises(InputError, match=message):
        started_from(read_weights(public_file), network(), noise_images(10, 8, n=40))


def test_a_file_that_holds_no_weights_is_named(tmp_path):
    (tmp_path / "x.safetensors").write_bytes(b"no")
    with pytest.raises(InputError, match=r"x\.safetensors: cannot be read as safetensors"):
        read_weights(tmp_path / "x.safetensors")
    with pytest.raises(InputError, match=r"no weights at .*absent"):
        read_weights(tmp_path / "absent.safetensors")


def test_convolutions_run_with_channels_last_on_cpus():
    network, seen = resnet8(10), []
    network.body[1].register_forward_hook(lambda module, inputs, output: seen.append(output))
    train(network, noise_images(10, 8, n=40), replace(PLAIN, epochs=1), record=NOTHING, hardware=Hardware("cpu"))
    assert seen
    assert all(x.is_contiguous(memory_format=torch.channels_last) for x in seen)
