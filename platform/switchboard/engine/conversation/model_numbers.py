"""Phone numbers and clients that an agent's model may choose (docs/decisions/0034-destinations.md).

A caller can talk a model into anything. So a model transfers calls and sends text messages only to numbers, and
transfers calls only to clients, that the agent's configuration names.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from switchboard.plugin_sdk import CLIENT_PREFIX, ToolError

WRITTEN_NUMBER = re.compile(r"\+[1-9](?:[ ().-]{0,2}\d){6,14}(?!\d)")
"""A number with its country code, as people write it."""
WRITTEN_CLIENT = re.compile(r"(?<!\w)" + CLIENT_PREFIX + r"[A-Za-z0-9_]{1,50}(?!\w)")
"""A client that calls can be transferred to."""


class NumberSettings(Protocol):
    """The settings of an agent that decide about numbers."""

    @property
    def system_prompt(self) -> str: ...
    @property
    def allowed_numbers(self) -> Sequence[str]: ...
    @property
    def any_number(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class ModelNumbers:
    """Numbers in E.164, and clients, that the model may choose; None: any."""

    named: frozenset[str] | None

    @classmethod
    def from_settings(cls, agent: NumberSettings) -> "ModelNumbers":
        """Return the numbers of `allowed_numbers` and of the prompt, without what a call's metadata puts into it."""
        if agent.any_number:
            return cls(None)
        written = (re.sub(r"[^+\d]", "", number) for number in WRITTEN_NUMBER.findall(agent.system_prompt))
        clients = WRITTEN_CLIENT.findall(agent.system_prompt)
        return cls(frozenset((*agent.allowed_numbers, *written, *clients)))

    def check(self, number: str) -> None:
        """Raise `ToolError` for a number that the model may not choose."""
        if self.named is not None and number not in self.named:
            raise ToolError(f"{number} is not one of the numbers that you may use: say that you cannot do that")
