"""Background work on SAQ: wake-ups that may be lost, and the clock."""

from switchboard.work.wakeups import Clockwork, Job, Queue, wake

__all__ = ["Clockwork", "Job", "Queue", "wake"]
