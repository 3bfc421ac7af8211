"""The control port of a gateway, for those who do not know an account's secret."""

import asyncio

from pydantic import JsonValue
from switchboard_telephony_sip.commands import COMMANDS_PATH
from switchboard_telephony_sip.signatures import ACCOUNT_HEADER

from tests.carriers.sip.line import SipLines

ANSWER_SECONDS = 20


async def test_a_stranger_is_refused_before_the_body_is_read(sip_lines: SipLines) -> None:
    office: dict[str, JsonValue] = {"name": "office", "hosts": ["127.0.0.1:9"]}
    async with sip_lines.open(office) as line:
        reader, writer = await asyncio.open_connection("127.0.0.1", line.control_port)
        head = f"POST {COMMANDS_PATH} HTTP/1.1\r\nHost: gateway\r\n{ACCOUNT_HEADER}: {'0' * 32}\r\n"
        writer.write(f"{head}Content-Length: 4000000\r\n\r\n".encode())
        async with asyncio.timeout(ANSWER_SECONDS):
            status = await reader.readline()
        writer.close()
        await writer.wait_closed()
    assert status.split()[1] == b"403"
