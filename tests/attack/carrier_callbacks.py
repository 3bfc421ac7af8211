"""Callbacks that an owner signs with an account of their own, and whose files are addresses of the network inside."""

import asyncio
import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias
from urllib.parse import urlencode
from uuid import uuid4

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tests.attack.organization import Organization
from tests.attack.outbound_urls import LOOPBACK, open_canary
from tests.attack.report import AttackResult
from tests.attack.scene import Scene
from tests.carriers.plivo.wire import sign_form
from tests.carriers.telnyx.wire import encode_webhook, sign_headers
from tests.carriers.twilio.wire import compute_signature
from tests.fixtures.eventually import eventually

SOCKET: Final = re.compile(r"(ws.*)/browser-calls/\w+/([0-9a-f-]{36})")
TOKEN: Final = "the token of the attacker's own account"
SENDER: Final = "+15550100060"
FORM: Final = {"Content-Type": "application/x-www-form-urlencoded"}
Signed: TypeAlias = tuple[bytes, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class ForgedCarrier:
    """A carrier's name, the settings of the attacker's account, the path of its callbacks about text messages, and
    a function that writes such a callback: with its address, the called number, and the addresses of the files.
    """

    name: str
    settings: Mapping[str, str]
    path: str
    sign: Callable[[str, str, Sequence[str]], Signed]


def create_carriers() -> list[ForgedCarrier]:
    """Return each carrier that fetches files, with an account that nobody has."""
    key = Ed25519PrivateKey.generate()
    public_key = b64encode(key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)).decode()
    telnyx = {"api_key": "x", "public_key": public_key, "connection_id": "1293384261075731499"}
    twilio = {"account_sid": f"AC{uuid4().hex}", "auth_token": TOKEN}
    plivo = {"auth_id": "MA" + "A" * 18, "auth_token": TOKEN, "application_id": "1"}
    return [
        ForgedCarrier("telnyx", telnyx, "", partial(_sign_telnyx, key)),
        ForgedCarrier("twilio", twilio, "/text", _sign_twilio),
        ForgedCarrier("plivo", plivo, "/message", _sign_plivo),
    ]


def _sign_telnyx(key: Ed25519PrivateKey, _url: str, number: str, files: Sequence[str]) -> Signed:
    body = encode_webhook(
        "message.received",
        {
            "record_type": "message",
            "direction": "inbound",
            "id": str(uuid4()),
            "type": "MMS",
            "from": {"phone_number": SENDER},
            "to": [{"phone_number": number, "status": "webhook_delivered"}],
            "text": "Look",
            "media": [{"url": url, "content_type": "text/plain"} for url in files],
        },
    )
    return body, sign_headers(key, body)


def _sign_twilio(url: str, number: str, files: Sequence[str]) -> Signed:
    fields = {"MessageSid": f"MM{uuid4().hex}", "SmsStatus": "received", "From": SENDER, "To": number, "Body": "Look"}
    fields |= {"NumMedia": str(len(files))} | {f"MediaUrl{index}": file for index, file in enumerate(files)}
    return urlencode(fields).encode(), {**FORM, "X-Twilio-Signature": compute_signature(TOKEN, url, fields)}


def _sign_plivo(url: str, number: str, files: Sequence[str]) -> Signed:
    fields = {"MessageUUID": str(uuid4()), "From": SENDER[1:], "To": number[1:], "Text": "Look", "Type": "mms"}
    fields |= {f"Media{index}": file for index, file in enumerate(files)}
    return urlencode(fields).encode(), {**FORM, **sign_form(TOKEN, url, fields)}


async def attack_callbacks(scene: Scene, result: AttackResult) -> None:
    """Enter an account of each carrier, sign a text message whose files are on this machine, and read them."""
    stranger = scene.stranger
    connection = (await stranger.api.post("/v1/browser-call/token")).json["connection"]
    found = SOCKET.match(connection["url"])
    assert found, connection
    public_url, organization_id = found[1].replace("ws", "http", 1), found[2]
    number = (await stranger.api.get("/v1/phone-numbers")).json["items"][0]["phone_number"]
    async with open_canary() as canary:
        inside = [f"http://{host}:{canary.port}/canary" for host in LOOPBACK if host.isascii()][:9]
        for carrier in create_carriers():
            page = f"/dashboard/providers/telephony/{carrier.name}"
            fields = {f"settings.{name}": value for name, value in carrier.settings.items()}
            entered = await stranger.owner.submit(page, fields)
            assert entered.status == 303, entered
            path = f"/carriers/{carrier.name}/{organization_id}/events{carrier.path}"
            files = [*inside, f"{public_url}/metrics"]
            body, headers = carrier.sign(public_url + path, number, files)
            received = await scene.nobody.send("POST", path, data=body, headers=headers)
            assert received.status == 200, (carrier.name, public_url, received)
            await _read_files(stranger, result, carrier.name, files)
            await stranger.owner.submit(f"{page}/remove")
        result.check(not canary.requests, "requests of carriers' files to this machine", canary.requests)


async def _read_files(stranger: Organization, result: AttackResult, carrier: str, files: Sequence[str]) -> None:
    """Check that no file of the newest message from the sender was fetched."""
    conversations = (await stranger.api.get("/v1/sms/conversations?limit=100")).json["items"]
    (conversation,) = [item for item in conversations if item["contact_number"] == SENDER]
    messages = (await stranger.api.get(f"/v1/sms/conversations/{conversation['id']}/messages")).json["items"]
    received = next(message for message in messages if message["direction"] == "inbound")
    paths = [f"/v1/sms/media/{url.rpartition('/')[2]}" for url in received["media_urls"]]
    assert len(paths) == len(files), received
    read = [eventually(partial(stranger.api.get, path), lambda file: file.status != 503) for path in paths]
    for url, file in zip(files, await asyncio.gather(*read), strict=True):
        result.check(file.status == 404, f"file of {carrier} at {url}", file)
