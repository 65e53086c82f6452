"""What is damaged and which command then reads it: every kind of file that assay opens."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from random import Random
from zipfile import ZipFile

import numpy as np

from assay import Outcomes, Predictions, files, maps
from assay._core import manifest
from assay.calibrators import CALIBRATORS, platt, temperature
from assay.scale import tally
from fuzz.mutations import (
    Mutation,
    changed,
    damaged_array,
    damaged_bytes,
    damaged_json,
    damaged_lines,
    damaged_text,
    in_archive,
    one_bit,
)

ANSWERS = Path(__file__).parents[1] / "answers"
STUDY = """
name = "fuzzed"
question = "Does it hold?"
data = ["synthetic"]
networks = ["mlp"]
recipes = ["cross_entropy", { recipe = "focal", gamma = [1.0, 3.0] }]
seeds = [0, 1]
epochs = 1
n_train = [60]
held_out = 20
calibrators = ["none", "temperature"]
metrics = ["accuracy", "ece", "aurc"]
baseline = "cross_entropy"
shifts = []
stands_for = { cross_entropy = "CE" }
assumed = ["everything"]

[record]
on = ["test"]
"""
CANARY = "from pathlib import Path\nPath('imported').touch()\ndef loader(folder, cut): ...\n"


@dataclass(frozen=True)
class Target:
    """A file to damage, and what reads it: the words of a command, or a function."""

    file: str
    mutation: Mutation
    reader: str | Callable[[], object]
    share: int = 10  # of the cases, against the other targets
    checked: bool = False  # the file carries checksums: what is read is as it was, or refused
    signed: bool = False  # the manifest of the run is made to fit the damaged file
    deletes: bool = False  # the command may delete files of runs
    slow: bool = False  # only in the large bench


def prepare(folder: Path) -> None:
    """Write whole files of every kind into the folder, which is the working directory."""
    (folder / "canary.py").write_text(CANARY)
    (folder / "out").mkdir()
    rows = _rows()
    for name in ("x.npz", "x.parquet", "x.csv"):
        files.write(rows, folder / name)
    files.write(rows.outcomes(), folder / "scores.parquet")
    np.savez(folder / "plain.npz", logits=rows.values, labels=rows.labels, ids=np.asarray(rows.ids))
    np.savez(folder / "example.npz", x=np.random.default_rng(0).normal(size=(8, 4)).astype(np.float32))
    _foreign_parquet(folder / "foreign.parquet", rows)
    (folder / "shards").mkdir()
    files.write(rows, folder / "shards" / "a.parquet")
    _answers(folder)
    _maps(folder, rows)
    (folder / "study.toml").write_text(STUDY)
    _runs(folder)
    _onnx(folder / "model.onnx")


def _rows() -> Predictions:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 60)
    logits = rng.normal(size=(60, 3)) + 2 * np.eye(3)[labels]
    tags = {"ids": [f"n{i}" for i in range(60)], "group": list("ab" * 30)}
    return Predictions.from_logits(logits.astype(np.float32), labels, **tags)


def _foreign_parquet(file: Path, rows: Predictions) -> None:
    """As other programs write it: without checksums and with lists of any length."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {"logits": rows.values.tolist(), "labels": rows.labels, "ids": rows.ids, "group": rows.group}
    pq.write_table(pa.table(columns), file, compression="snappy")


def _answers(folder: Path) -> None:
    for name in ("inspect.json", "inspect.eval"):
        shutil.copy(ANSWERS / name, folder / name)
    log = json.loads((folder / "inspect.json").read_text())
    with ZipFile(folder / "stored.eval", "w") as archive:
        archive.writestr("header.json", json.dumps({name: value for name, value in log.items() if name != "samples"}))
        for i, sample in enumerate(log["samples"]):
            archive.writestr(f"samples/{i}.json", json.dumps(sample))
    lm_eval = [
        {
            "doc_id": i,
            "target": str(i % 2),
            "filtered_resps": [[-0.5, True], [-1.0 - i, False]],
            "acc": float(i % 2 == 0),
        }
        for i in range(8)
    ]
    (folder / "lm_eval.jsonl").write_text("\n".join(map(json.dumps, lm_eval)))
    stats = [
        [{"name": {"name": "max_prob"}, "mean": 0.5}, {"name": {"name": "exact_match"}, "mean": i}] for i in (0, 1)
    ]
    helm = [{"instance_id": f"id{i}", "train_trial_index": 0, "stats": stats[i % 2]} for i in range(8)]
    (folder / "helm.json").write_text(json.dumps(helm))
    judged = [{"correct": "yes" if i % 2 else "no", "confidence": 10 * i} for i in range(8)]
    (folder / "hle.json").write_text(json.dumps({f"q{i}": {"judge_response": each} for i, each in enumerate(judged)}))
    said = [{"text": f"Confidence: {10 * i}%", "p": i / 10, "right": i % 2} for i in range(8)]
    (folder / "plain.jsonl").write_text("\n".join(map(json.dumps, said)))


