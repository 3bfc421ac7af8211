"""The worker process: its jobs and reconcilers."""

import asyncio

from switchboard.apps.worker.jobs import compact_row_counts, delete_old_idempotent_responses, notify_event_watchers
from switchboard.apps.worker.retention import delete_expired_data
from switchboard.engine.providers.instances import Extensions
from switchboard.foundation.jobs import Job, Reconciler, run_reconciler
from switchboard.foundation.settings import Settings
from switchboard.resources.appointments.jobs import (
    find_calendar_changes,
    remind_of_appointments,
    settle_appointments,
)
from switchboard.resources.automations.actions import ActionServices
from switchboard.resources.automations.jobs import evaluate_triggers, reconcile_triggers, wake_run_worker
from switchboard.resources.automations.runs import RunWorker
from switchboard.resources.calls.analysis import analyze_call
from switchboard.resources.calls.jobs import (
    analyze_calls,
    dial_call,
    end_calls,
    hang_up_call,
    recover_calls,
    recover_recordings,
    watch_leases,
)
from switchboard.resources.campaigns.jobs import dial_campaigns, reconcile_campaigns
from switchboard.resources.deliveries.delivery_worker import DeliveryWorker, expire_deliveries, wake_delivery_worker
from switchboard.resources.identity.password_links import send_password_link
from switchboard.resources.identity.sign_in import delete_old_sessions
from switchboard.resources.knowledge_bases.jobs import (
    delete_vectors,
    maintain_vectors,
    process_document,
    reconcile_knowledge,
)
from switchboard.resources.oauth.clients import delete_expired_grants
from switchboard.resources.phone_numbers.jobs import charge_rents, release_numbers, repair_purchases
from switchboard.resources.privacy.jobs import reconcile_privacy_requests, run_privacy_request
from switchboard.resources.simulations.jobs import reconcile_simulations, run_simulation
from switchboard.resources.sms.auto_reply import answer_text
from switchboard.resources.sms.jobs import reconcile_texts, recover_text, send_text
from switchboard.resources.sms.media import fetch_media
from switchboard.runtime import Runtime

JOBS: tuple[Job, ...] = (
    analyze_call,
    answer_text,
    delete_vectors,
    dial_call,
    dial_campaigns,
    hang_up_call,
    recover_text,
    maintain_vectors,
    process_document,
    evaluate_triggers,
    fetch_media,
    run_privacy_request,
    run_simulation,
    send_password_link,
    send_text,
    wake_delivery_worker,
    wake_run_worker,
    notify_event_watchers,
)


def build_reconcilers(settings: Settings) -> tuple[Reconciler, ...]:
    """Return the reconcilers, which find work that time brings, whose wake-up was lost, or whose worker died."""
    return (
        Reconciler(watch_leases, 1),
        Reconciler(end_calls, 1),
        Reconciler(recover_calls, 2),
        Reconciler(analyze_calls, 2),
        Reconciler(recover_recordings, 5),
        Reconciler(reconcile_texts, 2),
        Reconciler(reconcile_triggers, 2),
        Reconciler(reconcile_knowledge, 5),
        Reconciler(notify_event_watchers, 5),
        Reconciler(compact_row_counts, 5),
        Reconciler(reconcile_simulations, 5),
        Reconciler(reconcile_privacy_requests, 5),
        Reconciler(settle_appointments, 10),
        Reconciler(find_calendar_changes, 10),
        Reconciler(remind_of_appointments, 10),
        Reconciler(delete_expired_data, 30),
        Reconciler(reconcile_campaigns, settings.campaign_tick),
        Reconciler(repair_purchases, 60),
        Reconciler(release_numbers, 60),
        Reconciler(charge_rents, 60),
        Reconciler(delete_old_idempotent_responses, 3600),
        Reconciler(expire_deliveries, 3600),
        Reconciler(delete_expired_grants, 3600),
        Reconciler(delete_old_sessions, 3600),
    )


async def run_worker(runtime: Runtime, stop: asyncio.Event) -> None:
    """Run jobs, deliver events, and advance automation runs until `stop` is set."""
    worker = runtime.queue.worker(jobs=JOBS, parts=runtime.parts)
    running = asyncio.create_task(worker.start())
    deliveries = DeliveryWorker(
        runtime.settings, runtime.database, runtime.keyring, runtime.outbound, due=runtime.deliveries_due
    )
    automation_runs = RunWorker(runtime.call(Extensions), runtime.call(ActionServices), due=runtime.runs_due)
    loops = [asyncio.create_task(pump.run(stop)) for pump in (deliveries, automation_runs)]
    loops += [
        asyncio.create_task(run_reconciler(reconciler, runtime.parts, stop))
        for reconciler in build_reconcilers(runtime.settings)
    ]
    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait((running, *loops, stopping), return_when=asyncio.FIRST_COMPLETED)
    stop.set()
    stopping.cancel()
    await worker.stop()
    await asyncio.gather(running, return_exceptions=True)
    await asyncio.gather(*loops)
