"""HTTP client of the attacks: it searches each response for words that its user must not see."""

import asyncio
import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from yarl import URL

from tests.attack.report import AttackResult

MAX_WAITS = 8
CSRF = re.compile(r'name="csrf_token" value="(\w+)"')


@dataclass(frozen=True, slots=True)
class Answer:
    """A response with its whole body."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode(errors="replace")

    @property
    def json(self) -> Any:
        """The JSON body; an empty object if there is none, so that look-ups say what is missing."""
        return json.loads(self.body) if self.body and "json" in self.headers.get("Content-Type", "") else {}

    def __str__(self) -> str:
        return f"{self.status} {self.headers.get('Location', '')} {self.text}"


@dataclass(slots=True)
class CanaryWatch:
    """Words of organizations that nobody else may see."""

    result: AttackResult
    words: dict[str, str] = field(default_factory=dict)
    """The word of each organization, by its name."""
    secrets: list[str] = field(default_factory=list)
    """Stored secrets, which no response shows to anybody."""

    def inspect(self, reader: str, request: str, answer: Answer) -> None:
        """Search a response to `reader`, an organization or nobody, for secrets and the words of the others; it is no
        500.
        """
        leaked = [owner for owner, word in self.words.items() if owner != reader and word.encode() in answer.body]
        leaked += ["secrets" for secret in self.secrets if secret.encode() in answer.body]
        problem = f"contains data of {leaked}" if leaked else answer
        self.result.check(not leaked and answer.status != 500, f"{request} as {reader or 'nobody'}", problem)


@dataclass(slots=True)
class HttpClient:
    """A client of one organization, or of nobody. It keeps cookies if `browser`, and follows no redirect."""

    base_url: str
    reader: str
    watch: CanaryWatch
    session: aiohttp.ClientSession
    token: str | None = None
    cookies: dict[str, str] = field(default_factory=dict)
    csrf: str = ""

    def with_token(self, token: str | None) -> "HttpClient":
        """Return a client with another bearer credential, and without cookies."""
        return HttpClient(self.base_url, self.reader, self.watch, self.session, token)

    async def send(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        form: Mapping[str, str] | Sequence[tuple[str, str]] | None = None,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        wait: bool = True,
    ) -> Answer:
        """Send a request with a JSON body, a form, or bytes. `wait` repeats it after a rate limit has passed."""
        headers_sent = {"Authorization": f"Bearer {self.token}"} if self.token is not None else {}
        if self.cookies:
            headers_sent["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        if body is not None:
            data, headers_sent["Content-Type"] = json.dumps(body).encode(), "application/json"
        url = URL(self.base_url + path, encoded=True)
        for _ in range(MAX_WAITS):
            async with self.session.request(
                method,
                url,
                data=form if data is None else io.BytesIO(data),
                headers={**headers_sent, **(headers or {})},
                allow_redirects=False,
            ) as response:
                answer = Answer(response.status, response.headers.copy(), await response.read())
                for name, morsel in response.cookies.items():
                    self.cookies[name] = morsel.value
            self.watch.inspect(self.reader, f"{method} {path}", answer)
            if answer.status != 429 or not wait:
                break
            await asyncio.sleep(float(answer.headers.get("Retry-After", "1")))
        return answer

    async def get(self, path: str) -> Answer:
        return await self.send("GET", path)

    async def post(self, path: str, body: object = None) -> Answer:
        return await self.send("POST", path, body)

    async def read_csrf_token(self) -> str:
        """Return the token of this session's forms; the empty string for a browser that is not signed in."""
        if not self.csrf:
            found = CSRF.search((await self.get("/dashboard/organizations")).text)
            self.csrf = found[1] if found else ""
        return self.csrf

    async def submit(self, path: str, fields: Mapping[str, str] | Sequence[tuple[str, str]] = ()) -> Answer:
        """Post a form with the session's token."""
        given = fields.items() if isinstance(fields, Mapping) else fields
        others = [(name, value) for name, value in given if name != "csrf_token"]
        return await self.send("POST", path, form=[*others, ("csrf_token", await self.read_csrf_token())])

    async def sign_in(self, email: str, password: str) -> Answer:
        return await self.send("POST", "/dashboard/sign-in", form={"email": email, "password": password, "after": ""})