MAPS = (
    "temperature",
    "vector",
    "dirichlet",
    "ensemble_temperature",
    "histogram_one_vs_rest",
    "histogram",
    "isotonic",
    "beta",
)


def _maps(folder: Path, rows: Predictions) -> None:
    for name in MAPS:
        with suppress(KeyError):
            maps.save(CALIBRATORS[name](rows), folder / f"{name}.json")
    whole = maps.Sequence(temperature(rows).fit, (temperature(rows), platt(rows)))
    maps.save(whole, folder / "sequence.json")
    maps.save(whole, folder / "sequence.safetensors")
    from assay.report.jsons import write_json
    from assay.thresholds import choose_threshold

    write_json(choose_threshold(rows, risk=0.5), folder / "threshold.json")


def _runs(folder: Path) -> None:
    """One run that is done and one that failed."""
    from assay.study import execute, expand, read_study

    study = read_study(folder / "study.toml")
    done, failed, *_ = (run for run in expand(study) if run.method.name == "cross_entropy")
    execute(study, done, folder / "runs")
    with manifest.alone_in(folder / "runs" / failed.folder):
        said = {"ended": "exit code 1", "log": ["Traceback", "ValueError: x"], "asked": None}
        (folder / "runs" / failed.folder / "failed.json").write_text(json.dumps(said))


def _onnx(file: Path) -> None:
    from onnx import TensorProto, helper, numpy_helper, save

    weights = numpy_helper.from_array(np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32), "w")
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", k]) for name, k in (("x", 4), ("y", 3)))
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [x], [y], [weights])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), str(file))


def damaged_state(rng: Random, content: bytes) -> bytes:
    """A checkpoint with other values, as torch writes it."""
    import torch

    state = torch.load(BytesIO(content), weights_only=True)
    out = BytesIO()
    torch.save(changed(rng, state), out)
    return out.getvalue()


# Readers. What they print is compared with what they print of the whole file, where it carries checksums.


def digest_of(rows: Predictions | Outcomes) -> str:
    names = ("values", "confidence", "labels", "correct", "ids", "group", "weights", "cluster", "features", "nll")
    columns = [(name, getattr(rows, name, None)) for name in names]
    told = [(name, None if x is None else (str(x.dtype), x.shape, x.tobytes())) for name, x in columns]
    return sha256(repr(told).encode()).hexdigest()


def read(file: str) -> None:
    print(digest_of(files.read(file)))


def summarize(folder: str) -> None:
    print(tally(folder).to_bytes().hex())


def load_trained(run: str) -> None:
    from assay.nn.training import load_run

    network, samples = load_run(Path(run), n=8)
    print(network(samples).detach().numpy().tobytes().hex())


def start_weights(file: str) -> None:
    from assay.nn.training import read_weights

    print(sorted(read_weights(file).tensors))


def draw_inputs(model: str) -> None:
    from assay.nn.deploy import random_inputs

    print({name: x.shape for name, x in random_inputs(model).items()})


