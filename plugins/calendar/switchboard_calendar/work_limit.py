"""Bound on the processor time of work with data from outside, such as rules of recurrence."""

import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import TypeVar

ResultT = TypeVar("ResultT")


class TooMuchWork(Exception):
    """The work takes more processor time than it may."""


class _Stopped(BaseException):
    """Ends the work from within. Not an `Exception`, which the code of a library might catch."""


class WorkLimit:
    """Processor time that this thread may use for one piece of work, from now on."""

    def __init__(self, seconds: float) -> None:
        self._end = time.thread_time() + seconds

    def check(self) -> None:
        """Raise `TooMuchWork` if the time is used up."""
        if time.thread_time() > self._end:
            raise TooMuchWork

    def run(self, work: Callable[[], ResultT]) -> ResultT:
        """Run a function of Python code, and stop it when the time is used up.

        A rule such as "each second since 1970", or "each hour of 30 February", is searched by loops of a library that
        have no bound, and a thread cannot be stopped from outside. So the time is compared at each call of a function,
        which makes the work up to four times slower: run only what needs it.

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
        if time.thread_time() > self._end:
            raise _Stopped
