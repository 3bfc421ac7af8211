"""The dashboard and the alert rules name metrics that exist, and every alert has a section that says what to do."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import JsonValue

from tests.fixtures.app import SAME_MACHINE, Client
from tests.fixtures.debian_tools import find_tool
from tests.fixtures.servers import REPOSITORY

ALERTS = REPOSITORY / "deploy" / "prometheus" / "alerts.yml"
ALERTS_TEST = REPOSITORY / "tests" / "deploy" / "alerts_test.yml"
DASHBOARD = REPOSITORY / "deploy" / "grafana" / "switchboard.json"
METRIC = re.compile(r"\bswitchboard_\w+")


async def list_metrics(client: Client) -> set[str]:
    """Return the names of all series that a process has or can have."""
    text = await (await client.get("/metrics", scope_base=SAME_MACHINE)).get_data(as_text=True)
    names = set()
    for name, kind in re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE):
        names |= {f"{name}_{part}" for part in ("bucket", "sum", "count")} if kind == "histogram" else {name}
    return names


def list_strings(document: JsonValue) -> Iterator[str]:
    """Yield every string of a document."""
    if isinstance(document, str):
        yield document
    for part in document.values() if isinstance(document, dict) else document if isinstance(document, list) else ():
        yield from list_strings(part)


async def test_the_alert_rules_name_metrics_that_exist(client: Client) -> None:
    named = set(METRIC.findall(ALERTS.read_text()))
    assert len(named) > 10
    assert named <= await list_metrics(client)


async def test_the_dashboard_names_metrics_that_exist(client: Client) -> None:
    named = {name for text in list_strings(json.loads(DASHBOARD.read_text())) for name in METRIC.findall(text)}
    assert len(named) > 20
    assert named <= await list_metrics(client)


def test_every_alert_has_a_section_in_the_runbook() -> None:
    rules = re.findall(r"- alert: (\w+)(.+?)runbook_url: (\S+)", ALERTS.read_text(), re.DOTALL)
    assert len(rules) == ALERTS.read_text().count("expr:")
    for alert, _, runbook in rules:
        page, _, anchor = runbook.partition("#")
        assert alert in re.findall(r"^### (\S+)$", (REPOSITORY / page).read_text(), re.MULTILINE)
        assert anchor == alert.lower()


@pytest.mark.parametrize("arguments", [("check", ALERTS), ("test", ALERTS_TEST)], ids=["syntax", "alerts"])
def test_prometheus_accepts_the_alert_rules(arguments: tuple[str, Path]) -> None:
    verb, file = arguments
    ran = subprocess.run([find_tool("promtool"), verb, "rules", file], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
