"""A cluster with an organization that takes calls."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_network
from pathlib import Path

from switchboard.apps.process_runtime import open_process_runtime
from switchboard.apps.server import app
from switchboard.foundation.settings import Settings
from switchboard.plugin_sdk import SimulatedCarrier, TelephonyProvider
from switchboard.resources.identity.policy import Policy, Prices, RateLimit, RateLimits

from tests.chaos.cluster import Cluster, run_cluster
from tests.chaos.traffic import Traffic
from tests.fixtures.app import Organizations, create_bakery, fresh_number
from tests.fixtures.processes import Servers
from tests.fixtures.receiver import Receiver


@asynccontextmanager
async def start_traffic(
    folder: Path, receiver: Receiver, *, servers: Servers | None = None, **changes: str
) -> AsyncIterator[tuple[Cluster, Traffic]]:
    """Run a cluster with an agent, its number, prices, and a webhook endpoint; the traffic has not begun yet."""
    async with run_cluster(folder, servers=servers, **changes) as cluster:
        settings = Settings(
            data_dir=folder, public_url=cluster.url, webhook_allowed_networks=[ip_network("127.0.0.0/8")]
        )
        urls = cluster.servers
        async with open_process_runtime(settings, database_url=urls.database_url, redis_url=urls.redis_url) as runtime:
            limit = RateLimit(per_second=1000, burst=1000)
            policy = Policy(
                prices=Prices(call_minute=1),
                max_concurrent_calls=1000,
                rate_limits=RateLimits(read=limit, write=limit),
            )
            caller = await Organizations(runtime, app.create_app(runtime).test_client()).create(policy=policy)
            live = await create_bakery(runtime, caller, fresh_number())
            await caller.send("PUT", f"/v1/agents/{live.agent_id}", {"end_call_silence_seconds": 600})
            await caller.post("/v1/webhook-endpoints", {"url": receiver.url})
            async with runtime.providers.use(caller.organization_id, TelephonyProvider, "loopback") as carrier:
                assert isinstance(carrier, SimulatedCarrier)
                traffic = Traffic(runtime, carrier, cluster.url, caller.organization_id, caller.key, live.number, live)
                yield cluster, traffic
