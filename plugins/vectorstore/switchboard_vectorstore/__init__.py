"""Knowledge bases in LanceDB: on a local disk, or in any object store."""

from switchboard.plugin_sdk import hookimpl

from switchboard_vectorstore.store import LanceStore


@hookimpl
def vector_stores() -> list[type[LanceStore]]:
    return [LanceStore]
