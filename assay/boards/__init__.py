"""Many models at once: a leaderboard of accuracy, calibration and refinement, with what cannot be told apart."""

from assay.boards._board import Board, BoardLine, board
from assay.boards._measuring import KEYS, Corrected, Measured, auroc_within, cross_fitted, measure
from assay.boards._ranks import RANKED, RankRange, rank_ranges
from assay.files import Sheet

__all__ = [
    "KEYS",
    "RANKED",
    "Board",
    "BoardLine",
    "Corrected",
    "Measured",
    "RankRange",
    "Sheet",
    "auroc_within",
    "board",
    "cross_fitted",
    "measure",
    "rank_ranges",
]
