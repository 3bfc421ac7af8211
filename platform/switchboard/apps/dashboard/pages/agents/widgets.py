"""An agent's website widgets: settings with a preview, the script to copy, and usage."""

from uuid import UUID

from pydantic import JsonValue, field_validator
from quart import Response

from switchboard.apps.dashboard.blueprint import Next, action, content_security_policy, go_to, page
from switchboard.apps.dashboard.forms.form import Form
from switchboard.apps.dashboard.forms.rows import split_lines
from switchboard.apps.dashboard.queries import list_calls_of_widget
from switchboard.apps.dashboard.ui.rendering import load_list, render
from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.languages import LazyText
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.paging import get_row
from switchboard.foundation.web.schemas import PageQuery
from switchboard.resources.agents.models import Agent
from switchboard.resources.widgets import service as widgets
from switchboard.resources.widgets.admission import measure_usage
from switchboard.resources.widgets.models import Widget
from switchboard.resources.widgets.queries import select_widgets
from switchboard.resources.widgets.schemas import WidgetCreate, WidgetOut, WidgetUpdate
from switchboard.resources.widgets.visitors import build_greeting

LATEST = 10
LANGUAGES = (
    ("en", LazyText("English")),
    ("de", LazyText("German")),
    ("es", LazyText("Spanish")),
    ("fr", LazyText("French")),
)


class WidgetForm(WidgetUpdate):
    """A widget's settings. The text area `allowed_origins[]` is the only item of its list: one origin in a line."""

    @field_validator("allowed_origins", mode="before")
    @classmethod
    def _split_lines(cls, value: JsonValue) -> JsonValue:
        return [line for item in value for line in split_lines(item)] if isinstance(value, list) else value


@page("/dashboard/agents/<agent_id>/widgets")
async def widgets_page(session: ReadSession, agent_id: UUID, query: PageQuery) -> str:
    """List the agent's widgets with their usage."""
    agent = await get_row(session, Agent, agent_id)
    listing = await load_list(session, select_widgets(session, agent_id=agent_id), query)
    usage = {widget.id: await measure_usage(session, widget) for widget in listing.items}
    return await render("dashboard/agents/widgets.html", agent=agent, widgets=listing, usage=usage)


@action("/dashboard/agents/<agent_id>/widgets", outlasts_support=True)
async def add_widget(session: WriteSession, agent_id: UUID) -> Next:
    """Create a widget, to be set up on its page."""
    agent = await get_row(session, Agent, agent_id)
    widget = await widgets.create_widget(session, WidgetCreate(name="Website", agent_id=str(agent.id)))
    return go_to("widget_page", _("Widget created. Add your site below."), widget_id=widget.id)


@page("/dashboard/widgets/<widget_id>")
async def widget_page(session: ReadSession, widget_id: UUID, form: Form) -> Response:
    """Show a widget's settings, its preview, and its latest conversations."""
    widget = await get_row(session, Widget, widget_id)
    agent = await get_row(session, Agent, widget.agent_id)
    shown = await render(
        "dashboard/agents/widget.html",
        agent=agent,
        widget=widget,
        form=form.starting_with(WidgetOut.model_validate(widget).model_dump(mode="json")),
        usage=await measure_usage(session, widget),
        latest=await list_calls_of_widget(session, widget.id, most=LATEST),
        greeting=build_greeting(agent),
        languages=LANGUAGES,
    )
    # The preview is the widget's own frame.
    policy = content_security_policy(frame_src="'self'")
    return Response(shown, 422 if form.was_sent else 200, {"Content-Security-Policy": policy})


@action("/dashboard/widgets/<widget_id>", invalid=widget_page, outlasts_support=True)
async def save_widget(session: WriteSession, widget_id: UUID, data: WidgetForm) -> Next:
    await widgets.update_widget(session, widget_id, data)
    return go_to("widget_page", _("Saved."), widget_id=widget_id)


@action("/dashboard/widgets/<widget_id>/turn-on", outlasts_support=True)
async def turn_widget_on(session: WriteSession, widget_id: UUID) -> Next:
    """Show the widget on its sites."""
    await widgets.update_widget(session, widget_id, WidgetUpdate(enabled=True))
    return go_to("widget_page", _("The widget is on."), widget_id=widget_id)


@action("/dashboard/widgets/<widget_id>/turn-off")
async def turn_widget_off(session: WriteSession, widget_id: UUID) -> Next:
    """Show the widget nowhere."""
    await widgets.update_widget(session, widget_id, WidgetUpdate(enabled=False))
    return go_to("widget_page", _("The widget is off."), "warning", widget_id=widget_id)


@action("/dashboard/widgets/<widget_id>/delete")
async def delete_widget(session: WriteSession, widget_id: UUID) -> Next:
    """Delete a widget permanently. Its conversations are kept."""
    widget = await get_row(session, Widget, widget_id)
    await widgets.delete_widget(session, widget_id)
    return go_to("widgets_page", _("Widget deleted."), "warning", agent_id=widget.agent_id)
