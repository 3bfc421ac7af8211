"""Catalog files: updates that keep their translations, for the dashboard (`make catalogs`) and for plugins."""

from importlib.resources import files
from io import BytesIO
from pathlib import Path
from typing import Final

from babel.messages import Catalog
from babel.messages.pofile import write_po

from switchboard.apps.dashboard.forms.plugin_texts import list_plugin_texts
from switchboard.foundation.languages import DEFAULT_LANGUAGE, LANGUAGES, PLUGIN_CATALOG, get_catalog_path, read_catalog
from switchboard.plugin_sdk.registry import Plugin, Registry

TRANSLATED: Final = tuple(language for language in LANGUAGES if language != DEFAULT_LANGUAGE)
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


def update_catalog(path: Path, language: str, template: Catalog) -> bytes:
    """Return the catalog at a path with the messages and the comment of a template, and the translations that it has.

    The file need not exist.
    """
    catalog = read_catalog(path, language) if path.exists() else Catalog(locale=language, fuzzy=False)
    catalog.update(template, no_fuzzy_matching=True)
    catalog.obsolete.clear()
    catalog.header_comment = template.header_comment
    written = BytesIO()
    write_po(written, catalog, width=120, no_location=False, omit_header=False, include_lineno=False)
    return b"\n".join(line for line in written.getvalue().split(b"\n") if not line.startswith(VARYING))


def get_plugin_catalog_path(plugin: Plugin, language: str) -> Path:
    """Return the file of a plugin's catalog. The plugin's package must be a folder."""
    return Path(str(files(plugin.package)), PLUGIN_CATALOG.format(language=language))


def build_plugin_template(registry: Registry, plugin: Plugin) -> Catalog:
    """Return a catalog of a plugin's texts, without translations, and without texts that the dashboard translates."""
    template = Catalog(
        header_comment=f"# Translations of the plugin {plugin.name}. Update with `switchboard plugins catalogs`."
    )
    own = read_catalog(get_catalog_path(TRANSLATED[0]), TRANSLATED[0])
    for text in list_plugin_texts(registry, plugin):
        if text not in own:
            template.add(text)
    return template


def update_plugin_catalogs(registry: Registry, plugin: Plugin) -> dict[Path, int]:
    """Update the catalogs of a plugin. Return the number of messages without a translation, by file; none for a plugin
    without texts.
    """
    template, missing = build_plugin_template(registry, plugin), {}
    if not len(template):
        return {}
    for language in TRANSLATED:
        path = get_plugin_catalog_path(plugin, language)
        content = update_catalog(path, language, template)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        missing[path] = sum(not message.string for message in read_catalog(path, language) if message.id)
    return missing
