"""Assessment of one plugin by all rules."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue
from switchboard.plugin_sdk.provider import Configurable
from switchboard.plugin_sdk.registry import CAPABILITIES, Plugin, Registry

from switchboard_plugin_quality.rules import RULES, Grade, Rule, RuleOutcome, Status, Subject
from switchboard_plugin_quality.source import read_source


@dataclass(frozen=True, slots=True)
class Assessment:
    """Outcomes of the rules."""

    outcomes: Mapping[Rule, RuleOutcome]

    @property
    def grade(self) -> Grade:
        """The highest grade whose rules, and those of all lower grades, are kept or do not apply."""
        failed = [rule.grade for rule, outcome in self.outcomes.items() if not _is_kept(outcome)]
        return Grade(min(failed) - 1) if failed else max(Grade)

    @property
    def missing(self) -> Mapping[Rule, RuleOutcome]:
        """The rules that the next grade still needs; empty for the highest grade."""
        return {
            rule: outcome
            for rule, outcome in self.outcomes.items()
            if rule.grade == self.grade + 1 and not _is_kept(outcome)
        }

    def describe(self) -> Iterator[str]:
        """Yield the grade, and what the next one still needs, in lines for a terminal."""
        yield f"grade: {self.grade.name.lower()}"
        for rule, outcome in self.missing.items():
            for detail in outcome.details:
                yield f"missing for {rule.grade.name.lower()}: {rule.name}: {detail}"

    def encode(self) -> dict[str, JsonValue]:
        """Return the grade, None without one, and the outcome of each rule."""
        rules: list[JsonValue] = [
            {
                "name": rule.name,
                "grade": rule.grade.name.lower(),
                "status": outcome.status.value,
                "details": [*outcome.details],
            }
            for rule, outcome in self.outcomes.items()
        ]
        return {"grade": self.grade.name.lower() if self.grade > Grade.NONE else None, "rules": rules}


def assess_plugin(registry: Registry, plugin: Plugin, folder: Path | None, *, tests_pass: bool | None) -> Assessment:
    """Assess a discovered plugin. `folder` is its source folder, None if it is not on this machine.

    Raises `SourceError`.
    """
    packages = _list_packages(plugin)
    subject = Subject(
        plugin=plugin,
        classes=_list_classes(registry, plugin),
        package=packages[0],
        typed=any(each is not None and (each / "py.typed").is_file() for each in packages),
        source=read_source(folder) if folder else None,
        tests_pass=tests_pass,
    )
    return Assessment({rule: rule.check(subject) for rule in RULES})


def _is_kept(outcome: RuleOutcome) -> bool:
    return outcome.status in (Status.KEPT, Status.EXEMPT)


def _list_classes(registry: Registry, plugin: Plugin) -> list[type[Configurable]]:
    parts = [provided.partition(" ") for provided in plugin.provides]
    found = [registry.find_class(CAPABILITIES[kind], name) for kind, _, name in parts if kind in CAPABILITIES]
    return [each for each in found if each is not None]


def _list_packages(plugin: Plugin) -> list[Path | None]:
    """Return the folder of a plugin's loaded package, and of each package around it, innermost first.

    The folder of a single module, or of one that could not be loaded, is None.
    """
    name = plugin.module.partition(":")[0]
    names = [name, *(name.rsplit(".", count)[0] for count in range(1, name.count(".") + 1))]
    return [_find_folder(name) for name in names]


def _find_folder(package: str) -> Path | None:
    folders = getattr(sys.modules.get(package), "__path__", ())
    return next((Path(folder) for folder in folders), None)
