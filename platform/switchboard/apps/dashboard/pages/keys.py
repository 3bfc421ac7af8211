"""API keys, for owners: list, create, rotate, and revoke."""

from datetime import timedelta
from functools import partial
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from switchboard.apps.dashboard.blueprint import Next, action, go_to, page
from switchboard.apps.dashboard.forms.form import Form
from switchboard.apps.dashboard.ui.rendering import load_list, render
from switchboard.foundation.database import ReadSession, WriteSession, now
from switchboard.foundation.languages import LazyText
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.principal import SCOPES
from switchboard.foundation.web.rate_limits import RateLimiter
from switchboard.foundation.web.schemas import Name, PageQuery, RequestBody
from switchboard.resources.identity import service as identity
from switchboard.resources.identity.models import ApiKey

OVERLAPS = (
    ("0", LazyText("immediately")),
    ("1", LazyText("in an hour")),
    ("24", LazyText("in a day")),
    ("168", LazyText("in a week")),
)


class NewKey(RequestBody):
    """The form of a key. `days` is its lifetime; None means that it does not expire."""

    name: Name
    scopes: list[Literal[tuple(SCOPES)]] = Field([], min_length=1)  # type: ignore[valid-type]
    days: Annotated[int, Field(ge=1, le=3650)] | None = None


class Rotation(RequestBody):
    """The number of hours until the old key expires."""

    hours: Annotated[int, Field(ge=0, le=168)] = 24


@page("/dashboard/keys", role="owner")
async def keys_page(session: ReadSession, query: PageQuery) -> str:
    """List the organization's keys, newest first."""
    return await render(
        "dashboard/keys/list.html",
        keys=await load_list(session, session.select(ApiKey), query),
        overlaps=OVERLAPS,
    )


@page("/dashboard/keys/new", role="owner")
async def new_key_page(form: Form) -> str:
    return await render(
        "dashboard/keys/new.html", form=form, scopes=[(name, f"{name}: {_(words)}") for name, words in SCOPES.items()]
    )


@action("/dashboard/keys/new", role="owner", invalid=new_key_page)
async def create_key(session: WriteSession, data: NewKey) -> str:
    """Create a key and show it once."""
    expires_at = now() + timedelta(days=data.days) if data.days else None
    key, text = await identity.create_api_key(session, name=data.name, scopes=data.scopes, expires_at=expires_at)
    return await render("dashboard/keys/made.html", key=key, text=text)


@action("/dashboard/keys/<key_id>/rotate", role="owner")
async def rotate_key(session: WriteSession, key_id: UUID, data: Rotation) -> str:
    """Create a key with the same scopes and show it once. The old key expires after the chosen time."""
    key, text = await identity.rotate_api_key(session, key_id, overlap=timedelta(hours=data.hours))
    return await render("dashboard/keys/made.html", key=key, text=text)


@action("/dashboard/keys/<key_id>/revoke", role="owner")
async def revoke_key(session: WriteSession, key_id: UUID, limiter: RateLimiter) -> Next:
    key = await identity.revoke_api_key(session, key_id)
    session.after_commit(partial(limiter.announce_revocation, str(key.id)))
    return go_to("keys_page", _("%(name)s was revoked.", name=key.name), "warning")
