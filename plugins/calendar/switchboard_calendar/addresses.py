"""Addresses of servers that users give."""

from yarl import URL


def check_address(text: str) -> str:
    """Return an address of the web. Raises `ValueError` for any other one, and for one with a credential."""
    try:
        url = URL(text)
        is_valid = url.scheme in ("http", "https") and bool(url.host) and url.user is None and url.password is None
    except ValueError:
        is_valid = False
    if not is_valid:
        raise ValueError("must be an http or https address without user name and password")
    return text
