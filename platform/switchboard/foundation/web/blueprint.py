"""The blueprint of a resource's API endpoints."""

from collections.abc import Mapping

from quart import Blueprint


class ApiBlueprint(Blueprint):
    """A blueprint with the descriptions of the OpenAPI tags that its endpoints have: the first parts of their paths."""

    def __init__(self, name: str, import_name: str, *, tags: Mapping[str, str]) -> None:
        super().__init__(name, import_name)
        self.tags = tags
