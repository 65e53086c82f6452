"""Claims put to the test: written down before the runs that decide them, judged from what is kept of these runs.

A file of claims names studies as regimes. `gather` keeps what the claims of a regime read from its runs, in two small
files; `judge` gives each claim its effect, interval and verdict from these files alone.
"""

from assay.claims._claims import Claim, Side, read_claims
from assay.claims._evidence import Evidence, gather, has_evidence, joined, kept_already, read_evidence, write_evidence
from assay.claims._report import claims_page, last_values, markdown, summary, view
from assay.claims._verdicts import Comparison, Judged, best_or_tied, judge

__all__ = [
    "Claim",
    "Comparison",
    "Evidence",
    "Judged",
    "Side",
    "best_or_tied",
    "claims_page",
    "gather",
    "has_evidence",
    "joined",
    "judge",
    "kept_already",
    "last_values",
    "markdown",
    "read_claims",
    "read_evidence",
    "summary",
    "view",
    "write_evidence",
]
