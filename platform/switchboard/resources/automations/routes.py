"""Endpoints of automations."""

from uuid import UUID

from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.web.endpoint import ApiBlueprint, endpoint
from switchboard.foundation.web.errors import InvalidState
from switchboard.foundation.web.paging import get_row, get_row_answer, paginate, paginate_table
from switchboard.foundation.web.principal import Principal
from switchboard.foundation.web.schemas import Page, PageQuery
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.automations import service as automations
from switchboard.resources.automations.models import Automation
from switchboard.resources.automations.queries import select_automation_runs
from switchboard.resources.automations.schemas import (
    AutomationCreate,
    AutomationOut,
    AutomationRunOut,
    AutomationUpdate,
)
from switchboard.resources.automations.service import AutomationEditor

blueprint = ApiBlueprint("automations", __name__, tags={"automations": "Actions that run when an event happens."})


@blueprint.get("/v1/automations")
@endpoint(scope="campaigns:read")
async def list_automations(session: ReadSession, query: PageQuery) -> Page[AutomationOut]:
    """List automations."""
    return await paginate_table(session, Automation, AutomationOut, query)


@blueprint.post("/v1/automations")
@endpoint(scope="campaigns:write", status=201)
async def create_automation(
    session: WriteSession, data: AutomationCreate, principal: Principal, editor: AutomationEditor
) -> AutomationOut:
    """Create an automation.

    It runs from the next event on, unless it is disabled. An action that can never work (an unknown action, an invalid
    template, an unknown id) is a 422 that names the place of each error, like `actions.1.params.body`. Each action
    needs its own scope too, such as `sms:write` for `send_sms`.
    """
    return AutomationOut.model_validate(await editor.create(session, data, principal))


@blueprint.get("/v1/automations/<automation_id>")
@endpoint(scope="campaigns:read")
async def get_automation(session: ReadSession, automation_id: UUID) -> AutomationOut:
    """Get an automation."""
    return await get_row_answer(session, Automation, AutomationOut, automation_id)


@blueprint.patch("/v1/automations/<automation_id>")
@endpoint(scope="campaigns:write")
async def update_automation(
    session: WriteSession, automation_id: UUID, data: AutomationUpdate, principal: Principal, editor: AutomationEditor
) -> AutomationOut:
    """Update an automation.

    Only the given fields change. Runs that have started continue unchanged, even if the automation is disabled. The
    scopes of all its actions are needed, except to disable it.
    """
    return AutomationOut.model_validate(await editor.update(session, automation_id, data, principal))


@blueprint.delete("/v1/automations/<automation_id>")
@endpoint(scope="campaigns:write", status=204)
async def delete_automation(session: WriteSession, automation_id: UUID) -> None:
    """Delete an automation.

    This cannot be undone. Its runs are deleted too; those that have started stop.
    """
    await automations.delete_automation(session, automation_id)


@blueprint.get("/v1/automations/<automation_id>/runs")
@endpoint(scope="campaigns:read")
async def list_automation_runs(session: ReadSession, automation_id: UUID, query: PageQuery) -> Page[AutomationRunOut]:
    """List an automation's runs.

    Runs are kept for thirty days after they end, unless the organization's retention says otherwise.
    """
    await get_row(session, Automation, automation_id)
    return await paginate(session, select_automation_runs(session, automation_id), AutomationRunOut.from_row, query)


@blueprint.post("/v1/automations/<automation_id>/runs/<run_id>/retry")
@endpoint(scope="campaigns:write", errors=[InvalidState])
async def retry_automation_run(
    session: WriteSession, automation_id: UUID, run_id: UUID, principal: Principal, *, registry: Registry
) -> AutomationRunOut:
    """Retry a failed run.

    It resumes with the action that failed; completed actions are not repeated. The scopes of the remaining actions are
    needed. An addition to the specification.
    """
    run = await automations.retry_run(session, automation_id, run_id, principal=principal, registry=registry)
    return AutomationRunOut.from_row(run)
