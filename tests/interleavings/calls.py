"""Calls: a campaign dials, callers call in, servers hold calls and die, and every call ends once."""

import asyncio
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from switchboard.engine.conversation.engine import CallEngine
from switchboard.foundation.database import new_id
from switchboard.foundation.injection import Parts
from switchboard.foundation.jobs import Reconciler, bind_job
from switchboard.foundation.leases import LeaseKeeper, LeaseWatch
from switchboard.resources.agents.models import Agent
from switchboard.resources.calls import jobs as call_jobs
from switchboard.resources.calls.analysis import analyze_call
from switchboard.resources.calls.recordings.claims import recover_recording
from switchboard.resources.campaigns import jobs as campaign_jobs
from switchboard.resources.campaigns import service as campaigns
from switchboard.resources.campaigns.schemas import CampaignCreate, ContactToCall, Retry
from switchboard.resources.identity import service as identity
from switchboard.resources.identity.policy import Policy
from switchboard.resources.phone_numbers.models import PhoneNumber

from tests.interleavings.carrier import CARRIER, Carrier, CarrierClient, SimulatedProviders
from tests.interleavings.counters import check_counter, check_limit_counters
from tests.interleavings.faults import Faults
from tests.interleavings.processes import Process, Worker
from tests.interleavings.receivers import SimulatedOutbound, WebhookEndpoint
from tests.interleavings.servers import SERVER_STOPPED, Conversation, OpenMediaServers, Server
from tests.interleavings.world import SERVERS, WORKERS, World

AT_ONCE: Final = 2
RETRIES: Final = 1
OUR_NUMBER: Final = "+15550100001"
LOOK_SECONDS: Final = 5.0
SETTLED_LOOKS: Final = 150
"""Looks within which every call must have ended: twelve minutes."""
WORK: Final = tuple(
    work for work in (*call_jobs.WORK, *campaign_jobs.WORK) if work.job not in (analyze_call, recover_recording)
)


