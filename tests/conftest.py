import gc

import pytest

gc.disable()  # Until all is imported, which makes almost no garbage.
pytest_plugins = [
    f"tests.fixtures.{name}"
    for name in (
        "left_tasks",
        "servers",
        "logs",
        "administrator",
        "shared_parts",
        "app",
        "oauth",
        "command_line",
        "litellm_clients",
        "chat_models",
        "receiver",
        "span_receiver",
        "dashboard",
    )
]

# The longest tests go first, each process with its share, so that none is left alone with one at the end.
LONGEST = (
    "tests/faults/",
    "tests/backups/test_round_trip.py",
    "tests/api/test_isolation.py",
    "tests/cli/",
    "tests/plugins/test_documented_commands.py",
    "tests/plugins/test_plugin_from_outside.py",
    "tests/plugins/test_plugin_packages.py",
    "tests/plugin_processes/test_calls.py",
    "tests/providers/test_containment.py",
    "tests/carriers/",
    "tests/campaigns/test_dialing.py",
)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin each process's part, as `--dist worksteal` cuts them, with its share of the longest tests."""
    longest = [item for item in items if item.nodeid.startswith(LONGEST)]
    others = [item for item in items if not item.nodeid.startswith(LONGEST)]
    processes = getattr(config, "workerinput", {"workercount": 1})["workercount"]
    ordered: list[pytest.Item] = []
    for number in range(processes):
        ordered += longest[number::processes]
        end = len(items) * (number + 1) // processes
        while others and len(ordered) < end:
            ordered.append(others.pop(0))
    items[:] = ordered


def pytest_collection_finish() -> None:
    """Freeze the imported objects: collecting them every 700 allocations took a sixth of the suite's time."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()
