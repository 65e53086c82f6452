"""Memory that one step frees serves the next.

glibc hands large blocks back to the system as they are freed, and the next step pays for each of their pages anew: up
to an eighth of a step on a CPU, and more of SAM's second look, which comes while the first one's gradients are held.
"""

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

# Parameters of mallopt, see its manual page.
TRIM_THRESHOLD, MMAP_THRESHOLD, MMAP_MAX = -1, -3, -4


@contextmanager
def reused() -> Iterator[None]:
    """Within it freed memory stays with the process; at its end what is free goes back. Without glibc, nothing."""
    if sys.platform != "linux" or not hasattr(libc := ctypes.CDLL(None), "mallopt"):
        yield
        return
    libc.mallopt(TRIM_THRESHOLD, -1)
    libc.mallopt(MMAP_MAX, 0)
    try:
        yield
    finally:
        libc.mallopt(MMAP_MAX, 2**16)
        libc.mallopt(MMAP_THRESHOLD, 2**25)  # where glibc's own adaptation of both ends
        libc.mallopt(TRIM_THRESHOLD, 2**26)
        libc.malloc_trim(0)
