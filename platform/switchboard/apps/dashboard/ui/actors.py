"""Who did something, in words: the audit log's actors by the names that people know."""

from uuid import UUID

from switchboard.foundation.database import TenantSession
from switchboard.resources.identity import members
from switchboard.resources.identity import service as identity
from switchboard.resources.identity.models import ApiKey
from switchboard.resources.oauth import connections
from switchboard.runtime import current_runtime


async def actor_names(session: TenantSession, organization_id: UUID) -> dict[str, str]:
    """The organization's people, keys and applications by what the audit log calls them."""
    database = current_runtime().database
    people = await members.members(database, organization_id)
    keys: list[ApiKey] = list((await session.exec(identity.api_keys(session))).all())
    names = {f"user:{person.user_id}": person.email for person in people} | {
        f"key:{key.id}": f"key {key.name}" for key in keys
    }
    return names | await connections.application_names(database, organization_id)
