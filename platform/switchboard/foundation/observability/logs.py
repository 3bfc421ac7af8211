"""Structured logs: JSON lines, readable ones on a terminal.

They carry ids of requests, organizations and calls; never bodies, tokens or whole numbers.
"""

import logging
import sys

import structlog

# Libraries that tell at INFO what our own lines tell better; Authlib tells at DEBUG the tokens that it issues.
QUIET = (
    "authlib",
    "alembic",
    "hypercorn.error",
    "hypercorn.access",
    "saq",
    "LiteLLM",
    "httpx",
    "asyncio",
    "aiohttp.access",
)


def configure(level: str, *, json: bool | None = None) -> None:
    """Set the process's logging up; `json` None decides by whether standard error is a terminal."""
    as_json = not sys.stderr.isatty() if json is None else json
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    # Plain tracebacks: richer ones would print local variables, and with them secrets.
    render: list[structlog.typing.Processor] = (
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
        if as_json
        else [structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared, processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *render]
        )
    )
    logging.basicConfig(handlers=[handler], level=level, force=True)
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


def masked_number(number: str) -> str:
    """A phone number as it may be logged: `+1555***4567`."""
    return f"{number[:5]}***{number[-4:]}" if len(number) > 9 else "***"
