"""Prometheus metrics by organization, with a bounded number of label values."""

from collections import Counter
from collections.abc import Mapping
from typing import Final
from uuid import UUID

from switchboard.foundation.observability.metrics import create_counter, create_gauge, create_histogram

MAX_ORGANIZATIONS: Final = 100
"""Organizations with a label value of their own in one process; each costs about twenty time series."""
OTHER: Final = "other"

ended_calls = create_counter(
    "switchboard_organization_calls", "Calls that ended", ["organization", "direction", "status"]
)
live_calls = create_gauge(
    "switchboard_organization_live_calls", "Live calls of the server", ["organization"], multiprocess_mode="livesum"
)
turn_latency = create_histogram(
    "switchboard_organization_turn_latency_seconds",
    "From the caller's last voiced audio to the first frame of the answer",
    ["organization"],
    buckets=(0.5, 1.0, 2.0, 5.0),
)
failed_deliveries = create_counter(
    "switchboard_organization_failed_deliveries",
    "Deliveries that ended failed, after their last attempt",
    ["organization"],
)
_labels: dict[UUID, str] = {}
_live_labels: set[str] = set()


def count_call(organization_id: UUID, direction: str, status: str) -> None:
    """Count a call that has ended."""
    ended_calls.labels(_get_label(organization_id), direction, status).inc()


def count_failed_delivery(organization_id: UUID) -> None:
    """Count a delivery that ended `failed`."""
    failed_deliveries.labels(_get_label(organization_id)).inc()


def observe_turn_latency(organization_id: UUID, seconds: float) -> None:
    """Record the latency of a turn."""
    turn_latency.labels(_get_label(organization_id)).observe(seconds)


def set_live_calls(counts: Mapping[UUID, int]) -> None:
    """Set the number of this process's live calls of each organization; those without a call have none."""
    by_label = Counter[str]()
    for organization_id, count in counts.items():
        by_label[_get_label(organization_id)] += count
    for label in _live_labels - by_label.keys():
        live_calls.labels(label).set(0)  # the processes of a group cannot remove a series
    _live_labels.update(by_label)
    for label, count in by_label.items():
        live_calls.labels(label).set(count)


def _get_label(organization_id: UUID) -> str:
    """Return the organization's id if it is among the first that this process has seen, else `other`.

    A label is never given to another organization: the series of the first one stays until the process ends.
    """
    if organization_id not in _labels and len(_labels) < MAX_ORGANIZATIONS:
        _labels[organization_id] = str(organization_id)
    return _labels.get(organization_id, OTHER)
