"""Connections to PostgreSQL that a scheduler holds at its gate, and that faults break."""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import asyncpg
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine
from switchboard.foundation.database import session as session_module
from switchboard.foundation.database.engine import create_autocommit_engine

from tests.fixtures.virtual_clock import real_sleep
from tests.interleavings.scheduler import Scheduler

ResultT = TypeVar("ResultT")
Work = Callable[[], Awaitable[ResultT]]

PLANS: Final = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "jit": "off",
}
"""Rows come in the order of an index: another seed's rows, and the statistics of tables, change no order."""
WORDS: Final = 90


class Gate:
    """One process's way to the database. `scheduler` is that of the current seed; without one everything passes.

    A dead process runs nothing any more. While `is_away`, nobody can connect. The answer to the next commit is lost if
    `loses_answer`, and the next commit itself if `loses_request`. `request_fault` happens at the process's next request
    to the carrier. Connections outlive a seed in `spare`, because a new
    one takes as long as the seed.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.scheduler: Scheduler | None = None
        self.stalled_until = 0.0
        self.is_dead = self.is_away = self.loses_answer = self.loses_request = False
        self.request_fault: Callable[[], None] | None = None
        self.connections: list[GatedConnection] = []
        self.spare: list[GatedConnection] = []
        self._opened = 0

    def open(self, scheduler: Scheduler) -> None:
        """Begin a seed, as a new process."""
        self.scheduler, self.stalled_until, self._opened, self.request_fault = scheduler, 0.0, 0, None
        self.is_dead = self.is_away = self.loses_answer = self.loses_request = False

    async def close(self) -> None:
        """End a seed, after which no task of the process is left."""
        self.scheduler = None
        for connection in self.connections:
            connection.gate = None
            if not connection.is_closed():
                await connection.execute("rollback")
                self.spare.append(connection)
        self.connections = []

    async def connect(self, *arguments: Any, **options: Any) -> "GatedConnection":
        """Connect, as `asyncpg.connect` does."""
        self._opened += 1
        number = self._opened
        if self.scheduler is not None:
            await self.scheduler.pass_gate(self, "connect", number)
        if self.is_dead or self.is_away:
            raise ConnectionRefusedError("the server does not listen")
        while self.spare and self.spare[0].is_closed():
            self.spare.pop(0)
        connection = self.spare.pop(0) if self.spare else await self._open(*arguments, **options)
        connection.gate, connection.number = self, number
        self.connections.append(connection)
        return connection

    async def _open(self, *arguments: Any, **options: Any) -> "GatedConnection":
        options |= {"connection_class": GatedConnection, "server_settings": PLANS}
        with nullcontext() if self.scheduler is None else self.scheduler.stop_others():
            connection: GatedConnection = await asyncpg.connect(*arguments, **options)
            return connection

    def break_connections(self, *, is_reported: bool = False) -> None:
        """Break every connection: what was not committed is rolled back. A pooler reports it, and closes later."""
        for connection in list(self.connections):
            connection.break_now()
            connection.is_reported = is_reported


class GatedConnection(asyncpg.Connection):  # type: ignore[misc]
    """A connection whose statements and answers wait for their turn. It remembers what it has prepared, because the
    pool of each seed is a new one.
    """

    gate: Gate | None = None
    number = 0
    is_reported = False
    """Whether asyncpg has read that the connection has broken, and not yet that it is closed."""

    def is_closed(self) -> bool:
        """Return whether asyncpg knows that the connection is closed."""
        return super().is_closed() and not self.is_reported

    async def execute(self, query: str, *args: Any, **options: Any) -> Any:
        """Run statements in their turn. Chances of the database are the seed's."""
        script, gate = query, self.gate
        if gate is not None and gate.scheduler is not None and query.startswith("begin"):
            script = f"select setseed({gate.scheduler.choices.random():.6f});{query}"
        return await self.run(query, lambda: super(GatedConnection, self).execute(script, *args, **options))

    async def executemany(self, command: str, args: Any, **options: Any) -> Any:
        """Run a statement several times, in its turn."""
        return await self.run(command, lambda: super(GatedConnection, self).executemany(command, args, **options))

    async def prepare(self, query: str, **options: Any) -> "GatedStatement":
        """Prepare a statement, which nobody else sees."""
        prepared: dict[str, GatedStatement] = self.__dict__.setdefault("prepared", {})
        if query not in prepared:
            statement = await self._ask(query, lambda: super(GatedConnection, self).prepare(query, **options))
            prepared[query] = GatedStatement(self, query, statement)
        return prepared[query]

    async def set_type_codec(self, typename: str, **options: Any) -> None:
        """Set the codec of a type, once, but in its turn: the connection may have broken since it was opened."""
        codecs: set[str] = self.__dict__.setdefault("codecs", set())
        gate = self.gate
        if gate is not None and gate.scheduler is not None:
            await gate.scheduler.pass_gate(gate, f"{self.number}: type {typename}", self.number)
            self._require_life()
        if typename not in codecs:
            await self._ask(typename, lambda: super(GatedConnection, self).set_type_codec(typename, **options))
            codecs.add(typename)

    async def run(self, query: str, statement: Work[ResultT]) -> ResultT:
        """Run a statement in its turn, and return its answer in another one."""
        gate = self.gate
        scheduler = None if gate is None else gate.scheduler
        if gate is None or scheduler is None:
            return await statement()
        label = f"{self.number}: {' '.join(query.split())[:WORDS]}"
        await scheduler.pass_gate(gate, label, self.number)
        self._require_life()
        if query == "commit" and gate.loses_request:
            gate.loses_request = False
            self._lose(scheduler, "a commit is lost")
        try:
            answer = await self._ask(label, statement)
            if query in ("commit", "rollback"):
                scheduler.free_locks()
        finally:
            if not gate.is_dead:
                await scheduler.pass_gate(gate, f"{self.number}: answer", self.number)
        self._require_life()
        if query == "commit" and gate.loses_answer:
            gate.loses_answer = False
            self._lose(scheduler, "the answer to a commit is lost")
        return answer

    async def _ask(self, label: str, statement: Work[ResultT]) -> ResultT:
        """Await an answer. Somebody who gives up waiting for a lock has broken the connection."""
        scheduler = None if self.gate is None else self.gate.scheduler
        if scheduler is None:
            return await statement()
        self._require_life()
        asking = asyncio.ensure_future(scheduler.run(self.get_server_pid(), label, statement()))
        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError:
            self.break_now()
            await asyncio.wait([asking])
            if not asking.cancelled():
                asking.exception()
            raise

    def _lose(self, scheduler: Scheduler, sentence: str) -> None:
        assert self.gate is not None
        scheduler.note(self.gate.name, f"{self.number}: * {sentence}")
        self.break_now()
        self._require_life()

    def _require_life(self) -> None:
        if self.is_reported:
            self.is_reported = False
            raise asyncpg.InternalClientError("cannot switch to state 15; another operation (2) is in progress")
        if self.is_closed() or (self.gate is not None and self.gate.is_dead):
            raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")

    def break_now(self) -> None:
        """End the server's process, whose transaction is rolled back, and close the connection."""
        gate = self.gate
        if gate is not None and self in gate.connections:
            gate.connections.remove(self)
        if not self.is_closed():
            end_server_process(self.get_server_pid())
            self.terminate()
        if gate is not None and gate.scheduler is not None:
            gate.scheduler.free_locks()


