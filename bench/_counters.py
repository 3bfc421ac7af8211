"""Counters that the kernel has of processes."""

import os
from pathlib import Path


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process, 0 if it has ended."""
    try:
        parts = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0
    return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


def rss_megabytes(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def count_descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def list_processes(pid: int) -> list[int]:
    """Return a server's process and those that it has started."""
    return [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]
