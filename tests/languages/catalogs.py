"""Extract the messages of the dashboard and its e-mails, and update the catalogs: `make catalogs`.

Messages are the marked texts of templates, scripts, and Python (`_`, `ngettext`, `LazyText`), and what the dashboard
looks up though the code does not mark it: texts of errors, descriptions of schemas, and words for values of the API.
"""

from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import switchboard.apps.server.app  # noqa: F401 - imports the module of every error
from babel.messages import Catalog
from babel.messages.extract import DEFAULT_KEYWORDS, extract_from_dir
from babel.messages.pofile import read_po, write_po
from switchboard.apps.dashboard.forms import schema_form
from switchboard.apps.dashboard.forms.policy import list_policy_groups
from switchboard.apps.dashboard.ui.rendering import TONES, action_label, field_name
from switchboard.engine.redaction.detectors import BUILT_IN
from switchboard.foundation.audit import AuditAction
from switchboard.foundation.events.catalog import CATALOG
from switchboard.foundation.languages import CATALOGS, DEFAULT_LANGUAGE, DOMAIN, LANGUAGES
from switchboard.foundation.outbound.client import MESSAGES
from switchboard.foundation.web.errors import ApiError
from switchboard.foundation.web.principal import SCOPES
from switchboard.resources.agents.templates import load_templates
from switchboard.resources.automations.actions import automation_actions
from switchboard.resources.disclosure.presets import load_presets

PLATFORM: Final = Path(__file__).parents[2] / "platform" / "switchboard"
DASHBOARD: Final = PLATFORM / "apps" / "dashboard"
MARKED: Final = {**DEFAULT_KEYWORDS, "LazyText": None}
ERRORS: Final[dict[str, Any]] = {
    "ApiError": None,
    "BadRequest": None,
    "Conflict": None,
    "Forbidden": None,
    "IdentityError": None,
    "InvalidState": None,
    "NotFound": None,
    "RateLimited": None,
    "Unavailable": None,
    "ValidationFailed": None,
    "field": (2,),
}
"""Errors that services raise and the dashboard shows, by the place of their text; `field` is of `ValidationFailed`."""
COMMENT: Final = "Translations of Switchboard's dashboard. Update with `make catalogs`."


def build_template() -> Catalog:
    """Return a catalog of all messages, without translations."""
    catalog = Catalog(project="Switchboard", header_comment=f"# {COMMENT}", fuzzy=False)
    for place, message, context in iterate_messages():
        singular = message[0] if isinstance(message, tuple) else message
        if singular and any(letter.isalpha() for letter in singular):
            catalog.add(message, locations=[(place, None)], context=context)  # type: ignore[list-item]
    return catalog


def iterate_messages() -> Iterator[tuple[str, str | tuple[str, ...], str | None]]:
    """Yield each message with its file, and its context if it has one."""
    jinja = {"**/*.html": {"trimmed": "true", "newstyle_gettext": "true", "silent": "false"}}
    for folder, methods, options, keywords in (
        (DASHBOARD, [("**/*.html", "jinja2.ext:babel_extract")], jinja, DEFAULT_KEYWORDS),
        (DASHBOARD, [("**/*.py", "python"), ("static/js/**.js", "javascript")], {}, MARKED),
        (PLATFORM / "foundation", [("**.py", "python")], {}, ERRORS),
        (PLATFORM / "resources", [("**.py", "python")], {}, {**MARKED, **ERRORS}),
    ):
        found = extract_from_dir(folder, methods, options, keywords)
        for file, _line, message, _comments, context in sorted(found, key=lambda one: (one[0], one[1])):
            yield str((folder / file).relative_to(PLATFORM)), message, context
    # In the order of the alphabet: that of subclasses depends on what was imported first.
    for text in sorted(set(_list_looked_up())):
        yield "looked up", text, None


def _list_looked_up() -> Iterator[str]:
    for kind in _list_errors(ApiError):
        if kind.__module__.startswith("switchboard."):
            yield from (kind.title, kind.default_detail)
    for group in list_policy_groups():
        yield from (group.title, group.about, *_list_texts(group.fields))
    for action in automation_actions():
        yield from (action.title, (action.__doc__ or "").strip())
        yield from _list_texts(schema_form.list_schema_fields(action.Params))
    for template in load_templates().values():
        yield from (template.title, template.description)
    yield from (preset.jurisdiction for preset in load_presets().values())
    yield from (detector.title for detector in BUILT_IN)
    yield from (str(kind.__doc__).rstrip(".") for kind in CATALOG.values())
    yield from SCOPES.values()
    yield from MESSAGES.values()
    yield from map(action_label, AuditAction)
    yield from (tone.replace("_", " ") for tone in TONES)
    yield from map(field_name, ("name", "email", "password", "phone_number", "file", "files", "people", "tag"))
    yield from ("yes", "no")


def _list_errors(base: type[ApiError]) -> Iterator[type[ApiError]]:
    yield base
    for kind in base.__subclasses__():
        yield from _list_errors(kind)


def _list_texts(fields: Sequence[schema_form.SchemaField]) -> Iterator[str]:
    for field in fields:
        yield from (field.label, field.hint)


def get_path(language: str) -> Path:
    """Return the file of a language's catalog."""
    return CATALOGS / language / "LC_MESSAGES" / f"{DOMAIN}.po"


def update_catalog(language: str, template: Catalog) -> bytes:
    """Return the catalog of a language with the messages of the template, and the translations that it has."""
    path = get_path(language)
    if path.exists():
        with path.open("rb") as file:
            catalog = read_po(file, locale=language, ignore_obsolete=True)
    else:
        catalog = Catalog(locale=language, project="Switchboard", fuzzy=False)
    catalog.update(template, no_fuzzy_matching=True)
    catalog.obsolete.clear()
    catalog.header_comment = f"# {COMMENT}"
    written = BytesIO()
    write_po(written, catalog, width=120, no_location=False, omit_header=False, include_lineno=False)
    return b"\n".join(line for line in written.getvalue().split(b"\n") if not line.startswith(VARYING))


VARYING: Final = (
    b'"POT-Creation-Date',
    b'"PO-Revision-Date',
    b'"Generated-By',
    b'"Last-Translator',
    b'"Language-Team',
    b'"Report-Msgid-Bugs-To',
    b'"Project-Id-Version',
)
"""Lines of the header that say nothing about the content."""


def main() -> None:
    """Update every catalog."""
    template = build_template()
    for language in LANGUAGES:
        if language != DEFAULT_LANGUAGE:
            path = get_path(language)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(update_catalog(language, template))


if __name__ == "__main__":
    main()