class GatedStatement:
    """A prepared statement of a gated connection, as SQLAlchemy uses it."""

    def __init__(self, connection: GatedConnection, query: str, prepared: Any) -> None:
        self.get_attributes = prepared.get_attributes
        self.get_statusmsg = prepared.get_statusmsg
        self._connection = connection
        self._query = query
        self._prepared = prepared

    async def fetch(self, *args: Any) -> Sequence[Any]:
        """Run the statement in its turn, and return its rows."""
        rows: Sequence[Any] = await self._connection.run(self._query, lambda: self._prepared.fetch(*args))
        return rows


def end_server_process(pid: int) -> None:
    """End a process of PostgreSQL as an administrator does, and wait until it is gone."""
    with suppress(ProcessLookupError, FileNotFoundError):
        os.kill(pid, signal.SIGTERM)
        os.kill(pid, signal.SIGCONT)  # it may have been stopped
        while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
            real_sleep(0.0002)


@contextmanager
def gate_engines(gates: Sequence[Gate]) -> Iterator[list[AsyncEngine]]:
    """Let the databases that are created in the block, one for each of the gates in order, connect through them; yield
    their engines.
    """
    left, engines = iter(gates), list[AsyncEngine]()

    def create_gated_engine(url: str, *, pool_size: int, reply_timeout: float) -> AsyncEngine:
        gate, engine = next(left), create_autocommit_engine(url, pool_size=pool_size, reply_timeout=reply_timeout)
        dialect = engine.sync_engine.dialect
        dialect.connect = partial(dialect.connect, async_creator_fn=gate.connect)  # type: ignore[method-assign]
        engines.append(engine)
        return engine

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session_module, "create_autocommit_engine", create_gated_engine)
        yield engines
