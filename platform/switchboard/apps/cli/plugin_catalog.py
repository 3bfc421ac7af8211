"""The generated page about the plugins of this repository: what they provide, and their grades."""

from collections.abc import Iterator
from importlib.metadata import entry_points, metadata
from pathlib import Path
from typing import Final

from switchboard_plugin_quality import RULES, Assessment, Grade, Status, assess_plugin

from switchboard.apps.plugin_packages import find_source
from switchboard.plugin_sdk.hooks import ENTRY_POINT_GROUP
from switchboard.plugin_sdk.registry import BUILT_IN, CAPABILITIES, Plugin, Registry

PLATFORM: Final = "switchboard-voice"
INTRODUCTION: Final = """# Catalog of plugins

The plugins of this repository, with what they provide and their quality grade. [Actions of
automations](../reference/automation-actions.md) that need no plugin have a page of their own.

## Grades

A plugin has a grade if it keeps the rules of the grade and of all lower ones ([decision
53](../decisions/0053-quality-grades.md)). `switchboard plugins check NAME` prints the grade of any plugin, and what is
missing for the next one.

| grade | rule | meaning |
| --- | --- | --- |
"""


def render_catalog() -> str:
    """Render the rules and each plugin of this repository. Its tests run in continuous integration, and pass there."""
    rules = [f"| {rule.grade.name.lower()} | `{rule.name}` | {rule.meaning} |\n" for rule in RULES]
    return "".join([INTRODUCTION, *rules, *(_render_plugin(*graded) for graded in grade_own_plugins())])


def grade_own_plugins() -> Iterator[tuple[Registry, Plugin, Path | None, Assessment]]:
    """Assess each plugin of this repository, which must be installed in place."""
    installed = [entry for entry in entry_points(group=ENTRY_POINT_GROUP) if entry.dist and entry.dist.name in BUILT_IN]
    registry = Registry.discover(installed)
    for plugin in registry.plugins:
        if plugin.distribution != PLATFORM:
            folder = find_source(plugin.distribution)
            yield registry, plugin, folder, assess_plugin(registry, plugin, folder, tests_pass=True)


def _render_plugin(registry: Registry, plugin: Plugin, folder: Path | None, assessment: Assessment) -> str:
    source = folder.name if folder else plugin.name
    lines = [
        f"\n## {plugin.name}\n",
        f"{metadata(plugin.distribution)['Summary']}\n",
        f"Grade: **{assessment.grade.name.lower()}**. "
        f"Distribution `{plugin.distribution}` ([README](../../plugins/{source}/README.md)).\n",
        *_describe_outcomes(assessment),
        "| capability | providers |\n| --- | --- |",
        *_list_capabilities(registry, plugin),
    ]
    return "\n".join(lines) + "\n"


def _describe_outcomes(assessment: Assessment) -> Iterator[str]:
    for rule, outcome in assessment.outcomes.items():
        if outcome.status is Status.EXEMPT:
            yield f"Exempt from `{rule.name}`: {' '.join(outcome.details)}\n"
    if assessment.grade < max(Grade):
        missing = "; ".join(
            f"`{rule.name}` ({', '.join(outcome.details)})" for rule, outcome in assessment.missing.items()
        )
        yield f"Missing for {Grade(assessment.grade + 1).name.lower()}: {missing}.\n"


def _list_capabilities(registry: Registry, plugin: Plugin) -> Iterator[str]:
    for capability in CAPABILITIES.values():
        names = [name for kind, _, name in (each.partition(" ") for each in plugin.provides) if kind == capability]
        classes = [registry.find_class(capability, name) for name in names]
        described = [f"`{name}` ({found.title})" for name, found in zip(names, classes, strict=True) if found]
        if described:
            yield f"| `{capability.value}` | {', '.join(described)} |"
