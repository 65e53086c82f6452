"""The tests behind the findings on MMLU-Pro: `python docs/results/mmlu_pro.py mmlu_pro.parquet`.

Every comparison is paired on the questions that both sides answered with a usable confidence, and the comparisons under
one title are corrected together (Holm).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from itertools import pairwise

import numpy as np
from scipy.stats import binomtest, spearmanr

from assay import Outcomes, files
from assay.comparing import AXES, LEVEL
from assay.files import Columns, Sheet
from assay.metrics import COMPARED, METRICS, Tables
from assay.metrics.inference import Change, holm

THINKING = ("Qwen3-4B", "Qwen3-14B", "Qwen3-235B-A22B-fp8-tput")
OTHERWISE = (("Qwen3-0.6B-FP8", "Qwen3-0.6B-think"),)  # thinking against a quantized model without
QUANTIZED = (("Qwen3-14B", "Qwen3-14B-FP8"), ("Qwen3-14B", "Qwen3-14B-AWQ"), ("Qwen3-32B", "Qwen3-32B-AWQ"))
# Larger and smaller models of one generation and kind.
FAMILIES = (
    ("Qwen3-1.7B", "Qwen3-4B", "Qwen3-14B", "Qwen3-32B"),
    ("Qwen3-1.7B-Base", "Qwen3-4B-Base", "Qwen3-14B-Base"),
    ("Qwen3-4B-think", "Qwen3-14B-think"),
    ("Qwen2.5-7B-Instruct", "Qwen2.5-14B-Instruct"),
    ("Meta-Llama-3.1-8B-Instruct-Turbo", "Meta-Llama-3.1-405B-Instruct-Turbo"),
    ("Phi-3.5-mini-instruct", "Phi-3.5-MoE-instruct"),
    ("gemma-3-4b-it", "gemma-3-12b-it"),
    ("gpt-4.1-nano", "gpt-4.1-mini"),
    ("gpt-4o-mini-2024-07-18", "gpt-4o-2024-08-06"),
    ("grok-3-mini-beta", "grok-3-beta"),
)
Key = tuple[str, str]
Found = tuple[str, float, float, float]  # name, the metric of the first, of the second, p-value


def paired(a: Sheet, b: Sheet) -> tuple[Outcomes, Outcomes]:
    """Both on the questions that both have."""
    shared = np.intersect1d(a.question, b.question)
    return tuple(s.rows[np.argsort(s.question)][np.isin(np.sort(s.question), shared)] for s in (a, b))  # type: ignore[return-value]


def changes(pairs: Iterable[tuple[str, Sheet, Sheet]], axis: str) -> list[Found]:
    """The metric of an axis of both sides of each pair, with p-values corrected together."""
    metric, made = COMPARED[AXES[axis][0]], []
    for name, a, b in pairs:
        first, second = (Tables(rows) for rows in paired(a, b))
        test = metric.paired(first, second) if metric.paired else None
        made.append((name, metric.of(first), metric.of(second), test.p_value if isinstance(test, Change) else 1.0))
    corrected = holm([p for *_, p in made])
    return [(name, a, b, p) for (name, a, b, _), p in zip(made, corrected, strict=True)]


def told(title: str, found: list[Found], axis: str, *, each: bool = True) -> None:
    sign = AXES[axis][1]
    better, worse = (sum(p < LEVEL and s * sign * (b - a) > 0 for _, a, b, p in found) for s in (1, -1))
    up = sum(sign * (b - a) > 0 for _, a, b, _ in found)
    p = binomtest(up, len(found)).pvalue
    mean = np.mean([b - a for _, a, b, _ in found])
    print(f"\n{title}: {axis} better in {up} of {len(found)} (sign test p = {p:.2g}), by {mean:+.4f} on average;")
    print(f"  shown better in {better}, worse in {worse}")
    for name, a, b, p_value in found if each else ():
        print(f"  {name}: {a:.4f} to {b:.4f}, p = {p_value:.2g}")


def main(file: str) -> None:
    columns = Columns(confidence="stated,log_probability,wording", ids="question")
    sheets = {(s.model, s.confidence): s for s in files.read_sheets(file, columns, by="model")}
    models = list(dict.fromkeys(model for model, _ in sheets))

    def of(pairs: Iterable[tuple[Key, Key]]) -> list[tuple[str, Sheet, Sheet]]:
        return [(f"{a[0]} {a[1]} to {b[0]} {b[1]}", sheets[a], sheets[b]) for a, b in pairs if {a, b} <= set(sheets)]

    for a, b in (("log_probability", "stated"), ("stated", "wording"), ("log_probability", "wording")):
        for axis in ("refinement", "calibration"):
            told(f"{b} against {a}", changes(of(((m, a), (m, b)) for m in models), axis), axis, each=False)
    for confidence in ("stated", "log_probability"):
        sizes = [(s, t) for family in FAMILIES for s, t in pairwise(family)]
        for axis in ("refinement", "calibration"):
            found = changes(of(((s, confidence), (t, confidence)) for s, t in sizes), axis)
            told(f"the larger model, {confidence}", found, axis)
            thinking = [((m, confidence), (f"{m}-think", confidence)) for m in THINKING]
            told(f"with thinking, {confidence}", changes(of(thinking), axis), axis)
            other = [((s, confidence), (t, confidence)) for s, t in OTHERWISE]
            told(f"with thinking, without quantization, {confidence}", changes(of(other), axis), axis)
            quantized = [((s, confidence), (t, confidence)) for s, t in QUANTIZED]
            told(f"quantized, {confidence}", changes(of(quantized), axis), axis)
    correlations(sheets, models)


def correlations(sheets: dict[Key, Sheet], models: list[str]) -> None:
    """Accuracy against AUROC over models, with the spread when families of models are drawn again."""
    rng = np.random.default_rng(0)
    for confidence in ("stated", "log_probability", "wording"):
        there = [m for m in models if (m, confidence) in sheets]
        values = np.array(
            [[METRICS[key].of(Tables(sheets[m, confidence].rows)) for key in ("accuracy", "auroc")] for m in there]
        )
        family = np.unique([re.split(r"[-\d]", m)[0] for m in there], return_inverse=True)[1]
        drawn = []
        for _ in range(500):
            rows = np.concatenate([np.flatnonzero(family == f) for f in rng.choice(family.max() + 1, family.max() + 1)])
            drawn.append(spearmanr(values[rows, 0], values[rows, 1]).statistic)
        low, high = np.nanquantile(drawn, [0.025, 0.975])
        rho = spearmanr(values[:, 0], values[:, 1]).statistic
        print(f"\n{confidence}: rank correlation of accuracy and AUROC {rho:.2f} ({low:.2f} to {high:.2f})")
        print(f"  over {len(there)} models of {family.max() + 1} families")


if __name__ == "__main__":
    main(sys.argv[1])
