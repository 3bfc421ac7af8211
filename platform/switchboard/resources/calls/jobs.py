"""Jobs that workers run for calls."""

from uuid import UUID

from switchboard.resources.calls import dialing, reconciler
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.after import analysis
from switchboard.runtime import Runtime


async def dial_call(runtime: Runtime, *, organization_id: str, call_id: str) -> None:
    """Place a call that was just created."""
    await dialing.place_with_carrier(runtime, UUID(organization_id), UUID(call_id))


async def hang_up_call(runtime: Runtime, *, organization_id: str, call_id: str) -> None:
    """Hang up a canceled call at its carrier."""
    async with runtime.database.tenant(UUID(organization_id)) as session:
        call = await calls.get_call(session, UUID(call_id))
    await dialing.hang_up(runtime.providers, call)


async def analyze_call(runtime: Runtime, *, organization_id: str, call_id: str) -> None:
    """Analyze a call that has just ended."""
    await analysis.run_analysis(runtime, UUID(organization_id), UUID(call_id))


async def reconcile_calls(runtime: Runtime) -> None:
    """Recover calls whose job was lost or whose process died."""
    await reconciler.reconcile_due_calls(runtime)
