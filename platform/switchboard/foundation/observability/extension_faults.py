"""Exceptions of extensions and hooks: one line of the log and one count for each, with plugin and version."""

import structlog

from switchboard.foundation.observability import metrics
from switchboard.foundation.observability.logs import locate_error
from switchboard.plugin_sdk import Extension
from switchboard.plugin_sdk.registry import Plugin

logger = structlog.get_logger()


def record_extension_fault(
    message: str, extension: Extension | type[Extension], method: str, error: Exception, **details: str
) -> None:
    """Log and count an exception that an extension raised.

    The log has the places in the code, and neither message nor variables, which may be a caller's data.
    """
    _record(message, *extension.origin, method, error, extension=extension.name, **details)


def record_hook_fault(message: str, plugin: Plugin, hook: str, error: BaseException, **details: str) -> None:
    """Log and count an exception that a plugin's hook raised, as `record_extension_fault` does."""
    _record(message, plugin.distribution, plugin.version, hook, error, extension=plugin.name, **details)


def _record(
    message: str, plugin: str, version: str, method: str, error: BaseException, *, extension: str, **details: str
) -> None:
    metrics.plugin_exceptions.labels(plugin, extension, method).inc()
    logger.error(
        message,
        plugin=plugin,
        version=version,
        extension=extension,
        method=method,
        error=type(error).__name__,
        at=locate_error(error),
        **details,
    )
