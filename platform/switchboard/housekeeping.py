"""What workers do for the parts that have no folder of their own above them: events and requests."""

from switchboard.events.crossing import claim_unwatched
from switchboard.runtime import Runtime
from switchboard.web.idempotency import forget_old


async def tell_watchers(runtime: Runtime) -> None:
    """Tell plugins of what was published, oldest first; told again after a crash in between."""
    async with runtime.database.system() as session:
        for event in await claim_unwatched(session):
            await runtime.registry.publish(event)


async def forget_answers(runtime: Runtime) -> None:
    """Delete the answers kept for idempotency that are older than a day."""
    async with runtime.database.system() as session:
        await forget_old(session)
