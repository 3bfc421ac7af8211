"""The repository checks its own plugins, contracts, and plugin documentation."""

import ast
import inspect
import re
from collections.abc import Iterator

import pytest
from switchboard.apps.cli.plugin_catalog import grade_own_plugins
from switchboard.plugin_sdk import (
    AgentTool,
    AutomationAction,
    CalendarProvider,
    EmbeddingProvider,
    EventWatcher,
    LLMProvider,
    MediaCodec,
    PrivateDataDetector,
    RemotePrivateDataDetector,
    SpeechToTextProvider,
    SpeechToTextStream,
    TelephonyProvider,
    TextToSpeechProvider,
    TurnDetector,
    VectorStore,
)
from switchboard.plugin_sdk.hooks import Hooks
from switchboard.plugin_sdk.registry import HOOKS, Capability, ExtensionKind
from switchboard_plugin_quality import Grade

from tests.fixtures.servers import REPOSITORY
from tests.house.sources import Source, collect_from

CONTRACTS = REPOSITORY / "platform" / "switchboard" / "plugin_sdk" / "testing"
MAX_ATTRIBUTES = 15
EXERCISED = [
    ("telephony", TelephonyProvider),
    ("telephony", MediaCodec),
    ("speech_to_text", SpeechToTextProvider),
    ("speech_to_text", SpeechToTextStream),
    ("text_to_speech", TextToSpeechProvider),
    ("llm", LLMProvider),
    ("embeddings", EmbeddingProvider),
    ("vector_stores", VectorStore),
    ("turn_detectors", TurnDetector),
    ("calendars", CalendarProvider),
    ("actions", AutomationAction),
    ("tools", AgentTool),
    ("event_watchers", EventWatcher),
    ("private_data", PrivateDataDetector),
    ("private_data", RemotePrivateDataDetector),
]


def hooks() -> dict[str, inspect.Signature]:
    return {name: inspect.signature(hook) for name, hook in vars(Hooks).items() if not name.startswith("_")}


@pytest.mark.parametrize("hook", hooks())
def test_every_hook_documents_its_arguments_timing_and_failures(hook: str) -> None:
    page = (REPOSITORY / "docs" / "plugins" / "hooks.md").read_text()
    section = page.partition(f"\n## {hook}\n")[2].partition("\n## ")[0]
    assert f"def {hook}({', '.join(hooks()[hook].parameters)}" in section.replace(": hooks.PublishedEvent", "")
    for phrase in ("Called ", "eturns ", "xception" if hook != "event_published" else "raises"):
        assert phrase in section, f"{hook}: say when it is called, what a return means, what an exception does"


def test_the_registry_calls_every_hook() -> None:
    assert {*HOOKS, "event_published", "cli_commands", "provider_processes"} == hooks().keys()
    assert {kind for kind, _ in HOOKS.values()} == {
        *Capability,
        *ExtensionKind,
    }
    assert {kind for _, kind in HOOKS.values()} == {
        *(kind for _, kind in EXERCISED if kind not in (MediaCodec, RemotePrivateDataDetector, SpeechToTextStream)),
    }


@pytest.mark.parametrize(("module", "kind"), EXERCISED, ids=lambda value: getattr(value, "__name__", value))
def test_every_abstract_method_is_exercised_by_its_contract(module: str, kind: type) -> None:
    rules = (CONTRACTS / f"{module}.py").read_text() + (CONTRACTS / "contract.py").read_text()
    methods = {name for name in getattr(kind, "__abstractmethods__", ()) if not name.startswith("__")}
    assert methods
    missing = {method for method in methods if f".{method}(" not in rules}
    assert not missing, f"no rule of {module}.py calls {missing}"


def test_every_own_plugin_has_the_highest_grade() -> None:
    grades = {plugin.name: assessment for _, plugin, _, assessment in grade_own_plugins()}
    assert len(grades) == len([*(REPOSITORY / "plugins").glob("*/pyproject.toml")])
    for name, assessment in grades.items():
        assert assessment.grade is Grade.GOLD, f"{name}: {assessment.missing}"


def test_contracts_are_importable_from_one_module() -> None:
    exported = (CONTRACTS / "__init__.py").read_text()
    for path in CONTRACTS.glob("*.py"):
        for name in re.findall(r"^class (\w+Contract)\b", path.read_text(), re.MULTILINE):
            assert f"{name} as {name}" in exported, f"{name}: add it to testing/__init__.py"
            assert (
                name in ("ProviderContract", "ExtensionContract")
                or f"`{name}`" in (REPOSITORY / "docs" / "plugins" / "testing.md").read_text()
            )


@collect_from()
def find_skips_without_reason(source: Source) -> Iterator[str]:
    if not re.search(r"\.(skip|xfail)\b", source.text):
        return
    calls = [node for node in source.nodes if isinstance(node, ast.Call)]
    for node in source.nodes:
        if isinstance(node, ast.Attribute) and re.fullmatch(r"pytest\.mark\.(skip|xfail)", ast.unparse(node)):
            words = [word.arg for call in calls if call.func is node for word in call.keywords]
            if "reason" not in words:
                yield f"{source.name}:{node.lineno}"
    for call in calls:
        if re.fullmatch(r"pytest\.(skip|xfail)", ast.unparse(call.func)) and not (call.args or call.keywords):
            yield f"{source.name}:{call.lineno}"


def test_skipped_tests_state_a_reason() -> None:
    assert find_skips_without_reason() == [], "give a reason"


@collect_from()
def find_large_classes(source: Source) -> Iterator[str]:
    for kind in source.nodes:
        if isinstance(kind, ast.ClassDef):
            stored = {
                node.attr
                for node in ast.walk(kind)
                if isinstance(node, ast.Attribute)
                and isinstance(node.ctx, ast.Store)
                and isinstance(node.value, ast.Name)
                and node.value.id == "self"
            }
            if len(stored) > MAX_ATTRIBUTES:
                yield f"{source.name}:{kind.lineno}: {kind.name} has {len(stored)} attributes"


def test_classes_keep_few_attributes() -> None:
    assert find_large_classes() == [], "split them by what they do"
