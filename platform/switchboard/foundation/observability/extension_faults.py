"""Exceptions of plugins: one line of the log and one count for each, with plugin and version."""

import structlog

from switchboard.foundation.observability import metrics
from switchboard.foundation.observability.logs import locate_error
from switchboard.plugin_sdk import Extension, Provider, ProviderSettings
from switchboard.plugin_sdk.registry import Plugin

logger = structlog.get_logger()


def record_extension_fault(
    message: str, extension: Extension | type[Extension], method: str, error: Exception, **details: str
) -> None:
    """Log and count an exception that an extension raised."""
    _record(message, *extension.origin, method, error, label=extension.name, extension=extension.name, **details)


def record_hook_fault(message: str, plugin: Plugin, hook: str, error: BaseException, **details: str) -> None:
    """Log and count an exception that a plugin's hook raised."""
    origin = plugin.distribution, plugin.version
    _record(message, *origin, hook, error, label=plugin.name, extension=plugin.name, **details)


def record_provider_fault(
    provider: type[Provider[ProviderSettings]], plugin: Plugin, method: str, error: Exception
) -> None:
    """Log and count an exception that a provider raised."""
    message, origin = "a plugin raised an exception", (plugin.distribution, plugin.version)
    _record(message, *origin, method, error, label=provider.name, provider=provider.name)


def _record(
    message: str, plugin: str, version: str, method: str, error: BaseException, *, label: str, **details: str
) -> None:
    """Record an exception.

    The log has the places in the code, and neither message nor variables, which may be a caller's data.
    """
    metrics.plugin_exceptions.labels(plugin, label, method).inc()
    logger.error(
        message,
        plugin=plugin,
        version=version,
        method=method,
        error=type(error).__name__,
        at=locate_error(error),
        **details,
    )
