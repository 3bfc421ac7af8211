"""Nothing in deploy/ kills a process while it drains."""

import re

from switchboard.foundation.settings import Settings

from tests.fixtures.servers import REPOSITORY

GRACE = re.compile(r"(?:TimeoutStopSec=|stop_grace_period: |terminationGracePeriodSeconds: )(\d+)")
FILES = (
    "systemd/switchboard-serve@.service",
    "systemd/switchboard-worker@.service",
    "compose.yaml",
    "helm/switchboard/values.yaml",
)


def test_every_grace_period_is_longer_than_the_drain() -> None:
    for name in FILES:
        seconds = GRACE.findall((REPOSITORY / "deploy" / name).read_text())
        assert len(seconds) == 1, name
        assert int(seconds[0]) > Settings().drain_seconds, name
