"""Audits of any size: a tally of fixed size that adds up, and streams that fill it."""

from assay.scale._cells import Cells
from assay.scale._engines import added, tallies_in_arrow, tally
from assay.scale._filling import Filling
from assay.scale._joint import Joint
from assay.scale._parts import is_sharded, shards
from assay.scale._ray import tally_on_ray
from assay.scale._reading import chunks_of
from assay.scale._streaming import Progress, Stopped, tally_files
from assay.scale._tally import Tally

__all__ = [
    "Cells",
    "Filling",
    "Joint",
    "Progress",
    "Stopped",
    "Tally",
    "added",
    "chunks_of",
    "is_sharded",
    "shards",
    "tallies_in_arrow",
    "tally",
    "tally_files",
    "tally_on_ray",
]
