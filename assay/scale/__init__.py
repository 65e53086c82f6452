"""Audits of any size: a tally of fixed size that adds up, and streams that fill it."""

from assay.scale._streaming import is_sharded, shards, tally
from assay.scale._tally import Tally

__all__ = ["Tally", "is_sharded", "shards", "tally"]
