"""Generate the tables of the documentation from the registries of the package.

    python docs/generate.py FOLDER

writes one Markdown file per table. The pages include these files.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import Parameter, getdoc, signature
from pathlib import Path
from typing import Any

import torch
from torch import nn

from assay import published
from assay.calibrators import CALIBRATORS, TOP_LABEL
from assay.metrics import METRICS
from assay.nn.data import DATA
from assay.nn.networks import NETWORKS
from assay.nn.recipes import METHODS, RECIPES, SETUPS
from assay.nn.training._configuration import described
from assay.published import SOURCES, Figure
from assay.scores import SCORES

DOCS = Path(__file__).parent
STUDIES = DOCS.parent / "studies"
ARROWS = {"higher": "↑", "lower": "↓", "-": ""}
NEAR = {"ece": "calibration", "ece_l2_mass": "calibration", "auroc": "ranking", "accuracy": "accuracy"}


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines) + "\n"


def source(name: str, module: str) -> str:
    """A name that links to the page of its highlighted source."""
    return f'<a href="_modules/{module.replace(".", "/")}.html"><code>{name}</code></a>'


def sentence(thing: object) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join((getdoc(thing) or "").split("\n\n")[0].split())


def defaults(function: Callable[..., Any]) -> str:
    """Keyword-only parameters with their defaults."""
    own = [p for p in signature(function).parameters.values() if p.kind is Parameter.KEYWORD_ONLY]
    return values({p.name: p.default for p in own})


def values(given: Mapping[str, object]) -> str:
    """Names and values, as code."""
    return ", ".join(f"`{name}={_short(value)}`" for name, value in given.items())


def _short(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | tuple):
        return "(" + ", ".join(map(_short, value)) + ")"
    return str(value).rpartition(".")[2] if isinstance(value, str) else str(value)


def metrics() -> str:
    """Every metric of `evaluate`, with a link to its section, or to its source if it has none."""
    page = (DOCS / "metrics.md").read_text()
    rows = []
    for key, m in METRICS.items():
        name = f"[`{key}`](#{key})" if f"\n### {key}\n" in page else source(key, m.of.__module__)
        rows.append((name, ARROWS[m.better], m.unit.sign, m.axis, m.line))
    return table(("key", "better", "unit", "axis", "what it is"), rows)


def calibrators() -> str:
    """Every calibrator, with its hyper-parameters and a link to its source."""
    rows = []
    for name, function in CALIBRATORS.items():
        needs = "a confidence" if name in TOP_LABEL else "all classes"
        rows.append((source(name, function.__module__), sentence(function), needs, defaults(function)))
    return table(("calibrator", "what it fits", "needs", "hyper-parameters"), rows)


def scores() -> str:
    """Every score that needs only predictions."""
    rows = ((source(name, score.__module__), sentence(score)) for name, score in SCORES.items())
    return table(("score", "what it is"), rows)


def recipes() -> str:
    """Every training method: what it minimizes, how, and with which hyper-parameters."""
    rows = []
    for name in METHODS:
        recipe = described(RECIPES[name])
        parts = _minimized(recipe["objective"])
        given = {key: value for _, own in parts for key, value in own.items()}
        how = []
        if "rho" in recipe["optimizer"]:
            how.append(f"{source('SAM', 'assay.nn.optim._sam')}, {values({'rho': recipe['optimizer']['rho']})}")
        if "averaged" in str(recipe["keep"]):
            how.append(source("weights averaged", "assay.nn.optim._averaging"))
        if recipe["start"]:
            how.append(f"starts from `cross_entropy` at {recipe['start']['share']:.0%} of training")
        minimized = " + ".join(source(f.rpartition(".")[2], f.rpartition(".")[0]) for f, _ in parts)
        rows.append((f"`{name}`", "; ".join([minimized, *how]), values(given)))
    return table(("recipe", "minimizes", "hyper-parameters"), rows)


def _minimized(node: Any) -> list[tuple[str, dict[str, Any]]]:
    """The losses or the objective inside a description, primary loss first, each with its values."""
    if isinstance(node, str):
        return [(node, {})]
    if "secondary" in node:
        (secondary, own), *_ = _minimized(node["secondary"])
        return [*_minimized(node["primary"]), (secondary, own | {"beta": node["beta"]})]
    for inner in ("objective", "loss"):
        if inner in node:
            return _minimized(node[inner])
    own = {key: value for key, value in node.items() if key not in ("function", "task")}
    return [(node["function"].partition(".<locals>")[0], own)]


def setups() -> str:
    """The set-up of each paper: `focal@mukhoti2020` is focal loss in the set-up of mukhoti2020."""
    rows = []
    for name, setup in SETUPS.items():
        r = described(setup.baseline)
        rate = {key: value for key, value in r["optimizer"].items() if key != "function"}
        kind = r["optimizer"]["function"].partition(".<locals>")[0].rpartition(".")[2]
        schedule = r["schedule"]
        drops = "constant"
        if isinstance(schedule, dict) and "at" not in schedule:
            drops = schedule["function"].partition(".<locals>")[0].rpartition(".")[2]
        elif isinstance(schedule, dict):
            at = ", ".join(str(round(share * r["epochs"])) for share in schedule["at"])
            drops = f"x {schedule['factor']} at {at}"
        keep = "best on held-out" if "best" in str(r["keep"]) else "last"
        clip = "" if r["clip_norm"] is None else f"{r['clip_norm']:.4g}"
        rows.append((f"`@{name}`", str(r["epochs"]), str(r["batch_size"]), f"{kind} {values(rate)}", drops, clip, keep))
    return table(("set-up", "epochs", "batch", "optimizer", "learning rate", "clip norm", "final weights"), rows)


def networks() -> str:
    """Every network, with its trainable parameters for ten classes."""
    rows = []
    for name, factory in NETWORKS.items():
        rows.append((source(name, factory.__module__), sentence(factory), f"{n_parameters(factory):,}"))
    return table(("network", "what it is", "parameters, 10 classes"), rows)


def n_parameters(factory: Callable[..., nn.Module]) -> int:
    """The count for images with three channels, word vectors of 100 dimensions, and trees with vectors of 300."""
    words = torch.zeros(20_001, 300 if "tree" in factory.__name__ else 100)
    offers: dict[str, Any] = {"inputs": 3 * 32 * 32, "vectors": words}
    with torch.device("meta"):
        made = factory(10, **{key: value for key, value in offers.items() if key in signature(factory).parameters})
    return sum(p.numel() for p in made.parameters() if p.requires_grad)


def data() -> str:
    """Every data set."""
    rows = ((f"`{name}`", sentence(loader)) for name, loader in DATA.items())
    return table(("data set", "what it is"), rows)


def studies() -> str:
    """Every study file: its question, the commands that run it, and its assumptions."""
    text = []
    for file in sorted(STUDIES.rglob("*.toml"), key=lambda file: (len(file.parts), file)):
        study = _study(file)
        where = file.relative_to(STUDIES.parent).as_posix()
        text += [f"## {where.removeprefix('studies/').removesuffix('.toml')}\n", f"{study.get('question', '')}\n"]
        text += [f"```console\n$ assay study run {where} --out runs\n$ assay study report {where} --out runs\n```\n"]
        axes = {"data": "data sets", "networks": "networks", "recipes": "recipes", "seeds": "seeds"}
        runs = ", ".join(f"{name}: {len(study.get(axis, []))}" for axis, name in axes.items())
        text += [f"{runs.capitalize()}. Calibrators: {', '.join(map(_entry, study.get('calibrators', ['none'])))}.\n"]
        if study.get("assumed"):
            text += [
                "Assumptions and changes:\n",
                *(f"- {value}" for value in study["assumed"]),
                "",
            ]
    return "\n".join(text)


def _entry(entry: str | dict[str, Any]) -> str:
    """An entry of a study: a name, possibly with values."""
    if isinstance(entry, str):
        return f"`{entry}`"
    (_, name), *given = entry.items()
    return f"`{name}` with {values(dict(given))}"


def _study(file: Path) -> dict[str, Any]:
    own = tomllib.loads(file.read_text())
    base = own.pop("extends", None)
    if base is None:
        return own
    inherited = _study(file.parent / base)
    assumed = dict.fromkeys([*inherited.get("assumed", []), *own.get("assumed", [])])
    return inherited | own | {"assumed": list(assumed)}


def tables_of_papers() -> str:
    """Every table of `assay.published`."""
    rows = []
    for s in SOURCES:
        n = sum(figure.table == s.table for figure in published.load(s.paper))
        rows.append((s.paper, s.table, s.caption, f"{s.runs or 'not given'}", str(n), "; ".join(s.remarks)))
    return table(("paper", "table", "what it shows", "runs", "figures", "remarks"), rows)


def evidence() -> str:
    """The number of settings in which a method is better than cross-entropy, on each axis, before any scaling."""
    figures = [f for f in published.load() if (f.calibrator, f.score, f.shift) == ("none", "max_probability", "none")]
    at: dict[tuple[str, ...], float] = {(f.paper, f.data, f.network, f.method, f.metric): f.mean for f in figures}
    methods = list(dict.fromkeys(published.parse_variant(f.method).name for f in figures))
    rows = []
    for method in (name for name in METHODS if name in methods and name != "cross_entropy"):
        for paper in dict.fromkeys(f.paper for f in figures):
            cells = {axis: _better(at, paper, method, axis) for axis in ("calibration", "ranking", "accuracy")}
            if any(cells.values()):
                rows.append((f"`{method}`", paper, *cells.values()))
    return table(("method", "paper", "calibration better in", "ranking better in", "accuracy better in"), rows)


def _better(at: Mapping[tuple[str, ...], float], paper: str, method: str, axis: str) -> str:
    gains = []
    for (of, where, network, name, metric), mean in at.items():
        if (of, published.parse_variant(name).name, NEAR.get(metric)) == (paper, method, axis):
            sign = 1 if METRICS[metric].better == "higher" else -1
            gains.append(sign * (mean - at[of, where, network, "cross_entropy", metric]))
    return f"{sum(gain > 0 for gain in gains)} of {len(gains)}" if gains else ""


def scaled() -> str:
    """The same for calibration, before and after temperature scaling of both."""
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for paper in ("singh2021", "wang2021", "karandikar2021", "mukhoti2020"):
        figures = [f for f in published.load(paper) if f.metric in ("ece", "ece_l2_mass") and f.shift == "none"]
        at = {(f.data, f.network, f.method, _kind(f)): f.mean for f in figures}
        for (where, network, name, kind), mean in at.items():
            base = at.get((where, network, "cross_entropy", "none"))
            base_scaled = at.get((where, network, "cross_entropy", "temperature"))
            if kind == "temperature" and name != "cross_entropy" and base is not None and base_scaled is not None:
                before = at[where, network, name, "none"] - base
                found.setdefault((paper, published.parse_variant(name).name), []).append((before, mean - base_scaled))
    rows = []
    for (paper, name), pairs in sorted(found.items(), key=lambda item: (list(METHODS).index(item[0][1]), item[0])):
        n = len(pairs)
        rows.append((f"`{name}`", paper, *(f"{sum(pair[side] < 0 for pair in pairs)} of {n}" for side in (0, 1))))
    header = ("method", "paper", "better calibrated than cross-entropy in", "and after scaling both, in")
    return table(header, rows)


def _kind(f: Figure) -> str:
    return "temperature" if "temperature" in f.calibrator and "sb_ece" not in f.calibrator else f.calibrator


TABLES: dict[str, Callable[[], str]] = {
    function.__name__: function
    for function in (
        *(metrics, calibrators, scores, recipes, setups, networks, data),
        *(studies, tables_of_papers, evidence, scaled),
    )
}


def write(folder: Path) -> None:
    """Write every table whose content has changed."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in TABLES.items():
        file, text = folder / f"{name}.md", make()
        if not file.is_file() or file.read_text() != text:
            file.write_text(text)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
