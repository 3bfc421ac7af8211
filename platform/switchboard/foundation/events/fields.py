"""Field type of an event name in requests."""

from typing import Annotated

from pydantic import AfterValidator, Field

from switchboard.foundation.events.catalog import CATALOG


def _validate_name(name: str) -> str:
    if name not in CATALOG:
        raise ValueError(f"{name} is not an event; the events are {', '.join(CATALOG)}")
    return name


EventName = Annotated[
    str, Field(max_length=64, json_schema_extra={"enum": list(CATALOG)}), AfterValidator(_validate_name)
]
