"""Shared by commands: settings, a runtime, and output."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from functools import wraps
from typing import ParamSpec
from uuid import UUID

import click
from pydantic import JsonValue
from redis.exceptions import RedisError
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from switchboard.apps.embedded import DataDirectory
from switchboard.apps.server import app
from switchboard.foundation.database import Database
from switchboard.foundation.observability import logs
from switchboard.foundation.settings import Settings, load_settings
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.identity.service import IdentityError, find_organization
from switchboard.runtime import Runtime

P = ParamSpec("P")

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")


class Failure(Exception):
    """A command failed; the message is one line."""


def get_server_urls(settings: Settings) -> tuple[str, str]:
    """Return the addresses of database and Redis: the operator's own, or the embedded ones."""
    directory = DataDirectory(settings.data_dir)
    return settings.database_url or directory.database_url, settings.redis_url or directory.redis_url


@asynccontextmanager
async def open_runtime(*, log_level: str = "ERROR") -> AsyncIterator[Runtime]:
    """Open a runtime for a command. Raises `Failure` if the servers are away."""
    settings = load_settings()
    logs.configure_logging("CRITICAL")  # `plugins list` and `doctor` report broken plugins
    registry = Registry.discover(trace=settings.trace_plugins)
    logs.configure_logging(log_level, json=False)
    database_url, redis_url = get_server_urls(settings)
    async with app.open_process_runtime(
        settings, database_url=database_url, redis_url=redis_url, registry=registry
    ) as runtime:
        try:
            yield runtime
        except (OSError, RedisError) as error:
            advice = "is `make run` up, or are SWITCHBOARD_DATABASE_URL and SWITCHBOARD_REDIS_URL right?"
            raise Failure(f"the database or Redis cannot be reached ({error}); {advice}") from error
        except DBAPIError as error:
            raise Failure(f"the database refused: {error.orig}") from error
        except SQLAlchemyError as error:
            raise Failure(str(error)) from error
        except IdentityError as error:
            raise Failure(str(error)) from error


async def require_organization(database: Database, organization_id: UUID) -> None:
    """Raise `Failure` if there is no such organization."""
    async with database.system() as session:
        try:
            await find_organization(session, organization_id)
        except IdentityError as error:
            raise Failure(str(error)) from None


def run_async(command: Callable[P, Coroutine[None, None, None]]) -> Callable[P, None]:
    """Run a coroutine as a command."""

    @wraps(command)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(command(*args, **kwargs))

    return run


def print_result(result: Mapping[str, JsonValue], *, as_json: bool) -> None:
    """Print a result: as one JSON object, or one line per part."""
    if as_json:
        click.echo(json.dumps(result))
        return
    for name, value in result.items():
        click.echo(f"{name}: {value}")
