"""Automations: list, builder, and runs with the result of each action."""

import json
from typing import Literal
from uuid import UUID

from switchboard.apps.dashboard.blueprint import Next, action, go_to, live_part, page
from switchboard.apps.dashboard.forms import automation as forms
from switchboard.apps.dashboard.forms.form import Form
from switchboard.apps.dashboard.pages.campaigns import list_campaign_choices
from switchboard.apps.dashboard.pages.webhooks import list_event_labels
from switchboard.apps.dashboard.ui.rendering import load_list, render, render_part
from switchboard.apps.dashboard.viewer import Viewer
from switchboard.engine.providers.instances import Extensions
from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.languages import gettext as _
from switchboard.foundation.web.errors import ValidationFailed
from switchboard.foundation.web.paging import get_row
from switchboard.foundation.web.schemas import PageQuery
from switchboard.plugin_sdk import AutomationAction, JsonObject
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.automations import service as automations
from switchboard.resources.automations.models import Automation
from switchboard.resources.automations.queries import select_automation_runs
from switchboard.resources.automations.schemas import AutomationCreate, AutomationUpdate
from switchboard.resources.automations.service import AutomationEditor
from switchboard.resources.campaigns.queries import list_open_campaigns

BEGINNING: JsonObject = {
    "enabled": True,
    "trigger_type": "call.completed",
    "filters": [],
    "conditions": [],
    "actions": [],
}


class RunsQuery(PageQuery):
    status: Literal["running", "completed", "failed", "skipped"] | None = None


@page("/dashboard/automations")
async def automations_page(session: ReadSession, query: PageQuery, registry: Registry) -> str:
    titles = {kind.name: _(kind.title) for kind in registry.actions}
    return await render(
        "dashboard/automations/list.html",
        automations=await load_list(session, session.select(Automation), query),
        titles=titles,
    )


@page("/dashboard/automations/new", role="builder")
async def new_automation_page(session: ReadSession, form: Form, extensions: Extensions) -> str:
    return await _builder(session, extensions, form.starting_with(BEGINNING), None)


@page("/dashboard/automations/<automation_id>")
async def automation_page(session: ReadSession, automation_id: UUID, form: Form, extensions: Extensions) -> str:
    automation = await get_row(session, Automation, automation_id)
    kept = forms.automation_to_form(automation, await _kinds(session, extensions))
    return await _builder(session, extensions, form.starting_with(kept), automation)


@action("/dashboard/automations/new/draft")
async def draft_new_automation(session: ReadSession, fields: JsonObject, extensions: Extensions) -> str:
    """Show the builder after a row was added, moved, or removed. Nothing is saved."""
    return await _builder(session, extensions, Form(forms.apply_row_change(fields)), None)


@action("/dashboard/automations/<automation_id>/draft")
async def draft_automation(
    session: ReadSession, automation_id: UUID, fields: JsonObject, extensions: Extensions
) -> str:
    """Show the builder of an existing automation after a change of its rows. Nothing is saved."""
    automation = await get_row(session, Automation, automation_id)
    return await _builder(session, extensions, Form(forms.apply_row_change(fields)), automation)


async def _builder(session: ReadSession, extensions: Extensions, form: Form, automation: Automation | None) -> str:
    if form.was_sent:
        errors = forms.move_errors_to_fields(
            [{"field": field, "message": message} for field, message in form.errors.items()], ()
        )
        form = Form(form.values, errors=errors, message=form.message)
    return await render(
        "dashboard/automations/builder.html",
        form=form,
        automation=automation,
        triggers=list_event_labels(),
        fields=forms.get_event_fields(str(form.value("trigger_type"))),
        operators=forms.OPERATORS,
        kinds=await _kinds(session, extensions),
    )


async def _kinds(session: ReadSession, extensions: Extensions) -> forms.ActionTypes:
    found = await list_campaign_choices(session)
    named = {
        "agent_id": found["agents"],
        "from_number_id": found["numbers"],
        "phone_number_id": found["numbers"],
        "campaign_id": [(str(campaign.id), campaign.name) for campaign in await list_open_campaigns(session)],
    }
    return forms.ActionTypes(extensions.registry, named, await extensions.list_reasons(session, AutomationAction))


