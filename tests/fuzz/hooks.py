"""Hooks of Schemathesis, which `test_fuzz.py` names in `SCHEMATHESIS_HOOKS`."""

from typing import Any

import schemathesis
from schemathesis import Case, HookContext


@schemathesis.hook
def filter_case(context: HookContext, case: Case[Any]) -> bool:
    """Leave out texts with white space at an end: the platform trims a text before it counts its characters, so that
    the schema, which counts all of them, says nothing about it.
    """
    return not _has_loose_ends(case.query) and not _has_loose_ends(case.body)


def _has_loose_ends(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(_has_loose_ends, value.values()))
    if isinstance(value, list):
        return any(map(_has_loose_ends, value))
    return isinstance(value, str) and value != value.strip()
