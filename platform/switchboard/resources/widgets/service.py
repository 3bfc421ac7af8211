"""Rules of widgets."""

import secrets
from decimal import Decimal
from typing import Final
from uuid import UUID

from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import Database, WriteSession, now
from switchboard.foundation.web.errors import NotFound, OrganizationMoving
from switchboard.foundation.web.paging import get_row, lock_row
from switchboard.resources.agents import service as agents
from switchboard.resources.identity.models import Organization
from switchboard.resources.widgets.models import Widget
from switchboard.resources.widgets.queries import find_public_widget
from switchboard.resources.widgets.schemas import WidgetCreate, WidgetOut, WidgetUpdate

KEY_PREFIX: Final = "pk_"


async def get_public_widget(database: Database, public_key: str) -> Widget:
    """Return the widget with a public key, which names no organization. Raises `NotFound`, also for a widget that is
    turned off, and `OrganizationMoving`.
    """
    async with database.system() as session:
        widget = await find_public_widget(session, public_key)
        if widget is None:
            raise NotFound("There is no such widget, or it is turned off.")
        if (await session.get_one(Organization, widget.organization_id)).moving_since is not None:
            raise OrganizationMoving
    return widget


async def create_widget(session: WriteSession, data: WidgetCreate) -> Widget:
    """Create a widget with a key of its own. Raises `ValidationFailed` for an unknown agent."""
    widget = Widget(
        organization_id=session.organization_id,
        public_key=f"{KEY_PREFIX}{secrets.token_hex(16)}",
        **{
            **data.model_dump(),
            "agent_id": (await agents.require_agent(session, data.agent_id)).id,
            "max_spend_per_day": _to_dollars(data.max_spend_per_day),
        },
    )
    session.add(widget)
    record_audit(session, AuditAction.WIDGET_CREATED, widget.id, fields=data.model_fields_set)
    return widget


async def update_widget(session: WriteSession, widget_id: UUID, data: WidgetUpdate) -> Widget:
    """Change the given fields that differ. Raises `NotFound`, and `ValidationFailed` for an unknown agent."""
    widget = await lock_row(session, Widget, widget_id)
    data = data.keep_changes(WidgetOut.model_validate(widget))
    if not data.model_fields_set:
        return widget
    for field in data.model_fields_set - {"agent_id", "max_spend_per_day"}:
        setattr(widget, field, getattr(data, field))
    if "max_spend_per_day" in data.model_fields_set:
        widget.max_spend_per_day = _to_dollars(data.max_spend_per_day)
    if "agent_id" in data.model_fields_set:
        widget.agent_id = (await agents.require_agent(session, data.agent_id)).id
    widget.updated_at = now()
    record_audit(session, AuditAction.WIDGET_UPDATED, widget.id, fields=data.model_fields_set)
    return widget


async def delete_widget(session: WriteSession, widget_id: UUID) -> None:
    """Delete a widget for good. Its conversations stay among the calls. Raises `NotFound`."""
    await session.delete(await get_row(session, Widget, widget_id))
    record_audit(session, AuditAction.WIDGET_DELETED, widget_id)


def _to_dollars(amount: float) -> Decimal:
    return Decimal(str(round(amount, 6)))
