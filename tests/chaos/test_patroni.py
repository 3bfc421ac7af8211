"""Patroni replaces a primary that is killed, frozen, or cut off while people talk, a campaign dials, and events go out.

`make chaos` runs it with its number of callers, and with one fault in each round, in turn; CI kills the primary once.
"""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import structlog
from sqlmodel import col, select
from switchboard.resources.calls.models import Call

from tests.chaos import invariants
from tests.chaos.events import ENDPOINTS, Publisher
from tests.chaos.live_calls import count_live_calls, wait_until_leases_are_judged
from tests.chaos.scenario import start_traffic
from tests.chaos.traffic import Traffic, write_question
from tests.chaos.writes import WriteProbe
from tests.fixtures.campaigns import (
    BUSY,
    SHORT,
    create_campaign,
    generate_numbers,
    get_agent_and_number,
    has_status,
    send_action,
    wait_for_campaign,
)
from tests.fixtures.eventually import eventually
from tests.fixtures.json_access import Json
from tests.fixtures.machines import Machine
from tests.fixtures.patroni import PatroniServers
from tests.fixtures.receiver import Receiver

logger = structlog.get_logger()
CALLERS = int(os.environ.get("CHAOS_CALLERS", "4"))
ROUNDS = int(os.environ.get("CHAOS_ROUNDS", "1"))
STEADY_SECONDS = 10.0
"""Time before the fault in which the events are counted."""
MOST_SECONDS_TO_A_WRITE = 20.0
CONTACTS = 10 * (SHORT, SHORT, SHORT, BUSY)


async def kill(servers: PatroniServers, machine: Machine) -> None:
    await machine.kill()


async def freeze(servers: PatroniServers, machine: Machine) -> None:
    """Freeze Patroni and PostgreSQL. An etcd of Debian 12 that is frozen while it leads, and then thawed, takes the
    leader's key from the new primary (https://github.com/etcd-io/etcd/issues/15247).
    """
    await machine.send_signal(signal.SIGSTOP, spared="etcd")


async def cut_off(servers: PatroniServers, machine: Machine) -> None:
    await machine.cut_off()


async def restart(servers: PatroniServers, machine: Machine) -> None:
    await servers.start_machine(machine)


async def thaw(servers: PatroniServers, machine: Machine) -> None:
    await machine.send_signal(signal.SIGCONT)


async def connect(servers: PatroniServers, machine: Machine) -> None:
    await machine.connect()


Step = Callable[[PatroniServers, Machine], Awaitable[None]]
FAULTS: tuple[tuple[Step, Step], ...] = ((kill, restart), (freeze, thaw), (cut_off, connect))
"""Faults of the primary's machine, each with its end."""


@dataclass(slots=True)
class Conversation:
    """A caller who asks the same question again and again, and when the agent answered."""

    answered_at: list[float] = field(default_factory=list)

    def note_answer(self) -> None:
        self.answered_at.append(asyncio.get_running_loop().time())


@pytest.mark.system
@pytest.mark.timeout(400 + 480 * ROUNDS)
async def test_patroni_replaces_a_primary_and_nothing_is_lost(tmp_path: Path, receiver: Receiver) -> None:
    servers = PatroniServers(tmp_path)
    async with start_traffic(tmp_path, receiver, servers=servers) as (cluster, traffic):
        publisher = Publisher(traffic, receiver)
        await publisher.subscribe()
        probes = [WriteProbe(traffic, f"http://127.0.0.1:{member.port}") for member in cluster.serving]
        question = write_question(tmp_path / "question.wav")
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(publisher.run())
            for probe in probes:
                tasks.create_task(probe.run())
            for number in range(ROUNDS):
                await run_round(servers, publisher, probes, question, FAULTS[number % len(FAULTS)])
            traffic.stop.set()
        calls = await invariants.read_calls(traffic)
        # A contact who answers while there is no primary is lost: the media socket cannot be opened then.
        inbound = {number: call for number, call in calls.items() if call.direction == "inbound"}
        invariants.check_endings(traffic, inbound)
        await invariants.check_costs(traffic)
        await invariants.check_contacts(traffic)
        await invariants.check_deliveries(traffic, receiver, calls)
        publisher.check()
        invariants.check_answers(traffic, cluster)
        assert 500 not in probes[0].statuses | probes[1].statuses


