"""An audit in MLflow, Weights & Biases (offline) and TensorBoard: numbers, figure and page.

pip install 'assay-ml[integrations]' && python examples/trackers.py FOLDER
"""

import os
import sys
from pathlib import Path

import mlflow
import wandb
from torch.utils.tensorboard import SummaryWriter

import assay
import assay.examples
from assay.integrations import trackers

folder = Path(sys.argv[1]).resolve()
found = assay.audit(assay.examples.load()[:2000])

mlflow.set_tracking_uri(f"sqlite:///{folder}/mlflow.db")
experiment = mlflow.create_experiment("demo", artifact_location=(folder / "artifacts").as_uri())
with mlflow.start_run(experiment_id=experiment) as run:
    trackers.log_mlflow(found, prefix="test/")
print("mlflow:", mlflow.get_run(run.info.run_id).data.metrics["test/ece"])

os.environ["WANDB_SILENT"] = "true"
with wandb.init(project="demo", mode="offline", dir=folder) as offline:
    trackers.log_wandb(offline, found, prefix="test/")
    print("wandb:", offline.summary["test/ece"])

with SummaryWriter(str(folder / "tensorboard")) as writer:
    trackers.log_tensorboard(writer, found, prefix="test/")
print("tensorboard:", len(list((folder / "tensorboard").iterdir())), "files")
