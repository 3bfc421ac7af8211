"""Background jobs: wake-ups and cron jobs over SAQ, and reconcilers. Redis holds only what may be lost."""

from switchboard.foundation.jobs.batches import work_on_each
from switchboard.foundation.jobs.beats import BeatWatch
from switchboard.foundation.jobs.reconcilers import Reconciler, run_reconciler
from switchboard.foundation.jobs.wakeups import CronJob, Job, Queue, wake

__all__ = ["BeatWatch", "CronJob", "Job", "Queue", "Reconciler", "run_reconciler", "wake", "work_on_each"]
