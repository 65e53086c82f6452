"""Imports that any run may need, made once in the server process that all children are forked from.

All objects are then excluded from garbage collection, so that children do not copy their pages.
"""

import gc
from contextlib import suppress
from importlib import import_module

from assay.nn.training import versions

for name in ("lightning.fabric", "scipy.optimize", "scipy.stats", "sklearn.datasets", "sklearn.neighbors", "PIL.Image"):
    with suppress(ImportError):
        import_module(name)
versions()
gc.collect()
gc.freeze()
