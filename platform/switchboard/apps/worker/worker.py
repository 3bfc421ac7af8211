"""The worker process: the one list of jobs, and what the clock starts."""

import asyncio

from switchboard.apps.worker.housekeeping import (
    fold_tallies,
    forget_answers,
    forget_events,
    forget_grants,
    tell_watchers,
)
from switchboard.foundation.jobs import Clockwork, Job, Sweep, run_sweep
from switchboard.foundation.settings import Settings
from switchboard.resources.automations.jobs import forget_runs, pull_triggers, start_runs, sweep_triggers
from switchboard.resources.automations.run_worker import RunPump
from switchboard.resources.calls.jobs import analyze_call, dial_call, hang_up_call, sweep_calls
from switchboard.resources.campaigns.jobs import dial_campaigns, find_due_campaigns
from switchboard.resources.deliveries.delivery_worker import DeliveryPump
from switchboard.resources.deliveries.jobs import expire_deliveries, forget_deliveries, start_deliveries
from switchboard.resources.knowledge_bases.jobs import (
    delete_vectors,
    maintain_vectors,
    process_document,
    sweep_knowledge,
)
from switchboard.resources.phone_numbers.jobs import charge_rents, release_numbers, repair_purchases
from switchboard.resources.simulations.jobs import run_simulation, sweep_simulations
from switchboard.resources.sms.jobs import answer_text, look_after_text, send_text, sweep_texts
from switchboard.runtime import Runtime

JOBS: tuple[Job, ...] = (
    analyze_call, answer_text, delete_vectors, dial_call, dial_campaigns, hang_up_call, look_after_text, maintain_vectors, process_document,
    pull_triggers, run_simulation, send_text, start_deliveries, start_runs, tell_watchers,
)  # fmt: skip
CLOCK = (
    Clockwork(repair_purchases, "* * * * * 30"),
    Clockwork(release_numbers, "* * * * * 0"),
    Clockwork(charge_rents, "* * * * * 15"),
    Clockwork(forget_answers, "17 * * * *"),
    Clockwork(expire_deliveries, "27 * * * *"),
    Clockwork(forget_deliveries, "37 * * * *"),
    Clockwork(forget_events, "47 * * * *"),
    Clockwork(forget_runs, "57 * * * *"),
    Clockwork(forget_grants, "7 * * * *"),
)


def sweeps(settings: Settings) -> tuple[Sweep, ...]:
    """What finds the work whose wake-up was lost, or whose worker died."""
    return (
        Sweep(sweep_calls, 2), Sweep(sweep_texts, 2), Sweep(sweep_triggers, 2), Sweep(sweep_knowledge, 5), Sweep(tell_watchers, 5),
        Sweep(fold_tallies, 5), Sweep(sweep_simulations, 5),
        Sweep(find_due_campaigns, settings.campaign_tick),
    )  # fmt: skip


async def work(runtime: Runtime, stop: asyncio.Event) -> None:
    """Run jobs, deliver events and take automations' runs on until told to stop."""
    worker = runtime.queue.worker(jobs=JOBS, clock=CLOCK, context=runtime)
    running = asyncio.create_task(worker.start())
    loops = [asyncio.create_task(pump.run(stop)) for pump in (DeliveryPump(runtime), RunPump(runtime))]
    loops += [asyncio.create_task(run_sweep(sweep, runtime, stop)) for sweep in sweeps(runtime.settings)]
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait((running, *loops, stopping), return_when=asyncio.FIRST_COMPLETED)
    stop.set()
    stopping.cancel()
    await worker.stop()
    await asyncio.gather(running, return_exceptions=True)
    await asyncio.gather(*loops)
