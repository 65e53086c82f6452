"""An audit in experiment trackers: MLflow, Weights & Biases, TensorBoard. Numbers, a figure and the page."""

from __future__ import annotations

from io import BytesIO
from math import isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from assay._core.arrays import InputError
from assay.auditing import Audit
from assay.predictions import Outcomes, Predictions
from assay.report.page import audit_page


def numbers(audit: Audit, *, prefix: str = "") -> dict[str, float]:
    """The finite numbers of an audit by flat names: `ece`, `ece/low`, `ece/high`, `ece/floor`, and so on."""
    found: dict[str, float] = {}
    for key, m in audit.measurements.items():
        parts = {"": m.value, "/floor": m.floor}
        if m.interval is not None:
            parts |= {"/low": m.interval.low, "/high": m.interval.high}
        found |= {f"{prefix}{key}{end}": float(x) for end, x in parts.items() if x is not None and isfinite(x)}
    return found


def log_mlflow(audit: Audit, *, prefix: str = "", step: int | None = None) -> None:
    """Metrics, figure and page of an audit into the active run of MLflow."""
    import mlflow

    mlflow.log_metrics(numbers(audit, prefix=prefix), step=step)
    mlflow.log_figure(audit.plot(), f"{prefix}audit.png")
    with TemporaryDirectory() as folder:
        mlflow.log_artifact(str(write_page(audit, Path(folder) / "audit.html")), prefix.strip("/") or None)


def log_wandb(run: Any, audit: Audit, *, prefix: str = "", step: int | None = None) -> None:
    """Metrics, figure and page of an audit into a run of Weights & Biases."""
    import wandb

    with TemporaryDirectory() as folder:
        page = wandb.Html(write_page(audit, Path(folder) / "audit.html").read_text(), inject=False)
        audit.plot().savefig(Path(folder) / "audit.png")  # wandb takes only figures of pyplot
        picture = wandb.Image(str(Path(folder) / "audit.png"))
        run.log(numbers(audit, prefix=prefix) | {f"{prefix}audit": picture, f"{prefix}page": page}, step=step)


def log_tensorboard(writer: Any, audit: Audit, *, prefix: str = "", step: int = 0) -> None:
    """Metrics and figure of an audit into a `SummaryWriter`, and the page beside its events."""
    for name, value in numbers(audit, prefix=prefix).items():
        writer.add_scalar(name, value, step)
    figure = audit.plot()
    figure.canvas.draw()
    writer.add_figure(f"{prefix}audit", figure, step, close=False)
    write_page(audit, Path(writer.log_dir) / f"{prefix.replace('/', '_')}audit_{step}.html")


def log_figure(logger: Any, figure: Any, name: str, step: int) -> None:
    """A figure into one of Lightning's loggers, by what it can do; one that takes no figures is left alone."""
    if hasattr(logger, "log_image"):  # Weights & Biases
        picture = BytesIO()
        figure.savefig(picture, format="png")
        logger.log_image(key=name, images=[_image(picture)], step=step)
    elif hasattr(logger.experiment, "add_figure"):  # TensorBoard
        figure.canvas.draw()
        logger.experiment.add_figure(name, figure, step, close=False)
    elif hasattr(logger.experiment, "log_figure"):  # MLflow
        logger.experiment.log_figure(logger.run_id, figure, f"{name}_{step}.png")


def _image(stream: BytesIO) -> Any:
    from PIL import Image

    stream.seek(0)
    return Image.open(stream)


def write_page(audit: Audit, file: Path) -> Path:
    """The interactive page of an audit."""
    source = None if audit.tables is None else audit.tables.source
    if not isinstance(source, Predictions | Outcomes):
        raise InputError("this audit has no predictions any more; make it by assay.audit(predictions)")
    audit_page({"model": source}, {"model": audit}, file)
    return file
