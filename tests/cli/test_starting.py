"""Garbage collection of a process: its code is left out, so that no collection holds its calls for long."""

import subprocess
import sys

REPORT = """
import gc
from switchboard.apps.cli import starting

class Cycle:
    def __init__(self):
        self.itself = self

with starting.pause_collections():
    code = [Cycle() for _ in range(100_000)]
    counts = [generation["collections"] for generation in gc.get_stats()]
    more = [Cycle() for _ in range(100_000)]
    print(counts == [generation["collections"] for generation in gc.get_stats()])
print(gc.isenabled(), gc.get_freeze_count() > 200_000, len(gc.get_objects()) < 10_000)
del code
garbage = Cycle()
del garbage
print(gc.collect() >= 1)
"""


def test_collections_leave_out_what_was_created_at_the_start() -> None:
    printed = subprocess.run([sys.executable, "-c", REPORT], capture_output=True, text=True, check=True).stdout
    assert printed.split() == ["True"] * 5
