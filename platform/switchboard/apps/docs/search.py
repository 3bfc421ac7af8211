"""The index that the search of the documentation reads in the browser."""

import json
import re
from collections.abc import Iterator

from switchboard.apps.docs.api_pages import ApiPages
from switchboard.apps.docs.guides import Guides, split_guide
from switchboard.apps.docs.openapi_document import get_object, get_text
from switchboard.apps.docs.operations import Operation

MAX_PREVIEW = 140


def build_search_index(api: ApiPages, guides: Guides) -> bytes:
    """Return the index as JSON: a list of places, each with title, page, address, first words, and all words."""
    return json.dumps(
        [*_iterate_api(api), *_iterate_guides(guides)], ensure_ascii=False, separators=(",", ":")
    ).encode()


def _iterate_api(api: ApiPages) -> Iterator[dict[str, str]]:
    for tag, operations in api.operations.items():
        for operation in operations:
            address = f"/docs/api/{tag}#{operation.operation_id}"
            line = f"{operation.method} {operation.path}"
            yield _describe_place(operation.summary, f"API · {tag}", address, line, _list_words(api, tag, operation))
    for error, meaning in api.list_errors():
        address = f"/docs/api/errors#{error.code}"
        yield _describe_place(error.code, "API · errors", address, f"{error.status}: {meaning}")
    for name, (description, schema) in api.list_events().items():
        fields = " ".join(get_object(api.schemas, schema, "properties"))
        yield _describe_place(name, "API · events", f"/docs/api/events#{name}", description, fields)


def _list_words(api: ApiPages, tag: str, operation: Operation) -> str:
    fields = get_object(api.schemas, operation.body or "", "properties")
    described = " ".join(get_text(get_object(field), "description") for field in fields.values())
    return f"{tag} {operation.operation_id} {' '.join((*operation.query, *fields))} {described}"


def _iterate_guides(guides: Guides) -> Iterator[dict[str, str]]:
    for guide in guides.pages.values():
        for title, address, text in split_guide(guide):
            yield _describe_place(title, guide.title, address, text, text)


def _describe_place(title: str, page: str, address: str, preview: str, words: str = "") -> dict[str, str]:
    """Return an entry. Its words are those that are in neither its title nor its preview, each once, in lower case."""
    shown = preview[:MAX_PREVIEW].rpartition(" ")[0] + "…" if len(preview) > MAX_PREVIEW else preview
    known = set(_split_words(f"{title} {page} {shown}"))
    return {
        "title": title,
        "page": page,
        "address": address,
        "preview": shown,
        "words": " ".join(sorted(set(_split_words(words)) - known)),
    }


def _split_words(text: str) -> list[str]:
    return re.findall(r"[\w+-]{2,}", text.lower())