@action("/dashboard/automations/new", invalid=new_automation_page)
async def add_automation(session: WriteSession, viewer: Viewer, fields: JsonObject, editor: AutomationEditor) -> Next:
    data = await _read(session, editor.extensions, fields)
    made = await editor.create(session, data, viewer.principal)
    return go_to("automations_page", _("%(name)s was created.", name=made.name))


@action("/dashboard/automations/<automation_id>", invalid=automation_page)
async def save_automation(
    session: WriteSession, viewer: Viewer, fields: JsonObject, automation_id: UUID, editor: AutomationEditor
) -> Next:
    """Update an automation. Runs that have started continue unchanged."""
    data = await _read(session, editor.extensions, fields)
    whole = AutomationUpdate.model_validate(data.model_dump(mode="json"))
    await editor.update(session, automation_id, whole, viewer.principal)
    return go_to("automation_page", _("Saved."), automation_id=automation_id)


async def _read(session: ReadSession, extensions: Extensions, fields: JsonObject) -> AutomationCreate:
    """Read the form, and drop its empty rows, without which the errors of a refused form are numbered."""
    fields |= forms.drop_empty_rows(fields)
    return forms.read_automation_form(fields, await _kinds(session, extensions))


@action("/dashboard/automations/<automation_id>/enabled")
async def switch_automation(
    session: WriteSession, viewer: Viewer, automation_id: UUID, data: AutomationUpdate, editor: AutomationEditor
) -> Next:
    if data.model_fields_set != {"enabled"}:
        raise ValidationFailed(_("Only `enabled` can be changed here."))
    changed = await editor.update(session, automation_id, data, viewer.principal)
    return go_to(
        "automations_page",
        (_("%(name)s is enabled.") if changed.enabled else _("%(name)s is disabled.")) % {"name": changed.name},
        "done" if changed.enabled else "warning",
    )


@action("/dashboard/automations/<automation_id>/delete")
async def delete_automation(session: WriteSession, automation_id: UUID) -> Next:
    """Delete an automation and its runs."""
    await automations.delete_automation(session, automation_id)
    return go_to("automations_page", _("Automation deleted."), "warning")


@page("/dashboard/automations/<automation_id>/runs")
async def automation_runs_page(session: ReadSession, automation_id: UUID, query: RunsQuery) -> str:
    automation = await get_row(session, Automation, automation_id)
    found = await load_list(session, select_automation_runs(session, automation_id, status=query.status), query)
    return await render("dashboard/automations/runs.html", automation=automation, runs=found, query=query)


@page("/dashboard/automations/<automation_id>/runs/<run_id>")
async def automation_run_page(session: ReadSession, automation_id: UUID, run_id: UUID, registry: Registry) -> str:
    """Show a run: the event, and the result of each action."""
    return await render("dashboard/automations/run.html", **await _run(session, registry, automation_id, run_id))


@action("/dashboard/automations/<automation_id>/runs/<run_id>/retry")
async def retry_automation_run(
    session: WriteSession, viewer: Viewer, automation_id: UUID, run_id: UUID, *, registry: Registry
) -> Next:
    """Retry a failed run from the failed action."""
    await automations.retry_run(session, automation_id, run_id, principal=viewer.principal, registry=registry)
    return go_to(
        "automation_run_page",
        _("The run continues from the failed action."),
        automation_id=automation_id,
        run_id=run_id,
    )


@live_part("/dashboard/automations/<automation_id>/runs/<run_id>/live")
async def automation_run_live(session: ReadSession, automation_id: UUID, run_id: UUID, registry: Registry) -> str:
    return await render_part(
        "dashboard/automations/actions.html", **await _run(session, registry, automation_id, run_id)
    )


async def _run(session: ReadSession, registry: Registry, automation_id: UUID, run_id: UUID) -> dict[str, object]:
    run = await automations.get_run(session, automation_id, run_id)
    titles = {kind.name: _(kind.title) for kind in registry.actions}
    return {
        "run": run,
        "records": [(record, _pretty(record.result) if record.result is not None else "") for record in run.records()],
        "titles": titles,
        "event": _pretty(run.event.value),
    }


def _pretty(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