def targets(folder: Path) -> dict[str, Target]:
    """All targets by name; the folder has the whole files."""
    run = next(path.parent for path in (folder / "runs").rglob("done")).relative_to(folder)
    failed = next(path.parent for path in (folder / "runs").rglob("failed.json")).relative_to(folder)
    rows = next((folder / run).glob("rows.*.arrow")).name
    under = "threshold x.npz --risk .5 --in-sample --json out/t.json --map"
    study = "study {} study.toml --out runs"
    found = {
        "npz": Target("x.npz", damaged_bytes, partial(read, "x.npz"), 90, checked=True),
        "npz bit": Target("x.npz", one_bit, partial(read, "x.npz"), 60, checked=True),
        "npz inside": Target("plain.npz", in_archive(damaged_array), "plan plain.npz --detect ece=.01", 120),
        "parquet": Target("x.parquet", damaged_bytes, partial(read, "x.parquet"), 90, checked=True),
        "parquet bit": Target("x.parquet", one_bit, partial(read, "x.parquet"), 60, checked=True),
        "parquet chunks": Target("shards/a.parquet", damaged_bytes, partial(summarize, "shards"), 60, checked=True),
        "parquet foreign": Target("foreign.parquet", damaged_bytes, "plan foreign.parquet --detect ece=.01", 100),
        "csv": Target("x.csv", damaged_text, "threshold x.csv --risk .5 --json out/t.json", 100),
        "audit csv": Target(
            "x.csv", damaged_text, "audit x.csv --group group --json out/a.json --html out/a.html", 3, slow=True
        ),
        "lm-eval": Target("lm_eval.jsonl", damaged_lines, "plan lm_eval.jsonl --detect ece=.01", 50),
        "helm": Target("helm.json", damaged_json, "plan helm.json --detect ece=.01", 50),
        "hle": Target("hle.json", damaged_json, "plan hle.json --detect ece=.01", 50),
        "inspect": Target("inspect.json", damaged_json, "plan inspect.json --unanswered wrong --detect ece=.01", 50),
        "eval": Target(
            "stored.eval", in_archive(damaged_json), "plan stored.eval --unanswered wrong --detect ece=.01", 40
        ),
        "eval bytes": Target(
            "inspect.eval", damaged_bytes, "plan inspect.eval --unanswered wrong --detect ece=.01", 30
        ),
        "stated": Target(
            "plain.jsonl",
            damaged_lines,
            "board plain.jsonl --confidence p --correct right --to out/b.md",
            20,
        ),
        "stated text": Target(
            "plain.jsonl",
            damaged_lines,
            "plan plain.jsonl --confidence-from text --correct right --unanswered wrong --detect ece=.01",
            30,
        ),
        "safetensors": Target("sequence.safetensors", damaged_bytes, f"{under} sequence.safetensors", 40),
        "weights": Target("sequence.safetensors", damaged_bytes, partial(start_weights, "sequence.safetensors"), 10),
        "threshold": Target("threshold.json", damaged_json, "recheck x.npz --threshold threshold.json", 80),
        "study": Target("study.toml", damaged_text, study.format("status"), 80),
        "study report": Target("study.toml", damaged_text, study.format("report") + " --to out/r.tex", 30),
        "study clean": Target("study.toml", damaged_text, study.format("clean"), 20, deletes=True),
        "study check": Target("study.toml", damaged_text, "study check study.toml", 2, slow=True),
        "run.json": Target(f"{run}/run.json", damaged_json, partial(load_trained, str(run)), 60),
        "manifest": Target(f"{run}/manifest.json", damaged_json, "verify runs", 40),
        "manifest clean": Target(f"{run}/manifest.json", damaged_json, study.format("clean"), 30, deletes=True),
        "manifest report": Target(f"{run}/manifest.json", damaged_json, study.format("report"), 10),
        "failed.json": Target(f"{failed}/failed.json", damaged_json, study.format("status"), 50),
        "checkpoint": Target(f"{run}/checkpoint.pt", damaged_bytes, partial(load_trained, str(run)), 40, checked=True),
        "state": Target(f"{run}/checkpoint.pt", damaged_state, partial(load_trained, str(run)), 40, signed=True),
        "checkpoint inside": Target(
            f"{run}/checkpoint.pt", in_archive(damaged_bytes), partial(load_trained, str(run)), 60, signed=True
        ),
        "rows": Target(f"{run}/{rows}", damaged_bytes, study.format("report") + " --to out/r.csv", 40, checked=True),
        "rows signed": Target(
            f"{run}/{rows}", damaged_bytes, study.format("report") + " --to out/r.csv", 80, signed=True
        ),
        "rows csv": Target(f"{run}/{rows}", one_bit, study.format("rows") + " --to out/r.csv", 20, signed=True),
        "history": Target(
            f"{run}/history.json",
            damaged_json,
            study.format("report") + " --html out/r.html",
            4,
            signed=True,
            slow=True,
        ),
        "test.npz": Target(f"{run}/test.npz", damaged_bytes, partial(read, f"{run}/test.npz"), 20, checked=True),
        "onnx inputs": Target("model.onnx", damaged_bytes, partial(draw_inputs, "model.onnx"), 30),
        "onnx": Target(
            "model.onnx", damaged_bytes, "export model.onnx --map temperature.json --out out/m.onnx", 4, slow=True
        ),
        "example": Target(
            "example.npz",
            in_archive(damaged_array),
            "export model.onnx --map temperature.json --out out/m.onnx --example example.npz",
            6,
            slow=True,
        ),
    }
    for name in MAPS:
        if (folder / f"{name}.json").exists():
            found[f"map {name}"] = Target(f"{name}.json", damaged_json, f"{under} {name}.json", 25)
    found["map sequence"] = Target("sequence.json", damaged_json, f"{under} sequence.json", 25)
    return found
