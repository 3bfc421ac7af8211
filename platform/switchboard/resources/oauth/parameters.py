"""Parameters of OAuth requests, from queries, forms, and JSON: text of the characters that RFC 6749 allows, each at
most once.
"""

import base64
import json
from collections.abc import Iterable
from urllib.parse import parse_qsl, unquote_plus

from authlib.oauth2.rfc6749 import InvalidRequestError

from switchboard.resources.oauth.errors import ClientRefused

KNOWN = frozenset(
    {
        "client_id",
        "client_secret",
        "code",
        "code_challenge",
        "code_challenge_method",
        "code_verifier",
        "grant_type",
        "redirect_uri",
        "refresh_token",
        "response_type",
        "scope",
        "state",
        "token",
        "token_type_hint",
    }
)
MOST_BYTES = 16 * 1024
MOST_FIELDS = 50


class _JsonObject(list[tuple[str, object]]):
    """The members of a JSON object, duplicates included."""


def validate_parameters(pairs: Iterable[tuple[str, object]]) -> dict[str, str]:
    """Validate the parameters of an OAuth request; an empty one counts as missing, and unknown ones are ignored (RFC
    6749 section 3.2).

    Raises `InvalidRequestError` for a duplicate, and for text outside printable ASCII (appendix A).
    """
    given: dict[str, str] = {}
    for name, value in pairs:
        if name not in KNOWN or value is None:
            continue
        if not isinstance(value, str) or not value.isascii() or not value.isprintable():
            raise InvalidRequestError(f"'{name}' is not text of printable ASCII characters.")
        if name in given:
            raise InvalidRequestError(f"'{name}' is given more than once.")
        given[name] = value
    return {name: value for name, value in given.items() if value.strip()}


def parse_body(raw: bytes, mimetype: str) -> dict[str, str]:
    """Parse the parameters of a JSON or form body. Raises `InvalidRequestError`."""
    if len(raw) > MOST_BYTES:
        raise InvalidRequestError("The body is too long.")
    if mimetype == "application/json" or mimetype.endswith("+json"):
        return validate_parameters(_json(raw))
    if mimetype == "application/x-www-form-urlencoded":
        return validate_parameters(_form(raw))
    raise InvalidRequestError("Send the body as application/json or application/x-www-form-urlencoded.")


def _json(raw: bytes) -> _JsonObject:
    try:
        members = json.loads(raw, object_pairs_hook=_JsonObject)
    except (ValueError, RecursionError):
        raise InvalidRequestError("The body is not JSON.") from None
    if not isinstance(members, _JsonObject):
        raise InvalidRequestError("The body is not a JSON object.")
    return members


def _form(raw: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(raw.decode("ascii"), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError:
        raise InvalidRequestError("The body is not a form.") from None


def get_client_credentials(authorization: str, given: dict[str, str]) -> tuple[str, str | None]:
    """Return the client's id and secret, from HTTP Basic or the body.

    Raises `ClientRefused` if there is none, and `InvalidRequestError` if there is more than one (RFC 6749 section 2.3).
    """
    basic = _basic(authorization)
    if basic is None:
        if "client_id" not in given:
            raise ClientRefused
        return given["client_id"], given.get("client_secret")
    if "client_secret" in given or given.get("client_id", basic[0]) != basic[0]:
        raise InvalidRequestError("The client authenticates in two ways at once.")
    return basic


def _basic(authorization: str) -> tuple[str, str | None] | None:
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        text = base64.b64decode(encoded.strip(), validate=True).decode("ascii")
    except ValueError:
        raise ClientRefused from None
    # Both parts are form-encoded first (RFC 6749 section 2.3.1).
    client_id, _, secret = (unquote_plus(part) for part in text.partition(":"))
    if not client_id or not (client_id + secret).isascii() or not (client_id + secret).isprintable():
        raise ClientRefused
    return client_id, secret or None
