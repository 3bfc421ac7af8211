"""Bound on the processor time of work with data from outside, such as rules of recurrence."""

import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Final, TypeVar

ResultT = TypeVar("ResultT")
WORK_SECONDS: Final = 3.0
"""Most processor time for one answer. Reading the events of the largest response takes 2.9 s without rules; a rule of
the last ten years for each day takes 0.03 s (measured 2026-11-29 on a core of this project's test machine)."""


class TooMuchWork(Exception):
    """The work takes more processor time than it may."""


class _Stopped(BaseException):
    """Ends the work from within. Not an `Exception`, which the code of a library might catch."""


def run_limited(work: Callable[[], ResultT], seconds: float = WORK_SECONDS) -> ResultT:
    """Run a function of Python code in this thread, for at most so many seconds of the thread's processor time.

    A rule such as "each second since 1970", or "each hour of 30 February", is searched by loops of a library that have
    no bound, and a thread cannot be stopped from outside. So the time is compared at each call of a function, which
    makes an expansion of rules a third slower.

    Raises `TooMuchWork`.
    """
    end = time.thread_time() + seconds

    def compare(_frame: FrameType, _event: str, _argument: object) -> None:
        if time.thread_time() > end:
            raise _Stopped

    before = sys.gettrace()
    sys.settrace(compare)
    try:
        return work()
    except _Stopped:
        raise TooMuchWork from None
    finally:
        sys.settrace(before)
