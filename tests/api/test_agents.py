"""Agents through the API."""

from uuid import uuid4

import pytest
from pydantic import JsonValue
from sqlalchemy import text
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller, Organizations
from tests.fixtures.json_access import Json, at, objects_at, text_at

BAD_FIELDS = [
    ("name", 5),
    ("name", ""),
    ("name", "x" * 256),
    ("name", "a\0b"),
    ("name", None),
    ("system_prompt", "x" * 100_001),
    ("system_prompt", 1),
    ("llm_provider", "unknown"),
    ("llm_provider", 3),
    ("llm_model", []),
    ("llm_temperature", 2.1),
    ("llm_temperature", "0.5"),
    ("tts_provider", "nobody"),
    ("tts_voice_id", 1),
    ("tts_model", {}),
    ("voice_speed", 0.4),
    ("voice_speed", True),
    ("stt_provider", "nobody"),
    ("stt_model", 1),
    ("stt_language", "not a language!"),
    ("greeting_message", ["x"]),
    ("end_call_silence_seconds", 4),
    ("end_call_silence_seconds", 5.5),
    ("max_call_duration_seconds", 14_401),
    ("max_call_duration_seconds", "60"),
    ("allow_interruptions", "yes"),
    ("interruption_min_words", 11),
    ("interruption_min_words", -1),
    ("vad_confidence", 1.1),
    ("vad_start_secs", "x"),
    ("vad_min_volume", -0.1),
    ("webhook_url", "http://127.0.0.1/"),
    ("webhook_url", "no url"),
    ("webhook_url", 1),
    ("webhook_secret", ""),
    ("webhook_secret", 1),
    ("pronunciations", ["a"]),
    ("pronunciations", None),
    ("nmae", "typo"),
]


async def test_agent_life_cycle(caller: Caller) -> None:
    created = await caller.post("/v1/agents", {"name": " Front desk ", "webhook_secret": "shh"})
    assert created.status == 201
    assert created.json["name"] == "Front desk"
    assert {created.json[name] for name in ("llm_provider", "tts_provider", "stt_provider")} == {
        "scripted",
        "espeak",
        "pocketsphinx",
    }
    assert created.json["llm_temperature"] == 0.7
    assert "webhook_secret" not in created.json
    path = f"/v1/agents/{created.json['id']}"
    assert created.json["pronunciations"] == {}
    updated = await caller.send(
        "PUT", path, {"voice_speed": 1.2, "status": "paused", "pronunciations": {"Siobhan": "Shivawn"}}
    )
    assert updated.json["pronunciations"] == {"Siobhan": "Shivawn"}
    assert (updated.status, updated.json["voice_speed"], updated.json["status"], updated.json["name"]) == (
        200,
        1.2,
        "paused",
        "Front desk",
    )
    versions = await caller.get(f"{path}/versions")
    assert [item["version"] for item in objects_at(versions.json, "items")] == [2, 1]
    assert (await caller.send("DELETE", path)).status == 204
    assert (await caller.get(path)).status == 404


async def test_settings_of_a_later_version_are_ignored(caller: Caller, runtime: Runtime) -> None:
    """Programs of two versions run side by side, and a later one may have saved the agent."""
    created = await caller.post("/v1/agents", {"name": "Agent", "redaction": {"kinds": ["pin"]}})
    path = f"/v1/agents/{created.json['id']}"
    later = text("""update agent set settings = jsonb_set(settings || '{"later": 1}', '{redaction,later}', '1')""")
    async with runtime.database.write(caller.organization_id) as session:
        await (await session.connection()).execute(later)
    assert (await caller.get(path)).json == created.json
    changed = await caller.send("PUT", path, {"greeting_message": "Hello"})
    assert (changed.status, changed.json["redaction"]) == (200, created.json["redaction"])


@pytest.mark.parametrize(("field", "value"), BAD_FIELDS)
async def test_a_bad_field_is_named(caller: Caller, field: str, value: object) -> None:
    for response in (
        await caller.post("/v1/agents", {"name": "Agent", field: value}),
        await caller.send(
            "PUT", f"/v1/agents/{(await caller.post('/v1/agents', {'name': 'Agent'})).json['id']}", {field: value}
        ),
    ):
        assert response.status == 422, response.body
        assert [error["field"] for error in objects_at(response.json, "errors")] == [field]
        assert response.json["code"] == "validation_error"


@pytest.mark.parametrize("reading", [{"a": ""}, {" ": "b"}, {"": "b"}, {"a": "\0"}, {"\0": "a"}, {"a": 1}])
async def test_an_invalid_pronunciation_is_named(caller: Caller, reading: object) -> None:
    refused = await caller.post("/v1/agents", {"name": "Agent", "pronunciations": reading})
    assert refused.status == 422, refused.body
    assert all(text_at(error, "field").startswith("pronunciations") for error in objects_at(refused.json, "errors"))


