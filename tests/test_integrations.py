"""assay in other people's tools: Lightning, torchmetrics and Hugging Face, alone and in two processes."""

from __future__ import annotations

import gc
import logging
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from lightning.pytorch import LightningModule, Trainer
from lightning.pytorch.loggers import Logger
from test_optim import by_hand, data, network, sgd, weights
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

from assay import Predictions, evaluate, examples, files, maps
from assay._core.arrays import InputError
from assay.integrations.lightning import AveragedWeights, SharpnessAware, TrustCallback, _of_all_processes
from assay.integrations.torchmetrics import KEYS, Trust
from assay.nn.losses import focal
from assay.nn.optim import SAM
from assay.scale import Tally

QUIET = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:lightning", "ignore::FutureWarning:lightning")


class Module(LightningModule):
    def __init__(self, optimizer=sgd) -> None:
        super().__init__()
        self.net, self.optimizer, self.losses = network(), optimizer, []

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        loss = F.cross_entropy(self.net(batch[0]), batch[1])
        self.log("loss", loss)
        self.losses.append(loss.item())
        return loss

    def validation_step(self, batch, batch_idx):
        return {"logits": self.net(batch[0]), "labels": batch[1]}

    def configure_optimizers(self):
        return self.optimizer(self.net)


def loader(n: int) -> DataLoader:
    return DataLoader([data(i) for i in range(n)], batch_size=None)


def fitted(module: Module, n: int, *callbacks, epochs: int = 1, accumulate: int = 1, validate: bool = False) -> Trainer:
    trainer = Trainer(
        max_epochs=epochs, accelerator="cpu", accumulate_grad_batches=accumulate, callbacks=list(callbacks), **QUIET
    )
    trainer.fit(module, loader(n), loader(3) if validate else None)
    return trainer


@pytest.mark.parametrize("batches", [1, 4])
def test_sam_in_lightning_is_the_loop_by_hand(batches):
    module = Module()
    trainer = fitted(module, 3 * batches, SharpnessAware(rho=0.3), accumulate=batches)
    assert torch.allclose(weights(module.net), by_hand(batches), atol=1e-6)
    assert len(module.losses) == 6 * batches
    assert trainer.callback_metrics["loss"].item() == pytest.approx(module.losses[-2])  # of the first look


def test_sam_as_an_optimizer_in_lightning_refuses_accumulation():
    module = Module(lambda net: SAM(sgd(net), rho=0.3))
    with pytest.raises(RuntimeError, match=r"in Lightning use assay.integrations.lightning.SharpnessAware"):
        fitted(module, 4, accumulate=2)
    module = Module(lambda net: SAM(sgd(net), rho=0.3))
    fitted(module, 3)
    assert torch.allclose(weights(module.net), by_hand(1), atol=1e-6)


def test_lightning_ends_with_averaged_weights():
    module, seen = Module(), []
    callback = AveragedWeights(start=0.5)
    module.on_train_epoch_end = lambda: seen.append(weights(module.net))
    fitted(module, 3, callback, epochs=4)
    assert callback.average.n == 2
    assert torch.allclose(weights(module.net), torch.stack(seen[-2:]).mean(0), atol=1e-6)


def test_lightning_logs_and_writes_what_can_be_trusted(tmp_path):
    module, callback = Module(), TrustCallback("ece", "auroc", out=tmp_path / "out")
    trainer = fitted(module, 3, callback, validate=True)
    saved = files.read(tmp_path / "out" / "validation.npz")
    assert len(saved) == 48
    assert trainer.callback_metrics["val/ece"].item() == pytest.approx(evaluate(saved)["ece"], abs=1e-6)
    assert maps.load(tmp_path / "out" / "map.json").t > 0
    assert "<html" in (tmp_path / "out" / "page.html").read_text()


class OfTensorBoard(Logger):
    """A logger that takes figures as the one of TensorBoard does."""

    name, version = "figures", 0

    def __init__(self) -> None:
        super().__init__()
        self.figures: list[tuple[str, int]] = []
        self.experiment = self

    def add_figure(self, name: str, figure: object, step: int, close: bool) -> None:
        self.figures.append((name, step))

    def log_metrics(self, metrics: object, step: int | None = None) -> None:
        pass

    def log_hyperparams(self, params: object, *rest: object) -> None:
        pass


def test_lightning_logs_figures_at_chosen_epochs(tmp_path):
    logger, callback = OfTensorBoard(), TrustCallback("ece", out=tmp_path, figures=(0, 2))
    settings = QUIET | {"logger": logger}
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "epoch_2.png").symlink_to(tmp_path / "mine")
    Trainer(max_epochs=3, accelerator="cpu", callbacks=[callback], **settings).fit(Module(), loader(3), loader(3))
    assert logger.figures == [("val/audit", 0), ("val/audit", 2)]
    assert (tmp_path / "epoch_2.png").read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
