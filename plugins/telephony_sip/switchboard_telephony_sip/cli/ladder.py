"""Ladder diagrams of SIP messages: one column for the gateway, and one for each address at the other side."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from switchboard_telephony_sip.commands import TraceEntry

WIDTH: Final = 34
"""Columns between two lines."""
TIME_WIDTH: Final = 14
MAX_SUMMARY: Final = WIDTH - 7


def draw_ladder(messages: Sequence[TraceEntry]) -> list[str]:
    """Return the diagram's lines: times in UTC, the addresses above their lines, and an arrow for each message."""
    if not messages:
        return []
    remotes = list(dict.fromkeys(f"{each.transport} {each.remote}" for each in messages))
    local = next((each.local for each in messages if each.local), "")
    heads = [("gateway", local), *(("trunk", remote) for remote in remotes)]
    return [
        "Time (UTC)".ljust(TIME_WIDTH) + _draw_heads([name for name, _ in heads]),
        " " * TIME_WIDTH + _draw_heads([place for _, place in heads]),
        *(_draw_message(each, remotes.index(f"{each.transport} {each.remote}") + 1, len(remotes)) for each in messages),
    ]


def _draw_heads(heads: Sequence[str]) -> str:
    return "".join(head[: WIDTH - 1].ljust(WIDTH) for head in heads).rstrip()


def _draw_message(message: TraceEntry, column: int, columns: int) -> str:
    """Draw an arrow between the gateway and a column, over the lines between them."""
    moment = datetime.fromtimestamp(message.at, UTC).strftime("%H:%M:%S.%f")[:-3]
    length = column * WIDTH - 1
    label = f" {_shorten(message.summary)} "
    shaft = f"--{label}".ljust(length - 1, "-")
    arrow = f"{shaft}>" if message.direction == "out" else f"<{shaft}"
    rest = "".join(" " * (WIDTH - 1) + "|" for _ in range(columns - column))
    return f"{moment.ljust(TIME_WIDTH)}|{arrow}|{rest}".rstrip()


def _shorten(text: str) -> str:
    plain = "".join(character if character.isprintable() else "?" for character in text)
    return plain if len(plain) <= MAX_SUMMARY else f"{plain[: MAX_SUMMARY - 1]}…"
