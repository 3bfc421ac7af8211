"""Creation of a new plugin: a small, complete distribution that passes its tests, as a starting point."""

import re
from pathlib import Path
from typing import Final

TEMPLATES: Final = Path(__file__).parent / "template"
COMMON: Final = "common"
KINDS: Final = (
    "llm", "tts", "stt", "embedding", "vector_store", "telephony", "turn_detector", "calendar", "action", "tool",
    "watcher",
)  # fmt: skip
"""Kinds of plugins. Each has a folder of templates besides the common one."""
SUFFIXES: Final = (".py", ".toml", ".md", ".yml", ".typed")


def create_plugin(name: str, folder: Path, kind: str = "tts") -> Path:
    """Write a plugin of one of `KINDS`, called `name`, into `folder` and return its own folder there,
    `switchboard-<name>`.

    Raises `ValueError` unless the name consists of lower-case words joined by `_`, and `FileExistsError` if the
    plugin's folder exists.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        raise ValueError(f"{name!r} cannot be a plugin's name: lower-case letters and digits, words joined by _")
    names = {
        "switchboard-acme": f"switchboard-{name.replace('_', '-')}",
        "Acme": name.title().replace("_", ""),
        "acme": name,
        "ACME": name.upper(),
    }

    def replace_names(text: str) -> str:
        return re.sub("|".join(names), lambda found: names[found[0]], text)

    made = folder / names["switchboard-acme"]
    made.mkdir(parents=True)
    for template in (TEMPLATES / COMMON, TEMPLATES / kind):
        for source in sorted(path for path in template.rglob("*") if path.is_file() and path.suffix in SUFFIXES):
            target = made / replace_names(source.relative_to(template).as_posix())
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(replace_names(source.read_text()))
    return made
