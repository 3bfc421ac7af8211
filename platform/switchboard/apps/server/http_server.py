"""One HTTP server in this process: hypercorn on asyncio, stopped by an event."""

import asyncio
import logging
import resource
import signal
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import structlog
from hypercorn.asyncio import serve as hypercorn_serve
from hypercorn.config import Config

if TYPE_CHECKING:
    from hypercorn.typing import ASGIFramework

logger = structlog.get_logger()
GRACE_SECONDS = 15.0


class CannotListen(Exception):
    """The address is taken or not ours; the message is one line."""


def raise_file_limit() -> None:
    """Let the process open as many sockets as it may: the usual soft limit of 1024 is soon reached by calls and deliveries."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def stop_on_signals() -> asyncio.Event:
    """An event that SIGINT and SIGTERM set."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    return stop


async def serve(
    application: "ASGIFramework", *, host: str, port: int, stop: asyncio.Event, drain: Callable[[], Awaitable[None]]
) -> None:
    """Serve until told to stop; then live calls are told (`drain`), requests finish, sockets close. Raises `CannotListen`."""
    config = Config()
    config.bind = [f"{host}:{port}"]
    config.graceful_timeout = GRACE_SECONDS
    config.backlog = 2048
    config.errorlog = logging.getLogger("hypercorn.error")
    config.include_server_header = False
    config.websocket_max_message_size = 1 << 20
    config.websocket_ping_interval = None

    async def trigger() -> None:
        await stop.wait()
        logger.info("stopping: live calls are told, requests finish")
        await drain()

    try:
        await hypercorn_serve(application, config, shutdown_trigger=trigger)
    except OSError as error:
        raise CannotListen(
            f"cannot listen on {host}:{port}: {error.strerror or error}; set SWITCHBOARD_HOST or SWITCHBOARD_PORT"
        ) from error
