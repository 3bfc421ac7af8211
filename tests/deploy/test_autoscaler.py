"""The autoscaler of the chart follows a metric that servers publish."""

import re

from tests.fixtures.app import SAME_MACHINE, LivePlatform
from tests.fixtures.eventually import eventually
from tests.fixtures.monitors import connect_telephone
from tests.fixtures.servers import REPOSITORY

CHART = REPOSITORY / "deploy" / "helm" / "switchboard"
METRIC = re.compile(r"^(switchboard_call_utilization) (\S+)$", re.MULTILINE)


async def test_the_autoscaler_follows_the_utilization_of_servers(live: LivePlatform) -> None:
    async def read_utilization() -> float:
        text = await (await live.caller.client.get("/metrics", scope_base=SAME_MACHINE)).get_data(as_text=True)
        found = METRIC.search(text)
        assert found is not None
        assert f"name: {found[1]}\n" in (CHART / "templates" / "autoscaler.yaml").read_text()
        return float(found[2])

    share = 1 / live.runtime.settings.call_capacity
    async with connect_telephone(live):
        await eventually(read_utilization, share.__eq__)
    await eventually(read_utilization, (0.0).__eq__)
