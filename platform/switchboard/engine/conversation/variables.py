"""Variables of a conversation, each with its origin (docs/decisions/0102-variables-with-an-origin.md)."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, get_args

from switchboard.plugin_sdk import JsonObject, Origin, Variable

ORIGINS: Final[Sequence[Origin]] = get_args(Origin)
"""Origins from the least trusted one on."""
RANKS: Final[Mapping[str, int]] = {origin: rank for rank, origin in enumerate(ORIGINS)}
PLACEHOLDER: Final = re.compile(rf"\{{\{{\s*([\w.-]+)(?:\s*:\s*({'|'.join(ORIGINS)}))?\s*\}}\}}")
"""`{{name}}`, or `{{name:origin}}` for a value that has at least that origin."""
GIVEN: Final[Sequence[Origin]] = ("carrier", "crm", "metadata")
"""Origins of what a conversation begins with."""
MOST_CHARACTERS: Final = 1000
"""Longest value of a variable."""


def is_at_least(origin: Origin, least: str | None) -> bool:
    """Return whether an origin is trusted as much as `least`; None accepts all."""
    return least is None or RANKS[origin] >= RANKS[least]


@dataclass(slots=True)
class Variables:
    """The variables of a conversation by name. A value does not replace one whose origin is trusted more."""

    values: dict[str, Variable] = field(default_factory=dict)

    @classmethod
    def from_texts(cls, texts: Mapping[str, object], origin: Origin) -> "Variables":
        """Return variables of one origin."""
        return cls({name: Variable(str(value), origin) for name, value in texts.items()})

    @property
    def shown(self) -> Mapping[str, Variable]:
        """The variables as they are at each moment, to read."""
        return MappingProxyType(self.values)

    def set(self, name: str, value: str, origin: Origin) -> bool:
        """Set a variable; return False if it has that value already, or one of a better origin."""
        known, new = self.values.get(name), Variable(value[:MOST_CHARACTERS], origin)
        if known == new or (known is not None and not is_at_least(origin, known.origin)):
            return False
        self.values[name] = new
        return True

    def list_values(self, least: Origin | None = None) -> JsonObject:
        """Return the values with at least an origin by name."""
        return {name: known.value for name, known in self.values.items() if is_at_least(known.origin, least)}

    def fill(self, text: str, show: Callable[[str], str] = str) -> str:
        """Replace each placeholder of a prompt by its value; one without a value is removed.

        `show` redacts contacts, and what was learned in the conversation.
        """

        def replace(match: re.Match[str]) -> str:
            known, least = self.values.get(match[1]), match[2]
            if known is None or not is_at_least(known.origin, least):
                return ""
            # The metadata was redacted when the conversation began.
            return known.value if known.origin in ("carrier", "metadata") else show(known.value)

        return PLACEHOLDER.sub(replace, text)


def find_placeholders(*texts: str) -> list[str]:
    """Return the names in the placeholders of prompts, each once, in order."""
    return list(dict.fromkeys(name for text in texts for name, _ in PLACEHOLDER.findall(text)))
