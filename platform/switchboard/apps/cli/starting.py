"""Garbage collection during starts: imports create almost no garbage, and many objects that every collection visits.

It took a quarter of a command's start. Once a process is ready, a full collection stops all of its calls: 300 ms with
the 350 000 objects of the code, which every caller heard who ended a turn in that time.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

FULL_COLLECTION_AFTER = 100
"""Collections of younger garbage for each full one; ten by default. A call has about a thousand objects, so that a full
collection takes 60 ms at a hundred calls, which may happen every few minutes."""


@contextmanager
def pause_collections() -> Iterator[None]:
    """Collect no garbage within the block, and never any of what it has created."""
    gc.disable()
    try:
        yield
    finally:
        resume_collections()


def resume_collections() -> None:
    """Collect garbage among what is created from now on."""
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], FULL_COLLECTION_AFTER)
    gc.enable()
