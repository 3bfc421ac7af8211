"""Origins of pages that may show a widget."""

from collections.abc import Iterable
from urllib.parse import urlsplit


def is_allowed_origin(allowed: Iterable[str], origin: str) -> bool:
    """Return whether a page of this origin may show the widget. `https://*.example.com` stands for any subdomain, at
    any depth, as in the directive `frame-ancestors` (CSP 3, 6.7.2.8).
    """
    return any(_matches(pattern, origin.lower()) for pattern in allowed)


def _matches(pattern: str, origin: str) -> bool:
    scheme, _, host = pattern.partition("://")
    if not host.startswith("*."):
        return pattern == origin
    page = urlsplit(origin)
    return page.scheme == scheme and page.netloc.endswith(host.removeprefix("*"))
