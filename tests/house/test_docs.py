"""The documentation checks itself: links, paths of code, and the width of lines."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.fixtures.servers import REPOSITORY

MAX_COLUMNS = 140
PLATFORM = REPOSITORY / "platform" / "switchboard"
CODE_ROOTS = (REPOSITORY, PLATFORM, PLATFORM / "resources", PLATFORM / "apps" / "dashboard")
LINK = re.compile(r"\]\(([^)\s]+)\)")
CODE_PATH = re.compile(r"`((?:[a-z_]+/)+[a-z_0-9]+\.(?:py|md|toml|js|json))`")
ATTRIBUTE = re.compile(r"`([A-Z]\w+)\.(\w+)(?:\(\))?`")
DOCS_PATH = re.compile(r"\bdocs/[a-z0-9/-]+\.md\b")
SKIPPED = ("platform/switchboard/plugin_sdk/template/", "tests/knowledge_bases/prose/")


def list_files(*patterns: str) -> list[Path]:
    """Return the files of the repository that match a pattern of `git ls-files`, new files included."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns]
    names = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=True).stdout.splitlines()
    return [REPOSITORY / name for name in names if not name.startswith(SKIPPED) and (REPOSITORY / name).is_file()]


def read_prose(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a Markdown file outside of code blocks, with their numbers."""
    fenced = False
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, line


def list_anchors(path: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub derives them."""
    headings = [line.lstrip("#").strip() for _, line in read_prose(path) if line.startswith("#")]
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_relative_links_and_their_anchors_resolve() -> None:
    for path in list_files("*.md"):
        for number, line in read_prose(path):
            for link in LINK.findall(re.sub(r"`[^`]*`", "", line)):
                if re.match(r"[a-z]+:", link):
                    continue
                target, _, anchor = link.partition("#")
                # The text of an entry becomes a part of CHANGELOG.md.
                folder = REPOSITORY if re.search(r"changes/[^/]+\.[a-z]+\.md$", path.as_posix()) else path.parent
                page = (folder / target).resolve() if target else path
                place = f"{path.relative_to(REPOSITORY)}:{number}"
                assert page.exists(), f"{place}: {link} does not exist"
                assert not anchor or anchor in list_anchors(page), f"{place}: {link} names no heading"


def test_code_paths_in_documentation_exist() -> None:
    for path in list_files("docs/*.md", "CONTRIBUTING.md", "README.md", "SECURITY.md"):
        if path.parent.name in ("tutorials", "plugins"):  # they name files that the reader creates
            continue
        for number, line in read_prose(path):
            for name in CODE_PATH.findall(line):
                exists = any((root / name).exists() for root in CODE_ROOTS)
                assert exists, f"{path.relative_to(REPOSITORY)}:{number}: {name} does not exist"


def test_documentation_paths_in_code_exist() -> None:
    for path in list_files("*.py", "*.js", "*.toml", "*.example", "*.html", "Makefile"):
        if path == Path(__file__):
            continue
        for name in DOCS_PATH.findall(re.sub(r"https?://\S+", "", path.read_text())):
            assert (REPOSITORY / name).exists(), f"{path.relative_to(REPOSITORY)}: {name} does not exist"


def test_attributes_named_in_docstrings_exist() -> None:
    texts = {path: path.read_text() for path in list_files("platform/*.py", "plugins/*.py")}
    code = "\n".join(texts.values())
    for path, text in texts.items():
        for owner, name in ATTRIBUTE.findall(text):
            is_ours = re.search(rf"^class {owner}\b", code, re.MULTILINE)
            defined = re.search(rf"\bdef {name}\(|(?:^ +|self\.){name} ?[:=]", code, re.MULTILINE)
            assert defined or not is_ours, f"{path.relative_to(REPOSITORY)}: {owner}.{name} does not exist"


def test_documentation_lines_stay_within_their_width() -> None:
    for path in list_files("*.md"):
        for number, line in read_prose(path):
            if line.startswith("|") or "https://" in line:
                continue
            assert len(line) <= MAX_COLUMNS, f"{path.relative_to(REPOSITORY)}:{number} has {len(line)} columns"


def test_the_page_of_tests_counts_those_in_real_time() -> None:
    marked = sum(path.read_text().count("@pytest.mark." + "real_time\n") for path in list_files("*.py"))
    assert f"{marked} tests have it" in (REPOSITORY / "docs/contributing/tests.md").read_text()


def test_every_page_is_in_the_index() -> None:
    indexes = "\n".join((REPOSITORY / "docs" / name).read_text() for name in ("README.md", "decisions/README.md"))
    for path in list_files("docs/*.md"):
        name = path.relative_to(REPOSITORY / "docs").as_posix()
        linked = name.removeprefix("decisions/")
        assert f"({linked}" in indexes or name.endswith("README.md"), f"docs/README.md does not link to {name}"
