"""Line numbers of keys in a TOML file, which the parser does not report."""

import re

HEADER = re.compile(r"^\s*(\[\[?)\s*([^\]]+?)\s*\]\]?")
KEY = re.compile(r"""^\s*((?:"[^"]*"|'[^']*'|[\w-]+)(?:\s*\.\s*(?:"[^"]*"|'[^']*'|[\w-]+))*)\s*=""")


def find_line_numbers(text: str) -> dict[str, int]:
    """Return the line of each key and table by its dotted path, with tables of a list by index: `llm.0.api_key`."""
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


def find_line(found: dict[str, int], path: str) -> int:
    """Return the line of a path, or of the nearest table around it; 1 without any."""
    while path:
        if path in found:
            return found[path]
        path = path.rpartition(".")[0]
    return 1


def _path(text: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in text.split("."))
