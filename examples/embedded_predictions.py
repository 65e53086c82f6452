"""Make the predictions that assay includes: two small ResNets on CIFAR-10, trained without augmentation.

One network minimizes cross-entropy, the other cross-entropy with label smoothing .05. Neither is trained on augmented
images, so both fit the training set and become over-confident, like the networks of the papers.

    python examples/embedded_predictions.py DATA assay/examples

DATA holds `cifar10/{train,test}-00000-of-00001.parquet` in the Hugging Face schema (`img`: PNG bytes, `label`).
The first 15,000 training images are used for training, the next 5,000 are held out.
"""

import io
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor, nn

EPOCHS, BATCH, WIDTH, BLOCKS = 24, 128, 16, 2
HELD_OUT = 5_000
SMOOTHING = {"cross_entropy": 0.0, "label_smoothing": 0.05}


def images(file: Path) -> tuple[Tensor, Tensor]:
    """Images as standardized [n, 3, 32, 32] floats, and their labels."""
    table = pq.read_table(file)
    pixels = np.stack([np.asarray(Image.open(io.BytesIO(cell["bytes"].as_py()))) for cell in table["img"]])
    x = torch.from_numpy(pixels).permute(0, 3, 1, 2).float() / 255
    mean, std = torch.tensor([0.491, 0.482, 0.447]), torch.tensor([0.247, 0.243, 0.262])
    x = (x - mean[:, None, None]) / std[:, None, None]
    return x.contiguous(memory_format=torch.channels_last), torch.tensor(table["label"].to_pylist())


class Block(nn.Module):
    """Two 3x3 convolutions with a skip connection, zero-padded if the width doubles."""

    def __init__(self, width_in: int, width: int):
        super().__init__()
        self.stride = width // width_in
        self.conv1 = nn.Conv2d(width_in, width, 3, self.stride, 1, bias=False)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.norm1, self.norm2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        carried = F.pad(x[:, :, :: self.stride, :: self.stride], (0, 0, 0, 0, 0, y.shape[1] - x.shape[1]))
        return F.relu(y + carried)


def resnet() -> nn.Module:
    widths = [WIDTH] + [WIDTH * 2**stage for stage in range(3) for _ in range(BLOCKS)]
    return nn.Sequential(
        nn.Conv2d(3, WIDTH, 3, 1, 1, bias=False),
        nn.BatchNorm2d(WIDTH),
        nn.ReLU(),
        *(Block(a, b) for a, b in pairwise(widths)),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(widths[-1], 10),
    ).to(memory_format=torch.channels_last)


def train(x: Tensor, y: Tensor, smoothing: float) -> nn.Module:
    torch.manual_seed(0)
    model = resnet()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4, nesterov=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.2, epochs=EPOCHS, steps_per_epoch=len(x) // BATCH)
    for epoch in range(EPOCHS):
        start, right = time.time(), 0
        for rows in torch.randperm(len(x))[: len(x) // BATCH * BATCH].split(BATCH):
            logits = model(x[rows])
            loss = F.cross_entropy(logits, y[rows], label_smoothing=smoothing)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            right += int((logits.argmax(1) == y[rows]).sum())
        print(f"epoch {epoch + 1:2d}  train accuracy {right / len(x):.3f}  {time.time() - start:.0f} s", flush=True)
    return model


@torch.no_grad()
def logits(model: nn.Module, x: Tensor) -> np.ndarray:
    model.eval()
    return torch.cat([model(batch) for batch in x.split(500)]).numpy()


def main(data: Path, out: Path) -> None:
    x, y = images(data / "cifar10" / "train-00000-of-00001.parquet")
    splits = {
        "held_out": (x[-HELD_OUT:], y[-HELD_OUT:]),
        "test": images(data / "cifar10" / "test-00000-of-00001.parquet"),
    }
    for name, smoothing in SMOOTHING.items():
        model = train(x[:-HELD_OUT], y[:-HELD_OUT], smoothing)
        for split, (images_, labels) in splits.items():
            file = out / f"cifar10_{name}_{split}.npz"
            np.savez_compressed(file, logits=logits(model, images_), labels=labels.numpy().astype(np.uint8))
            print(file)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
