"""Values of other libraries on the embedded example, which the tests hold ours against.

python benchmarks/frozen_values.py           # computes and writes tests/frozen_values.json
python benchmarks/frozen_values.py --check   # computes, and fails where a stored value is another
"""

import json
import sys
from importlib.metadata import version
from pathlib import Path

import calibration
import netcal.metrics
import numpy as np
import relplot
import torch
from sklearn.metrics import average_precision_score, brier_score_loss, log_loss, roc_auc_score
from torchmetrics.functional.classification import multiclass_calibration_error

import assay.examples

FILE = Path(__file__).parents[1] / "tests" / "frozen_values.json"
ROWS = 9990  # a multiple of 15: where it is not, libraries differ in which equal-mass bin is the larger


def values() -> dict[str, dict[str, float]]:
    """Where definitions agree, by our key and the library that computed it."""
    predictions = assay.examples.load("label_smoothing")[:ROWS]
    p, labels = predictions.values.double().softmax(1), predictions.labels
    confidence, predicted = p.max(1)
    c, correct = confidence.numpy(), (predicted == labels).numpy()
    table, y = p.numpy(), labels.numpy()

    def l2(debias: bool) -> float:
        return calibration.get_calibration_error(table, y, p=2, debias=debias, mode="top-label")

    def torchmetrics(norm: str) -> float:
        return float(multiclass_calibration_error(p, labels, table.shape[1], 15, norm))

    return {
        "nll": {"scikit-learn": log_loss(y, table)},
        "brier": {"scikit-learn": brier_score_loss(y, table, scale_by_half=False)},
        "auroc": {"scikit-learn": roc_auc_score(correct, c)},
        "aupr_success": {"scikit-learn": average_precision_score(correct, c)},
        "aupr_error": {"scikit-learn": average_precision_score(~correct, -c)},
        "ece": {
            "netcal": netcal.metrics.ECE(15).measure(table, y),
            "uncertainty-calibration": calibration.get_ece(table, y, num_bins=15),
            "torchmetrics": torchmetrics("l1"),
        },
        "mce": {"netcal": netcal.metrics.MCE(15).measure(table, y), "torchmetrics": torchmetrics("max")},
        "rmsce": {"torchmetrics": torchmetrics("l2")},
        "ece_l2_mass": {"uncertainty-calibration": l2(debias=False)},
        "debiased_ece": {"uncertainty-calibration": l2(debias=True)},
        "smooth_ece": {"relplot": relplot.smECE(c, correct.astype(float))},
    }


def main() -> None:
    torch.set_num_threads(1)
    found = {key: {peer: float(value) for peer, value in peers.items()} for key, peers in values().items()}
    if "--check" not in sys.argv:
        versions = {peer: version(peer) for peers in found.values() for peer in peers}
        FILE.write_text(json.dumps({"versions": versions, "rows": ROWS, "values": found}, indent=1) + "\n")
        return
    stored = json.loads(FILE.read_text())["values"]
    for key, peers in found.items():
        for peer, value in peers.items():
            if not np.isclose(value, stored[key][peer], rtol=1e-9, atol=0):
                sys.exit(f"{key} by {peer}: {value}, stored {stored[key][peer]}")
    print(f"{sum(map(len, found.values()))} values of other libraries are as stored")


if __name__ == "__main__":
    main()
