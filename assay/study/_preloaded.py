"""What any run may import, also on the way: once, in the server process that all children are forked from.

What is there by then is frozen out of garbage collection, so that children do not copy its pages by looking at it.
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
