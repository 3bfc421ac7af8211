"""The fragments of the changelog, and how a release collects them: changes/README.md."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.fixtures.servers import REPOSITORY

FRAGMENTS = REPOSITORY / "changes"
BESIDE_FRAGMENTS = ("README.md", "template.md.jinja")


def test_fragments_are_entries_of_a_known_kind() -> None:
    kinds = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]["towncrier"]["fragment"]
    for path in FRAGMENTS.iterdir():
        if path.name in BESIDE_FRAGMENTS:
            continue
        named = re.fullmatch(rf"[a-z0-9-]+\.({'|'.join(kinds)})\.md", path.name)
        assert named, f"{path}: name it <name>.<kind>.md, of the kinds {', '.join(kinds)}"
        text = path.read_text()
        assert text[:1].isalnum() or text[:1] in "`*", f"{path}: write one entry, without its hyphen"


def test_a_release_collects_the_fragments(tmp_path: Path) -> None:
    shutil.copy(REPOSITORY / "pyproject.toml", tmp_path)
    (tmp_path / "changes").mkdir()
    shutil.copy(FRAGMENTS / "template.md.jinja", tmp_path / "changes")
    introduction = (REPOSITORY / "CHANGELOG.md").read_text().partition("\n## ")[0]
    (tmp_path / "CHANGELOG.md").write_text(f"{introduction}\n## 0.1.0, 2026-12-01\n\n### Added\n\n- Calls.\n")
    (tmp_path / "changes" / "queue.changed.md").write_text("The page of waiting callers\nis the call queue.\n")
    (tmp_path / "changes" / "links.security.md").write_text("Links expire.\n")
    (tmp_path / "changes" / "pause.changed.md").write_text("A campaign pauses.\n")
    command = [sys.executable, "-m", "towncrier", "build", "--yes", "--version", "0.2.0", "--date", "2027-01-02"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "CHANGELOG.md").read_text() == (
        f"{introduction}\n## 0.2.0, 2027-01-02\n\n### Changed\n\n- A campaign pauses.\n"
        "- The page of waiting callers\n  is the call queue.\n\n### Security\n\n- Links expire.\n\n"
        "## 0.1.0, 2026-12-01\n\n### Added\n\n- Calls.\n"
    )
    assert [path.name for path in (tmp_path / "changes").iterdir()] == ["template.md.jinja"]