async def run_round(
    servers: PatroniServers, publisher: Publisher, probes: list[WriteProbe], question: Path, fault: tuple[Step, Step]
) -> None:
    """Let callers talk and a campaign dial, break the primary's machine, and judge what became of them."""
    traffic = publisher.traffic
    primary = await servers.wait_until_whole()
    conversations = [Conversation() for _ in range(CALLERS)]
    callers = [asyncio.create_task(traffic.talk(question, talk.note_answer)) for talk in conversations]
    await eventually(lambda: count_live_calls(traffic), lambda count: count == CALLERS)
    campaign = await start_campaign(traffic)
    clock = asyncio.get_running_loop().time
    before, began_at = len(publisher.accepted), clock()
    await asyncio.sleep(STEADY_SECONDS)
    failed_at = clock()
    events_a_second = (len(publisher.accepted) - before) / (failed_at - began_at)
    begin, end = fault
    await begin(servers, primary)
    await wait_for_promotion(servers, primary)
    promoted_at = clock()
    await wait_until(lambda: all(probe.is_back_since(promoted_at) for probe in probes))
    await wait_until_leases_are_judged(traffic)
    await wait_until(lambda: all(max(talk.answered_at, default=0.0) > promoted_at for talk in conversations))
    live = await count_live_calls(traffic)
    answers = sum(failed_at < at < promoted_at for talk in conversations for at in talk.answered_at)
    await check_campaign(traffic, campaign)
    logger.info(
        "failover",
        fault=begin.__name__,
        calls=CALLERS,
        ended=CALLERS - live,
        without_primary=round(promoted_at - failed_at, 1),
        answers_meanwhile=answers,
        longest_between_answers=round(max(map(measure_longest_pause, conversations)), 1),
        writes=[probe.measure_outage(promoted_at) for probe in probes],
        deliveries_a_second=round(ENDPOINTS * events_a_second),
        deliveries=ENDPOINTS * len(publisher.accepted),
        repeated=publisher.count_repeats(),
    )
    assert live == CALLERS
    assert answers >= CALLERS // 2, "about two for each caller: the outage is longer than a question with its answer"
    assert all(probe.measure_outage(promoted_at)[0] <= MOST_SECONDS_TO_A_WRITE for probe in probes)
    await end(servers, primary)
    for caller in callers:
        caller.cancel()
    await asyncio.gather(*callers, return_exceptions=True)
    await servers.wait_until_whole()
    await eventually(lambda: count_live_calls(traffic), lambda count: count == 0)


async def wait_for_promotion(servers: PatroniServers, former: Machine) -> None:
    """Wait until another machine says that it is the primary."""

    others = [machine for machine in servers.machines if machine is not former]
    await eventually(lambda: servers.find_primary(others))


async def wait_until(is_true: Callable[[], bool]) -> None:
    async def look() -> bool:
        return is_true()

    await eventually(look)


def measure_longest_pause(talk: Conversation) -> float:
    return max(
        (after - before for before, after in zip(talk.answered_at, talk.answered_at[1:], strict=False)), default=0
    )


async def start_campaign(traffic: Traffic) -> Json:
    """Start a campaign that dials for longer than the cluster has no primary."""
    people = generate_numbers(*CONTACTS)
    body = get_agent_and_number(traffic.live)
    campaign = await create_campaign(traffic.live.caller, body, people, max_concurrent=2)
    await send_action(traffic.live.caller, campaign, "start")
    return campaign


async def check_campaign(traffic: Traffic, campaign: Json) -> None:
    """Wait until the campaign has ended, and check that each contact was called once."""
    ended = await wait_for_campaign(traffic.live.caller, campaign, has_status("completed"), seconds=400)
    assert ended["called"] == len(CONTACTS), ended
    async with traffic.runtime.database.read(traffic.organization_id) as session:
        numbers = (await session.exec(select(Call.to_number).where(col(Call.direction) == "outbound"))).all()
    assert set(Counter(numbers).values()) == {1}, "a contact was called twice"
