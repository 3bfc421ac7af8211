"""Health of an organization's providers in this process.

A provider that fails several times in a row, or asks not to be asked for a while, is degraded: conversations use the
organization's other providers, and this one only if there is no other. Once its pause is over, the next conversation
starts a probe (`Provider.check`) beside it, and a success makes the provider an ordinary one again. Every further
failure doubles the pause.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

import structlog

from switchboard.foundation.observability import metrics
from switchboard.plugin_sdk import ProviderError
from switchboard.plugin_sdk.registry import Capability, Plugin

logger = structlog.get_logger()

FAILURES_UNTIL_DEGRADED: Final = 3
"""Failures in a row, in any conversation of the organization. One may be an accident of the network."""
FIRST_PAUSE_SECONDS: Final = 10.0
LONGEST_PAUSE_SECONDS: Final = 300.0


class ProviderHealth:
    """Health of one provider with its present settings."""

    def __init__(
        self,
        organization_id: UUID,
        capability: Capability,
        name: str,
        plugin: Plugin | None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`plugin` is None for a provider that no installed plugin provides."""
        self.capability = capability
        self.name = name
        self.plugin = f"{plugin.distribution} {plugin.version}" if plugin else ""
        self._organization_id = organization_id
        self._clock = clock
        self._failures = 0
        self._pause = 0.0
        self._probe_at = 0.0

    @property
    def degraded(self) -> bool:
        """True if the provider is asked only if there is no other."""
        return self._failures >= FAILURES_UNTIL_DEGRADED

    def record_success(self) -> None:
        """Record that the provider did what it was asked for."""
        if self.degraded:
            metrics.providers_degraded.labels(self.capability.value, self.name).dec()
            self._log("provider recovered")
        self._failures, self._pause = 0, 0.0

    def record_failure(self, retry_after_seconds: float | None = None) -> None:
        """Record a failure; the one that makes the provider degraded is logged.

        A provider that asks not to be asked again before some seconds is degraded at once, for at least these.
        """
        was_degraded, least = self.degraded, retry_after_seconds or 0.0
        self._failures = max(self._failures + 1, FAILURES_UNTIL_DEGRADED if least else 0)
        if self.degraded and not was_degraded:
            metrics.providers_degraded.labels(self.capability.value, self.name).inc()
            self._log("provider degraded")
        if self.degraded:
            self._pause = min(max(2 * self._pause, FIRST_PAUSE_SECONDS, least), LONGEST_PAUSE_SECONDS)
            self._probe_at = self._clock() + self._pause

    def claim_probe(self) -> bool:
        """Return whether a probe is due. The caller makes it, and nobody else before the next pause is over."""
        due = self.degraded and self._clock() >= self._probe_at
        if due:
            self._probe_at = self._clock() + LONGEST_PAUSE_SECONDS
        return due

    def _log(self, message: str) -> None:
        logger.warning(
            message,
            organization_id=str(self._organization_id),
            capability=self.capability.value,
            provider=self.name,
            plugin=self.plugin,
        )


# Record of the providers that served a conversation, and of those that failed in it.


@dataclass(slots=True)
class ProviderFailure:
    """Failures of one provider in a conversation. `error` is the last one's message, and `plugin` its distribution and
    version.
    """

    capability: str
    provider: str
    plugin: str
    error: str
    count: int = 0


@dataclass(slots=True)
class ServiceRecord:
    """Providers that served each capability, failures of each provider, and characters that overtaken voices will bill
    without having been heard.
    """

    served: dict[str, str] = field(default_factory=dict)
    overtaken_characters: int = 0
    failures: dict[tuple[Capability, str], ProviderFailure] = field(default_factory=dict)

    def record_success(self, health: ProviderHealth) -> None:
        """Record that a provider serves its capability now."""
        health.record_success()
        self.served[health.capability.value] = health.name

    def record_failure(self, health: ProviderHealth, error: ProviderError | TimeoutError) -> ProviderError:
        """Record a failure, and return it as the error that callers get."""
        failure = error if isinstance(error, ProviderError) else ProviderError(f"{health.name} did not answer in time")
        health.record_failure(failure.retry_after_seconds)
        metrics.provider_failures.labels(health.capability.value, health.name).inc()
        logger.warning(
            "provider failed",
            capability=health.capability.value,
            provider=health.name,
            plugin=health.plugin,
            error=failure.message,
        )
        entry = self.failures.setdefault(
            (health.capability, health.name), ProviderFailure(health.capability.value, health.name, health.plugin, "")
        )
        entry.error = failure.message
        entry.count += 1
        return failure