def test_the_loggers_of_lightning_take_figures(tmp_path, monkeypatch):
    """Each with its own library, offline."""
    for package in ("mlflow", "wandb", "tensorboard"):
        pytest.importorskip(package)
    from lightning.pytorch.loggers import MLFlowLogger, TensorBoardLogger, WandbLogger
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    monkeypatch.setenv("WANDB_SILENT", "true")
    board = TensorBoardLogger(tmp_path / "board")
    flow = MLFlowLogger(tracking_uri=f"sqlite:///{tmp_path}/flow.db", artifact_location=str(tmp_path / "flow"))
    loggers = [board, flow, WandbLogger(save_dir=tmp_path, offline=True)]
    callback, settings = TrustCallback("ece", figures=(1,)), QUIET | {"logger": loggers}
    Trainer(max_epochs=2, accelerator="cpu", callbacks=[callback], **settings).fit(Module(), loader(3), loader(3))
    events = EventAccumulator(board.log_dir)
    events.Reload()
    assert events.Tags()["images"] == ["val/audit"]
    assert len(list((tmp_path / "flow").rglob("audit_1.png"))) == 1
    assert list((tmp_path / "wandb").rglob("media/images/val/audit_1_*.png"))


def updated(trust: Trust, logits: Tensor, labels: Tensor) -> Trust:
    for x, y in zip(logits.split(512), labels.split(512), strict=True):
        trust.update(x, y)
    return trust


def embedded() -> tuple[Tensor, Tensor]:
    predictions = examples.load()
    return torch.tensor(predictions.logits), torch.tensor(predictions.labels)


def assert_evaluated(found: dict[str, Tensor]) -> None:
    expected = evaluate(examples.load(), KEYS)
    for key in KEYS:
        assert found[key].item() == pytest.approx(expected[key], rel=1e-9), key


def test_the_metric_is_evaluate_in_a_fixed_size():
    trust = Trust()
    before = sum(x.numel() for x in trust._defaults.values())
    assert_evaluated(updated(trust, *embedded()).compute())
    assert sum(getattr(trust, name).numel() for name in trust._defaults) == before
    logits, labels = embedded()
    of_probabilities = updated(Trust("ece", prefix="val/", normalized=True), logits.double().softmax(1), labels)
    assert of_probabilities.compute()["val/ece"].item() == pytest.approx(evaluate(examples.load())["ece"], abs=1e-6)
    with pytest.raises(InputError, match="'smooth_ece' needs all rows"):
        Trust("smooth_ece")


def test_the_metric_is_a_tally_of_any_number_of_rows():
    generator = torch.Generator().manual_seed(0)
    logits, labels = 3 * torch.randn(50_000, 4, generator=generator), torch.randint(4, (50_000,), generator=generator)
    p = Predictions.from_logits(logits, labels)
    for rows, most in ((20_000, 1e-12), (50_000, 1e-9)):
        trust = updated(Trust(), logits[:rows], labels[:rows])
        there = evaluate(p[:rows] if rows == 20_000 else Tally.of(p), KEYS)
        assert {key: x.item() for key, x in trust.compute().items()} == pytest.approx(there, rel=most)
    batches = Trust("ece", "auroc")
    for i in range(3):
        part = slice(12_000 * i, 12_000 * (i + 1))
        assert batches(logits[part], labels[part])["ece"].item() == pytest.approx(evaluate(p[part])["ece"], rel=1e-9)
    there = evaluate(Tally.of(p[:36_000]), ["ece", "auroc"])
    assert {key: x.item() for key, x in batches.compute().items()} == pytest.approx(there, rel=1e-9)


def plain(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


def sam_steps(model: nn.Module, part: slice) -> None:
    optimizer = SAM(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9), rho=0.3)
    for step in range(3):
        x, y = data(step)

        def closure(x: Tensor = x[part], y: Tensor = y[part]) -> Tensor:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            return loss

        optimizer.step(closure)


def one_of_two(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2)
    logits, labels = embedded()
    found = updated(Trust(), logits[rank::2], labels[rank::2]).compute()
    together = _of_all_processes([(logits[rank::2], labels[rank::2])])
    assert sum(len(part) for _, part in together) == len(labels)
    assert torch.equal(together[0][1], labels[0::2])
    model = DistributedDataParallel(plain())
    sam_steps(model, slice(8 * rank, 8 * rank + 8))
    if rank == 0:
        torch.save([found, weights(model)], f"{folder}/found")
    del model  # it holds on to the group of processes, whose threads wait for the other one
    gc.collect()
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


def test_two_processes_agree_with_one(tmp_path: Path):
    torch.multiprocessing.spawn(one_of_two, (str(tmp_path),), nprocs=2)
    found, after = torch.load(tmp_path / "found", weights_only=True)
    assert_evaluated(found)
    model = plain()
    sam_steps(model, slice(0, 16))
    assert torch.allclose(after, weights(model), atol=1e-6)


