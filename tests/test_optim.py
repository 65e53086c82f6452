"""SAM, weight averaging, schedules: against their definitions, and resumable."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.optim import SGD
from torch.optim.lr_scheduler import LambdaLR
from torch.optim.swa_utils import SWALR

from assay.nn.optim import (
    SAM,
    constant,
    cosine,
    cosine_then_swa,
    cyclical,
    ema,
    frozen_statistics,
    linear_to_swa,
    multistep,
    recompute_batch_norm,
    swa,
)


def network(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 3))


def data(step: int = 0, n: int = 16) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(step)
    return torch.randn(n, 4, generator=generator), torch.randint(0, 3, (n,), generator=generator)


def closure_of(model: nn.Module, optimizer: torch.optim.Optimizer, step: int, clip: float | None = None) -> Callable:
    def closure() -> Tensor:
        optimizer.zero_grad()
        x, y = data(step)
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        return loss

    return closure


def sgd(model: nn.Module) -> SGD:
    return SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)


def weights(model: nn.Module) -> Tensor:
    return nn.utils.parameters_to_vector(model.parameters()).detach().clone()


def run(model: nn.Module, optimizer: torch.optim.Optimizer, steps: range) -> None:
    for step in steps:
        optimizer.step(closure_of(model, optimizer, step))


def test_sam_is_its_definition():
    """Gradient at w + rho g / ||g||, norm over all parameters, then the base optimizer's step at w."""
    model, by_hand = network(), network()
    optimizer, base = SAM(sgd(model), rho=0.3), sgd(by_hand)
    for step in range(3):
        loss = optimizer.step(closure_of(model, optimizer, step))
        first = closure_of(by_hand, base, step)()
        w, g = weights(by_hand), nn.utils.parameters_to_vector([p.grad for p in by_hand.parameters()])
        nn.utils.vector_to_parameters(w + 0.3 * g / g.norm(), by_hand.parameters())
        closure_of(by_hand, base, step)()
        nn.utils.vector_to_parameters(w, by_hand.parameters())
        base.step()
        assert loss.item() == first.item()
        assert torch.allclose(weights(model), weights(by_hand), atol=1e-6)


def test_sam_without_radius_is_its_base():
    model, plain = network(), network()
    run(model, SAM(sgd(model), rho=0.0), range(5))
    run(plain, sgd(plain), range(5))
    assert torch.equal(weights(model), weights(plain))


@pytest.mark.parametrize("error", [KeyboardInterrupt, torch.OutOfMemoryError])
def test_sam_comes_back_to_the_weights_if_the_second_look_fails(error):
    model = network()
    optimizer, before = SAM(sgd(model), rho=0.3), weights(model)
    look = closure_of(model, optimizer, 0)

    def closure() -> Tensor:
        if not torch.equal(weights(model), before):
            raise error
        return look()

    with pytest.raises(error):
        optimizer.step(closure)
    assert torch.equal(weights(model), before)


def test_sam_refuses_a_negative_radius():
    with pytest.raises(ValueError, match="rho must be >= 0, got -1"):
        SAM(sgd(network()), rho=-1)


def test_clipping_in_the_closure_leaves_the_climb_as_it_is():
    """Only the direction of the first gradient is used; the second is clipped before the step."""
    model, by_hand = network(), network()
    optimizer, base = SAM(SGD(model.parameters(), lr=0.1), rho=0.3), SGD(by_hand.parameters(), lr=0.1)
    optimizer.step(closure_of(model, optimizer, 0, clip=0.01))
    closure_of(by_hand, base, 0)()
    w, g = weights(by_hand), nn.utils.parameters_to_vector([p.grad for p in by_hand.parameters()])
    nn.utils.vector_to_parameters(w + 0.3 * g / g.norm(), by_hand.parameters())
    closure_of(by_hand, base, 0)()
    g = nn.utils.parameters_to_vector([p.grad for p in by_hand.parameters()])
    assert torch.allclose(weights(model), w - 0.1 * 0.01 * g / g.norm(), atol=1e-6)


def test_a_schedule_on_sam_reaches_the_base():
    model = network()
    optimizer = SAM(sgd(model))
    scheduler = LambdaLR(optimizer, lambda epoch: multistep((0.5,))(epoch, 2))
    run(model, optimizer, range(1))
    scheduler.step()
    assert optimizer.base.param_groups[0]["lr"] == pytest.approx(0.01)


def test_sam_resumes_bit_for_bit_with_its_schedule(tmp_path):
    model = network()
    optimizer = SAM(sgd(model), rho=0.1)
    run(model, optimizer, range(4))
    torch.save([model.state_dict(), optimizer.state_dict()], tmp_path / "state")
    resumed = network(seed=1)
    again = SAM(sgd(resumed), rho=0.1)
    for target, state in zip((resumed, again), torch.load(tmp_path / "state", weights_only=True), strict=True):
        target.load_state_dict(state)
    for m, o in ((model, optimizer), (resumed, again)):
        for group in o.param_groups:
            group["lr"] = 0.05
        run(m, o, range(4, 8))
    assert torch.equal(weights(model), weights(resumed))
    assert again.base.state_dict()["state"][0]["momentum_buffer"].any()


