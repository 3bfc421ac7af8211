"""Where in a TOML file a key stands, because the parser does not say."""

import re

HEADER = re.compile(r"^\s*(\[\[?)\s*([^\]]+?)\s*\]\]?")
KEY = re.compile(r"""^\s*((?:"[^"]*"|'[^']*'|[\w-]+)(?:\s*\.\s*(?:"[^"]*"|'[^']*'|[\w-]+))*)\s*=""")


def line_numbers(text: str) -> dict[str, int]:
    """The line of each key and table by its dotted path, tables of a list by their index: `llm.0.api_key`."""
    found: dict[str, int] = {}
    counts: dict[str, int] = {}
    prefix = ""
    for number, line in enumerate(text.splitlines(), 1):
        if (header := HEADER.match(line)) is not None:
            prefix = _path(header[2])
            if header[1] == "[[":
                index = counts.get(prefix, 0)
                counts[prefix] = index + 1
                found.setdefault(prefix, number)
                prefix = f"{prefix}.{index}"
            found.setdefault(prefix, number)
        elif (key := KEY.match(line)) is not None:
            found.setdefault(f"{prefix}.{_path(key[1])}".lstrip("."), number)
    return found


def line_of(found: dict[str, int], path: str) -> int:
    """The line of a path, or of the nearest table around it; 1 where there is none."""
    while path:
        if path in found:
            return found[path]
        path = path.rpartition(".")[0]
    return 1


def _path(text: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in text.split("."))
