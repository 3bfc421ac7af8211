"""Prometheus metrics at `/metrics`. Labels have few values: never a phone number, and no ids but those of the first
organizations.

The processes of one `serve --processes` keep their values in files of a folder (prometheus_client's multiprocess mode),
so that each of them renders those of all. Counters, histograms, and gauges are added up, unless a gauge says otherwise.
"""

import os
from collections import Counter as Counts
from collections.abc import Mapping
from functools import partial
from typing import Final
from uuid import UUID

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

GROUP_FOLDER: Final = "PROMETHEUS_MULTIPROC_DIR"
"""Environment variable with the folder of a group, which prometheus_client reads when it is imported."""
registry = CollectorRegistry()
create_counter = partial(Counter, registry=registry)
create_gauge = partial(Gauge, registry=registry, multiprocess_mode="livesum")
create_histogram = partial(Histogram, registry=registry)

http_requests = create_counter("switchboard_http_requests", "Requests answered", ["operation", "status"])
http_seconds = create_histogram("switchboard_http_request_seconds", "Time to respond to a request", ["operation"])
replica_reads = create_counter(
    "switchboard_replica_reads", "Reads that a replica may answer, by the server that did", ["server"]
)
processes = create_gauge("switchboard_processes", "Processes of the server, by SWITCHBOARD_REGION", ["region"])
live_calls = create_gauge("switchboard_live_calls", "Live calls of the server")
call_capacity = create_gauge(
    "switchboard_call_capacity",
    "Live calls that the server can hold: SWITCHBOARD_CALL_CAPACITY for each process, fewer while its event loop is "
    "late, and none while it drains",
)
calls_not_admitted = create_counter(
    "switchboard_calls_not_admitted",
    "Inbound calls answered with 503, and attempts to dial that wait, because no server had capacity",
    ["direction"],
)
for _direction in ("inbound", "outbound"):
    calls_not_admitted.labels(_direction)
call_utilization = create_gauge(
    "switchboard_call_utilization",
    "Calls that the fullest process of the server holds, as a share of those that it can hold; over 1 beyond it",
    multiprocess_mode="livemax",
)
calls = create_counter("switchboard_calls", "Calls that ended", ["direction", "status"])
line_mos = create_histogram(
    "switchboard_line_mos",
    "Mean opinion score of calls' lines, for carriers that measure it",
    ["carrier"],
    buckets=(1.5, 2.0, 2.5, 3.0, 3.5, 3.75, 4.0, 4.2, 4.4),
)
line_loss = create_histogram(
    "switchboard_line_loss_share",
    "Share of lost packets of calls' lines, from 0 to 1, for carriers that measure it",
    ["carrier"],
    buckets=(0.001, 0.003, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.5),
)
line_jitter = create_histogram(
    "switchboard_line_jitter_seconds",
    "Jitter of calls' lines at their end (RFC 3550), for carriers that measure it",
    ["carrier"],
    buckets=(0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2),
)
texts = create_counter(
    "switchboard_texts",
    "Text messages received, and text messages that reached their final state",
    ["direction", "status"],
)
automation_runs = create_counter("switchboard_automation_runs", "Automation runs that ended", ["status"])
turn_latency = create_histogram(
    "switchboard_turn_latency_seconds",
    "From the caller's last voiced audio to the first frame of the answer",
    buckets=(0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0),
)
sentences_held_back = create_counter(
    "switchboard_sentences_held_back", "Sentences that agents were kept from saying, by the kind of rule", ["rule"]
)
guardrails_met = create_counter(
    "switchboard_guardrails_met", "Words of callers that met a guardrail, with what was done", ["watches", "action"]
)
provider_failures = create_counter("switchboard_provider_failures", "Failures of providers", ["capability", "provider"])
providers_degraded = create_gauge(
    "switchboard_providers_degraded",
    "Organizations' providers that this process asks only if there is no other, after several failures in a row",
    ["capability", "provider"],
    multiprocess_mode="livemax",
)
provider_overtakings = create_counter(
    "switchboard_provider_overtakings",
    "Answers dropped because another provider was faster",
    ["capability", "provider"],
)
outbound_pauses = create_counter(
    "switchboard_outbound_pauses",
    "Pauses of an organization's calls and text messages, by the limit that was reached",
    ["limit"],
)
delivery_queue_age = create_gauge(
    "switchboard_delivery_queue_age_seconds",
    "Waiting time of the oldest due delivery, by the database's clock",
    multiprocess_mode="livemostrecent",
)
delivery_attempts = create_counter("switchboard_delivery_attempts", "Attempts to deliver an event", ["outcome"])
delivery_latency = create_histogram(
    "switchboard_delivery_latency_seconds",
    "From an event's transaction to the first request to its receiver",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0),
)
deliveries_under_way = create_gauge(
    "switchboard_deliveries_under_way", "Requests to receivers in progress in this process"
)
endpoints_disabled = create_counter("switchboard_endpoints_disabled", "Webhook endpoints disabled after failures")
plugin_exceptions = create_counter(
    "switchboard_plugin_exceptions",
    "Exceptions of providers, extensions, and hooks (the label `provider` has their names) that their contract does "
    "not name",
    ["plugin", "provider", "method"],
)
plugin_process_losses = create_counter(
    "switchboard_plugin_process_losses",
    "Processes of plugins that ended by themselves, did not respond, or needed too much memory",
    ["plugin", "provider"],
)
event_loop_lag = create_histogram(
    "switchboard_event_loop_lag_seconds",
    "Lateness of the process's event loop, measured 50 times a second; all calls of the process are as late",
    buckets=(0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0, 5.0),
)
event_loop_blocks = create_counter(
    "switchboard_event_loop_blocks",
    "Times at which code held the event loop for more than 100 ms, by the distribution of the innermost plugin, or "
    "`platform`",
    ["plugin"],
)
reconciler_seconds = create_histogram(
    "switchboard_reconciler_run_seconds",
    "Duration of a run of a reconciler",
    ["reconciler", "outcome"],
    buckets=(0.01, 0.1, 1.0, 10.0, 120.0),
)
reconciled_items = create_counter(
    "switchboard_reconciled_items",
    "Calls, messages, and other work that a reconciler found due, because a wake-up or a process was lost or its time "
    "had come",
    ["reconciler"],
)
leases_held = create_gauge("switchboard_leases_held", "Leases that this process holds", ["kind"])
leases_lost = create_counter(
    "switchboard_leases_lost", "Leases that lapsed before this process had recorded its result", ["kind"]
)
for _kind in ("call", "delivery", "automation_run"):
    # A series that begins with 1 has no increase, so that Prometheus would miss the first loss.
    leases_lost.labels(_kind)
