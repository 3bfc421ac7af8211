import gc
import os

import pytest

gc.disable()  # Until all is imported, which makes almost no garbage.
pytest_plugins = [
    f"tests.fixtures.{name}"
    for name in (
        "machine_speed",
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

NICENESS = 5
"""Priority of tests that do not wait: about a third of the processor time of one that does, if both want all of it."""
# Tests that wait in real time, for calls and for other programs. They go first, so that no process is alone with one at
# the end.
WAITING = (
    "plugins/telephony_sip/tests/test_sip_calls.py",
    "plugins/telephony_sip/tests/test_sip_media_calls.py",
    "plugins/telephony_sip/tests/test_sip_moments.py",
    "plugins/telephony_sip/tests/test_sip_transfers.py",
    "tests/api/test_browser_calls.py",
    "tests/api/test_calls.py",
    "tests/api/test_client_calls.py",
    "tests/api/test_destinations.py",
    "tests/api/test_do_not_call.py",
    "tests/api/test_isolation.py",
    "tests/api/test_sms.py",
    "tests/attack/",
    "tests/backups/",
    "tests/calls/",
    "tests/campaigns/test_dialing.py",
    "tests/carriers/",
    "tests/cli/test_phone.py",
    "tests/clients/",
    "tests/conversation/test_failing_providers.py",
    "tests/conversation/test_speech_providers.py",
    "tests/dashboard/test_answering.py",
    "tests/dashboard/test_calls.py",
    "tests/dashboard/test_client_sdks.py",
    "tests/dashboard/test_call_queue.py",
    "tests/dashboard/test_live_calls.py",
    "tests/dashboard/test_talking.py",
    "tests/faults/",
    "tests/knowledge_bases/test_conversation.py",
    "tests/machines/",
    "tests/observability/",
    "tests/plugin_processes/test_calls.py",
    "tests/plugins/test_documented_commands.py",
    "tests/plugins/test_extension_lateness.py",
    "tests/plugins/test_plugin_from_outside.py",
    "tests/plugins/test_plugin_packages.py",
    "tests/privacy/test_erasure.py",
    "tests/providers/",
    "tests/scaling/",
    "tests/widgets/test_in_chromium.py",
)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin every second process's part, as `--dist worksteal` cuts them, with its share of the tests that wait.

    The other processes use the cores meanwhile.
    """
    waiting = [item for item in items if item.nodeid.startswith(WAITING)]
    others = [item for item in items if not item.nodeid.startswith(WAITING)]
    processes = getattr(config, "workerinput", {"workercount": 1})["workercount"]
    ordered: list[pytest.Item] = []
    for number in range(processes):
        if number % 2 == 0:
            ordered += waiting[number // 2 :: (processes + 1) // 2]
        end = len(items) * (number + 1) // processes
        while others and len(ordered) < end:
            ordered.append(others.pop(0))
    items[:] = ordered


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave the processor to the tests that wait, whose calls are in real time, from the first other test on."""
    if os.environ.get("PYTEST_XDIST_WORKER") and not item.nodeid.startswith(WAITING) and os.nice(0) < NICENESS:
        os.nice(NICENESS)


def pytest_collection_finish() -> None:
    """Freeze the imported objects: collecting them every 700 allocations took a sixth of the suite's time."""
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()
