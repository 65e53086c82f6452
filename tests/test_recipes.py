"""The table of recipes: every one trains, and each is what its paper says."""

from __future__ import annotations

import inspect
import json
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.optim import SGD

from assay._core.arrays import InputError
from assay.metrics import Tables
from assay.nn import losses
from assay.nn.data import Cut, Splits, load
from assay.nn.losses import cross_entropy, focal, mmce_weighted, sb_ece_lb
from assay.nn.names import LISTS
from assay.nn.networks import mlp, resnet8
from assay.nn.objectives import Batch, Task, margin, max_probability, scheduled_focal, with_partners
from assay.nn.optim import SAM
from assay.nn.recipes import METHODS, RECIPES, SETUPS, recipe
from assay.nn.training import FIGURES, EpochEnd, Record, Start, initialized, last, train
from assay.nn.training._configuration import described
from assay.nn.training._recipe import phases

ONE_ANSWER = ("mixup", "mixup_as_coded", "cs_kd", "crl")
SUMMED = {"entropy_singh2021_as_coded": "entropy", "label_smoothing_singh2021_as_coded": "label_smoothing"}
LEARNING = [name for name in RECIPES if name not in SUMMED]
IMAGE_SETUPS = [name for name in SETUPS if name != "mukhoti2020_sst"]


@pytest.fixture(scope="module")
def digits() -> Splits:
    return load("digits")


@pytest.mark.parametrize("name", [*LEARNING, *(f"cross_entropy@{setup}" for setup in IMAGE_SETUPS)])
def test_every_recipe_learns_digits_in_two_epochs(digits: Splits, name: str):
    """To three times chance at least, most to nine; the second epoch is at a tenth of the rate or less."""
    short = replace(recipe(name), epochs=2, batch_size=16)
    trained = train(initialized(mlp, digits.train, seed=0), digits, short)
    assert trained.test.outcomes().correct.mean() > 0.3
    assert all(row["loss"] == row["loss"] for row in trained.history.epochs)


@pytest.mark.parametrize(("summed", "mean"), SUMMED.items())
def test_a_sum_over_the_batch_is_the_mean_at_another_rate_and_decay(summed: str, mean: str):
    """Of batches of 16: a sixteenth of the rate, sixteen times the decay. At the rate of the mean it does not learn."""
    some = load("digits", cut=Cut(n_train=160))
    rates = {"learning_rate": 0.1 / 16, "weight_decay": 16 * 5e-4}
    found = [
        train(initialized(mlp, some.train, seed=0), some, replace(chosen, epochs=2, batch_size=16)).test.values
        for chosen in (recipe(summed, rates), recipe(mean), recipe(summed))
    ]
    assert found[0] == pytest.approx(found[1], abs=1e-3)
    assert (found[2].argmax(1) == some.test.y.numpy()).mean() < 0.3
    with pytest.raises(InputError, match="summed over its nodes already"):
        recipe(f"{summed}@mukhoti2020_sst")


@pytest.mark.parametrize("setup", SETUPS)
def test_every_method_stands_in_every_setup_and_is_told_from_the_others(setup: str):
    """Descriptions, which tell one run's configuration from another's, are plain data and all differ."""
    methods = [name for name in METHODS if setup != "mukhoti2020_sst" or name not in (*ONE_ANSWER, *SUMMED)]
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
    return objective(nn.Identity(), Batch(logits, labels, torch.arange(len(labels)), epoch=0)).item()


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


def test_the_cycles_of_fmfp_and_what_it_averages_are_values():
    fmfp = recipe("fmfp,start=0.5,cycle=5,high=0.8,low=0.2,rho=0.1")
    assert fmfp.start == Start(SETUPS["zhu2022"].baseline, 0.5)
    assert fmfp.optimizer(nn.Linear(1, 1)).rho == 0.1
    # Of 203 epochs the first 102 are the baseline's, and the first cycle begins right there.
    assert [fmfp.schedule(102 + e, 203) for e in (0, 2.5, 5)] == pytest.approx([0.8, 0.5, 0.8])
    assert models_averaged("fmfp,start=0.5,cycle=5", 203) == list(range(106, 203, 5))
    assert models_averaged("swa,cycle=4,every=2", 200) == list(range(121, 200, 2))
    assert models_averaged("fmfp_as_coded,start=0.5,every=10", 200) == list(range(109, 200, 10))
    assert recipe("swa_as_coded,level=0.2").schedule(200, 201) == pytest.approx(0.2)
    with pytest.raises(InputError, match="'hihg' of this recipe; it has rho, frozen, start, cycle, high, low, every"):
        recipe("fmfp,hihg=1")
    with pytest.raises(InputError, match=r"whole epochs, got 0\.5"):
        recipe("swa,cycle=0.5")
    with pytest.raises(InputError, match="below 1, got 1"):
        recipe("swa,start=1")