def test_both_passes_update_statistics_unless_frozen():
    for frozen, updates in ((False, 2), (True, 1)):
        model = network()
        optimizer = SAM(sgd(model), rho=0.1, frozen=model if frozen else None)
        run(model, optimizer, range(3))
        assert model[1].num_batches_tracked.item() == 3 * updates


def test_frozen_statistics_normalize_by_the_batch_as_ever():
    model, x = network(), data()[0]
    before = copy.deepcopy(model.state_dict())
    with frozen_statistics(model):
        inside = model(x)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert torch.equal(inside, model(x))
    assert model[1].num_batches_tracked.item() == 1


def test_the_average_of_one_model_is_that_model():
    model = network()
    for average in (swa(), ema(0.9)):
        average.update(model)
        other = network(seed=1)
        average.copy_to(other)
        assert torch.equal(weights(other), weights(model))


def test_swa_is_the_mean_and_ema_forgets():
    models = [network(seed) for seed in range(5)]
    mean, moving = swa(), ema(0.8)
    expected = weights(models[0])
    for model in models:
        mean.update(model)
        moving.update(model)
        expected = 0.8 * expected + 0.2 * weights(model)
    target = network(9)
    mean.copy_to(target)
    assert torch.allclose(weights(target), torch.stack([weights(m) for m in models]).mean(0), atol=1e-6)
    moving.copy_to(target)
    assert torch.allclose(weights(target), expected, atol=1e-6)


def test_averaging_leaves_the_trained_model_alone_and_follows_no_later_change():
    model, average = network(), swa()
    before = weights(model)
    average.update(model)
    with torch.no_grad():
        model[0].weight.add_(1)
    other = network(1)
    average.copy_to(other)
    assert torch.equal(weights(other), before)
    assert torch.equal(model[0].weight.flatten(), before[:32] + 1)


def test_an_average_resumes(tmp_path):
    models = [network(seed) for seed in range(4)]
    whole, part, resumed = swa(), swa(), swa()
    for model in models:
        whole.update(model)
    for model in models[:2]:
        part.update(model)
    torch.save(part.state_dict(), tmp_path / "state")
    resumed.load_state_dict(torch.load(tmp_path / "state", weights_only=True))
    for model in models[2:]:
        resumed.update(model)
    targets = [network(8), network(9)]
    for average, target in zip((whole, resumed), targets, strict=True):
        average.copy_to(target)
    assert torch.equal(*(weights(t) for t in targets))


def test_an_average_resumes_on_another_device_than_it_was_read_to():
    """A checkpoint is read to the CPU; "meta" stands for the device that trains."""
    average, resumed = swa(), swa()
    average.update(network())
    resumed.load_state_dict(average.state_dict())
    resumed.update(network().to("meta"))
    assert {w.device.type for w in resumed.weights.values()} == {"meta"}


def test_an_empty_average_and_a_decay_of_one_are_refused():
    with pytest.raises(ValueError, match="no model was averaged yet"):
        swa().copy_to(network())
    with pytest.raises(ValueError, match=r"decay must be in \[0, 1\), got 1"):
        ema(1)


def test_batch_norm_is_recomputed_over_samples_not_batches():
    """The running mean is that of all inputs, also when the last batch is small; no trace of before is left."""
    model = nn.Sequential(nn.BatchNorm1d(4), nn.Dropout(0.5)).eval()
    model[0].running_mean.fill_(torch.nan)
    x = data(0, 50)[0] * 3 + 1
    recompute_batch_norm(model, x.split(16))
    assert torch.allclose(model[0].running_mean, x.mean(0), atol=1e-6)
    batches = x.split(16)
    variance = sum(len(b) * b.var(0) for b in batches) / 50
    assert torch.allclose(model[0].running_var, variance, atol=1e-5)
    assert model[0].momentum == 0.1
    assert not any(m.training for m in model.modules())


def test_without_batches_statistics_stay_and_the_caller_is_told():
    model, used_up = network().eval(), iter([])
    model[1].running_mean.fill_(3)
    with pytest.raises(ValueError, match="no batch to recompute BatchNorm's statistics from"):
        recompute_batch_norm(model, used_up)
    assert model[1].running_mean.tolist() == [3] * 8
    assert not model[1].training


def test_an_error_on_the_way_brings_momentum_and_modes_back():
    model = network()
    model[1].eval()
    with pytest.raises(TypeError):
        recompute_batch_norm(model, [data(0)[0], "not a tensor"])
    assert model[1].momentum == 0.1
    assert [m.training for m in model] == [True, False, True, True]


