"""Record of the providers that served a conversation, and of those that failed in it."""

from dataclasses import dataclass, field

import structlog

from switchboard.engine.providers.health import ProviderHealth
from switchboard.foundation.observability import metrics
from switchboard.plugin_sdk import ProviderError
from switchboard.plugin_sdk.registry import Capability

logger = structlog.get_logger()


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
    """Providers that served each capability, failures, and characters that overtaken voices will bill without having
    been heard.
    """

    served: dict[str, str] = field(default_factory=dict)
    overtaken_characters: int = 0
    _failures: dict[tuple[Capability, str], ProviderFailure] = field(default_factory=dict)

    @property
    def failures(self) -> list[ProviderFailure]:
        """Failures, one entry for each provider and capability."""
        return list(self._failures.values())

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
        entry = self._failures.setdefault(
            (health.capability, health.name), ProviderFailure(health.capability.value, health.name, health.plugin, "")
        )
        entry.error = failure.message
        entry.count += 1
        return failure
