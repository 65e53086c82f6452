"""A language model that states its own confidence: audit it, correct it, and choose when to ask a person.

    python examples/llm_confidence.py answers.jsonl

Each row of the file is one answer as an evaluation leaves it: `question` (its id), `response` (the text, in which the
model states how sure it is: "Confidence: 90%") and `correct` (true or false). Answers that state no confidence are left
out and counted.
"""

import sys

import numpy as np

from assay import Outcomes, audit, choose_threshold, compare, files
from assay.calibrators import auto
from assay.files import Columns
from assay.maps import apply

if len(sys.argv) != 2:
    sys.exit(__doc__)
columns = Columns(confidence_from="response", ids="question", unanswered="drop")
answers = files.read(sys.argv[1], columns)
assert isinstance(answers, Outcomes)
print(f"{len(answers)} answers with a stated confidence")

part = np.random.default_rng(0).permutation(len(answers)) % 4
fit_on, choose_on, test = answers[part < 2], answers[part == 2], answers[part == 3]
mapping = auto(fit_on)
corrected = apply(mapping, test)
print("stated:    ", audit(test))
print("corrected: ", audit(corrected))
print("difference:", compare(test, corrected))
print("threshold: ", choose_threshold(apply(mapping, choose_on), risk=0.15))
