"""Requests leave through two clients, which check each address that comes from outside: `OutboundClient`, and
`PublicHttpClient` for plugins. Every other client is listed with what decides its address.
"""

import ast
import re
from collections.abc import Iterator

from tests.house.sources import Source, collect_from

CLIENTS = re.compile(
    r"(aiohttp\.)?(ClientSession|TCPConnector|UnixConnector)|aiohttp\.request|AsyncOAuth2Client|OAuth2Session"
    r"|(httpx2?|requests|urllib3)\.(get|post|put|patch|delete|head|request|stream|Session|(Async)?Client|PoolManager)"
    r"|([\w.]+\.)?(urlopen|HTTPS?Connection|create_connection|sock_connect|(in)?secure_channel)"
    r"|asyncio\.open_(unix_)?connection|\w*sock(et)?\.connect(_ex)?|websockets\.connect"
)
"""Calls that connect to an address, or create a client that does."""
GUARDED = {"platform/switchboard/foundation/outbound.py", "platform/switchboard/plugin_sdk/public_http.py"}
OPERATOR = "a vendor's own address, or one in a setting that only the operator sets"
EXCEPTIONS = {
    "platform/switchboard/plugin_sdk/public_addresses.py": "the connector that checks",
    "platform/switchboard/plugin_sdk/template/common/switchboard_acme/client.py": OPERATOR,
    "platform/switchboard/apps/cli/doctor.py": "the installation's own address, asked by the operator",
    "platform/switchboard/apps/cli/launch.py": "the server that this command has started, on this machine",
    "platform/switchboard/engine/providers/connected_accounts.py": OPERATOR,
    "platform/switchboard/engine/providers/plugin_processes/messages.py": "a socket pair with a child process",
    "plugins/llm/switchboard_llm/azure.py": OPERATOR,
    "plugins/llm/switchboard_llm/vendor_api.py": OPERATOR,
    "plugins/llm/switchboard_llm/vertex.py": OPERATOR,
    "plugins/offline/switchboard_offline/loopback/exchange.py": "the platform, and its processes on this machine",
    "plugins/presidio/switchboard_presidio/detector.py": OPERATOR,
    "plugins/speech/switchboard_speech/connection.py": OPERATOR,
    "plugins/speech/switchboard_speech/google_stream.py": OPERATOR,
    "plugins/telephony_plivo/switchboard_telephony_plivo/transport.py": OPERATOR,
    "plugins/telephony_sip/switchboard_telephony_sip/gateway/running.py": "the platform, from the gateway",
    "plugins/telephony_sip/switchboard_telephony_sip/gateways.py": "gateways, which only the operator sets",
    "plugins/telephony_sip/switchboard_telephony_sip/signaling/transports.py": "trunks, which only the operator sets",
    "plugins/telephony_twilio/switchboard_telephony_twilio/transport.py": OPERATOR,
}


@collect_from("platform", "plugins")
def list_clients(source: Source) -> Iterator[tuple[str, str]]:
    """Yield the file, and line and called name, of each client of the programs."""
    if not re.search(r"/tests/|plugin_sdk/testing/", source.name):
        for node in source.nodes:
            if isinstance(node, ast.Call) and CLIENTS.fullmatch(called := ast.unparse(node.func)):
                yield source.name, f"{node.lineno}: {called}"


def test_requests_leave_through_clients_that_check_addresses() -> None:
    found: dict[str, str] = {}
    for name, place in list_clients():
        found.setdefault(name, f"{name}:{place}")
    unlisted = [place for name, place in found.items() if name not in GUARDED | EXCEPTIONS.keys()]
    assert not unlisted, f"use PublicHttpClient, or list the file with what decides the address: {unlisted}"
    gone = [name for name in GUARDED | EXCEPTIONS.keys() if name not in found]
    assert not gone, f"no clients there any more: {gone}"
