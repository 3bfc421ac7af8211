"""The page of privacy requests."""

import io
import re
from urllib.parse import urlsplit
from uuid import UUID
from zipfile import ZipFile

from switchboard.foundation.database import now
from switchboard.resources.identity.policy import Policy, Retention
from switchboard.resources.privacy.jobs import PrivacyRequestRunner
from switchboard.resources.privacy.models import PrivacyRequest
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, Organizations
from tests.fixtures.calls import add_call
from tests.fixtures.dashboard import People

PAGE = "/dashboard/privacy"
PERSON = "+16468213950"


async def test_an_owner_requests_an_export_and_downloads_it(people: People, caller: Caller, runtime: Runtime) -> None:
    await add_call(runtime, caller, now(), to_number=PERSON, ended_at=now(), watch_at=None)
    owner = await people.join(caller.organization_id)
    assert "data-confirm" in (await owner.get(PAGE)).html
    assert (await owner.post(PAGE, {"kind": "export", "phone_number": PERSON})).status == 303
    async with runtime.database.write(caller.organization_id) as session:
        request = (await session.exec(session.select(PrivacyRequest))).one()
    await runtime.call(PrivacyRequestRunner).run_due_request(caller.organization_id, request.id)
    page = (await owner.get(PAGE)).html
    assert "<code>call</code>: 1" in page
    (path,) = re.findall(rf'href="({PAGE}/[\w-]+/file)"', page)
    link = (await owner.get(path)).headers["Location"]
    file = await caller.client.get(urlsplit(link).path)
    with ZipFile(io.BytesIO(await file.get_data(as_text=False))) as archive:
        assert "data.json" in archive.namelist()


async def test_a_refused_erasure_says_why(people: People, organizations: Organizations) -> None:
    caller = await organizations.create(policy=Policy(retention=Retention(legal_hold=True)))
    owner = await people.join(caller.organization_id)
    refused = await owner.post(PAGE, {"kind": "erase", "phone_number": PERSON})
    assert refused.status == 409
    assert "legal hold" in refused.html
    assert PERSON in refused.html
    assert (await owner.post(PAGE, {"kind": "erase", "phone_number": "me"})).status == 422


async def test_members_see_no_privacy_requests(people: People, caller: Caller) -> None:
    await people.join(caller.organization_id)
    member = await people.join(caller.organization_id, role="builder")
    assert PAGE not in (await member.get("/dashboard")).html
    assert (await member.get(PAGE)).status == 403
    assert (await member.post(PAGE, {"kind": "export", "phone_number": PERSON})).status == 403
    assert (await member.get(f"{PAGE}/{UUID(int=0)}/file")).status == 403
