"""The files that a reader opens to follow a flow of docs/architecture.md from its first function to its last.

A file counts if one of its functions runs on the way. Not counted are plugins, and what runs beside every flow:
settings, the clock, ids, retries, logs, metrics, traces, and recordings. A resource has its SQL in a file of its own,
`queries.py`, so that a flow passes two files of a resource whose rules it asks.
"""

import ast

import pytest

from tests.fixtures.servers import REPOSITORY

PLATFORM = REPOSITORY / "platform" / "switchboard"
WRITE = ("foundation/database/session.py", "foundation/database/engine.py", "foundation/database/statements.py")
EVENTS = (
    *("foundation/events/outbox.py", "foundation/events/queries.py", "foundation/events/catalog.py"),
    "foundation/encryption/content.py",
)
MAY_BE_CALLED = (
    "resources/identity/service.py",
    "resources/identity/policy.py",
    "resources/identity/queries.py",
    "resources/destinations/service.py",
    "resources/destinations/queries.py",
    "resources/do_not_call/service.py",
    "resources/do_not_call/queries.py",
    "resources/phone_numbers/service.py",
    "resources/calls/service.py",
    "resources/calls/allowance.py",
    "resources/calls/queries.py",
    "resources/billing/ledger.py",
    "resources/billing/queries.py",
    "resources/agents/redaction.py",
    "engine/redaction/redactor.py",
    "engine/providers/instances.py",
    "plugin_sdk/registry.py",
)
FLOWS = {
    "request to carrier": (
        40,
        (
            *("foundation/web/problems.py", "foundation/web/endpoint.py", "foundation/web/pipeline.py"),
            *("foundation/web/principal.py", "foundation/web/rate_limits.py", "foundation/redis_client.py"),
            *("resources/identity/authentication.py", "foundation/web/schemas.py"),
            *("resources/calls/schemas.py", "resources/calls/routes.py"),
            *WRITE,
            *MAY_BE_CALLED,
            *("foundation/encryption/content.py", "foundation/events/outbox.py", "foundation/audit.py"),
            *("foundation/jobs.py", "foundation/work.py", "foundation/web/compression.py"),
            *("resources/calls/jobs.py", "resources/calls/dialing.py", "foundation/keyring.py"),
            "engine/providers/containment.py",
        ),
    ),
    "frame to answer": (
        24,
        (
            "resources/calls/media/media_socket.py",
            *("plugin_sdk/json_media.py", "plugin_sdk/audio.py", "engine/providers/containment.py"),
            *("engine/conversation/session.py", "engine/conversation/lifetime.py", "engine/conversation/machine.py"),
            *("engine/conversation/speech/speech_input.py", "engine/conversation/speech/vad.py"),
            *("engine/conversation/engine.py", "engine/conversation/speech/transcription.py"),
            *("engine/conversation/media/conversion.py", "engine/providers/failover.py"),
            *("engine/conversation/endpointing/policy.py", "engine/conversation/interruptions.py"),
            "engine/conversation/turn_taking.py",
            *("engine/conversation/transcript.py", "engine/redaction/redactor.py", "engine/conversation/knowledge.py"),
            *("engine/conversation/response_generator.py", "engine/conversation/speech/speech_output.py"),
            *("engine/conversation/speech/text_normalization.py", "engine/conversation/media/playout.py"),
        ),
    ),
    "event to delivery": (
        16,
        (
            *EVENTS,
            *WRITE,
            *("foundation/jobs.py", "foundation/work.py", "resources/deliveries/jobs.py"),
            "resources/deliveries/delivery_worker.py",
            *("resources/deliveries/queries.py", "resources/deliveries/sender.py", "foundation/keyring.py"),
            *("foundation/outbound.py", "plugin_sdk/public_addresses.py"),
        ),
    ),
    "campaign contact": (
        32,
        (
            *("foundation/jobs.py", "foundation/work.py", "resources/campaigns/jobs.py"),
            "resources/campaigns/queries.py",
            *("resources/campaigns/dialer.py", "resources/campaigns/service.py"),
            *MAY_BE_CALLED,
            *("resources/calls/states.py", "resources/calls/call_queue.py"),
            *EVENTS,
            *WRITE,
        ),
    ),
}


@pytest.mark.parametrize("flow", FLOWS)
def test_a_flow_passes_few_files(flow: str) -> None:
    most, files = FLOWS[flow]
    assert len(files) == len({*files})
    for name in files:
        functions = (ast.FunctionDef, ast.AsyncFunctionDef)
        assert any(isinstance(node, functions) for node in ast.walk(ast.parse((PLATFORM / name).read_text()))), name
    assert len(files) <= most, f"{flow}: {len(files)} files; merge those that are one concept"
    page = (REPOSITORY / "docs" / "architecture.md").read_text()
    assert f"| {flow} | {len(files)} |" in page
