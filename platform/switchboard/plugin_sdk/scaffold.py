"""Creation of a new plugin: a small, complete distribution that passes its tests, as a starting point."""

import re
from pathlib import Path

TEMPLATE = Path(__file__).parent / "template" / "acme"


def create_plugin(name: str, folder: Path) -> Path:
    """Write a plugin called `name` into `folder` and return its own folder there, `switchboard-<name>`.

    Raises `ValueError` unless the name consists of lower-case words joined by `_`, and `FileExistsError` if the
    plugin's folder exists.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name):
        raise ValueError(f"{name!r} cannot be a plugin's name: lower-case letters and digits, words joined by _")
    names = {
        "switchboard-acme": f"switchboard-{name.replace('_', '-')}",
        "Acme": name.title().replace("_", ""),
        "acme": name,
    }

    def replace_names(text: str) -> str:
        return re.sub("|".join(names), lambda found: names[found[0]], text)

    made = folder / names["switchboard-acme"]
    made.mkdir(parents=True)
    for source in sorted(
        path for path in TEMPLATE.rglob("*") if path.is_file() and path.suffix in (".py", ".toml", ".md")
    ):
        target = made / replace_names(source.relative_to(TEMPLATE).as_posix())
        target.parent.mkdir(exist_ok=True)
        target.write_text(replace_names(source.read_text()))
    return made