@pytest.mark.parametrize("count_start", [False, True])
def test_the_checkpoint_that_swa_starts_from_may_count(digits: Splits, count_start: bool):
    """Algorithm 1 of SWA begins its average with it; 4 epochs, of which 3 are the baseline's."""
    short = replace(recipe(f"swa,start=0.75,count_start={count_start}"), epochs=4, batch_size=64)
    averaged = train(initialized(mlp, digits.train, seed=0), digits, short).network
    baseline = replace(recipe("cross_entropy"), epochs=4, batch_size=64)
    start = initialized(mlp, digits.train, seed=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("assay.nn.training._loop.phases", lambda recipe: phases(recipe, 3))
        train(start, digits, baseline)
    end = train(initialized(mlp, digits.train, seed=0), digits, replace(short, keep=last)).network
    for found, a, b in zip(averaged.parameters(), start.parameters(), end.parameters(), strict=True):
        assert torch.allclose(found, (a + b) / 2 if count_start else b, atol=1e-6)


@pytest.mark.parametrize("name", ["fmfp", "swa_as_coded"])
def test_the_last_recorded_average_is_the_kept_model(digits: Splits, name: str):
    short = replace(recipe(name), epochs=5, batch_size=64)
    record = Record(("accuracy", "nll", "ece", "auroc"), ("held_out", "test"))
    trained = train(initialized(resnet8, digits.train, seed=0), digits, short, record=record)
    rows = trained.history.epochs
    assert ["averaged_test_ece" in row for row in rows] == [False, False, False, True, True]
    for split in ("held_out", "test"):
        kept = Tables(getattr(trained, split))
        for figure in record.figures:
            assert rows[-1][f"averaged_{split}_{figure}"] == pytest.approx(FIGURES[figure](kept), abs=1e-6)
            assert rows[-1][f"{split}_nll"] != rows[-1][f"averaged_{split}_nll"]
    plain = train(initialized(resnet8, digits.train, seed=0), digits, short, record=replace(record, of_average=False))
    assert plain.test.values.tolist() == trained.test.values.tolist()  # looking at the average changes nothing


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


def test_values_may_stand_behind_the_name_or_beside_it():
    written = recipe("focal@mukhoti2020,gamma=5,weight_decay=0.01")
    given = recipe("focal@mukhoti2020", {"gamma": 5, "weight_decay": 0.01})
    assert described(written) == described(given)
    assert written.name == "focal@mukhoti2020,gamma=5,weight_decay=0.01"
    assert written.optimizer(nn.Linear(1, 1)).param_groups[0]["weight_decay"] == 0.01
    assert written.objective(Task(1, 2, 1)).__closure__[0].cell_contents.keywords == {"gamma": 5}
    cut = recipe("flsd53,cuts=[0.2],gammas=[4,2]").objective(Task(1, 2, 1)).__closure__[0].cell_contents
    assert cut.keywords == {"cuts": (0.2,), "gammas": (4, 2)}
    with pytest.raises(InputError, match="learning_rate must be >= 0, got -1"):
        recipe("focal,learning_rate=-1")


def test_lists_of_recipes_are_the_sequences_of_their_losses_and_objectives():
    """A study file needs their names without torch."""
    functions = [getattr(losses, name) for name in losses.__all__] + [scheduled_focal]
    found = {
        parameter.name
        for function in functions
        if inspect.isfunction(function)
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY and "Sequence" in str(parameter.annotation)
    }
    assert found == set(LISTS)


def test_a_misspelt_name_is_answered_by_the_nearest():
    with pytest.raises(InputError, match="unknown recipe 'fmpf'; did you mean 'fmfp'"):
        recipe("fmpf")
    with pytest.raises(InputError, match="unknown set-up 'mukhoti20'; did you mean 'mukhoti2020'"):
        recipe("focal@mukhoti20")
