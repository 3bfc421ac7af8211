"""Findings of `doctor`."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check; `advice` says what to do if it failed."""

    subject: str
    well: bool
    advice: str = ""