async def test_a_name_is_required(caller: Caller) -> None:
    assert (await caller.post("/v1/agents", {})).status == 422


async def test_lists_are_newest_first_and_paged(caller: Caller) -> None:
    names = [f"agent {index}" for index in range(5)]
    for name in names:
        await caller.post("/v1/agents", {"name": name})
    page = (await caller.get("/v1/agents?limit=2&offset=1")).json
    assert [item["name"] for item in objects_at(page, "items")] == ["agent 3", "agent 2"]
    assert (page["total"], page["limit"], page["offset"]) == (5, 2, 1)
    assert (await caller.get("/v1/agents?agent_type=other")).json["total"] == 0
    for query in ("limit=0", "limit=101", "offset=-1", "limit=x", "limmit=5", "limit=1&limit=2"):
        assert (await caller.get(f"/v1/agents?{query}")).status == 422, query


async def test_agents_of_other_organizations_are_not_found(caller: Caller, stranger: Caller) -> None:
    agent_id = (await caller.post("/v1/agents", {"name": "Mine"})).json["id"]
    for method, path, body in (
        ("GET", "", None),
        ("PUT", "", {"name": "Stolen"}),
        ("DELETE", "", None),
        ("GET", "/versions", None),
    ):
        foreign = await stranger.send(method, f"/v1/agents/{agent_id}{path}", body)
        unknown = await stranger.send(method, f"/v1/agents/{uuid4()}{path}", body)
        assert foreign.status == unknown.status == 404
        assert {**foreign.json, "request_id": ""} == {**unknown.json, "request_id": ""}
    assert (await stranger.get("/v1/agents")).json["total"] == 0
    assert (await caller.get(f"/v1/agents/{agent_id}")).json["name"] == "Mine"


async def test_endpoints_require_their_scopes(organizations: Organizations, caller: Caller) -> None:
    reader = await organizations.create_key(caller.organization_id, scopes=["agents:read"])
    assert (await reader.get("/v1/agents")).status == 200
    refused = await reader.post("/v1/agents", {"name": "Agent"})
    assert (refused.status, refused.json["code"]) == (403, "insufficient_scope")
    writer = await organizations.create_key(caller.organization_id, scopes=["agents:write"])
    assert (await writer.get("/v1/agents")).status == 403


async def test_an_agent_chooses_what_it_redacts(caller: Caller) -> None:
    chosen = {"kinds": ["card_number", "keypad"], "visible_to_model": ["keypad"]}
    agent = (await caller.post("/v1/agents", {"name": "Agent"})).json
    assert agent["redaction"] is None
    path = f"/v1/agents/{agent['id']}"
    assert (await caller.send("PUT", path, {"redaction": chosen})).json["redaction"] == chosen
    assert (await caller.send("PUT", path, {"name": "Renamed"})).json["redaction"] == chosen
    assert (await caller.send("PUT", path, {"redaction": None})).json["redaction"] is None


@pytest.mark.parametrize(
    ("redaction", "field"),
    [
        ({}, "redaction.kinds"),
        ({"kinds": ["names"]}, "redaction.kinds.0"),
        ({"kinds": [], "visible_to_model": ["names"]}, "redaction.visible_to_model.0"),
        ({"kinds": ["A b"]}, "redaction.kinds.0"),
    ],
)
async def test_an_unknown_kind_of_private_data_is_refused(caller: Caller, redaction: JsonValue, field: str) -> None:
    response = await caller.post("/v1/agents", {"name": "Agent", "redaction": redaction})
    assert (response.status, at(response.json, "errors", 0, "field")) == (422, field), response.body


async def test_a_disclosure_is_kept_and_versioned(caller: Caller) -> None:
    agent = (await caller.post("/v1/agents", {"name": "Agent"})).json
    assert agent["disclosure"] is None
    chosen = {"presets": ["eu", "us-ca"], "countries": {"CA-QC": {"consent": "ask"}}, "texts": {"question": "Record?"}}
    path = f"/v1/agents/{agent['id']}"
    kept = (await caller.send("PUT", path, {"disclosure": chosen})).json["disclosure"]
    assert at(kept, "countries", "CA-QC") == {"ai_notice": False, "consent": "ask"}
    assert (at(kept, "texts", "question"), at(kept, "without_consent")) == ("Record?", "continue")
    assert (await caller.send("PUT", path, {"name": "Renamed"})).json["disclosure"] == kept
    assert (await caller.send("PUT", path, {"disclosure": None})).json["disclosure"] is None
    versions = (await caller.get(f"{path}/versions")).json
    assert [at(version, "settings", "disclosure") for version in objects_at(versions, "items")] == [
        None,
        kept,
        kept,
        None,
    ]


