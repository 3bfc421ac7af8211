"""Exports: whole lists as CSV and JSON Lines, in batches, within the organization, and recorded in the audit log."""

import csv
import io
import json
import re
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from switchboard.resources.calls.queries import index_transcript
from switchboard.resources.exports import service
from switchboard.resources.identity.policy import Encryption, Policy
from switchboard.runtime import Runtime

from tests.fixtures.app import UNKNOWN_ID, Caller, Organizations
from tests.fixtures.calls import add_call, add_line
from tests.fixtures.dashboard import People
from tests.fixtures.json_access import at, objects_at

MONDAY = datetime(2026, 11, 16, 9, tzinfo=UTC)
FORMULAS = (
    "=1+1", "+1+1|cmd", "-2+3", "@SUM(A1)", "\t=1", "＝1",
    "x;=cmd|'/C calc'!A0", 'x; "@SUM(A1)', "x\n-2+3", "Ada; +15550100000",
)  # fmt: skip


async def export(caller: Caller, path: str) -> str:
    response = await caller.client.get(f"/v1/exports/{path}", headers={"Authorization": f"Bearer {caller.key}"})
    text = (await response.get_data(as_text=False)).decode()
    assert response.status_code == 200, text
    name = path.partition("?")[0]
    assert f'filename="{name}.' in response.headers["Content-Disposition"]
    return text


