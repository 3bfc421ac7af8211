"""The autoscalers of the chart follow metrics that processes publish, by rules that Prometheus understands."""

import json
import re
import subprocess
from pathlib import Path

from tests.fixtures.app import SAME_MACHINE, LivePlatform
from tests.fixtures.debian_tools import find_tool
from tests.fixtures.eventually import eventually
from tests.fixtures.monitors import connect_telephone
from tests.fixtures.servers import REPOSITORY

ADAPTER = REPOSITORY / "deploy" / "prometheus" / "adapter.yml"
CHART = REPOSITORY / "deploy" / "helm" / "switchboard"
METRIC = re.compile(r"^(switchboard_call_utilization) (\S+)$", re.MULTILINE)
CAPACITY = re.compile(r"^switchboard_call_capacity (\S+)$", re.MULTILINE)


async def test_the_autoscaler_follows_the_utilization_of_servers(live: LivePlatform) -> None:
    async def count_calls() -> int:
        text = await (await live.caller.client.get("/metrics", scope_base=SAME_MACHINE)).get_data(as_text=True)
        found, capacity = METRIC.search(text), CAPACITY.search(text)
        assert found is not None
        assert capacity is not None
        assert f"name: {found[1]}\n" in (CHART / "templates" / "autoscaler.yaml").read_text()
        return round(float(found[2]) * float(capacity[1]))

    async with connect_telephone(live):
        await eventually(count_calls, (1).__eq__)
    await eventually(count_calls, (0).__eq__)


async def test_the_adapter_has_each_metric_of_the_autoscalers(live: LivePlatform) -> None:
    text = await (await live.caller.client.get("/metrics", scope_base=SAME_MACHINE)).get_data(as_text=True)
    published = set(re.findall(r"^# TYPE (\S+) gauge$", text, re.MULTILINE))
    followed = set(re.findall(r"name: (switchboard_\w+)", (CHART / "templates" / "autoscaler.yaml").read_text()))
    assert followed == set(re.findall(r"switchboard_\w+", ADAPTER.read_text()))
    assert followed <= published


def test_prometheus_accepts_the_queries_of_the_adapter(tmp_path: Path) -> None:
    rules = re.findall(r"seriesQuery: '(\w+).+?metricsQuery: '(.+?)'", ADAPTER.read_text(), re.DOTALL)
    assert len(rules) == 2
    recorded = []
    for number, (series, template) in enumerate(rules):
        query = template.replace("<<.Series>>", series).replace("<<.LabelMatchers>>", 'namespace="voice"')
        recorded.append({"record": f"query_{number}", "expr": query.replace("<<.GroupBy>>", "pod")})
    check_queries(tmp_path, recorded)


def test_prometheus_accepts_the_queries_of_keda(tmp_path: Path) -> None:
    template = (CHART / "templates" / "autoscaler.yaml").read_text()
    queries = re.findall(r" query: (?:>-\n)?(.+?)\n +\{\{- (?:else|end)", template, re.DOTALL)
    assert len(queries) == 2
    filled = [query.replace("{{ $series }}", '{namespace="voice"}') for query in queries]
    check_queries(tmp_path, [{"record": f"query_{number}", "expr": query} for number, query in enumerate(filled)])


def check_queries(folder: Path, recorded: list[dict[str, str]]) -> None:
    """Check recording rules as Prometheus does."""
    file = folder / "rules.yml"
    file.write_text(json.dumps({"groups": [{"name": "autoscalers", "rules": recorded}]}))
    ran = subprocess.run([find_tool("promtool"), "check", "rules", file], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
