"""WebSockets, and links that are credentials: calls from a browser, live calls, media, and recordings."""

import json
from typing import Any

import aiohttp

from tests.attack.http_client import HttpClient
from tests.attack.report import AttackResult
from tests.attack.scene import Scene
from tests.fixtures.eventually import eventually

SECONDS = 20


class SocketAttack:
    """The attacks of one run."""

    def __init__(self, scene: Scene, result: AttackResult) -> None:
        self.scene, self.check, self.session = scene, result.check, scene.nobody.session

    async def request_call(self, url: str, token: str, to_number: str, from_number: str = "") -> str:
        """Dial over a browser call's socket, and return its first message; empty if the handshake is refused."""
        return await self.exchange_first(
            url, {"event": "dial", "token": token, "to_number": to_number, "from_number": from_number}
        )

    async def exchange_first(self, url: str, message: dict[str, str]) -> str:
        """Send a socket's first message, and return the response; empty if the handshake is refused."""
        try:
            async with self.session.ws_connect(url) as socket:
                await socket.send_str(json.dumps(message))
                return await socket.receive_str(timeout=SECONDS)
        except aiohttp.WSServerHandshakeError:
            return ""

    async def get_browser_token(self, client: HttpClient) -> tuple[str, str]:
        given: Any = (await client.post("/v1/browser-call/token")).json
        return given["connection"]["url"], given["token"]

    async def attack_browser_calls(self) -> None:
        """Call another organization's agent and number, from its number, with wrong tokens; wait for its calls."""
        victim, stranger = self.scene.victim, self.scene.stranger
        url, token = await self.get_browser_token(stranger.api)
        other_url, other_token = await self.get_browser_token(victim.api)
        number = (await victim.api.get("/v1/phone-numbers")).json["items"][0]["phone_number"]
        agent = f"agent:{victim.ids['agents'][0]}"
        calls = [(url, token, agent, ""), (url, token, "+15550100001", number), (other_url, token, agent, "")]
        calls += [(url, other_token, agent, ""), (other_url, "", agent, ""), (other_url, other_token[:-1], agent, "")]
        for call in calls:
            message = await self.request_call(*call)
            self.check(not message or json.loads(message)["event"] == "ended", f"browser call {call}", message)
        for socket_url, client_token in ((other_url, token), (url, other_token)):
            message = await self.exchange_first(socket_url, {"event": "register", "token": client_token})
            self.check(not message or json.loads(message)["event"] == "ended", "client of another", message)

    async def connect(self, url: str, **headers: str) -> int:
        """Return the status of a handshake."""
        try:
            async with self.session.ws_connect(url, headers=headers):
                return 101
        except aiohttp.WSServerHandshakeError as refusal:
            return refusal.status

    async def attack_live_call(self) -> None:
        """Ask for tickets of another organization's live call, use a ticket twice, and from another site."""
        # The live call is the stranger's, because the rows of the scene's victim must not change.
        victim, stranger = self.scene.stranger, self.scene.victim
        url, token = await self.get_browser_token(victim.api)
        async with self.session.ws_connect(url) as socket:
            call = {"event": "dial", "token": token, "to_number": f"agent:{victim.ids['agents'][0]}"}
            await socket.send_str(json.dumps(call))
            await socket.receive(timeout=SECONDS)
            call_id = (await victim.api.get("/v1/calls?limit=1")).json["items"][0]["id"]
            path = f"/dashboard/live/{call_id}/ticket"
            ticket = await eventually(lambda: victim.owner.submit(path), lambda answer: answer.status == 200)
            for name, browser in (("stranger", stranger.owner), ("nobody", self.scene.nobody)):
                for suffix, answer in (
                    ("ticket", await browser.submit(path)),
                    ("said", await browser.get(f"/dashboard/live/{call_id}/said")),
                    ("", await browser.get(f"/dashboard/live/{call_id}")),
                ):
                    self.check(answer.status in (303, 401, 404), f"live call {suffix} as {name}", answer)
            address = ticket.json["url"].replace("http", "ws", 1)
            evil = await self.connect(address, Origin="https://evil.example.com")
            self.check(evil == 403, "a ticket from another site", evil)
            second = (await victim.owner.submit(path)).json["url"].replace("http", "ws", 1)
            own = {"Origin": self.scene.base_url}
            await self.connect(second, **own)
            for name, used in (
                ("used", second),
                ("changed", address[:-2] + "00"),
                ("short", address.rpartition("/")[0] + "/x"),
            ):
                status = await self.connect(used, **own)
                self.check(status in (403, 404), f"a {name} ticket", status)
            base = self.scene.base_url.replace("http", "ws", 1)
            for media in ("x", token, call_id, address.rpartition("/")[2]):
                status = await self.connect(f"{base}/media/{media}")
                self.check(status in (403, 404), f"media socket with {media}", status)
        await eventually(
            lambda: victim.api.get(f"/v1/calls/{call_id}"), lambda answer: answer.json["ended_at"], seconds=60
        )

    async def attack_recordings(self) -> None:
        """Change a recording's link, and ask for links of another organization."""
        victim, nobody = self.scene.victim, self.scene.nobody
        call_id = next(key for key in victim.ids["calls"])
        given = await victim.api.get(f"/v1/calls/{call_id}/recording-url")
        self.check(given.status == 200, "the victim's own link", given)
        path = "/recordings/" + given.json["url"].rpartition("/")[2]
        for changed in (
            path[:-1],
            path + "0",
            path[:-4] + "0000",
            path.upper(),
            "/recordings/x",
            f"/recordings/{call_id}",
        ):
            answer = await nobody.get(changed)
            self.check(answer.status in (401, 403, 404), f"GET {changed}", answer.status)
        answer = await nobody.send("GET", path, headers={"Range": "bytes=" + "0-1," * 1000 + "0-1"})
        self.check(answer.status < 500, "a thousand ranges", answer.status)


async def attack_sockets(scene: Scene, result: AttackResult) -> None:
    """Attack calls from a browser, live calls, and recordings."""
    attack = SocketAttack(scene, result)
    await attack.attack_recordings()
    await attack.attack_browser_calls()
    await attack.attack_live_call()
