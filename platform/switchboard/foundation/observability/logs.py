"""Structured logs: JSON lines, or readable lines on a terminal.

They contain ids of requests, organizations, and calls; never bodies, tokens, or whole phone numbers.
"""

import logging
import re
import sys
from traceback import extract_tb
from typing import Any

import structlog

PHONE_NUMBER = re.compile(r"((?:\+|%2[Bb])\d{4})\d+(\d{4})(?!\d)")
MAX_FRAMES = 6
# These libraries log at INFO what our own lines say better; Authlib logs issued tokens at DEBUG.
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


def configure_logging(level: str, *, json: bool | None = None, region: str = "") -> None:
    """Configure the process's logging; `json` None means JSON unless standard error is a terminal. Each line has the
    `region`, if there is one.
    """
    as_json = not sys.stderr.isatty() if json is None else json
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if region:
        shared.append(lambda _logger, _method, line: {**line, "region": region})
    # Plain tracebacks: richer ones would print local variables, and with them secrets.
    render: list[structlog.typing.Processor] = (
        [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
        if as_json
        else [
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback)
        ]
    )
    render.append(_mask_numbers)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.stdlib.LoggerFactory(),
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *render],
        )
    )
    logging.basicConfig(handlers=[handler], level=level, force=True)
    for name in QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


def locate_error(error: BaseException) -> list[str]:
    """Return where an exception was raised, as `file:line function`, the innermost place last.

    For exceptions of code that handles private data: their messages, and so their tracebacks, may hold it.
    """
    frames = extract_tb(error.__traceback__)[-MAX_FRAMES:]
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]


def _mask_numbers(_logger: object, _method: str, line: Any) -> str:
    """Mask the phone numbers of a rendered line, wherever they come from: `+1555***4567`.

    Messages of carriers and tracebacks contain phone numbers.
    """
    return PHONE_NUMBER.sub(r"\1***\2", str(line))
