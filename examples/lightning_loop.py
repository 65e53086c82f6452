"""FMFP in a plain LightningModule: SAM and averaged weights are callbacks, and automatic optimization stays.

python examples/lightning_loop.py
"""

import logging
import warnings

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import Tensor
from torch.optim import SGD
from torch.utils.data import DataLoader, TensorDataset

from assay.integrations.lightning import AveragedWeights, SharpnessAware, TrustCallback
from assay.nn.data import batches, load
from assay.nn.losses import cross_entropy
from assay.nn.networks import resnet8


class Classifier(LightningModule):
    """A classifier as people write it."""

    def __init__(self) -> None:
        super().__init__()
        self.network = resnet8(10, channels=1)

    def forward(self, x: Tensor) -> Tensor:
        return self.network(x)

    def configure_optimizers(self) -> SGD:
        return SGD(self.network.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)

    def training_step(self, batch: list[Tensor], batch_idx: int) -> Tensor:
        return cross_entropy(self(batch[0]), batch[1])

    def validation_step(self, batch: list[Tensor], batch_idx: int) -> dict[str, Tensor]:
        return {"logits": self(batch[0]), "labels": batch[1]}


warnings.filterwarnings("ignore", category=UserWarning, module="lightning")  # about few workers and few batches
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

torch.manual_seed(0)
digits = load("digits")
train = next(batches(digits.train, len(digits.train)))
test = next(batches(digits.test, len(digits.test)))
loader = DataLoader(TensorDataset(train.x, train.y), batch_size=64, shuffle=True)
validation = DataLoader(TensorDataset(test.x, test.y), batch_size=256)

averaged = AveragedWeights(start=0.5)
callbacks = [SharpnessAware(rho=0.05), averaged, TrustCallback("accuracy", "ece", "auroc", "aurc")]
quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
trainer = Trainer(max_epochs=6, accelerator="cpu", callbacks=callbacks, **quiet)
model = Classifier()
trainer.fit(model, loader, validation)
found = trainer.validate(model, validation, verbose=False)[0]
print(f"{averaged.average.n} models averaged")
print({key.removeprefix("val/"): round(value, 4) for key, value in found.items()})
