"""Shared by commands that need the parts of a process."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from uuid import UUID

from redis.exceptions import RedisError
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from switchboard.apps.cli.output import Failure
from switchboard.apps.embedded import get_server_urls
from switchboard.apps.process_runtime import open_process_runtime
from switchboard.foundation.database import Database
from switchboard.foundation.observability import logs
from switchboard.foundation.settings import load_settings
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.identity.models import Organization
from switchboard.resources.identity.queries import list_all_organizations
from switchboard.resources.identity.service import IdentityError, find_organization
from switchboard.runtime import Runtime


@asynccontextmanager
async def open_runtime(organization_id: UUID | None = None) -> AsyncIterator[Runtime]:
    """Open a runtime for a command. Raises `Failure` if PostgreSQL or Redis cannot be reached, or if there is no
    organization with this id.
    """
    # A command may take its time, such as one that deletes the rows of years; its operator can interrupt it.
    settings = load_settings().model_copy(update={"database_statement_timeout": 0})
    logs.configure_logging("CRITICAL")  # `plugins list` and `doctor` report broken plugins
    registry = Registry.discover(trace=settings.trace_plugins)
    logs.configure_logging("ERROR", json=False)
    database_url, redis_url = get_server_urls(settings)
    async with open_process_runtime(
        settings, database_url=database_url, redis_url=redis_url, registry=registry
    ) as runtime:
        try:
            if organization_id is not None:
                async with runtime.database.system() as session:
                    await find_organization(session, organization_id)
            yield runtime
        except (OSError, RedisError) as error:
            advice = "is `make run` up, or are SWITCHBOARD_DATABASE_URL and SWITCHBOARD_REDIS_URL right?"
            raise Failure(f"the database or Redis cannot be reached ({error}); {advice}") from error
        except DBAPIError as error:
            raise Failure(f"the database refused: {error.orig}") from error
        except (SQLAlchemyError, IdentityError) as error:
            raise Failure(str(error)) from error


async def list_organizations(database: Database, organization_id: UUID | None = None) -> Sequence[Organization]:
    """Return one organization, or all, oldest first."""
    async with database.system() as session:
        return await list_all_organizations(session, organization_id)
