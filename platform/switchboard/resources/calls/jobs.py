"""Jobs that workers run for calls."""

from datetime import datetime
from uuid import UUID

from switchboard.engine.providers.instances import Providers
from switchboard.foundation.database import Database
from switchboard.foundation.jobs import BeatWatch
from switchboard.resources.calls import service as calls
from switchboard.resources.calls import system_queries
from switchboard.resources.calls.after import analysis
from switchboard.resources.calls.dialing import CallDialer, hang_up
from switchboard.resources.calls.reconciler import CallReconciler


async def dial_call(dialer: CallDialer, *, organization_id: str, call_id: str) -> None:
    """Place a call that was just created."""
    await dialer.place_with_carrier(UUID(organization_id), UUID(call_id))


async def hang_up_call(database: Database, providers: Providers, *, organization_id: str, call_id: str) -> None:
    """Hang up a canceled call at its carrier."""
    async with database.tenant(UUID(organization_id)) as session:
        call = await calls.get_call(session, UUID(call_id))
    await hang_up(providers, call)


async def analyze_call(database: Database, providers: Providers, *, organization_id: str, call_id: str) -> None:
    """Analyze a call that has just ended."""
    await analysis.run_analysis(database, providers, UUID(organization_id), UUID(call_id))


async def reconcile_calls(reconciler: CallReconciler) -> int:
    """Recover calls whose job was lost or whose process died; return how many."""
    return await reconciler.reconcile_due_calls()


async def watch_leases(database: Database, call_beats: BeatWatch) -> None:
    """Look which processes that run calls still extend their leases."""

    async def read() -> dict[str | UUID, datetime]:
        async with database.system() as session:
            return await system_queries.read_beats(session)

    await call_beats.look(read())


async def recover_recordings(reconciler: CallReconciler) -> int:
    """Find the recordings of calls whose process died; return for how many calls."""
    return await reconciler.recover_recordings()
