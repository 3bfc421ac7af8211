"""The parts of a process that every request uses, given to an application."""

from quart import Quart

from switchboard.foundation.web import pipeline
from switchboard.foundation.web.pipeline import resolve_handlers
from switchboard.resources.identity.authentication import ACCESS_TOKEN, API_KEY, Authenticator, authenticate_key
from switchboard.resources.oauth.clients import authenticate_token
from switchboard.runtime import Runtime

# Kinds of credentials in `Authorization: Bearer`, by prefix.
CREDENTIALS = {API_KEY: authenticate_key, ACCESS_TOKEN: authenticate_token}


def add_context(app: Quart, parts: Runtime) -> None:
    """Give an application its context, and its handlers the parts that they name. Raise `InvalidParameter`."""
    app.extensions[pipeline.EXTENSION] = pipeline.WebContext(
        parts.database,
        parts.replica,
        parts.limiter,
        Authenticator(parts.database, CREDENTIALS),
        resolve_handlers(app, parts.parts),
    )
