"""Access log: the ids of a request, quiet probes, and no personal data."""

import errno
import io
import logging
import sys

import pytest
import structlog
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs
from switchboard.foundation.observability import logs
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, Client

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


async def test_a_requests_own_id_is_kept(client: Client) -> None:
    response = await client.get("/v1/calls", headers={"X-Request-Id": "edge-7f3a.2"})
    assert response.headers["X-Request-Id"] == "edge-7f3a.2"
    assert (await response.get_json())["request_id"] == "edge-7f3a.2"


@pytest.mark.parametrize("given", ["", "a b", "x" * 129, "é", '{"a": 1}'])
async def test_an_id_that_could_spoil_a_log_line_is_replaced(client: Client, given: str) -> None:
    response = await client.get("/v1/calls", headers={"X-Request-Id": given})
    assert len(response.headers["X-Request-Id"]) == 36


async def test_log_lines_name_the_trace(client: Client) -> None:
    with capture_logs(processors=[merge_contextvars]) as lines:
        await client.get("/v1/calls", headers={"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"})
        await client.get("/v1/calls", headers={"traceparent": "nonsense"})
    assert [line.get("trace_id") for line in lines if line["event"] == "request"] == [TRACE, None]


async def test_probes_are_logged_at_debug(client: Client) -> None:
    with capture_logs() as lines:
        for path in ("/healthz", "/readyz", "/metrics", "/v1/calls"):
            await client.get(path)
    levels = [line["log_level"] for line in lines if line["event"] == "request"]
    assert levels == ["debug", "debug", "debug", "info"]


@pytest.mark.usefixtures("server_logs")
def test_phone_numbers_are_masked_wherever_they_come_from(capfd: pytest.CaptureFixture[str]) -> None:
    logs.configure_logging("INFO", json=True)
    logging.getLogger("carrier").warning("The 'To' number +4915112345678 is not valid, nor is %2B815550100001")
    try:
        raise ValueError("+15550107777")
    except ValueError:
        structlog.get_logger().exception("failed")
    logged = capfd.readouterr().err
    for masked in ("+4915***5678", "%2B8155***0001", "ValueError: +1555***7777"):
        assert masked in logged


class FullDisk(io.StringIO):
    """Standard error that cannot be written to."""

    def write(self, _text: str) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.usefixtures("server_logs")
def test_a_line_that_cannot_be_written_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    logs.configure_logging("INFO", json=True)
    monkeypatch.setattr(sys, "stderr", FullDisk())
    structlog.get_logger().info("lost")


async def test_database_errors_name_no_values(runtime: Runtime, caller: Caller) -> None:
    statement = text("select cast(:value as integer)").bindparams(value=2**40)
    with pytest.raises(DBAPIError) as caught:
        async with runtime.database.read(caller.organization_id) as session:
            await session.fetch(statement)
    assert str(2**40) not in str(caught.value).partition("[SQL:")[2]
