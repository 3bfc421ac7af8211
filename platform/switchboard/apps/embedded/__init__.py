"""The embedded default: real PostgreSQL and Redis servers, from Python wheels, as child processes under the data
directory.
"""

from switchboard.apps.embedded.data_directory import DataDirectory, DirectoryInUse, get_server_urls
from switchboard.apps.embedded.servers import EmbeddedError, EmbeddedServers

__all__ = ["DataDirectory", "DirectoryInUse", "EmbeddedError", "EmbeddedServers", "get_server_urls"]
