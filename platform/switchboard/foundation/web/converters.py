"""Converters of parts of URLs."""

from typing import Final

from werkzeug.routing import BaseConverter

PROVIDER: Final = "provider"
"""Name of `ProviderNameConverter` in routes: `<provider:carrier>`."""


class ProviderNameConverter(BaseConverter):
    """Name of a provider, plain (`openai`) or with its plugin (`llm/openai`)."""

    regex = "[^/]+(?:/[^/]+)?"
    part_isolating = False
