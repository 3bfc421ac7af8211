import gc

import pytest

gc.disable()  # Until all is imported, which makes almost no garbage.
pytest_plugins = [
    f"tests.fixtures.{name}"
    for name in (
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

# The longest tests go first, so that no process is left alone with one at the end.
LONGEST = (
    "tests/faults/",
    "tests/backups/test_round_trip.py",
    "tests/api/test_isolation.py",
    "tests/cli/",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: not item.nodeid.startswith(LONGEST))


def pytest_collection_finish() -> None:
    """Freeze the imported objects: collecting them every 700 allocations took a sixth of the suite's time."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()
