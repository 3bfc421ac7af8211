"""The parts of a process that every request uses, given to an application."""

from quart import Quart

from switchboard.foundation.web import pipeline
from switchboard.foundation.web.pipeline import resolve_handlers
from switchboard.resources.identity.authentication import ACCESS_TOKEN, API_KEY, Authenticator
from switchboard.resources.identity.system_queries import find_api_key
from switchboard.resources.oauth.system_queries import find_access_token
from switchboard.runtime import Runtime

# Kinds of credentials in `Authorization: Bearer`, by prefix.
CREDENTIALS = {API_KEY: find_api_key, ACCESS_TOKEN: find_access_token}


def add_context(app: Quart, parts: Runtime) -> None:
    """Give an application its context, and its handlers the parts that they name. Raise `InvalidParameter`."""
    app.extensions[pipeline.EXTENSION] = pipeline.WebContext(
        parts.database,
        parts.replica,
        parts.limiter,
        Authenticator(parts.database, CREDENTIALS),
        parts.keyring,
        resolve_handlers(app, parts.parts),
    )
