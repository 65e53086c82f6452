"""One self-contained page: opens without a network, light and dark, to be explored, printed and passed on."""

from assay.report.page._pages import (
    audit_page,
    board_page,
    compare_page,
    correction_page,
    study_page,
    threshold_page,
    write_claims,
)
from assay.report.page._samples import shown_by
from assay.report.page._tables import Field, PageTable, as_data

__all__ = [
    "Field",
    "PageTable",
    "as_data",
    "audit_page",
    "board_page",
    "compare_page",
    "correction_page",
    "shown_by",
    "study_page",
    "threshold_page",
    "write_claims",
]
