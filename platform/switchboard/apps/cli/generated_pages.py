"""The pages of docs/ that are made from the code, so that they cannot go stale."""

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path

from quart import Quart

from switchboard.apps.server import app
from switchboard.foundation.events.catalog import CATALOG
from switchboard.foundation.settings import PREFIX, Settings
from switchboard.foundation.web.openapi import endpoints
from switchboard.plugin_sdk import hooks
from switchboard.plugin_sdk.hooks import Hooks
from switchboard.resources.automations.actions import automation_actions

NOTE = "<!-- Made by `make docs`; change the code instead. -->\n\n"


def pages() -> dict[str, str]:
    """Each generated page by its file name."""
    return {
        "settings.md": settings_page(),
        "events.md": events_page(),
        "automation-actions.md": actions_page(),
        "api-map.md": api_map(),
        "plugins/hooks.md": hooks_page(),
    }


def settings_page() -> str:
    """Every setting with its default."""
    rows = ["| variable | default | meaning |", "| --- | --- | --- |"]
    for name, field in Settings.model_fields.items():
        default = (
            ",".join(map(str, field.default))
            if isinstance(field.default, list)
            else str(field.default if field.default is not None else "")
        )
        rows.append(f"| `{PREFIX}{name.upper()}` | {f'`{default}`' if default else 'empty'} | {field.description} |")
    text = "An unknown variable that starts with `SWITCHBOARD_`, or a bad value, stops the start with one line.\n\n"
    return f"{NOTE}# Settings\n\n{text}" + "\n".join(rows) + "\n"


def events_page() -> str:
    """Every event with its data."""
    parts = [
        f"{NOTE}# Events\n\nEach is published in the transaction of the fact itself. The body is `event`, `data`, `timestamp`.\n"
    ]
    for name, kind in CATALOG.items():
        fields = ", ".join(f"`{field}`" for field in kind.model_fields)
        parts.append(f"\n## {name}\n\n{kind.__doc__}\n\n`data`: {fields}.\n")
    return "".join(parts)


def hooks_page() -> str:
    """Every hook with its signature."""
    parts = [f"{NOTE}# Hooks\n\n{inspect.cleandoc(hooks.__doc__ or '')}\n"]
    for name, hook in vars(Hooks).items():
        if not name.startswith("_"):
            signature = str(inspect.signature(hook)).replace("switchboard.plugin_sdk.", "").replace("'", "")
            parts.append(
                f"\n## {name}\n\n```python\ndef {name}{signature}\n```\n\n{inspect.cleandoc(hook.__doc__ or '')}\n"
            )
    return "".join(parts)


def actions_page() -> str:
    """Every built-in action of automations with its parameters."""
    parts = [
        f"{NOTE}# Built-in actions\n\nWhat [automations](automations.md) can do without a plugin. Every text in `params` is a template.\n"
    ]
    for action in automation_actions():
        parts.append(
            f"\n## {action.name}\n\n{action.title}. {inspect.cleandoc(action.__doc__ or '')}\n\n| param | | |\n| --- | --- | --- |\n"
        )
        for name, field in sorted(action.Params.model_fields.items(), key=lambda item: not item[1].is_required()):
            parts.append(
                f"| `{name}` | {'required' if field.is_required() else 'optional'} | {field.description or ''} |\n"
            )
    return "".join(parts)


def api_map() -> str:
    """Every endpoint: method, path, handler, tests."""
    rows = ["| endpoint | handler | tests |", "| --- | --- | --- |"]
    for method, path, handler in _handlers():
        source = Path(inspect.getsourcefile(handler) or "")
        place = source.relative_to(source.parents[len(source.parts) - 1 - source.parts.index("platform")]).as_posix()
        noun = source.parent.name
        rows.append(f"| `{method} {path}` | `{place}` `{handler.__name__}` | `tests/api/test_{noun}.py` |")
    return f"{NOTE}# API map\n\nWhere each endpoint's code and tests are.\n\n" + "\n".join(rows) + "\n"


def _handlers() -> Iterator[tuple[str, str, Callable[..., object]]]:
    application = Quart("switchboard")
    for blueprint in app.BLUEPRINTS:
        application.register_blueprint(blueprint)
    for rule, method, _ in endpoints(application):
        yield method.upper(), rule.rule, inspect.unwrap(application.view_functions[rule.endpoint])