@dataclass(eq=False)
class CallStory:
    """A campaign of a few contacts, and some callers, with one or two servers and workers."""

    world: World
    contacts: int
    callers: int
    pause: float
    workers: int
    servers: int

    @classmethod
    def draw(cls, world: World) -> "CallStory":
        """Draw a story."""
        choices = world.create_choices("calls")
        contacts, callers = choices.randint(0, 3), choices.randint(0, 3)
        return cls(world, contacts or 1, callers, choices.uniform(5, 12), choices.randint(1, 2), choices.randint(1, 2))

    async def play(self) -> None:
        """Play the story, and check what is left at its end."""
        self.conversations: dict[UUID, Conversation] = {}
        self.carrier = Carrier(self.world, self.world.create_choices("carrier"), self._list_servers)
        await self._prepare()
        for name in (*WORKERS[: self.workers], *SERVERS[: self.servers]):
            self._start(name)
        names = sorted(self.world.processes)
        faults = Faults(self.world, self._start, names, [name for name in names if name in WORKERS])
        faults.plan(self.world.create_choices("faults"), last_step=400)
        choices = self.world.create_choices("callers")
        for _ in range(self.callers):
            await asyncio.sleep(choices.random() * 5)
            self.carrier.call_in(OUR_NUMBER)
        for _ in range(SETTLED_LOOKS):
            await asyncio.sleep(LOOK_SECONDS)
            if await self._is_settled():
                break
        await self._check()

    async def _prepare(self) -> None:
        outside = self.world.installation.outside
        with self.world.scheduler.stop_others():
            async with outside.system() as session:
                policy = Policy(max_concurrent_calls=AT_ONCE)
                organization = identity.create_organization(session, name="Simulated", policy=policy)
            self.world.organization_id = organization.id
            async with outside.write(organization.id) as session:
                agent = Agent(id=new_id(), organization_id=organization.id, name="Agent")
                number = PhoneNumber(
                    id=new_id(),
                    organization_id=organization.id,
                    phone_number=OUR_NUMBER,
                    friendly_name="Ours",
                    inbound_agent_id=agent.id,
                    status="active",
                    carrier=CARRIER,
                )
                session.add_all([agent, number])
            async with outside.write(organization.id) as session:
                data = CampaignCreate(
                    name="Simulated",
                    agent_id=str(agent.id),
                    phone_number_id=str(number.id),
                    max_concurrent=AT_ONCE,
                    contacts=[ContactToCall(phone_number=f"+1555020000{place}") for place in range(self.contacts)],
                    retry=Retry(attempts=RETRIES, delay_seconds=20, on=["busy"]),
                )
                campaign = await campaigns.create_campaign(session, data)
                await campaigns.start_campaign(session, campaign.id)

    def _list_servers(self) -> list[Server]:
        return [each for each in self.world.processes.values() if isinstance(each, Server) and not each.gate.is_dead]

    def _start(self, name: str) -> None:
        installation = self.world.installation
        gate, database, complain = installation.gates[name], installation.databases[name], self.world.complain
        if name in WORKERS:
            worker = self.world.processes[name] = Worker(
                gate, database, complain, bucket=self.world.bucket, pause=self.pause
            )
            parts = self._build_parts(worker)
            watch, end = call_jobs.watch_leases, call_jobs.end_abandoned_calls
            jobs = [Reconciler(job.__name__, bind_job(job, parts), 4.5) for job in (watch, end)]
            worker.start(worker.run(installation.settings, parts, WORK, jobs))
        else:
            server = self.world.processes[name] = Server(
                gate=gate, database=database, complain=complain, world=self.world, conversations=self.conversations
            )
            server.parts = self._build_parts(server)
            server.serve()

    def _build_parts(self, process: Process) -> Parts:
        runtime, node = self.world.installation.runtime, new_id().hex
        endpoint = WebhookEndpoint(self.world.create_choices("receiver"), 0.0, 0.0)
        own = replace(
            runtime,
            node=node,
            database=process.database,
            providers=SimulatedProviders(CarrierClient(self.carrier, process.gate)),
            outbound=SimulatedOutbound(process.gate, endpoint),
            engine=CallEngine(),
            lease=LeaseKeeper(process.database, node),
            lease_watch=LeaseWatch(),
        )
        own.lease.is_worker = isinstance(process, Worker)
        return {**own.parts, "media_servers": own.call(OpenMediaServers)}

    async def _is_settled(self) -> bool:
        open_calls = await self.world.fetch("select 1 from call where ended_at is null or watch_at is not null limit 1")
        campaign = await self.world.fetch("select 1 from campaign where status = 'running' limit 1")
        return not open_calls and not campaign and all(line.is_over for line in self.carrier.lines.values())

    async def _check(self) -> None:
        complain = self.world.complain
        calls = await self.world.fetch("select * from call order by id")
        for call in calls:
            dialed = self.carrier.dialed[str(call["id"])]
            if dialed > 1:
                complain(f"twice: call {call['id']} was dialed {dialed} times")
            if call["ended_at"] is None:
                complain(f"lost: call {call['id']} is {call['status']}, and nobody ends it")
            elif call["watch_at"] is not None:
                complain(f"lost: call {call['id']} has ended, and nobody hangs it up")
        for line in self.carrier.lines.values():
            if not line.is_over:
                complain(f"lost: the carrier still has {line.carrier_call_id} of call {line.reference}")
        self._check_limit(calls)
        self._check_conversations({call["id"]: call for call in calls})
        await check_counter(self.world, "call", len(calls))
        await check_limit_counters(self.world)
        await self._check_campaign(calls)

    def _check_limit(self, calls: list[Any]) -> None:
        """Compare the calls that went on at once with the organization's limit."""
        admitted = [call for call in calls if call["status"] != "busy" or call["direction"] == "outbound"]
        for call in admitted:
            moment = call["created_at"]
            others = [each for each in admitted if each["created_at"] <= moment < (each["ended_at"] or moment)]
            if len(others) > AT_ONCE:
                self.world.complain(f"limit: {len(others)} calls at once as call {call['id']} began")

    def _check_conversations(self, calls: dict[UUID, Any]) -> None:
        """Compare the ends of calls with what their servers know about them."""
        for call_id, conversation in self.conversations.items():
            call, died_at = calls[call_id], conversation.server.died_at
            if died_at is None and call["status"] != "completed":
                self.world.complain(f"lost: the result of call {call_id} is {call['status']}: {call['error_message']}")
            elif died_at is not None and call["error_message"] == SERVER_STOPPED and call["ended_at"] > died_at:
                self.world.complain(f"ended: call {call_id} ended at {call['ended_at']}, its server at {died_at}")

    async def _check_campaign(self, calls: list[Any]) -> None:
        complain = self.world.complain
        (campaign,) = await self.world.fetch("select * from campaign")
        contacts = await self.world.fetch("select * from campaign_contact order by id")
        for status in ("completed", "failed", "skipped", "canceled"):
            number = sum(contact["status"] == status for contact in contacts)
            if campaign[status] != number:
                complain(f"counters: the campaign counts {campaign[status]} {status} contacts, of {number}")
        if campaign["in_flight"] or campaign["status"] != "completed":
            complain(f"lost: the campaign is {campaign['status']} with {campaign['in_flight']} calls in flight")
        for contact in contacts:
            placed = self.carrier.numbers[contact["phone_number"]]
            if placed > contact["attempts"] or contact["attempts"] > 1 + RETRIES:
                complain(
                    f"twice: {contact['phone_number']} was dialed {placed} times in {contact['attempts']} attempts"
                )
        outbound = sum(call["direction"] == "outbound" for call in calls)
        if outbound != sum(contact["attempts"] for contact in contacts):
            complain(f"counters: {outbound} outbound calls, and not as many attempts")
