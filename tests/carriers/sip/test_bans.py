"""`switchboard sip bans` and `sip unban`, with SIPp as a scanner."""

import asyncio
import json
from contextlib import AbstractAsyncContextManager

import pytest
from pydantic import JsonValue

from tests.carriers.sip.line import SipLine, SipLines
from tests.fixtures.command_line import Operator
from tests.fixtures.debian_tools import find_tool, run_program
from tests.fixtures.eventually import eventually
from tests.fixtures.free_ports import find_free_port

pytestmark = pytest.mark.system
SCANNER = "127.0.0.2"


async def test_a_ban_is_listed_and_lifted(sip_lines: SipLines, operator: Operator) -> None:
    trunk: dict[str, JsonValue] = {"name": "office", "hosts": [f"127.0.0.1:{find_free_port()}"]}

    async def run(*arguments: str) -> str:
        result = await asyncio.to_thread(operator.run, "sip", *arguments)
        assert result.returncode == 0, result.stderr
        return result.stdout

    async def list_addresses() -> list[str]:
        return [ban["address"] for ban in json.loads(await run("bans", "--json"))["bans"]]

    async with sip_lines.open(trunk) as line:
        assert await run("bans") == "No address is ignored.\n"
        async with scan(sip_lines, line):
            assert await eventually(list_addresses, bool) == [SCANNER]
        shown = await run("bans")
        assert shown.startswith(f"{SCANNER}  for ")
        assert f"at http://127.0.0.1:{line.control_port}" in shown
        assert await run("unban", SCANNER) == f"{SCANNER} is read again at http://127.0.0.1:{line.control_port}.\n"
        assert await run("unban", SCANNER) == f"No gateway ignored {SCANNER}.\n"
        assert await list_addresses() == []
        wrong = await asyncio.to_thread(operator.run, "sip", "unban", "everybody")
        assert (wrong.returncode, "everybody is not an IP address" in wrong.stderr) == (2, True)
    away = await asyncio.to_thread(operator.run, "sip", "bans")
    assert (away.returncode, f"gateway http://127.0.0.1:{line.control_port}" in away.stderr) == (1, True)
    assert '"address": "127.0.0.2"' in (sip_lines.folder / "gateway.log").read_text()


def scan(sip_lines: SipLines, line: SipLine) -> AbstractAsyncContextManager[None]:
    """Run SIPp's own scenario of a caller, from an address of no trunk."""
    arguments = ("-sn", "uac", "-i", SCANNER, "-p", str(find_free_port()), "-r", "10", "-nostdin")
    program = find_tool("sipp", package="sip-tester")
    target = f"127.0.0.1:{line.sip_port}"
    return run_program(program, *arguments, target, log=sip_lines.folder / "sipp.log")
