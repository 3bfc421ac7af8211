"""The code on pages of the documentation works as it is printed."""

import re
import sys
from types import ModuleType

from switchboard.plugin_sdk.registry import Registry

from tests.fixtures.servers import REPOSITORY


def run_page(name: str) -> ModuleType:
    """Run the Python blocks of a page, in order, as one module."""
    page = (REPOSITORY / "docs" / name).read_text()
    module = ModuleType("documented")
    sys.modules["documented"] = module
    exec("".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL)), module.__dict__)  # noqa: S102 - our own page
    return module


def test_the_extensions_of_the_page_are_loaded() -> None:
    plugin = Registry().add("documented", run_page("plugins/extensions.md"))
    assert plugin.faults == []
    assert sorted(plugin.provides) == [
        "agent_tool crm_customer",
        "automation_action crm_note",
        "event_watcher crm_calls",
        "private_data_detector crm_number",
    ]