@pytest.mark.parametrize(
    ("disclosure", "field", "message"),
    [
        ({"presets": ["eu", "zz"]}, "disclosure.presets.1", "zz is not a preset; there are eu, eu-de"),
        ({"presets": ["Europe"]}, "disclosure.presets.0", "match"),
        ({"countries": {"ZZ": {"consent": "ask"}}}, "disclosure.countries.ZZ", "not a country"),
        ({"countries": {"US-XX": {"consent": "ask"}}}, "disclosure.countries.US-XX", "not a country"),
        ({"consent": "ask", "texts": {"question": " "}}, "disclosure.texts.question", "at least 1 character"),
        ({"consent": "maybe"}, "disclosure.consent", "ask"),
        ({"without_consent": "transfer"}, "disclosure.without_consent", "end_call"),
    ],
)
async def test_a_disclosure_that_makes_no_sense_is_refused(
    caller: Caller, disclosure: JsonValue, field: str, message: str
) -> None:
    response = await caller.post("/v1/agents", {"name": "Agent", "disclosure": disclosure})
    assert response.status == 422, response.body
    assert str(at(response.json, "errors", 0, "field")).startswith(field), response.body
    assert message in str(at(response.json, "errors", 0, "message"))


async def test_a_language_without_standard_sentences_needs_its_own(caller: Caller) -> None:
    agent = (await caller.post("/v1/agents", {"name": "Agent", "disclosure": {"ai_notice": True}})).json
    path = f"/v1/agents/{agent['id']}"
    refused = await caller.send("PUT", path, {"stt_language": "ja-JP"})
    assert (refused.status, at(refused.json, "errors", 0, "field")) == (422, "disclosure.texts.ai_notice")
    names = ("ai_notice", "recording_notice", "question", "unclear", "refused", "goodbye")
    texts = dict.fromkeys(names, "AI です。")
    own = {"stt_language": "ja-JP", "disclosure": {"ai_notice": True, "texts": texts}}
    assert (await caller.send("PUT", path, own)).status == 200


async def test_an_agent_decides_when_callers_have_finished(caller: Caller) -> None:
    created = await caller.post("/v1/agents", {"name": "Patient"})
    assert created.json["turn_detection"] == {
        "mode": "auto",
        "min_silence_seconds": 0.2,
        "max_silence_seconds": 2.0,
    }
    path = f"/v1/agents/{at(created.json, 'id')}"
    changed = await caller.send("PUT", path, {"turn_detection": {"mode": "text", "max_silence_seconds": 3}})
    assert changed.json["turn_detection"] == {"mode": "text", "min_silence_seconds": 0.2, "max_silence_seconds": 3.0}


async def test_an_agent_decides_about_voicemail(caller: Caller) -> None:
    created = await caller.post("/v1/agents", {"name": "Dialer"})
    usual: Json = {"action": "hang_up", "message": "", "prompt": "", "carrier_detection": True}
    assert created.json["voicemail_policy"] == usual
    path = f"/v1/agents/{at(created.json, 'id')}"
    policy: Json = {"action": "leave_message", "message": "Hello {{name}}", "carrier_detection": False}
    changed = await caller.send("PUT", path, {"voicemail_policy": policy})
    assert changed.json["voicemail_policy"] == usual | policy
    for wrong in ({"action": "leave_message"}, {"action": "leave_message", "message": "x", "prompt": "y"}):
        refused = await caller.send("PUT", path, {"voicemail_policy": wrong})
        assert (refused.status, at(refused.json, "errors", 0, "field")) == (422, "voicemail_policy")


@pytest.mark.parametrize(
    ("turn_detection", "field"),
    [
        ({"mode": "telepathy"}, "turn_detection.mode"),
        ({"min_silence_seconds": 0.1}, "turn_detection.min_silence_seconds"),
        ({"max_silence_seconds": 11}, "turn_detection.max_silence_seconds"),
        ({"min_silence_seconds": 3}, "turn_detection"),
        ({"silence": 1}, "turn_detection.silence"),
        (None, "turn_detection"),
    ],
)
async def test_turn_detection_that_makes_no_sense_is_refused(
    caller: Caller, turn_detection: JsonValue, field: str
) -> None:
    refused = await caller.post("/v1/agents", {"name": "x", "turn_detection": turn_detection})
    assert refused.status == 422
    assert [fault["field"] for fault in objects_at(refused.json, "errors")] == [field]
