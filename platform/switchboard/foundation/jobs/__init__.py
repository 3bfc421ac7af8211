"""Wake-ups and the clock over SAQ, sweeps beside it. Redis holds only what may be lost."""

from switchboard.foundation.jobs.reconcilers import Sweep, run_sweep
from switchboard.foundation.jobs.wakeups import Clockwork, Job, Queue, wake

__all__ = ["Clockwork", "Job", "Queue", "Sweep", "run_sweep", "wake"]
