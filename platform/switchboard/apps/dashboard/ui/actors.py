"""Readable names of the audit log's actors."""

from switchboard.foundation.database import ReadSession
from switchboard.foundation.languages import gettext as _
from switchboard.resources.identity import members
from switchboard.resources.identity.models import ApiKey
from switchboard.resources.identity.support import build_support_actor, list_support_sessions
from switchboard.resources.oauth import connections


async def get_actor_names(session: ReadSession) -> dict[str, str]:
    """Return the names of the organization's users, keys, and applications, by the audit log's actor."""
    people = await members.list_members(session)
    keys = (await session.exec(session.select(ApiKey))).all()
    names = {f"user:{person.user_id}": person.email for person in people} | {
        f"key:{key.id}": _("key %(name)s", name=key.name) for key in keys
    }
    for started in await list_support_sessions(session):
        names[build_support_actor(started.user_id)] = _("%(email)s (support)", email=started.user_email)
    names["operator"] = _("Operator")
    return names | await connections.get_application_names(session)
