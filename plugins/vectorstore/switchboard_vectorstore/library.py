"""LanceDB, imported on first use: that takes two seconds and 120 MB, which processes that never search do not pay."""

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
"""Memory per process for all tables' indexes and metadata; LanceDB's own default is seven gigabytes."""


CONFLICTS = ("conflict", "Incompatible transaction", "already exists", "Too many concurrent writers")
"""Parts of LanceDB's messages about a concurrent change, which can be tried again."""


class LanceConflict(ProviderError):
    """A conflicting concurrent change of the table; the change can be tried again."""


_loading = threading.Lock()


@lru_cache(maxsize=1)
def _load() -> tuple[Any, Any]:
    """Import LanceDB, and create the session that all connections share."""
    # Its Rust part logs to standard error, for example that a table about to be created does not exist.
    os.environ.setdefault("LANCEDB_LOG", "error")
    lancedb: Any = importlib.import_module("lancedb")
    caches = {"index_cache_size_bytes": INDEX_CACHE_BYTES, "metadata_cache_size_bytes": METADATA_CACHE_BYTES}
    return lancedb, lancedb.Session(**caches)


def _load_with_lock() -> tuple[Any, Any]:
    with _loading:
        return _load()


async def connect_to_lancedb(uri: str, storage_options: dict[str, str]) -> Any:
    """Open a connection to the tables under a URI, with the process's shared caches. Raises `ProviderError`."""
    lancedb, session = await asyncio.to_thread(_load_with_lock)
    with translate_lancedb_errors():
        return await lancedb.connect_async(uri, storage_options=storage_options or None, session=session)


@contextmanager
def translate_lancedb_errors() -> Iterator[None]:
    """Translate LanceDB's errors to `ProviderError`. Its Rust part has no exception class of its own."""
    try:
        yield
    except (RuntimeError, ValueError, OSError) as error:
        # The first line, without the source location at its end.
        message = re.sub(r",? */\S+\.rs:[\d:]+.*", "", f"{error}\n".partition("\n")[0]) or type(error).__name__
        kind = LanceConflict if any(part in message for part in CONFLICTS) else ProviderError
        raise kind(f"LanceDB: {message}") from error
