"""Origins of pages that may show a widget."""

from collections.abc import Iterable
from functools import cache
from urllib.parse import urlsplit

from publicsuffixlist import PublicSuffixList

_load_suffixes = cache(PublicSuffixList)
"""Loads the list in the package, which takes a tenth of a second, when the first wildcard is saved."""


def is_allowed_origin(allowed: Iterable[str], origin: str) -> bool:
    """Return whether a page of this origin may show the widget. `https://*.example.com` stands for any subdomain, at
    any depth, as in the directive `frame-ancestors` (CSP 3, 6.7.2.8).
    """
    return any(_matches(pattern, origin.lower()) for pattern in allowed)


def is_public_suffix(host: str) -> bool:
    """Return whether anybody can register a name below this one (https://publicsuffix.org): `com`, `co.uk`, and
    `github.io`. An ending that the list does not know is one, too.
    """
    return bool(_load_suffixes().is_public(host))


def _matches(pattern: str, origin: str) -> bool:
    scheme, _, host = pattern.partition("://")
    if not host.startswith("*."):
        return pattern == origin
    page = urlsplit(origin)
    return page.scheme == scheme and page.netloc.endswith(host.removeprefix("*"))
