"""The contract suites: small correct plugins pass them, also in other repositories, and no rule is dropped silently."""

import operator
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from pydantic import SecretStr
from switchboard.plugin_sdk import (
    ActionContext,
    ActionParams,
    AgentTool,
    AutomationAction,
    Chunk,
    ChunkMatch,
    EventWatcher,
    JsonObject,
    PrivateDataDetector,
    ProviderSettings,
    SpokenText,
    ToolParameters,
    VectorStore,
)
from switchboard.plugin_sdk.testing import (
    AgentToolContract,
    AutomationActionContract,
    EventWatcherContract,
    PrivateDataDetectorContract,
    ProviderContract,
    VectorStoreContract,
)

from tests.fixtures import crm

SETTINGS = crm.CrmSettings(api_key=SecretStr(crm.KEY))


class MemoryStore(VectorStore[ProviderSettings]):
    """A vector store in a list."""

    name, title = "memory", "Memory"

    def __init__(self, settings: ProviderSettings) -> None:
        super().__init__(settings)
        self._rows: list[tuple[UUID, str, Chunk]] = []

    async def check(self) -> None:
        """Do nothing."""

    async def put(self, organization_id: UUID, model: str, chunks: Sequence[Chunk]) -> None:
        for document_id in {chunk.document_id for chunk in chunks}:
            await self.delete_document(organization_id, document_id)
        self._rows += [(organization_id, model, chunk) for chunk in chunks]

    async def search(
        self,
        organization_id: UUID,
        model: str,
        *,
        text: str,
        vector: tuple[float, ...],
        knowledge_base_ids: Sequence[UUID] | None,
        limit: int,
    ) -> Sequence[ChunkMatch]:
        rows = [chunk for owner, made_by, chunk in self._rows if (owner, made_by) == (organization_id, model)]
        matches = [
            ChunkMatch(
                row.knowledge_base_id, row.document_id, row.index, row.text, sum(map(operator.mul, row.vector, vector))
            )
            for row in rows
            if knowledge_base_ids is None or row.knowledge_base_id in knowledge_base_ids
        ]
        return sorted(matches, key=lambda match: match.score, reverse=True)[:limit]

    async def delete_document(self, organization_id: UUID, document_id: UUID) -> None:
        self._rows = [row for row in self._rows if (row[0], row[2].document_id) != (organization_id, document_id)]

    async def delete_knowledge_base(
        self, organization_id: UUID, knowledge_base_id: UUID, *, model: str | None = None
    ) -> None:
        deleted_key = (organization_id, knowledge_base_id)
        self._rows = [
            row
            for row in self._rows
            if (row[0], row[2].knowledge_base_id) != deleted_key or row[1] != (model or row[1])
        ]

    async def maintain(self, organization_id: UUID) -> None:
        """Do nothing."""


class NoteParams(ActionParams):
    text: str


class Note(AutomationAction[NoteParams]):
    """Action that saves a text once per idempotency key."""

    name, title, Params = "note", "Note", NoteParams

    def __init__(self) -> None:
        self._notes: dict[str, str] = {}

    async def run(self, context: ActionContext, params: NoteParams) -> JsonObject:
        self._notes.setdefault(context.idempotency_key, params.text)
        return {"notes": len(self._notes)}


class TestMemoryStore(VectorStoreContract[MemoryStore]):
    @pytest.fixture
    def provider(self) -> MemoryStore:
        return MemoryStore(ProviderSettings())


class TestNote(AutomationActionContract):
    @pytest.fixture
    def action(self) -> AutomationAction[Any]:
        return Note()

    @pytest.fixture
    def params(self) -> ActionParams:
        return NoteParams(text="hello")


class TestCrmNote(AutomationActionContract):
    @pytest.fixture
    def action(self) -> AutomationAction[Any]:
        action = crm.WriteNote()
        action.settings = SETTINGS
        return action

    @pytest.fixture
    def params(self) -> ActionParams:
        return crm.NoteParams(text="hello")


class TestCrmCustomer(AgentToolContract):
    @pytest.fixture
    def tool(self) -> AgentTool[Any]:
        tool = crm.FindCustomer()
        tool.settings = SETTINGS
        return tool

    @pytest.fixture
    def parameters(self) -> ToolParameters:
        return ToolParameters()


class TestCrmEvents(EventWatcherContract):
    @pytest.fixture
    def watcher(self) -> EventWatcher:
        watcher = crm.CopyEvents()
        watcher.settings = SETTINGS
        return watcher


class TestCrmNumbers(PrivateDataDetectorContract):
    @pytest.fixture
    def detector(self) -> PrivateDataDetector:
        detector = crm.FindCustomerNumbers()
        detector.settings = SETTINGS
        return detector

    @pytest.fixture
    def sample(self) -> SpokenText:
        return SpokenText("my number is eu 4711")


async def _replacement(self: object) -> None:
    """Replacement of a rule."""


RULE = "test_it_has_a_name_and_a_title"


@pytest.mark.parametrize("contract", [ProviderContract, VectorStoreContract, AutomationActionContract])
def test_a_rule_cannot_be_dropped_silently(contract: type) -> None:
    mixin = type("Mixin", (), {RULE: _replacement, "__module__": "elsewhere"})
    cases: list[tuple[tuple[type, ...], dict[str, object]]] = [
        ((contract,), {RULE: _replacement}),
        ((contract,), {RULE: None}),
        ((mixin, contract), {}),
    ]
    for bases, names in cases:
        with pytest.raises(TypeError, match=f"{RULE} replaces a rule"):
            type("TestSly", bases, {**names, "__module__": "elsewhere"})


def test_an_exempted_rule_states_its_reason() -> None:
    @pytest.mark.xfail(reason="the vendor has no titles")
    async def exempted(_suite: object) -> None:
        """Replacement of a rule that must not be marked for other tests."""

    type("TestOpen", (ProviderContract,), {RULE: exempted, "__module__": "elsewhere"})


STRANGER = """
import pytest
from switchboard.plugin_sdk import SpeechChunk, TextToSpeechProvider, Voice
from switchboard.plugin_sdk.testing import TextToSpeechContract


class Shout(TextToSpeechProvider):
    name, title = "SHOUT", "Shout"

    async def check(self):
        pass

    async def synthesize(self, request):
        yield SpeechChunk(b"")

    async def list_voices(self):
        return []


class TestShout(TextToSpeechContract):
    @pytest.fixture
    def provider(self):
        return Shout(Shout.Settings())
"""


def test_a_broken_rule_shows_its_values_in_another_repository(tmp_path: Path) -> None:
    (tmp_path / "test_shout.py").write_text(STRANGER)
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nasyncio_default_fixture_loop_scope = function\nfilterwarnings = error\n"
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-k",
        "name or settings or check",
        str(tmp_path),
    ]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "1 failed, 3 passed" in result.stdout, result.stdout
    assert "assert 'SHOUT' == 'shout'" in result.stdout, result.stdout
