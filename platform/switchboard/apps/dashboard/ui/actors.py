"""Readable names of the audit log's actors."""

from switchboard.foundation.database import ReadSession
from switchboard.foundation.languages import gettext as _
from switchboard.resources.identity.queries import list_api_keys, list_members, list_support_sessions
from switchboard.resources.identity.support import build_support_actor
from switchboard.resources.oauth.queries import get_application_names


async def get_actor_names(session: ReadSession) -> dict[str, str]:
    """Return the names of the organization's users, keys, and applications, by the audit log's actor."""
    people = await list_members(session)
    keys = await list_api_keys(session)
    names = {f"user:{person.user_id}": person.email for person in people} | {
        f"key:{key.id}": _("key %(name)s", name=key.name) for key in keys
    }
    for started in await list_support_sessions(session):
        names[build_support_actor(started.user_id)] = _("%(email)s (support)", email=started.user_email)
    names["operator"] = _("Operator")
    return names | await get_application_names(session)
