"""Exceptions of extensions: one line of the log and one count for each, with plugin and version."""

import structlog

from switchboard.foundation.observability import metrics
from switchboard.foundation.observability.logs import locate_error
from switchboard.plugin_sdk import Extension

logger = structlog.get_logger()


def record_extension_fault(
    message: str, extension: Extension | type[Extension], method: str, error: Exception, **details: str
) -> None:
    """Log and count an exception that an extension raised.

    The log has the places in the code, and neither message nor variables, which may be a caller's data.
    """
    plugin, version = extension.origin
    metrics.plugin_exceptions.labels(plugin, extension.name, method).inc()
    logger.error(
        message,
        plugin=plugin,
        version=version,
        extension=extension.name,
        method=method,
        error=type(error).__name__,
        at=locate_error(error),
        **details,
    )
