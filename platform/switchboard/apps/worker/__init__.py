"""The `worker` process: its jobs, schedules, and reconcilers."""
