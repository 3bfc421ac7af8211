"""Counters that the kernel has of processes."""

import os
import time
from pathlib import Path
from typing import Final

_SCHEDULER_CLOCK: Final = 2
"""Linux's clock of the time that the scheduler gave to a process, in nanoseconds (`CPUCLOCK_SCHED`)."""


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process, by its clock as `clock_getcpuclockid(3)` names it; 0 if it has ended."""
    try:
        return time.clock_gettime(~pid << 3 | _SCHEDULER_CLOCK)
    except OSError:
        return 0.0


def rss_megabytes(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def count_descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def list_processes(pid: int) -> list[int]:
    """Return a server's process and those that it has started."""
    return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]
