"""Bound on the processor time of work with data from outside, such as rules of recurrence."""

import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Final, TypeVar

ResultT = TypeVar("ResultT")
WORK_SECONDS: Final = 5.0
"""Most processor time for one answer. A thousand events take 0.5 s, and a thousand weekly ones in a month
1.9 s (measured 2026-11-29 on one core of the tests' machine)."""


class TooMuchWork(Exception):
    """The work takes more processor time than it may."""


class _Stopped(BaseException):
    """Ends the work from within. Not an `Exception`, which the code of a library might catch."""


class WorkLimit:
    """Processor time that this thread may use for one piece of work, from now on."""

    def __init__(self, seconds: float) -> None:
        self._end = time.thread_time() + seconds

    @property
    def is_reached(self) -> bool:
        """True if the time is used up."""
        return time.thread_time() > self._end

    def run(self, work: Callable[[], ResultT]) -> ResultT:
        """Run a function of Python code, and stop it when the time is used up.

        A rule such as "each second since 1970", or "each hour of 30 February", is searched by loops of a library that
        have no bound, and a thread cannot be stopped from outside. So the time is compared at each call of a function,
        which makes the work up to four times slower: run only what needs it.

        The work may be stopped anywhere, even while it has a lock: whatever it has used must be given up then.

        Raises `TooMuchWork`.
        """
        before = sys.gettrace()
        sys.settrace(self._compare)
        try:
            return work()
        except _Stopped:
            raise TooMuchWork from None
        finally:
            sys.settrace(before)

    def _compare(self, _frame: FrameType, _event: str, _argument: object) -> None:
        if self.is_reached:
            raise _Stopped
