"""A language model that states its own confidence: how far to believe it, how to correct it, when to hand over.

    python examples/llm_confidence.py [answers.csv]

Of such a model nothing is known but what it states and whether it was right. A file of yours has the columns
`question`, `stated` (0 to 1) and `right` (0 or 1). Without one the answers are SIMULATED, by the three lines of
`simulated`, and no model was asked: each question has a chance of being answered right; the statement follows it, but
pulled up and rounded to the values that people and language models like to say. Figures of a real model will differ;
what to do with them will not.
"""

import csv
import sys

import numpy as np

from assay import Outcomes, audit, compare
from assay.calibrators import TOP_LABEL
from assay.maps import apply
from assay.thresholds import choose_threshold

SAID = np.array([0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99])


def simulated(n: int, seed: int) -> Outcomes:
    """Answers right by chance, and the nearest usual word for an overstated, noisy estimate of that chance."""
    rng = np.random.default_rng(seed)
    chance = rng.beta(3, 1, n)
    felt = 1 - 0.5 * (1 - chance) + rng.normal(0, 0.06, n)
    stated = SAID[np.abs(felt[:, None] - SAID).argmin(1)]
    return Outcomes.from_scores(stated, rng.random(n) < chance)


def read(file: str) -> Outcomes:
    with open(file, newline="") as lines:
        rows = list(csv.DictReader(lines))
    return Outcomes.from_scores([float(row["stated"]) for row in rows], [int(row["right"]) for row in rows])


given = len(sys.argv) > 1
answers = read(sys.argv[1]) if given else simulated(4000, seed=0)
print(f"{len(answers)} answers {f'from {sys.argv[1]}' if given else '(simulated)'}")
half, quarter = len(answers) // 2, len(answers) // 4
fit_on, choose_on, test = answers[:half], answers[half : half + quarter], answers[half + quarter :]

print("stated:    ", audit(test))
corrected = {name: apply(TOP_LABEL[name](fit_on), test) for name in ("platt", "isotonic", "histogram")}
for name, rows in corrected.items():
    assert isinstance(rows, Outcomes)
    ece = audit(rows)["ece"]
    print(f"{name + ':':11} ECE {ece.value:.2%}, where noise alone shows {ece.floor:.2%}; {compare(test, rows)}")

# Platt's curve keeps the order, so it cannot hurt the ranking; and the map is a formula that fits anywhere.
platt = TOP_LABEL["platt"](fit_on)
print("map:       ", platt)
threshold = choose_threshold(apply(platt, choose_on), risk=0.15)
print("threshold: ", threshold)
