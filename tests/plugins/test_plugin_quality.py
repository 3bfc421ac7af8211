"""Grades of plugins follow from their code and their tests."""

import importlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from switchboard.plugin_sdk.registry import Registry
from switchboard.plugin_sdk.scaffold import KINDS, create_plugin
from switchboard_plugin_quality import Assessment, Grade, SourceError, Status, assess_plugin

from tests.fixtures.servers import REPOSITORY
from tests.fixtures.tutorial import read_blocks

TESTING = REPOSITORY / "docs" / "plugins" / "testing.md"


@dataclass(frozen=True)
class Author:
    """Author of a plugin, who edits it and asks for its grade. `kind` is that of `plugins new`."""

    folder: Path
    package: Path

    def edit(self, path: str, old: str, new: str) -> None:
        """Replace all of a text in a file of the plugin."""
        file = self.folder / path
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new))

    def assess(self, *, source: bool = True, tests_pass: bool | None = True) -> Assessment:
        """Load and assess the plugin."""
        registry = Registry()
        plugin = registry.add("owl", importlib.import_module(self.package.name))
        return assess_plugin(registry, plugin, self.folder if source else None, tests_pass=tests_pass)

    def list_missing(self) -> dict[str, tuple[str, ...]]:
        """Assess the plugin, and return the details of each rule that the next grade needs."""
        return {rule.name: outcome.details for rule, outcome in self.assess().missing.items()}


@pytest.fixture
def kind() -> str:
    return "tts"


@pytest.fixture
def author(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Author]:
    folder = create_plugin("owl", tmp_path, kind)
    monkeypatch.syspath_prepend(str(folder))
    yield Author(folder, folder / "switchboard_owl")
    for name in [name for name in sys.modules if name.partition(".")[0] == "switchboard_owl"]:
        del sys.modules[name]


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_plugin_has_the_highest_grade(author: Author) -> None:
    assessment = author.assess()
    assert assessment.grade is Grade.GOLD, assessment.missing
    assert assessment.missing == {}


def test_a_provider_without_a_contract_has_no_grade(author: Author) -> None:
    author.edit("tests/test_owl.py", "-> OwlVoice", "-> object")
    assert author.assess().grade is Grade.NONE
    assert author.list_missing() == {"contract": ("no contract tests OwlVoice",)}


def test_a_setting_without_a_description_has_no_grade(author: Author) -> None:
    author.edit("switchboard_owl/client.py", "description=", "title=")
    missing = author.list_missing()
    assert "OwlSettings.api_key has no description" in missing["settings"]


@pytest.mark.parametrize(("tests_pass", "detail"), [(False, "the tests fail"), (None, "the tests have not been run")])
def test_tests_that_do_not_pass_make_no_grade(author: Author, tests_pass: bool | None, detail: str) -> None:
    assessment = author.assess(tests_pass=tests_pass)
    assert assessment.grade is Grade.NONE
    assert [outcome.details for outcome in assessment.missing.values()] == [(detail,)]


def test_without_its_tests_a_plugin_has_no_grade(author: Author) -> None:
    assessment = author.assess(source=False)
    assert assessment.grade is Grade.NONE
    assert {outcome.status for outcome in assessment.missing.values()} == {Status.UNKNOWN}


def test_silver_needs_types_a_server_and_failures(author: Author) -> None:
    (author.package / "py.typed").unlink()
    for path in (author.folder / "tests").glob("*.py"):
        path.write_text(path.read_text().replace("aiohttp", "my_client").replace("ProviderError", "Exception"))
    assert author.assess().grade is Grade.BRONZE
    assert author.list_missing() == {
        "types": ("the package has no py.typed",),
        "wire-tests": ("no test runs the vendor as a server on this machine",),
        "failures": ("no test expects ProviderError or ActionError",),
    }


def test_a_plugin_without_a_vendor_says_so(author: Author) -> None:
    for path in (author.folder / "tests").glob("*.py"):
        path.write_text(path.read_text().replace("aiohttp", "my_client"))
    (exemption,) = (block for block in read_blocks(TESTING) if "quality.exempt" in block.text)
    with (author.folder / "pyproject.toml").open("a") as project:
        project.write(f"\n{exemption.text}")
    (details,) = author.list_missing().values()
    assert details[0].startswith("declared exempt, but the code names https://")
    for path in author.package.glob("*.py"):
        path.write_text(path.read_text().replace('"https://', '"http://127.0.0.1:8080/'))
    assessment = author.assess()
    assert assessment.grade is Grade.GOLD
    assert [
        (rule.name, outcome.details) for rule, outcome in assessment.outcomes.items() if outcome.status is Status.EXEMPT
    ] == [("wire-tests", ("The model runs on this machine: there is no vendor.",))]


def test_gold_needs_the_whole_contract_and_no_blocking_call(author: Author) -> None:
    (author.package / "nap.py").write_text("import time\n\n\nasync def nap():\n    time.sleep(1)\n")
    with (author.folder / "tests" / "test_owl.py").open("a") as tests:
        tests.write(
            '\n    @pytest.mark.xfail(reason="no cancellation")\n    async def test_cancellation(self) -> None:\n'
        )
        tests.write("        raise AssertionError\n")
    assert author.assess().grade is Grade.SILVER
    missing = author.list_missing()
    assert missing["whole-contract"] == ("test_cancellation is marked xfail",)
    (call,) = missing["blocking-calls"]
    assert call.startswith("nap.py:5:5: ASYNC251")


@pytest.mark.parametrize(
    ("path", "text"), [("tests/test_owl.py", "def ("), ("pyproject.toml", "[tool.switchboard]\nquality = 7")]
)
def test_a_file_that_cannot_be_read_is_named(author: Author, path: str, text: str) -> None:
    (author.folder / path).write_text(text)
    with pytest.raises(SourceError, match=f"{path} cannot be read: "):
        author.assess()
