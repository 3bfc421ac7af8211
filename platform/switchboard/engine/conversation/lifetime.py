"""The lifetime of one call: the tasks that run it, and the reason for which it ends."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import copy_context
from typing import ParamSpec
from uuid import UUID

import structlog

from switchboard.engine.conversation.call import EndedReason
from switchboard.engine.conversation.transfer import Transfer
from switchboard.plugin_sdk import ProviderError

logger = structlog.get_logger()
Parameters = ParamSpec("Parameters")


class _CallOver(Exception):
    """Cancels the tasks of a group, as the documentation of `asyncio.TaskGroup` recommends."""


class CallLifetime:
    """The tasks of a call and the first reason to end it.

    `transfer` has the call's transfers. A task that fails ends the call but cancels no other task: the caller's last
    words are still transcribed.
    """

    def __init__(self, call_id: UUID, transfer: Transfer) -> None:
        self._call_id = call_id
        self.transfer = transfer
        self._reason: asyncio.Future[tuple[EndedReason, str | None]] = asyncio.get_running_loop().create_future()
        self._tasks = asyncio.TaskGroup()
        self._closed = False
        self._context = copy_context()

    @asynccontextmanager
    async def run_tasks(self) -> AsyncIterator[None]:
        """Let tasks be started within the block. At its end the remaining tasks are canceled and awaited."""
        try:
            async with self._tasks:
                try:
                    yield
                finally:
                    self._closed = True
                raise _CallOver
        except* _CallOver:
            pass

    def start(
        self, work: Callable[Parameters, Awaitable[None]], *args: Parameters.args, **kwargs: Parameters.kwargs
    ) -> asyncio.Task[None] | None:
        """Start a task that ends the call if it fails; return None if the call's tasks have ended already.

        Its context is that of the call, for its trace and the ids in its log lines, also if the engine's clock starts
        it.
        """

        async def guard() -> None:
            try:
                await work(*args, **kwargs)
            except ConnectionError:
                self.end(EndedReason.CALLER_HUNG_UP)
            except Exception as error:  # noqa: BLE001 - what fails one call must not fail the process
                self.fail(error)

        return None if self._closed else self._tasks.create_task(guard(), context=self._context.copy())

    def end(self, reason: EndedReason, error: str | None = None) -> None:
        """End the call; only the first reason counts. A caller's leg that closes during a transfer was transferred."""
        if not self._reason.done():
            if reason is EndedReason.CALLER_HUNG_UP and self.transfer.connecting_to is not None:
                reason = EndedReason.TRANSFERRED
            self._reason.set_result((reason, error))

    def fail(self, error: Exception) -> None:
        """End the call because of an exception: a provider's failure, or a defect."""
        if isinstance(error, ProviderError):
            self.end(EndedReason.PROVIDER_FAILED, error.message)
        else:
            logger.error("call failed", call_id=str(self._call_id), exc_info=error)
            self.end(EndedReason.ERROR, "The call failed because of an internal error.")

    def is_ending(self) -> bool:
        """Return whether there is a reason to end the call."""
        return self._reason.done()

    async def wait_for_end(self) -> tuple[EndedReason, str | None]:
        """Return the reason for which the call ends, and the error message if something failed."""
        return await self._reason
