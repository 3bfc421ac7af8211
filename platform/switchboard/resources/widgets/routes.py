"""Endpoints of widgets."""

from uuid import UUID

from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.web.endpoint import ApiBlueprint, endpoint
from switchboard.foundation.web.paging import get_row, paginate
from switchboard.foundation.web.schemas import NO_ID, Page, parse_id
from switchboard.resources.widgets import service as widgets
from switchboard.resources.widgets.models import Widget
from switchboard.resources.widgets.queries import select_widgets
from switchboard.resources.widgets.schemas import WidgetCreate, WidgetOut, WidgetQuery, WidgetUpdate

blueprint = ApiBlueprint("widgets", __name__, tags={"widgets": "Chats and calls with agents on websites."})


@blueprint.get("/v1/widgets")
@endpoint(scope="agents:read")
async def list_widgets(session: ReadSession, query: WidgetQuery) -> Page[WidgetOut]:
    """List widgets."""
    agent_id = None if query.agent_id is None else parse_id(query.agent_id) or NO_ID
    return await paginate(session, select_widgets(session, agent_id=agent_id), WidgetOut.model_validate, query)


@blueprint.post("/v1/widgets")
@endpoint(scope="agents:write", status=201)
async def create_widget(session: WriteSession, data: WidgetCreate) -> WidgetOut:
    """Create a widget.

    An agent may have several. A page shows the widget with
    `<script src="https://voice.example.com/widget/v1.js" data-key="pk_…" async></script>`, with this server's address.
    """
    return WidgetOut.model_validate(await widgets.create_widget(session, data))


@blueprint.get("/v1/widgets/<widget_id>")
@endpoint(scope="agents:read")
async def get_widget(session: ReadSession, widget_id: UUID) -> WidgetOut:
    """Get a widget."""
    return WidgetOut.model_validate(await get_row(session, Widget, widget_id))


@blueprint.patch("/v1/widgets/<widget_id>")
@endpoint(scope="agents:write")
async def update_widget(session: WriteSession, widget_id: UUID, data: WidgetUpdate) -> WidgetOut:
    """Update a widget.

    Only the given fields change. Pages that are open keep their look until they are loaded again.
    """
    return WidgetOut.model_validate(await widgets.update_widget(session, widget_id, data))


@blueprint.delete("/v1/widgets/<widget_id>")
@endpoint(scope="agents:write", status=204)
async def delete_widget(session: WriteSession, widget_id: UUID) -> None:
    """Delete a widget.

    This cannot be undone. Pages with its key show nothing any more; its conversations stay among the calls.
    """
    await widgets.delete_widget(session, widget_id)
