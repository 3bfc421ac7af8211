"""Vector store of knowledge bases in LanceDB, on a local disk or in an object store."""

from switchboard.plugin_sdk import hookimpl

from switchboard_vectorstore.store import LanceStore


@hookimpl
def vector_stores() -> list[type[LanceStore]]:
    return [LanceStore]
