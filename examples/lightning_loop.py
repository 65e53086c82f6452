"""FMFP in a LightningModule: SAM by manual optimization, and weights averaged over the last epochs.

    python examples/lightning_loop.py

Lightning's automatic optimization cannot evaluate a batch twice, so the training step is written out.
"""

import logging
import warnings

import torch
from lightning.pytorch import LightningModule, Trainer
from torch import Tensor
from torch.optim import SGD
from torch.utils.data import DataLoader, TensorDataset

from assay import Predictions, evaluate
from assay.nn.data import batches, load
from assay.nn.losses import cross_entropy
from assay.nn.networks import resnet8
from assay.nn.optim import SAM, recompute_batch_norm, swa

EPOCHS, AVERAGED_FROM = 6, 3


class FMFP(LightningModule):
    """A classifier trained for flat minima."""

    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.network = resnet8(10, channels=1)
        self.average = swa()

    def configure_optimizers(self) -> SAM:
        base = SGD(self.network.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
        return SAM(base, rho=0.05)

    def training_step(self, batch: list[Tensor], batch_idx: int) -> None:
        x, y = batch
        optimizer = self.optimizers().optimizer

        def closure() -> Tensor:
            optimizer.zero_grad()
            loss = cross_entropy(self.network(x), y)
            self.manual_backward(loss)
            return loss

        self.log("loss", optimizer.step(closure))

    def on_train_epoch_end(self) -> None:
        if self.current_epoch >= AVERAGED_FROM:
            self.average.update(self.network)

    def on_train_end(self) -> None:
        self.average.copy_to(self.network)
        recompute_batch_norm(self.network, (x for x, _ in self.trainer.train_dataloader))


warnings.filterwarnings("ignore", category=UserWarning, module="lightning")  # about few workers and few batches
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)

torch.manual_seed(0)
digits = load("digits")
train = next(batches(digits.train, len(digits.train)))
test = next(batches(digits.test, len(digits.test)))
loader = DataLoader(TensorDataset(train.x, train.y), batch_size=64, shuffle=True)

model = FMFP()
quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
Trainer(max_epochs=EPOCHS, accelerator="cpu", **quiet).fit(model, loader)

model.eval()
with torch.no_grad():
    found = evaluate(Predictions.from_logits(model.network(test.x), test.y))
print(f"{model.average.n} models averaged")
print({key: round(found[key], 4) for key in ("accuracy", "ece", "auroc", "aurc")})
