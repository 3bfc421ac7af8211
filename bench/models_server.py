"""Server of `bench/models`, which answers with the same tokens each time, each an event and a write of its own."""

import asyncio
import json
import sys

from aiohttp import web

CHUNK = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o-mini"}
USAGE = {"prompt_tokens": 500, "completion_tokens": 60, "total_tokens": 560}


def build_event(**fields: object) -> bytes:
    return b"data: " + json.dumps({**CHUNK, **fields}).encode() + b"\n\n"


async def main(tokens: int) -> None:
    token = build_event(choices=[{"index": 0, "delta": {"content": " word"}, "finish_reason": None}])
    end = build_event(choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}])

    async def answer(request: web.Request) -> web.StreamResponse:
        await request.read()
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for _ in range(tokens):
            await response.write(token)
            await asyncio.sleep(0.001)
        await response.write(end + build_event(choices=[], usage=USAGE) + b"data: [DONE]\n\n")
        return response

    application = web.Application()
    application.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
