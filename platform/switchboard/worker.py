"""The worker process: the one list of jobs, and what the clock starts."""

import asyncio

from switchboard.calls.jobs import analyze_call, dial_call, sweep_calls
from switchboard.deliveries.jobs import expire_deliveries, forget_deliveries, start_deliveries
from switchboard.deliveries.pump import DeliveryPump
from switchboard.housekeeping import forget_answers, forget_events, tell_watchers
from switchboard.knowledge_bases.jobs import delete_vectors, maintain_vectors, process_document, sweep_knowledge
from switchboard.phone_numbers.jobs import charge_rents, release_numbers, repair_purchases
from switchboard.runtime import Runtime
from switchboard.sms.jobs import answer_text, look_after_text, send_text, sweep_texts
from switchboard.work import Clockwork, Job

JOBS: tuple[Job, ...] = (
    analyze_call, answer_text, delete_vectors, dial_call, look_after_text, maintain_vectors, process_document, send_text, start_deliveries,
    tell_watchers,
)  # fmt: skip
CLOCK = (
    Clockwork(sweep_calls, "* * * * * */2"),
    Clockwork(sweep_texts, "* * * * * */2"),
    Clockwork(sweep_knowledge, "* * * * * */5"),
    Clockwork(tell_watchers, "* * * * * */5"),
    Clockwork(repair_purchases, "* * * * * 30"),
    Clockwork(release_numbers, "* * * * * 0"),
    Clockwork(charge_rents, "* * * * * 15"),
    Clockwork(forget_answers, "17 * * * *"),
    Clockwork(expire_deliveries, "27 * * * *"),
    Clockwork(forget_deliveries, "37 * * * *"),
    Clockwork(forget_events, "47 * * * *"),
)


async def work(runtime: Runtime, stop: asyncio.Event) -> None:
    """Run jobs and deliver events until told to stop."""
    worker = runtime.queue.worker(jobs=JOBS, clock=CLOCK, context=runtime)
    running = asyncio.create_task(worker.start())
    delivering = asyncio.create_task(DeliveryPump(runtime).run(stop))
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait((running, delivering, stopping), return_when=asyncio.FIRST_COMPLETED)
    stop.set()
    stopping.cancel()
    await worker.stop()
    await asyncio.gather(running, return_exceptions=True)
    await delivering
