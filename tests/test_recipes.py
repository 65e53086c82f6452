"""The table of recipes: every one trains, and each is what its paper says."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim import SGD

from assay._core.arrays import InputError
from assay.nn.data import Splits, load
from assay.nn.losses import cross_entropy, focal, mmce_weighted, sb_ece_lb
from assay.nn.networks import mlp
from assay.nn.objectives import Batch, Task, margin, max_probability, with_partners
from assay.nn.optim import SAM
from assay.nn.recipes import METHODS, RECIPES, SETUPS, recipe
from assay.nn.training import EpochEnd, Start, initialized, train
from assay.nn.training._configuration import described

ONE_ANSWER = ("mixup", "mixup_as_coded", "cs_kd", "crl")
IMAGE_SETUPS = [name for name in SETUPS if name != "mukhoti2020_sst"]


@pytest.fixture(scope="module")
def digits() -> Splits:
    return load("digits")


@pytest.mark.parametrize("name", [*RECIPES, *(f"cross_entropy@{setup}" for setup in IMAGE_SETUPS)])
def test_every_recipe_learns_digits_in_two_epochs(digits: Splits, name: str):
    """To three times chance at least, most to nine; the second epoch is at a tenth of the rate or less."""
    short = replace(recipe(name), epochs=2, batch_size=16)
    trained = train(initialized(mlp, digits.train, seed=0), digits, short)
    assert trained.test.outcomes().correct.mean() > 0.3
    assert all(row["loss"] == row["loss"] for row in trained.history.epochs)


@pytest.mark.parametrize("setup", SETUPS)
def test_every_method_stands_in_every_setup_and_is_told_from_the_others(setup: str):
    """Descriptions, which tell one run's configuration from another's, are plain data and all differ."""
    methods = [name for name in METHODS if setup != "mukhoti2020_sst" or name not in ONE_ANSWER]
    found = {name: json.dumps(described(replace(recipe(f"{name}@{setup}"), name=""))) for name in methods}
    assert len(set(found.values())) == len(found)


@pytest.mark.parametrize("name", ONE_ANSWER)
def test_methods_that_look_at_one_answer_do_not_drop_the_labels_of_nodes(name: str):
    with pytest.raises(InputError, match="this set-up at every node of a tree"):
        recipe(f"{name}@mukhoti2020_sst")


def test_crl_orders_the_confidence_that_is_named():
    task = Task(2, 3, 1)
    assert recipe("crl").objective(task).confidence is max_probability
    assert recipe("crl", {"confidence": "margin", "weight": 2.0}).objective(task).confidence is margin
    with pytest.raises(InputError, match="unknown confidence 'marginal'; did you mean 'margin'"):
        recipe("crl", {"confidence": "marginal"})


@pytest.mark.parametrize(
    ("setup", "epochs", "rates"),
    [
        ("zhu2022", 200, {79: 0.1, 80: 0.01, 129: 0.01, 130: 0.001, 170: 0.0001}),
        ("singh2021", 300, {149: 0.1, 150: 0.02, 225: 0.004}),
        ("wang2021", 200, {99: 0.1, 100: 0.01, 150: 0.001}),
        ("karandikar2021", 200, {59: 0.1, 60: 0.02, 120: 0.004, 160: 0.0008}),
        ("mukhoti2020", 350, {149: 0.1, 150: 0.01, 250: 0.001}),
    ],
)
def test_the_rate_drops_where_the_papers_say(setup: str, epochs: int, rates: dict[int, float]):
    baseline = recipe(f"cross_entropy@{setup}")
    assert baseline.epochs == epochs
    lr = baseline.optimizer(nn.Linear(1, 1)).param_groups[0]["lr"]
    assert {epoch: lr * baseline.schedule(epoch, epochs) for epoch in rates} == pytest.approx(rates)
    assert lr * baseline.schedule(max(rates) + 0.99, epochs) == pytest.approx(rates[max(rates)])


@pytest.mark.parametrize(
    ("setup", "weight_decay", "batch_size"),
    [("zhu2022", 5e-4, 128), ("wang2021", 1e-4, 512), ("mukhoti2020", 5e-4, 128)],
)
def test_optimizers_are_the_papers(setup: str, weight_decay: float, batch_size: int):
    baseline = recipe(f"cross_entropy@{setup}")
    optimizer = baseline.optimizer(nn.Linear(1, 1))
    assert isinstance(optimizer, SGD)
    assert optimizer.defaults["momentum"] == 0.9
    assert optimizer.defaults["weight_decay"] == weight_decay
    assert baseline.batch_size == batch_size


def value(name: str, logits: torch.Tensor, labels: torch.Tensor) -> float:
    """The recipe's objective, of given logits."""
    objective = recipe(name).objective(Task(len(labels), logits.shape[1], 200))
    return objective(nn.Identity(), Batch(logits, labels, torch.arange(len(labels)))).item()


def test_losses_have_the_papers_strengths(l1):
    """Values of the papers' notes for the four rows of logits."""
    z, y = torch.from_numpy(l1.logits).double(), torch.from_numpy(l1.labels)
    printed = {
        "cross_entropy": 1.4652256355,
        "label_smoothing": 1.4827256355,
        "label_smoothing_of_others": 1.4914756355,
        "focal": 1.0621187541,
        "inverse_focal": 2.0030028846,
        "entropy": 1.3988607286,
        "l1": 1.4934756355,
        "brier": 0.7252498328,
        "mmce": 1.4652256355 + 2 * 0.2197736554,
        "crl": 1.4652256355,
    }
    assert {name: value(name, z, y) for name in printed} == pytest.approx(printed, abs=1e-6)


