"""The command line over a running database: one JSON object, or one line of error."""

import asyncio
import contextlib
import json
import socket
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import urlopen
from uuid import uuid4

import pytest

from tests.fixtures.command_line import Operator, start_command
from tests.fixtures.eventually import eventually


def test_organizations_keys_users_and_clients_are_managed(operator: Operator) -> None:
    organization = operator.ask("orgs", "create", "--name", "Acme")
    assert organization["api_key"].startswith("svc_live_")
    key = operator.ask("keys", "create", "--org", organization["id"], "--name", "reader", "--scope", "agents:read")
    assert set(key) == {"id", "api_key"}
    assert operator.ask("keys", "revoke", key["id"])["revoked_at"]
    email = f"a{organization['id'][:8]}@example.com"
    assert (
        operator.ask("users", "create", "--email", email, "--password", "long enough!", "--org", organization["id"])[
            "email"
        ]
        == email
    )
    other = operator.ask("orgs", "create", "--name", "Other")
    assert operator.ask("users", "add", "--email", email, "--org", other["id"])["email"] == email
    assert "already" in operator.run("users", "add", "--email", email, "--org", other["id"]).stderr
    assert operator.ask("orgs", "suspend", other["id"], "--reason", "unpaid")["suspended"]
    assert not operator.ask("orgs", "resume", other["id"])["suspended"]
    client = operator.ask("oauth-clients", "create", "--name", "App", "--redirect-uri", "https://app.example.com/cb")
    assert set(client) == {"client_id", "client_secret"}
    public = operator.ask(
        "oauth-clients", "create", "--name", "App", "--redirect-uri", "http://localhost:3000/cb", "--public"
    )
    assert public["client_secret"] is None


def test_a_password_is_read_from_standard_input(operator: Operator) -> None:
    arguments = ["users", "create", "--email", f"{uuid4().hex}@example.com", "--password", "-", "--json"]
    for password, status in (("long enough!\n", 0), ("short\n", 1), ("", 1)):
        done = operator.run(*arguments, standard_input=password)
        assert done.returncode == status, done.stderr


def test_knowledge_is_reindexed(operator: Operator) -> None:
    organization = operator.ask("orgs", "create", "--name", "Acme")
    assert not operator.ask("knowledge", "reindex", "--org", organization["id"])["knowledge_bases"]
    refused = operator.run("knowledge", "reindex", "--org", "00000000-0000-0000-0000-000000000000")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "there is no organization" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (
            [
                "keys",
                "create",
                "--org",
                "00000000-0000-0000-0000-000000000000",
                "--name",
                "x",
                "--scope",
                "agents:read",
            ],
            1,
            "no organization",
        ),
        (
            ["keys", "create", "--org", "00000000-0000-0000-0000-000000000000", "--name", "x", "--scope", "agents:fly"],
            1,
            "no scope agents:fly",
        ),
        (["users", "create", "--email", "nobody", "--password", "long enough!"], 1, "not an e-mail"),
        (["users", "create", "--email", "a@b.co", "--password", "short"], 1, "at least 10"),
        (["oauth-clients", "create", "--name", "x", "--redirect-uri", "http://evil.example.com/"], 1, "redirect URI"),
        (["phone", "dial", "--from", "+15550100001", "--to", "+15559999900"], 1, "not a number of any organization"),
        (["voices", "--org", "00000000-0000-0000-0000-000000000000"], 1, "no organization"),
        (["orgs", "create"], 2, "--name"),
        (["no-such-command"], 2, "No such command"),
    ],
)
def test_errors_are_one_line_with_their_status(
    operator: Operator, arguments: list[str], status: int, message: str
) -> None:
    result = operator.run(*arguments)
    assert result.returncode == status
    assert message in result.stderr
    assert result.stdout == ""


def test_a_command_without_servers_explains_the_fix(operator: Operator, tmp_path: Path) -> None:
    operator.environment["SWITCHBOARD_DATABASE_URL"] = f"postgresql://x@/x?host={tmp_path}"
    result = operator.run("orgs", "list")
    assert result.returncode == 1
    assert "make run" in result.stderr
    assert "Traceback" not in result.stderr


def _read_page(url: str) -> str:
    """Return the page, or an empty text as long as nothing answers there, as on a busy machine."""
    with contextlib.suppress(URLError, TimeoutError), urlopen(url, timeout=2) as response:  # noqa: S310 - our worker
        return str(response.read().decode())
    return ""


async def test_a_worker_serves_metrics_and_stops_on_a_signal(operator: Operator) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    operator.environment["SWITCHBOARD_WORKER_PORT"] = str(port)
    worker = start_command(["worker"], operator.environment)
    try:
        page = await eventually(lambda: asyncio.to_thread(_read_page, f"http://127.0.0.1:{port}/metrics"))
        for name in ("delivery_attempts", "delivery_latency_seconds", "deliveries_under_way", "endpoints_disabled"):
            assert f"switchboard_{name}" in page
        readiness = f"http://127.0.0.1:{port}/readyz"  # which is "degraded" if Redis is late on a busy machine
        await eventually(lambda: asyncio.to_thread(_read_page, readiness), lambda page: '"ok"' in page)
        with pytest.raises(HTTPError, match="404"):
            await asyncio.to_thread(urlopen, f"http://127.0.0.1:{port}/v1/calls")
        second = await asyncio.to_thread(operator.run, "worker")
        assert "set SWITCHBOARD_WORKER_PORT" in second.stderr
        assert second.returncode == 1
    finally:
        worker.terminate()
        await asyncio.to_thread(worker.join, 20)
    assert worker.exitcode == 0


def test_a_balance_is_credited_and_shown(operator: Operator) -> None:
    organization_id = operator.ask("orgs", "create", "--name", "Prepaid")["id"]
    assert operator.ask("billing", "credit", "--org", organization_id, "--amount", "25.5", "--note", "first") == {
        "id": organization_id,
        "balance": 25.5,
    }
    assert operator.ask("billing", "credit", "--org", organization_id, "--amount", "-0.5") == {
        "id": organization_id,
        "balance": 25,
    }
    assert operator.ask("billing", "balance", "--org", organization_id) == {"id": organization_id, "balance": 25}
    for amount in ("x", "0", "nan", "1e30"):
        assert operator.run("billing", "credit", "--org", organization_id, "--amount", amount).returncode == 2
    assert operator.run("billing", "balance", "--org", "019a9f6e-7b0c-7c2e-9f39-5a8f6f0f7c11").returncode == 1


def test_voices_are_listed_by_provider(operator: Operator) -> None:
    organization_id = operator.ask("orgs", "create", "--name", "Voices")["id"]
    result = operator.run("voices", "--org", organization_id, "--json")
    assert result.returncode == 0
    voices = json.loads(result.stdout)
    assert voices["faults"] == []
    assert {
        "organization_id": organization_id,
        "provider": "espeak",
        "id": "de",
        "name": "German",
        "language": "de",
        "gender": "male",
    } in voices["voices"]
