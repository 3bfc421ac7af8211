"""The gate before `serve` and `worker`: no process works on a schema that it was not written for."""

import asyncio
from contextlib import suppress

import structlog
from sqlalchemy.exc import SQLAlchemyError

from switchboard.foundation.database import create_engine, is_database_away
from switchboard.migrations.schema import Schema, SchemaState, compare_schema
from switchboard.migrations.upgrade import MigrationError

logger = structlog.get_logger()
POLL_SECONDS = 1.0


async def wait_for_schema(url: str, stop: asyncio.Event) -> None:
    """Wait until the database answers and has this program's schema, or a newer one that it works with.

    So processes may be started before, or while, `switchboard migrate` runs. Return when `stop` is set, too. Raises
    `MigrationError` for a schema that only another version can use.
    """
    engine = create_engine(url, hide_parameters=True)
    reported: str | None = None
    try:
        while not stop.is_set():
            try:
                async with engine.connect() as connection:
                    obstacle = _find_obstacle(await connection.run_sync(compare_schema))
            except (SQLAlchemyError, OSError) as error:
                if not is_database_away(error):
                    raise
                obstacle = f"the database cannot be used at the moment ({type(error).__name__})"
            if obstacle is None:
                return
            if obstacle != reported:
                logger.warning("not started yet", reason=obstacle)
                reported = obstacle
            with suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    await stop.wait()
    finally:
        await engine.dispose()


def _find_obstacle(schema: Schema) -> str | None:
    """Return what the process waits for. Raises `MigrationError` if no waiting helps."""
    if schema.state is SchemaState.UNKNOWN:
        raise MigrationError(
            f"the database has schema {schema.revision}, which this version of Switchboard cannot use; it "
            f"needs {schema.expected}: install the version that created the schema, restore a backup from before the "
            "upgrade, or start with an empty database"
        )
    if schema.state is SchemaState.PENDING:
        return f"the database has schema {schema.revision}, needed is {schema.expected}: run `switchboard migrate`"
    return None