def test_secondary_losses_stand_on_each_primary(l1):
    z, y = torch.from_numpy(l1.logits).double(), torch.from_numpy(l1.labels)
    assert value("focal_sb_ece", z, y) == pytest.approx((focal(z, y) + sb_ece_lb(z, y)).item())
    weighted = mmce_weighted(z, y, normalized_twice=True)
    assert value("mmce", z, y) == pytest.approx((cross_entropy(z, y) + 2 * weighted).item())
    assert {
        f"{p}{s}" for p in ("", "focal_", "brier_") for s in ("mmce", "avuc", "avuc_gs", "sb_ece", "s_avuc")
    } <= set(RECIPES)


def test_seed_mukhoti2020_as_coded_is_a_clipped_sum():
    """Two steps of it, on batches of 128, are those of the summed loss with its gradient clipped at 2."""
    torch.manual_seed(0)
    network, by_hand = nn.Linear(6, 3), nn.Linear(6, 3)
    by_hand.load_state_dict(network.state_dict())
    coded = recipe("cross_entropy@mukhoti2020_as_coded")
    optimizer, plain = coded.optimizer(network), SGD(by_hand.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4)
    for scale in (1.0, 1e-3):  # the second gradient is too small to be clipped
        x, y = scale * torch.randn(128, 6), torch.randint(3, (128,))
        for model, reduction, clip in ((network, "mean", coded.clip_norm), (by_hand, "sum", 2.0)):
            model.zero_grad()
            F.cross_entropy(model(x), y, reduction=reduction).backward()
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        plain.step()
    assert torch.allclose(network.weight, by_hand.weight, atol=1e-6)


def test_the_brier_loss_of_seed_mukhoti2020_as_coded_is_a_clipped_mean():
    """METHODS 2.3: that code divides it, of all losses, by the batch size."""
    coded = recipe("brier@mukhoti2020_as_coded")
    group = coded.optimizer(nn.Linear(1, 1)).param_groups[0]
    assert (group["lr"], group["weight_decay"], coded.clip_norm) == (0.1, 5e-4, 2.0)
    assert described(coded.keep) == described(recipe("focal@mukhoti2020_as_coded").keep)
    assert coded.schedule(150, 350) == pytest.approx(0.1)


@pytest.mark.parametrize("name", ["sam", "fmfp@mukhoti2020"])
def test_sam_may_leave_batch_norm_to_the_first_look(name: str):
    network = nn.Linear(1, 1)
    assert recipe(name).optimizer(network).frozen is None
    frozen = recipe(name, {"frozen": True, "rho": 0.2})
    assert frozen.optimizer(network).frozen is network
    assert frozen.optimizer(network).rho == 0.2
    assert described(frozen.optimizer) != described(recipe(name, {"rho": 0.2}).optimizer)
    assert described(recipe(name, {"frozen": False}).optimizer) == described(recipe(name).optimizer)


def models_averaged(name: str, epochs: int) -> list[int]:
    """After which epochs weights are taken into the average."""
    keeper, taken = recipe(name).keep(), []
    for epoch in range(epochs):
        before = keeper.state_dict()["n"]
        keeper.look(EpochEnd(nn.Linear(1, 1), epoch, epochs, lambda: None))
        taken += [epoch] * (keeper.state_dict()["n"] - before)
    return taken


def test_fmfp_as_printed_starts_from_the_baselines_checkpoint():
    fmfp = recipe("fmfp")
    assert isinstance(fmfp.optimizer(nn.Linear(1, 1)), SAM)
    assert fmfp.start == Start(SETUPS["zhu2022"].baseline, 120 / 200)
    assert models_averaged("fmfp", 200) == list(range(120, 200))
    assert fmfp.schedule(120, 200) == fmfp.schedule(121, 200) > fmfp.schedule(120.9, 200) > 0


def test_fmfp_as_coded_averages_81_models():
    """From scratch; the rate falls along a cosine to 0 at epoch 100 and is .05 at last."""
    coded = recipe("fmfp_as_coded")
    assert isinstance(coded.optimizer(nn.Linear(1, 1)), SAM)
    assert coded.start is None
    assert models_averaged("fmfp_as_coded", 201) == list(range(120, 201))
    assert coded.schedule(100.5, 201) == pytest.approx(0)
    assert coded.schedule(120, 201) == pytest.approx(0.0955, abs=1e-4)
    assert coded.schedule(200, 201) == pytest.approx(0.5)


def test_swa_is_fmfp_without_sam():
    for name in ("swa", "swa_as_coded"):
        one, other = recipe(name), recipe(name.replace("swa", "fmfp"))
        assert isinstance(one.optimizer(nn.Linear(1, 1)), SGD)
        assert [one.schedule(e, 200) for e in range(200)] == [other.schedule(e, 200) for e in range(200)]


def test_cs_kd_brings_its_sampler():
    assert recipe("cs_kd").sampler is with_partners


def test_a_misspelt_name_is_answered_by_the_nearest():
    with pytest.raises(InputError, match="unknown recipe 'fmpf'; did you mean 'fmfp'"):
        recipe("fmpf")
    with pytest.raises(InputError, match="unknown set-up 'mukhoti20'; did you mean 'mukhoti2020'"):
        recipe("focal@mukhoti20")
