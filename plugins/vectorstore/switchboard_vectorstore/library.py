"""LanceDB, imported with the first use: it takes two seconds and 120 MB, which a process that never searches is spared."""

import asyncio
import importlib
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from switchboard.plugin_sdk import ProviderError

INDEX_CACHE_BYTES, METADATA_CACHE_BYTES = 512 * 1024**2, 64 * 1024**2
"""What a process keeps of all tables' indexes in memory; LanceDB's own default is seven gigabytes."""


class LanceConflict(ProviderError):
    """Somebody else changed the table in a way that this change does not go together with; it can be tried again."""


_loading = threading.Lock()


@lru_cache(maxsize=1)
def _imported() -> Any:
    # Its Rust part writes to standard error by itself, such as that a table which is about to be made was not there.
    os.environ.setdefault("LANCEDB_LOG", "error")
    return importlib.import_module("lancedb")


@lru_cache(maxsize=1)
def _session() -> Any:
    return _imported().Session(index_cache_size_bytes=INDEX_CACHE_BYTES, metadata_cache_size_bytes=METADATA_CACHE_BYTES)


def _locked() -> tuple[Any, Any]:
    with _loading:
        return _imported(), _session()


async def connect_to_lancedb(uri: str, storage_options: dict[str, str]) -> Any:
    """A connection to the tables under a URI; its caches are the process's. Raises `ProviderError`."""
    lancedb, session = await asyncio.to_thread(_locked)
    with translate_lancedb_errors():
        return await lancedb.connect_async(uri, storage_options=storage_options or None, session=session)


@contextmanager
def translate_lancedb_errors() -> Iterator[None]:
    """What LanceDB raises, as `ProviderError`: its Rust part has no exception class of its own."""
    try:
        yield
    except (RuntimeError, ValueError, OSError) as error:
        # The first line, without the place in its source that it ends with.
        told = re.sub(r",? */\S+\.rs:[\d:]+.*", "", f"{error}\n".partition("\n")[0]) or type(error).__name__
        kind = LanceConflict if "conflict" in told or "Incompatible transaction" in told else ProviderError
        raise kind(f"LanceDB: {told}") from error