def test_a_model_without_batch_norm_is_not_run():
    recompute_batch_norm(nn.Linear(4, 3), iter(["not a tensor"]))


def test_the_rates_of_fmfp_as_coded():
    """lr .1, numbered from epoch 1: 0 at 101, .00955 at 121, then up to .05 at 131 and constant."""
    rate = {number: 0.1 * cosine_then_swa()(number - 1, 201) for number in range(1, 202)}
    assert rate[1] == 0.1
    assert rate[51] == pytest.approx(0.05)
    assert rate[101] == pytest.approx(0, abs=1e-12)
    printed = [0.00955, 0.01054, 0.01341, 0.01789, 0.02352, 0.02977, 0.03602, 0.04166, 0.04614, 0.04901, 0.05]
    assert [rate[number] for number in range(121, 132)] == pytest.approx(printed, abs=5e-6)
    assert [rate[number] for number in (132, 201)] == [pytest.approx(0.05)] * 2


def test_the_rates_of_fmfp_are_those_of_torch():
    optimizer = SGD(network().parameters(), lr=0.1)
    first = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=100)
    second = SWALR(optimizer, swa_lr=0.05)
    optimizer.param_groups[0]["lr"] = 0.1
    schedule = cosine_then_swa()
    for epoch in range(201):
        assert optimizer.param_groups[0]["lr"] == pytest.approx(0.1 * schedule(epoch, 201), abs=1e-6)
        optimizer.step()
        if epoch < 120:
            first.step()
        else:
            second.step()


def test_multistep_drops_after_its_milestones():
    """zhu2022: .1, /10 at 80, 130 and 170 of 200 epochs."""
    schedule = multistep((80 / 200, 130 / 200, 170 / 200))
    drops = [epoch for epoch in range(1, 200) if schedule(epoch, 200) < schedule(epoch - 1, 200)]
    assert drops == [80, 130, 170]
    assert schedule(199, 200) == pytest.approx(1e-3)
    assert [multistep((0.3,), factor=0.2)(epoch, 10) for epoch in (2, 3)] == [1, 0.2]


@pytest.mark.parametrize("epochs", [7, 90, 200, 201, 350])
def test_a_share_of_k_of_n_is_met_at_epoch_k(epochs):
    for k in range(1, epochs):
        schedule = multistep((k / epochs,))
        assert schedule(k - 1, epochs) == 1
        assert schedule(k, epochs) == 0.1


def test_swa_schedule_of_its_authors():
    """lr .1 and swa_lr .05: constant to half of epoch 161, linear to .9 of it, constant."""
    schedule = linear_to_swa()
    for epoch in range(200):
        t = epoch / 161
        factor = 1.0 if t <= 0.5 else 1 - 0.5 * (t - 0.5) / 0.4 if t <= 0.9 else 0.5
        assert schedule(epoch, 200) == pytest.approx(factor, abs=1e-12)


def test_cycles_fall_and_begin_again():
    schedule = cyclical(high=0.5, low=0.1, length=4)
    assert [schedule(epoch, 80) for epoch in range(5)] == pytest.approx([0.5, 0.4, 0.3, 0.2, 0.5])
    assert cyclical(high=0.5, low=0.1)(10.75, 80) == pytest.approx(0.2)


def test_cosine_and_constant():
    assert [cosine()(epoch, 4) for epoch in range(4)] == pytest.approx([1, 0.853553, 0.5, 0.146447], abs=1e-6)
    assert constant(5, 10) == 1


def by_hand(batches: int, *, rho: float = 0.3, steps: int = 3) -> Tensor:
    """SAM over accumulated batches, written out: each climbs by its own gradient."""
    model = network()
    base = sgd(model)
    for step in range(steps):
        total = torch.zeros_like(weights(model))
        for i in range(batches):
            x, y = data(step * batches + i)
            w, looks = weights(model), []
            for _ in range(2):
                model.zero_grad()
                (F.cross_entropy(model(x), y) / batches).backward()
                looks.append(nn.utils.parameters_to_vector([p.grad for p in model.parameters()]).clone())
                nn.utils.vector_to_parameters(w + rho * looks[0] / looks[0].norm(), model.parameters())
            nn.utils.vector_to_parameters(w, model.parameters())
            total += looks[1]
        start = 0
        for p in model.parameters():
            p.grad = total[start : start + p.numel()].view_as(p).clone()
            start += p.numel()
        base.step()
    return weights(model)


