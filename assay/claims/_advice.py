"""What the runs of a regime advise: how to train, how to correct, and what a threshold then accepts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from assay.claims._claims import Side
from assay.claims._evidence import Evidence
from assay.claims._verdicts import LEAST, best_or_tied
from assay.metrics import COMPARED, evaluate
from assay.predictions import Outcomes
from assay.thresholds import choose_threshold

BASELINE = "cross_entropy"
CORRECTIONS = ("temperature", "auto")


def advice(evidence: Evidence) -> list[str]:
    """Train so, correct so, accept so: a sentence each, with what it rests on; nothing without three seeds of two."""
    known = [recipe for recipe in evidence.recipes if len(evidence.seeds(Side(recipe))) >= LEAST]
    if BASELINE not in known or len(known) < 2:
        return []
    return [_train(evidence), *_correct(evidence), *_accept(evidence, known)]


def _train(evidence: Evidence) -> str:
    calibrated, ranking = (best_or_tied(evidence, metric) for metric in ("calibration_part", "auroc"))
    both = [recipe for recipe in calibrated if recipe in ranking]
    if BASELINE in both:
        choice = f"Nothing is shown to be better than {BASELINE}, so train with it."
    elif both:
        choice = f"Train with {' or '.join(both)}."
    else:
        choice = f"Train with {ranking[0]}: calibration can be repaired afterwards, ranking hardly."
    return (
        f"Best as trained, or not shown to be worse than the best: calibration {', '.join(calibrated)}; "
        f"error AUROC {', '.join(ranking)}; both {', '.join(both) or 'none'}. {choice}"
    )


def _correct(evidence: Evidence) -> Iterator[str]:
    """What corrections after the baseline change on both axes."""
    before = _means(evidence, Side(BASELINE))
    after = {name: _means(evidence, Side(BASELINE, name)) for name in CORRECTIONS}
    moved = [
        f"{name} to {_shown('ece', to['ece'])} and {_shown('auroc', to['auroc'])}" for name, to in after.items() if to
    ]
    if moved:
        yield (
            f"Correct afterwards: {BASELINE} has ECE {_shown('ece', before['ece'])} and error AUROC "
            f"{_shown('auroc', before['auroc'])}; {', '.join(moved)}."
        )


def _accept(evidence: Evidence, recipes: list[str]) -> Iterator[str]:
    risk = promised_risk(evidence)
    if risk is None:
        return
    found = {recipe: accepted(evidence, recipe, risk)[0] for recipe in recipes}
    most = max(found, key=lambda recipe: found[recipe])
    than = f", {BASELINE} {found[BASELINE]:.1%}" if most != BASELINE else ""
    yield (
        f"Accept by a threshold: a promise of at most {100 * risk:g}% errors, made on one half of the test samples, "
        f"accepts most of the other with {most}, {found[most]:.1%}{than}."
    )


def promised_risk(evidence: Evidence) -> float | None:
    """About half of the errors of the baseline; None if it is not there or makes none."""
    wrong = 1 - _means(evidence, Side(BASELINE)).get("accuracy", 1.0)
    return float(f"{wrong / 2:.1g}") or None


def accepted(evidence: Evidence, recipe: str, risk: float) -> tuple[float, float]:
    """Share of answers that a promise accepts, and of errors among them: it is made on each half for the other."""
    found = [_accepted(o, risk) for o in _runs(evidence, Side(recipe))]
    return float(np.mean([share for share, _ in found])), float(np.mean([errors for _, errors in found]))


def _accepted(o: Outcomes, risk: float) -> tuple[float, float]:
    half = len(o) // 2
    kept: list[Outcomes] = []
    for chosen_on, checked_on in ((o[:half], o[half:]), (o[half:], o[:half])):
        value = choose_threshold(chosen_on, risk=risk).value
        kept.append(checked_on[checked_on.confidence >= value])
    n = sum(map(len, kept))
    return n / len(o), sum(int((~rows.correct).sum()) for rows in kept) / max(n, 1)


def _runs(evidence: Evidence, side: Side) -> list[Outcomes]:
    return [evidence.samples[side, seed] for seed in evidence.seeds(side)]


def _means(evidence: Evidence, side: Side) -> dict[str, float]:
    runs = [evaluate(o, ["accuracy", "ece", "auroc"]) for o in _runs(evidence, side)]
    return {name: float(np.mean([run[name] for run in runs])) for name in runs[0]} if runs else {}


def _shown(metric: str, value: float) -> str:
    unit = COMPARED[metric].unit
    return unit.number(value) + unit.sign
