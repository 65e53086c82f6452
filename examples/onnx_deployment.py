"""From a trained network to one ONNX file that gives the answer, its confidence, and whether to accept it.

    python examples/onnx_deployment.py [FOLDER]

Train, fit a temperature on held-out samples, choose a threshold on others, export, and run the file as a service
does: with onnxruntime and numpy alone.
"""

import json
import sys
from pathlib import Path
from tempfile import mkdtemp

import numpy as np
import onnxruntime
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

from assay import Outcomes, Predictions, audit, evaluate
from assay.calibrators import temperature
from assay.maps import apply
from assay.nn.deploy import export_onnx
from assay.thresholds import choose_threshold

folder = Path(sys.argv[1] if len(sys.argv) > 1 else mkdtemp())

# Any torch module that gives logits works: here a small one, trained on 500 digits until it is over-confident.
torch.manual_seed(0)
pixels, digits = load_digits(return_X_y=True)
x, y = torch.from_numpy(pixels / 16).float(), torch.from_numpy(digits)
rows = torch.randperm(len(x))
train, fit_on, choose_on, test = rows[:500], rows[500:900], rows[900:1300], rows[1300:]
network = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
for _ in range(60):
    optimizer.zero_grad()
    F.cross_entropy(network(x[train]), y[train]).backward()
    optimizer.step()


def predictions(rows: torch.Tensor) -> Predictions:
    with torch.no_grad():
        return Predictions.from_logits(network(x[rows]), y[rows])


# The map and the threshold have separate samples that the network was not trained on.
mapping = temperature(predictions(fit_on))
threshold = choose_threshold(apply(mapping, predictions(choose_on)), risk=0.03)
print("map:      ", mapping)
print("threshold:", threshold)

file = folder / "digits.onnx"
about = {"fitted_on": "400 held-out digits", "risk": "0.03"}
export_onnx(network, mapping, file, example=x[:32], threshold=threshold, metadata=about)
print(f"file:      {file.name}, {file.stat().st_size:,} bytes, the same as torch on 32 digits")

# A service needs neither torch nor assay.
session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
logits, probabilities, confidence, accept = session.run(None, {"input": x[test].numpy()})
for row in (accept.argmax(), accept.argmin()):
    answer = int(logits[row].argmax()) if accept[row] else "ask a person"
    print(json.dumps({"answer": answer, "confidence": round(float(confidence[row]), 3)}))

# It should monitor the share of accepted answers and, once labels are known, their error rate.
right = logits.argmax(1) == y[test].numpy()
print(f"in use:    {accept.mean():.1%} answered, {1 - right[accept].mean():.2%} of these wrong")
served = Outcomes.from_scores(confidence.astype(np.float64), right)
print("audit:    ", audit(served))
print({key: round(evaluate(served)[key], 4) for key in ("accuracy", "ece", "auroc", "aurc")})
