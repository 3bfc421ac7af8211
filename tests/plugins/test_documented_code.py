"""The code on the pages about plugins works as it is printed: Python runs, commands have their options, TOML parses.

That of `extensions.md` runs in `test_extension_settings.py`, and the lesson's in `test_provider_tutorial.py`.
"""

import re
import shlex
import tomllib
from collections.abc import AsyncIterator, Callable, Sequence
from textwrap import dedent, indent

import click
import pytest
from pydantic import SecretStr
from switchboard import plugin_sdk
from switchboard.apps.cli.commands import switchboard
from switchboard.plugin_sdk import (
    ActionParams,
    AutomationAction,
    Extension,
    Provider,
    ProviderSettings,
    SpeechChunk,
    SpeechRequest,
    TextToSpeechProvider,
    Voice,
    testing,
)
from switchboard.plugin_sdk.method_signatures import list_signature_faults
from switchboard.plugin_sdk.registry import Capability

from tests.fixtures.servers import REPOSITORY

PAGES = sorted(
    page for page in (REPOSITORY / "docs" / "plugins").glob("*.md") if page.stem not in ("extensions", "hooks")
)


class NightOwlSettings(ProviderSettings):
    """Settings of the provider that the pages are about."""

    base_url: str = ""


class NightOwlVoice(TextToSpeechProvider[NightOwlSettings]):
    """The provider that the pages are about."""

    name = title = "night_owl"
    Settings = NightOwlSettings

    async def check(self) -> None:
        """Succeed always."""

    async def synthesize(self, request: SpeechRequest) -> AsyncIterator[SpeechChunk]:
        yield SpeechChunk(b"")

    async def list_voices(self) -> Sequence[Voice]:
        return []


class CrmSettings(ProviderSettings):
    """Settings of the action that the pages are about."""

    api_key: SecretStr


class WriteNote(AutomationAction[ActionParams]):
    """The action that the pages are about."""

    name = title = "crm_note"
    Params = ActionParams

    async def run(self, context: plugin_sdk.ActionContext, params: ActionParams) -> plugin_sdk.JsonObject:
        return {}


NAMES = {
    **vars(plugin_sdk),
    **vars(testing),
    "AsyncIterator": AsyncIterator,
    "Callable": Callable,
    "CrmSettings": CrmSettings,
    "NightOwlSettings": NightOwlSettings,
    "NightOwlVoice": NightOwlVoice,
    "PageParams": ActionParams,
    "SecretStr": SecretStr,
    "Sequence": Sequence,
    "WriteNote": WriteNote,
    "pytest": pytest,
}
"""Names that a reader of a fragment has."""


def read_blocks(language: str) -> list[object]:
    """Return each block of a language, as a parameter of a test."""
    return [
        pytest.param(dedent(code), id=f"{page.stem}-{number}")
        for page in PAGES
        for number, code in enumerate(re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL))
    ]


@pytest.mark.parametrize("code", read_blocks("python"))
def test_python_runs_and_its_classes_meet_their_contracts(code: str) -> None:
    if code.startswith("case "):
        code = f"def translate(notice):\n    match notice:\n{indent(code, ' ' * 8)}"
    names = {**NAMES, "__name__": "documented"}
    exec(compile(code, "page", "exec"), names)  # noqa: S102 - our own page
    for name, value in names.items():
        if isinstance(value, type) and issubclass(value, Provider | Extension) and NAMES.get(name) is not value:
            assert list(list_signature_faults(value)) == []


@pytest.mark.parametrize("code", read_blocks("sh"))
def test_commands_exist_with_their_options(code: str) -> None:
    for line in code.splitlines():
        program, *words = shlex.split(line, comments=True)
        assert program == "switchboard"
        command: click.Command = switchboard
        context = click.Context(command)
        while isinstance(command, click.Group):
            name, found, words = command.resolve_command(context, words)
            assert found is not None, name
            command = found
        command.make_context(command.name, words)


@pytest.mark.parametrize("code", read_blocks("toml"))
def test_toml_has_blocks_that_its_file_knows(code: str) -> None:
    known = {"project", "tool", *(capability.value for capability in Capability)}
    assert tomllib.loads(code).keys() <= known
