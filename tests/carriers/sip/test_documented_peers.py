"""The examples of the how-to that can be run: Kamailio's route, as the page prints it."""

import re

import pytest
from pydantic import JsonValue

from tests.carriers.sip.baresip import find_telephone_port, run_baresip
from tests.carriers.sip.kamailio import SETTINGS, run_kamailio
from tests.carriers.sip.line import SipLines
from tests.fixtures.free_ports import find_free_port
from tests.fixtures.servers import REPOSITORY

pytestmark = pytest.mark.system
PAGE = REPOSITORY / "docs" / "how-to" / "carriers" / "sip.md"
PERSON = "+15550100001"
NUMBER = "+12125557301"


def read_route(gateway: str) -> str:
    """Return the route of the page with a gateway's address, for a format string."""
    section = PAGE.read_text().partition("### Kamailio")[2]
    found = re.search(r"```\n(.*?)```", section, re.DOTALL)
    assert found is not None
    route = found[1].replace("203.0.113.5:5060", gateway)
    assert gateway in route
    return route.replace("{", "{{").replace("}", "}}")


async def test_kamailio_sends_the_numbers_of_the_page_to_a_gateway(sip_lines: SipLines) -> None:
    port, telephone_port = find_free_port(), find_telephone_port()
    proxy: dict[str, JsonValue] = {"name": "proxy", "hosts": [f"127.0.0.1:{port}"]}
    beginning, mark, rest = SETTINGS.partition("    record_route();\n    if ($sp ==")
    async with sip_lines.open(proxy) as line:
        body = {"numbers": [{"phone_number": NUMBER}], "inbound_agent_id": line.live.agent_id}
        assert (await line.live.caller.post("/v1/phone-numbers/enter", body)).status == 201
        settings = beginning + read_route(f"127.0.0.1:{line.sip_port}") + mark + rest
        options = f'audio_codecs=pcmu;outbound="sip:127.0.0.1:{port}"'
        async with (
            run_kamailio(sip_lines.folder / "kamailio", port, telephone_port, settings) as kamailio,
            run_baresip(sip_lines.folder / "baresip", PERSON, port=telephone_port, options=options) as telephone,
        ):
            await kamailio.wait_until_it_answers()
            await telephone.command("dial", f"sip:{NUMBER}@127.0.0.1:{port}")
            await telephone.wait_for("CALL_ESTABLISHED")
            call_id = await line.find_call(to_number=NUMBER)
            await line.wait_until_said(call_id, "agent", "bakery on the corner")
            await telephone.say("goodbye")
            call = await line.live.wait_for_end(call_id)
    assert (call["status"], call["from_number"]) == ("completed", PERSON)