def test_losses_of_accumulated_batches_add_up_to_that_of_the_whole():
    """As the Trainer calls it: outputs of a batch, its labels, and the number of samples in all batches of the step."""
    from assay.integrations import huggingface as hf

    logits, labels = torch.randn(8, 3, generator=torch.Generator().manual_seed(0)), torch.arange(8) % 3
    loss = hf.loss(focal)
    parts = [loss({"logits": logits[i : i + 2]}, labels[i : i + 2], num_items_in_batch=8) for i in range(0, 8, 2)]
    assert torch.allclose(torch.stack(parts).sum(), focal(logits, labels))


@pytest.mark.parametrize("batches", [1, 4])
def test_a_training_step_that_looks_twice_is_sam_of_each_batch(batches):
    """Of a Trainer only `training_step`, which adds the gradient of a batch to those of the step."""
    from assay.integrations import huggingface as hf

    def training_step(model, inputs):
        loss = F.cross_entropy(model(inputs["x"]), inputs["labels"]) / batches
        loss.backward()
        return loss.detach()

    model = network()
    optimizer, trainer = sgd(model), hf.sharpness_aware(SimpleNamespace(training_step=training_step), rho=0.3)
    for step in range(3):
        optimizer.zero_grad()
        for i in range(batches):
            x, labels = data(step * batches + i)
            trainer.training_step(model, {"x": x, "labels": labels})
        optimizer.step()
    assert torch.allclose(weights(model), by_hand(batches), atol=1e-6)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("batches", [1, 4])
@pytest.mark.parametrize("rho", [0.0, 0.3])
def test_hugging_face_trains_like_the_loop_by_hand(tmp_path, batches, rho):
    """With a loss of assay and, where rho > 0, with SAM; a plain mean would give gradients 4 times as large."""
    transformers = pytest.importorskip("transformers")
    from assay.integrations import huggingface as hf

    generator = torch.Generator().manual_seed(0)
    words, labels = torch.randint(0, 50, (12, 6), generator=generator), torch.randint(0, 3, (12,), generator=generator)
    mask = torch.ones(12, 6, dtype=torch.long)

    def bert() -> nn.Module:
        torch.manual_seed(1)
        sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
        calm = dict.fromkeys(("hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout"), 0.0)
        config = transformers.BertConfig(vocab_size=50, num_labels=3, **sizes, **calm)
        return transformers.BertForSequenceClassification(config)

    rows = [{"input_ids": words[i], "attention_mask": mask[i], "labels": labels[i]} for i in range(12)]
    model = bert()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path),
        per_device_train_batch_size=4 // batches,
        max_steps=3,
        max_grad_norm=0,
        gradient_accumulation_steps=batches,
        train_sampling_strategy="sequential",
        report_to=[],
        save_strategy="no",
        use_cpu=True,
        disable_tqdm=True,
        logging_strategy="no",
    )
    constant = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
    trainer = transformers.Trainer(
        model,
        arguments,
        train_dataset=rows,
        eval_dataset=rows,
        optimizers=(optimizer, constant),
        compute_loss_func=hf.loss(focal),
        compute_metrics=hf.compute_metrics(),
    )
    (hf.sharpness_aware(trainer, rho=rho) if rho else trainer).train()

    other, size = bert().train(), 4 // batches
    again = SAM(other.parameters(), torch.optim.SGD, rho=rho, lr=0.1)
    for step in range(3):
        again.zero_grad()
        for i in range(batches):
            part = slice(4 * step + i * size, 4 * step + (i + 1) * size)

            def look(part: slice = part) -> None:
                logits = other(input_ids=words[part], attention_mask=mask[part]).logits
                (focal(logits, labels[part]) / batches).backward()

            look()
            with again.climb():
                look()
        again.step()
    assert torch.allclose(weights(model), weights(other), atol=1e-6)
    assert trainer.evaluate()["eval_ece"] >= 0
    predictions = hf.predictions(trainer.predict(rows))
    assert np.array_equal(predictions.labels, labels.numpy())


def test_displays_draw_as_those_of_scikit_learn():
    import matplotlib as mpl

    mpl.use("agg")
    from sklearn.linear_model import LogisticRegression

    from assay.integrations.displays import ReliabilityDisplay, RiskCoverageDisplay

    x = np.random.default_rng(0).normal(size=(200, 2))
    y = np.where(x[:, 0] + x[:, 1] ** 3 > 0, "yes", "no")
    model = LogisticRegression().fit(x, y)
    shown = RiskCoverageDisplay.from_estimator(model, x, y)
    assert shown.risk_coverage.risk[-1] == pytest.approx(1 - model.score(x, y))
    assert shown.figure_ is shown.ax_.figure
    assert "LogisticRegression" in [text.get_text() for text in shown.ax_.get_legend().get_texts()]
    of_one = ReliabilityDisplay.from_predictions(y, model.predict_proba(x)[:, 1], labels=["no", "yes"], ax=shown.ax_)
    of_all = ReliabilityDisplay.from_predictions(y, model.predict_proba(x), labels=model.classes_)
    assert of_one.ax_ is shown.ax_
    assert np.allclose(of_one.bins.confidence, of_all.bins.confidence)
    assert of_all.bins.count.sum() == 200
