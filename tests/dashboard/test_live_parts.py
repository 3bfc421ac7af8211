"""Parts of pages that the server keeps current, as long as the user has access."""

import asyncio

import aiohttp

from tests.fixtures.app import LivePlatform
from tests.fixtures.dashboard import PASSWORD, People, create_person


async def test_a_live_part_ends_with_the_membership(live: LivePlatform, people: People) -> None:
    owner = await people.join(live.caller.organization_id)
    member = await create_person(live.runtime, live.caller.client, live.caller.organization_id, role="member")
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(live.runtime.settings.base_url, cookie_jar=jar) as browser:
        async with browser.post("/dashboard/sign-in", data={"email": member.email, "password": PASSWORD}) as signed_in:
            assert signed_in.status == 200
        async with browser.get("/dashboard/texts/live") as stream:
            assert (await stream.content.readline()).startswith(b"data:")
            assert (await owner.post(f"/dashboard/team/{member.user_id}/remove")).status == 303
            async with asyncio.timeout(20):
                assert b"event: over" in await stream.content.read()
