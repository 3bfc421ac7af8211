"""An OAuth application of the attacks, and the consent page that it leads users to."""

import base64
import hashlib
import json
import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit

from tests.attack.credentials import REDIRECT_URI, ApplicationCredentials
from tests.attack.http_client import Answer, HttpClient
from tests.attack.scene import Scene

VERIFIER = "a-verifier-of-forty-three-characters-at-least-43"
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
PROOF = {"code_challenge": CHALLENGE, "code_challenge_method": "S256"}
ORGANIZATION = re.compile(r'name="organization_id" value="([0-9a-f-]{36})"')


@dataclass(frozen=True, slots=True)
class Application:
    """A registered application, which knows its secret if it has one."""

    scene: Scene
    credentials: ApplicationCredentials

    def build_query(self, changes: dict[str, str | None]) -> str:
        """Build an authorization request; None leaves a parameter out."""
        usual = {
            "response_type": "code",
            "client_id": self.credentials.client_id,
            "redirect_uri": REDIRECT_URI,
            "scope": "agents:read",
            "state": "s-1",
            **PROOF,
        }
        return urlencode({name: value for name, value in {**usual, **changes}.items() if value is not None})

    async def request_consent(self, user: HttpClient, **changes: str | None) -> Answer:
        """Open the consent page."""
        return await user.get(f"/oauth/authorize?{self.build_query(changes)}")

    async def approve(self, user: HttpClient, **changes: str | None) -> Answer:
        """Allow the request for the user's only organization."""
        found = ORGANIZATION.search((await self.request_consent(user)).text)
        assert found, "the consent page names no organization"
        return await self.decide(user, found[1], **changes)

    async def decide(self, user: HttpClient, organization_id: str, **changes: str | None) -> Answer:
        """Allow the request for an organization."""
        decision = {"decision": "approve", "organization_id": organization_id}
        return await user.submit(f"/oauth/authorize?{self.build_query(changes)}", decision)

    async def obtain_code(self, user: HttpClient, **changes: str | None) -> str:
        approved = await self.approve(user, **changes)
        return dict(parse_qsl(urlsplit(approved.headers["Location"]).query))["code"]

    async def ask_for_tokens(self, fields: dict[str, str | None], path: str = "/api/oauth/token") -> Answer:
        own = self.credentials.model_dump()
        body = {name: value for name, value in {**own, **fields}.items() if value is not None}
        data, headers = json.dumps(body).encode(), {"Content-Type": "application/json"}
        return await self.scene.nobody.send("POST", path, data=data, headers=headers)

    async def redeem(self, code: str, **changes: str | None) -> Answer:
        usual = {"grant_type": "authorization_code", "code": code, "redirect_uri": REDIRECT_URI}
        return await self.ask_for_tokens({**usual, "code_verifier": VERIFIER, **changes})

    async def refresh(self, refresh_token: str, **changes: str | None) -> Answer:
        return await self.ask_for_tokens({"grant_type": "refresh_token", "refresh_token": refresh_token, **changes})

    async def revoke(self, token: str) -> Answer:
        return await self.ask_for_tokens({"token": token}, "/api/oauth/revoke")

    async def obtain_tokens(self, user: HttpClient, **changes: str | None) -> dict[str, str]:
        answer = await self.redeem(await self.obtain_code(user, **changes))
        assert answer.status == 200, answer
        tokens: dict[str, str] = answer.json
        return tokens