def read_csv(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


async def write_line(runtime: Runtime, caller: Caller, call_id: UUID, position: int, content: str) -> None:
    async with runtime.database.write(caller.organization_id) as session:
        await add_line(session, call_id, content, position=position, timestamp_ms=position * 1000)
        await session.flush()
        await index_transcript(session, call_id)


async def test_every_call_is_exported_once_in_either_format(
    runtime: Runtime, caller: Caller, stranger: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "BATCH", 3)
    for number in range(7):
        await add_call(runtime, caller, MONDAY + timedelta(seconds=number // 2), duration_seconds=number)
    await add_call(runtime, stranger, MONDAY)
    listed = objects_at((await caller.get("/v1/calls")).json, "items")
    rows = read_csv(await export(caller, "calls"))
    assert [row["id"] for row in rows] == [item["id"] for item in listed]
    assert rows[0].keys() == listed[0].keys()
    lines = [json.loads(line) for line in (await export(caller, "calls?format=jsonl")).splitlines()]
    assert lines == listed
    found = read_csv(await export(caller, "calls?min_duration_seconds=2&max_duration_seconds=4"))
    assert [row["duration_seconds"] for row in found] == ["4", "3", "2"]


@pytest.mark.parametrize("texts", [False, True])
async def test_transcripts_are_exported_with_their_calls(
    runtime: Runtime, organizations: Organizations, texts: bool
) -> None:
    caller = await organizations.create(policy=Policy(encryption=Encryption(texts=texts)))
    first = await add_call(runtime, caller, MONDAY)
    second = await add_call(runtime, caller, MONDAY + timedelta(days=1))
    deleted = await add_call(runtime, caller, MONDAY, has_transcript=False)
    for call, position, content in ((first, 0, "Hello"), (first, 1, "My card is [card]"), (second, 0, "=HYPERLINK(1)")):
        await write_line(runtime, caller, call.id, position, content)
    rows = read_csv(await export(caller, "transcripts"))
    assert [(row["call_id"], row["content"]) for row in rows] == [
        (str(second.id), "'=HYPERLINK(1)"),
        (str(first.id), "Hello"),
        (str(first.id), "My card is [card]"),
    ]
    assert str(deleted.id) not in str(rows)
    words = await caller.get("/v1/exports/transcripts?transcript=hello")
    if texts:
        assert words.status == 409
    else:
        assert [row["content"] for row in read_csv(words.body.decode())] == ["Hello", "My card is [card]"]


async def test_cells_cannot_become_formulas(caller: Caller) -> None:
    for number, formula in enumerate(FORMULAS):
        contact = {"phone_number": f"+155501000{number:02}", "name": "Ada", "notes": f"{formula}", "company": formula}
        assert (await caller.post("/v1/contacts", contact)).status == 201
    file = await export(caller, "contacts")
    rows = read_csv(file)
    for separator in ",;\t":
        cells = [
            cell.strip('" ') for row in csv.reader(io.StringIO(file, newline=""), delimiter=separator) for cell in row
        ]
        starting = {
            cell for cell in cells if cell.startswith(tuple("=+-@＝")) and not re.match(r"\+[0-9]+(?:[,\"]|$)", cell)
        }
        assert not starting, "in some languages, spreadsheets separate by semicolons"
    for row in rows:
        assert row["notes"].startswith("'") or not row["notes"].startswith(tuple("=+-@\t＝"))
        assert row["company"] == row["notes"]
    assert "'=1+1" in {row["notes"] for row in rows}
    assert "Ada; +15550100000" in {row["notes"] for row in rows}, "a number is not a formula"
    assert sorted(row["phone_number"] for row in rows)[0] == "+15550100000", "a number is not a formula"
    plain = [json.loads(line)["notes"] for line in (await export(caller, "contacts?format=jsonl")).splitlines()]
    assert "=1+1" in plain


async def test_contacts_are_exported_by_the_filters_of_their_list(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "BATCH", 2)
    for number in range(5):
        contact = {"phone_number": f"+1555010000{number}", "name": "Zoë" if number in {0, 4} else "Ada"}
        assert (await caller.post("/v1/contacts", contact)).status == 201
    rows = read_csv(await export(caller, "contacts?search=zoe"))
    assert [row["phone_number"] for row in rows] == ["+15550100004", "+15550100000"]
    (row,) = read_csv(await export(caller, "contacts?phone=%2B15550100001"))
    assert row["name"] == "Ada"
    assert read_csv(await export(caller, "contacts?phone=%2B15550100001&search=zoe")) == []


async def test_exports_are_recorded_with_their_filters(people: People, caller: Caller) -> None:
    await export(caller, "calls?direction=inbound&phone=%2B15550100001")
    await export(caller, "usage")
    await export(caller, "messages?created_after=2026-11-01T00:00:00Z")
    entries = [entry[1:] for entry in await people.list_audit_entries(caller.organization_id)]
    assert entries[-3:] == [
        ("data.exported", "calls direction, phone"),
        ("data.exported", "usage"),
        ("data.exported", "messages created_after"),
    ]


async def test_an_export_needs_the_scope_of_its_list(organizations: Organizations, caller: Caller) -> None:
    key = await organizations.create_key(caller.organization_id, scopes=["contacts:read"])
    assert (await key.get("/v1/exports/contacts")).status == 200
    for name in ("calls", "transcripts", "messages", "usage", f"campaign-contacts?campaign_id={UNKNOWN_ID}"):
        assert (await key.get(f"/v1/exports/{name}")).status == 403
    refused = await caller.get("/v1/exports/calls?format=xlsx")
    assert (refused.status, at(refused.json, "errors", 0, "field")) == (422, "format")
    assert (await caller.get(f"/v1/exports/campaign-contacts?campaign_id={UNKNOWN_ID}")).status == 404


async def test_owners_alone_download_the_audit_log_and_the_usage(people: People, caller: Caller) -> None:
    owner = await people.join(caller.organization_id)
    member = await people.join(caller.organization_id, role="builder")
    downloaded = await owner.get("/dashboard/exports/audit-log?format=jsonl")
    assert downloaded.status == 200
    for name in ("audit-log", "usage"):
        assert (await member.get(f"/dashboard/exports/{name}")).status == 403
    assert (await member.get("/dashboard/exports/calls?first_day=2026-11-16&format=csv&direction=")).status == 200
    for name in ("transcripts", "messages", "contacts"):
        assert (await member.get(f"/dashboard/exports/{name}")).status == 200
    exported = [
        entry for entry in await people.list_audit_entries(caller.organization_id) if entry[1] == "data.exported"
    ]
    assert exported[0] == (f"user:{owner.user_id}", "data.exported", "audit-log")
    assert len(exported) == 5
