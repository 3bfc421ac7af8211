"""The rules of each grade. A rule reads the loaded classes, the installed package, or the source folder."""

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from switchboard.plugin_sdk.provider import Configurable
from switchboard.plugin_sdk.registry import Plugin

from switchboard_plugin_quality.source import PluginSource, parse_modules

BLOCKING_CALLS: Final = "ASYNC210,ASYNC212,ASYNC220,ASYNC221,ASYNC222,ASYNC230,ASYNC240,ASYNC250,ASYNC251"
"""Rules of ruff about blocking calls in asynchronous functions: requests, processes, files, input, and sleep."""
ADDRESS: Final = re.compile(r"(https?|wss?)://(?!127\.0\.0\.1|localhost|\[::1\])[\w{]")
WIRE_TESTS: Final = "wire-tests"
NO_SOURCE: Final = "the tests are not on this machine; give their folder with --tests"


class Grade(IntEnum):
    """A grade. A plugin has it if it keeps the rules of the grade and of all lower ones."""

    NONE = 0
    BRONZE = 1
    SILVER = 2
    GOLD = 3


class Status(StrEnum):
    """Outcome of a rule. `UNKNOWN`: what the rule reads is not on this machine."""

    KEPT = "kept"
    EXEMPT = "exempt"
    NOT_KEPT = "not kept"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """Status of a rule, and what is missing, or why the rule does not apply."""

    status: Status
    details: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Subject:
    """A plugin to assess.

    `classes` are its providers and extensions, `package` is the folder of its code (None for a single module), `typed`
    says that the package has type annotations (PEP 561), `source` is its source folder if it has tests, and
    `tests_pass` the result of the tests, None if they have not been run.
    """

    plugin: Plugin
    classes: Sequence[type[Configurable]]
    package: Path | None
    typed: bool
    source: PluginSource | None
    tests_pass: bool | None


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of a grade. `meaning` is Markdown."""

    name: str
    grade: Grade
    meaning: str
    check: Callable[[Subject], RuleOutcome]


def _judge(faults: Sequence[str]) -> RuleOutcome:
    return RuleOutcome(Status.NOT_KEPT, tuple(faults)) if faults else RuleOutcome(Status.KEPT)


def _check_loads(subject: Subject) -> RuleOutcome:
    return _judge(subject.plugin.faults)


def _check_contract(subject: Subject) -> RuleOutcome:
    if subject.source is None:
        return RuleOutcome(Status.UNKNOWN, (NO_SOURCE,))
    if subject.tests_pass is None:
        return RuleOutcome(Status.UNKNOWN, ("the tests have not been run",))
    untested = sorted({each.__name__ for each in subject.classes if not _list_own_names(each) & subject.source.tested})
    faults = [f"no contract tests {name}" for name in untested]
    return _judge(faults if subject.tests_pass else [*faults, "the tests fail"])


def _list_own_names(kind: type[Configurable]) -> frozenset[str]:
    """Return the names of a class and of its bases, without those of the SDK and of Python."""
    bases = [base for base in kind.__mro__ if issubclass(base, Configurable)]
    return frozenset(base.__name__ for base in bases if not base.__module__.startswith("switchboard."))


def _check_settings(subject: Subject) -> RuleOutcome:
    return _judge(
        [
            f"{settings.__name__}.{name} has no description"
            for settings in dict.fromkeys(each.Settings for each in subject.classes)
            for name, field in settings.model_fields.items()
            if not field.description
        ]
    )


def _check_types(subject: Subject) -> RuleOutcome:
    return _judge([] if subject.typed else ["the package has no py.typed"])


def _check_wire_tests(subject: Subject) -> RuleOutcome:
    if subject.source is None:
        return RuleOutcome(Status.UNKNOWN, (NO_SOURCE,))
    if subject.source.runs_server:
        return RuleOutcome(Status.KEPT)
    reason = subject.source.exemptions.get(WIRE_TESTS)
    if not reason:
        return _judge(["no test runs the vendor as a server on this machine"])
    contradictions = [f"declared exempt, but the code names {each}" for each in sorted({*_list_addresses(subject)})]
    return _judge(contradictions) if contradictions else RuleOutcome(Status.EXEMPT, (reason,))


def _list_addresses(subject: Subject) -> Iterator[str]:
    for module in parse_modules(subject.package) if subject.package else ():
        for node in ast.walk(module):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and ADDRESS.match(node.value):
                yield node.value


def _check_failures(subject: Subject) -> RuleOutcome:
    if subject.source is None:
        return RuleOutcome(Status.UNKNOWN, (NO_SOURCE,))
    return _judge([] if subject.source.expects_errors else ["no test expects ProviderError or ActionError"])


def _check_whole_contract(subject: Subject) -> RuleOutcome:
    if subject.source is None:
        return RuleOutcome(Status.UNKNOWN, (NO_SOURCE,))
    return _judge([f"{name} is marked xfail" for name in subject.source.waived])


def _check_blocking_calls(subject: Subject) -> RuleOutcome:
    if subject.package is None:
        return RuleOutcome(Status.UNKNOWN, ("the code is not a package",))
    if find_spec("ruff") is None:
        return RuleOutcome(Status.UNKNOWN, ("ruff is not installed",))
    options = ["--isolated", "--no-cache", "--quiet", "--output-format", "concise", "--select", BLOCKING_CALLS]
    command = [sys.executable, "-m", "ruff", "check", *options, "."]
    folder = subject.package
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603 - ruff
    return _judge((done.stdout or done.stderr).strip().splitlines())


RULES: Final = (
    Rule("loads", Grade.BRONZE, "Every part can be loaded.", _check_loads),
    Rule(
        "contract",
        Grade.BRONZE,
        "The tests have a contract for each provider and extension, and pass.",
        _check_contract,
    ),
    Rule("settings", Grade.BRONZE, "Every field of its `Settings` has a `description`.", _check_settings),
    Rule("types", Grade.SILVER, "The package has type annotations for others (`py.typed`).", _check_types),
    Rule(
        WIRE_TESTS,
        Grade.SILVER,
        "The tests run the vendor as a server on this machine. Without a vendor: declared exempt.",
        _check_wire_tests,
    ),
    Rule(
        "failures",
        Grade.SILVER,
        "The tests show which error a failure becomes, by which the platform degrades the provider.",
        _check_failures,
    ),
    Rule(
        "whole-contract",
        Grade.GOLD,
        "No rule of a contract is marked `xfail`; cancellation and repeated closing are among them.",
        _check_whole_contract,
    ),
    Rule(
        "blocking-calls",
        Grade.GOLD,
        "No asynchronous function makes a blocking call that ruff knows: it would hold the event loop of all calls.",
        _check_blocking_calls,
    ),
)