pool_connections = create_gauge("switchboard_pool_connections", "Open connections of a pool", ["pool", "state"])
pool_size = create_gauge("switchboard_pool_size", "Connections that a pool opens at most", ["pool"])
pool_waiting = create_gauge("switchboard_pool_waiting", "Tasks that wait for a connection", ["pool"])
disk_free = create_gauge(
    "switchboard_data_disk_free_bytes",
    "Free space of the disk with the data directory",
    multiprocess_mode="livemostrecent",
)
disk_size = create_gauge(
    "switchboard_data_disk_size_bytes", "Size of the disk with the data directory", multiprocess_mode="livemostrecent"
)
spool_bytes = create_gauge(
    "switchboard_recording_spool_bytes",
    "Recordings on this disk that the store does not have yet, those of live calls too",
    multiprocess_mode="livemostrecent",
)
private_data_unsearched = create_counter(
    "switchboard_private_data_unsearched",
    "Texts that a service for private data has not searched, so that only the other detectors' results were redacted: "
    "it was `late`, it `failed`, or it was `paused` after that",
    ["detector", "reason"],
)
retention_deleted = create_counter(
    "switchboard_retention_deleted", "Rows deleted by retention; calls, for recordings and transcripts", ["data"]
)

MAX_ORGANIZATIONS: Final = 100
"""Organizations with a label value of their own in one process; each costs about twenty time series."""
OTHER: Final = "other"
organization_calls = create_counter(
    "switchboard_organization_calls", "Calls that ended", ["organization", "direction", "status"]
)
organization_live_calls = create_gauge(
    "switchboard_organization_live_calls", "Live calls of the server", ["organization"]
)
organization_turn_latency = create_histogram(
    "switchboard_organization_turn_latency_seconds",
    "From the caller's last voiced audio to the first frame of the answer",
    ["organization"],
    buckets=(0.5, 1.0, 2.0, 5.0),
)
organization_failed_deliveries = create_counter(
    "switchboard_organization_failed_deliveries",
    "Deliveries that ended failed, after their last attempt",
    ["organization"],
)
_labels: dict[UUID, str] = {}


def get_organization_label(organization_id: UUID) -> str:
    """Return the organization's id if it is among the first that this process has seen, else `other`.

    A label is never given to another organization: the series of the first one stays until the process ends.
    """
    if organization_id not in _labels and len(_labels) < MAX_ORGANIZATIONS:
        _labels[organization_id] = str(organization_id)
    return _labels.get(organization_id, OTHER)


_live_labels: set[str] = set()


def set_organization_live_calls(counts: Mapping[UUID, int]) -> None:
    """Set the number of this process's live calls of each organization; those without a call have none."""
    by_label = Counts[str]()
    for organization_id, count in counts.items():
        by_label[get_organization_label(organization_id)] += count
    _live_labels.update(by_label)
    for label in _live_labels:
        organization_live_calls.labels(label).set(by_label[label])  # the processes of a group cannot remove a series


def render_metrics() -> bytes:
    """Render all metrics in Prometheus' text format: this process's, or those of all processes of its group."""
    if GROUP_FOLDER not in os.environ:
        return generate_latest(registry)
    together = CollectorRegistry()
    MultiProcessCollector(together)  # type: ignore[no-untyped-call]
    return generate_latest(together)
