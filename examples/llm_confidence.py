"""A language model that states its own confidence: audit it, correct it, and choose when to ask a person.

    python examples/llm_confidence.py [answers.csv]

Only the stated confidence of each answer and whether it was right are known. Your file has the columns `question`,
`stated` (0 to 1) and `right` (0 or 1). Without a file the answers are SIMULATED by the function `simulated`, and no
model is asked: each question has a chance of a right answer, and the stated confidence is that chance, overstated and
rounded to the values that people and language models like to say. A real model gives other figures; the steps are the
same.
"""

import csv
import sys

import numpy as np

from assay import Outcomes, audit, compare
from assay.calibrators import TOP_LABEL
from assay.maps import apply
from assay.thresholds import choose_threshold

STATED = np.array([0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 0.99])


def simulated(n: int, seed: int) -> Outcomes:
    """Answers that are right by chance, and the usual value nearest to an overstated, noisy estimate of it."""
    rng = np.random.default_rng(seed)
    chance = rng.beta(3, 1, n)
    felt = 1 - 0.5 * (1 - chance) + rng.normal(0, 0.06, n)
    stated = STATED[np.abs(felt[:, None] - STATED).argmin(1)]
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

# Platt's curve keeps the order, so it cannot hurt the ranking; and the map is a simple formula.
platt = TOP_LABEL["platt"](fit_on)
print("map:       ", platt)
threshold = choose_threshold(apply(platt, choose_on), risk=0.15)
print("threshold: ", threshold)
