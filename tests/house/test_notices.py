"""Tones of the dashboard's notices."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

PAGES = Path("platform/switchboard/apps/dashboard/pages")
TAKEN_AWAY = re.compile(
    r"\b(deleted|disabled|disconnected|discarded|is off|is over|paused|removed|revoked|suspended|withdrawn)\b"
)


def find_notices_without_tone(path: Path) -> Iterator[str]:
    """Yield the places of notices that say what was taken away, and confirm it as if something had been made."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("Next", "go_to"):
            texts = [part.value for part in ast.walk(node) if isinstance(part, ast.Constant)]
            if TAKEN_AWAY.search(" ".join(text for text in texts if isinstance(text, str))) and len(node.args) < 3:
                yield f"{path}:{node.lineno}"


def test_a_notice_of_something_taken_away_is_a_warning() -> None:
    assert [place for path in PAGES.rglob("*.py") for place in find_notices_without_tone(path)] == []