@pytest.mark.parametrize("batches", [1, 4])
def test_climbing_without_a_closure_is_sam_of_each_batch(batches):
    model = network()
    optimizer = SAM(sgd(model), rho=0.3)
    for step in range(3):
        optimizer.zero_grad()
        for i in range(batches):
            x, y = data(step * batches + i)
            (F.cross_entropy(model(x), y) / batches).backward()
            with optimizer.climb():
                (F.cross_entropy(model(x), y) / batches).backward()
        optimizer.step()
    assert torch.allclose(weights(model), by_hand(batches), atol=1e-6)


@pytest.mark.parametrize("set_to_none", [True, False])
def test_sam_takes_a_closure_that_zeroes_and_refuses_one_that_accumulates(set_to_none):
    model = network()
    optimizer = SAM(sgd(model), rho=0.3)

    def closure(zero: bool) -> Tensor:
        if zero:
            model.zero_grad(set_to_none)
        loss = F.cross_entropy(model(data()[0]), data()[1])
        loss.backward()
        return loss

    for _ in range(2):
        optimizer.step(lambda: closure(True))
    before = weights(model)
    with pytest.raises(RuntimeError, match="adds to gradients of other batches"):
        optimizer.step(lambda: closure(False))
    assert torch.equal(weights(model), before)


def test_sam_without_a_closure_says_what_it_needs():
    model = network()
    optimizer = SAM(sgd(model))
    with pytest.raises(TypeError, match="SAM looks twice"):
        optimizer.step()
    with pytest.raises(TypeError, match="parameters and its class"):
        SAM(model.parameters())


def test_sam_has_the_signature_of_torch_too():
    model, other = network(), network()
    run(model, SAM(model.parameters(), SGD, rho=0.3, lr=0.1, momentum=0.9, weight_decay=5e-4), range(3))
    run(other, SAM(sgd(other), rho=0.3), range(3))
    assert torch.equal(weights(model), weights(other))


@pytest.mark.parametrize("how", [copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))])
def test_a_copied_sam_goes_on_alike(how):
    model = network()
    optimizer = SAM(sgd(model), rho=0.3)
    run(model, optimizer, range(2))
    other, again = how((model, optimizer))
    assert again.rho == 0.3
    run(model, optimizer, range(2, 4))
    run(other, again, range(2, 4))
    assert torch.equal(weights(model), weights(other))


@pytest.mark.parametrize("how", [copy.deepcopy, lambda pair: pickle.loads(pickle.dumps(pair))])
def test_a_copied_sam_has_a_scaler_and_freezes_the_copied_model(how):
    model = network()
    scaler = torch.amp.GradScaler("cpu", init_scale=8.0)
    other, again = how((model, SAM(sgd(model), frozen=model, scaler=scaler)))
    assert again.frozen is other
    assert again.scaler.get_scale() == 8


def test_a_scaled_sam_steps_on_unscaled_gradients_and_skips_overflow():
    model, plain = network(), network()
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10)
    optimizer, other = SAM(sgd(model), rho=0.3, scaler=scaler), SAM(sgd(plain), rho=0.3)

    def closure(too_much: float = 1.0) -> Tensor:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(data()[0]), data()[1])
        (scaler.scale(loss) * too_much).backward()
        return loss

    for _ in range(3):
        optimizer.step(closure)
        scaler.update()
    run_on_first(plain, other, 3)
    assert torch.allclose(weights(model), weights(plain), atol=1e-6)
    before, scale = weights(model), scaler.get_scale()
    optimizer.step(lambda: closure(torch.inf))
    scaler.update()
    assert torch.equal(weights(model), before)
    assert scaler.get_scale() == scale / 2
    assert all(b.isfinite().all() for b in model.buffers())


def run_on_first(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int) -> None:
    for _ in range(steps):
        optimizer.step(closure_of(model, optimizer, 0))


def test_weights_of_a_wrapped_model_are_averaged():
    model = network()
    average = swa()
    wrapped = torch.compile(model, backend="eager")
    average.update(wrapped)
    average.update(nn.DataParallel(model))
    average.copy_to(model)
    average.copy_to(torch.compile(nn.DataParallel(model), backend="eager"))
    assert set(average.weights) == {name for name, _ in model.named_parameters()}


def test_weights_of_a_model_whose_part_is_compiled_are_averaged():
    model, plain = network(), network(1)
    average = swa()
    average.update(plain)
    model[3] = torch.compile(model[3], backend="eager")
    average.copy_to(model)
    assert torch.equal(weights(model), weights(plain))


def test_weights_of_a_model_in_several_processes_are_averaged():
    torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
    try:
        model, other = network(), network(1)
        average = swa()
        average.update(DistributedDataParallel(model))
        average.update(torch.compile(DistributedDataParallel(other), backend="eager"))
        expected = (weights(model) + weights(other)) / 2
        average.copy_to(DistributedDataParallel(model))
    finally:
        torch.distributed.destroy_process_group()
    assert torch.allclose(weights(model), expected, atol=1e-6)
