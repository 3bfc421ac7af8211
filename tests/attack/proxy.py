"""A proxy in front of an instance that plants holes, so that tests see whether attacks find them."""

import io
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
from aiohttp import web

DROPPED = ("Transfer-Encoding", "Content-Encoding", "Content-Length", "Connection")
BODY = web.RequestKey("BODY", bytes)
MAX_BODY_BYTES = 64 * 1024**2


@dataclass(slots=True)
class Holes:
    """Planted holes. `replace_key` returns the API key to send for a request, and `replace_cookie` the cookies, or None
    for the request's own. The instance does not get the headers of `dropped`, and gets the body that `replace_body`
    returns. `replace_response` returns the response. Each request has its body as the item `BODY`.
    """

    url: str = ""
    replace_key: Callable[[web.Request], str | None] = lambda request: None
    replace_cookie: Callable[[web.Request], str | None] = lambda request: None
    dropped: tuple[str, ...] = ()
    replace_body: Callable[[web.Request], bytes] = lambda request: request[BODY]
    replace_response: Callable[[web.Request, web.Response], web.Response] = lambda request, response: response

    def close(self) -> None:
        """Remove every hole."""
        closed = Holes()
        self.replace_key, self.replace_cookie, self.dropped = closed.replace_key, closed.replace_cookie, ()
        self.replace_body, self.replace_response = closed.replace_body, closed.replace_response


def accept_everything(request: web.Request, response: web.Response) -> web.Response:
    """Make an empty success of a refusal."""
    return web.Response() if response.status >= 400 else response


@asynccontextmanager
async def run_proxy(target: str) -> AsyncIterator[Holes]:
    """Run the proxy at `holes.url`, without a hole at first."""
    holes = Holes()

    async def forward(request: web.Request) -> web.Response:
        request[BODY] = await request.read()
        headers = {name: value for name, value in request.headers.items() if name not in (*DROPPED, *holes.dropped)}
        if cookie := holes.replace_cookie(request):
            headers["Cookie"] = cookie
        if key := holes.replace_key(request):
            headers["Authorization"] = f"Bearer {key}"
        sent = session.request(
            request.method,
            target + request.raw_path,
            data=io.BytesIO(holes.replace_body(request)),
            headers=headers,
            allow_redirects=False,
        )
        async with sent as response:
            answer = web.Response(status=response.status, body=await response.read())
            for name, value in response.headers.items():
                if name not in DROPPED:
                    answer.headers.add(name, value)
            return holes.replace_response(request, answer)

    application = web.Application(client_max_size=MAX_BODY_BYTES)
    application.router.add_route("*", "/{path:.*}", forward)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    # A kept connection may be closed by the server just when the next request is sent.
    connector = aiohttp.TCPConnector(force_close=True)
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), connector=connector) as session:
        await site.start()
        host, port = runner.addresses[0][:2]
        holes.url = f"http://{host}:{port}"
        yield holes
        await runner.cleanup()
