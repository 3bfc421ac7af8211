"""Failures of connections in words: what could not be reached, and what to do."""

import aiohttp


def describe_connection_fault(error: Exception) -> str:
    """Return why a request of aiohttp's has failed, for the person who reads it: a `ClientError`, `TimeoutError`, or
    `OSError`. The words go on after "… cannot be reached: ".
    """
    if isinstance(error, aiohttp.ClientConnectorError):
        return _describe_unconnected(error)
    if isinstance(error, aiohttp.ClientResponseError) and error.status:
        return f"it answered {error.status}; check the address"
    if isinstance(error, aiohttp.InvalidURL):
        return "the address is not valid; correct it"
    if isinstance(error, TimeoutError):
        return "it did not answer in time; try again, and check the address and the firewall"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "its answer broke off; try again"
    return "it closed the connection; try again"


def _describe_unconnected(error: aiohttp.ClientConnectorError) -> str:
    """Return why there is no connection to a host: a certificate's `os_error` is that of `ssl`."""
    place = error.host if error.port is None else f"{error.host}:{error.port}"
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"no server has the name {error.host}; check the address, and the name servers of this machine"
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError):
        return f"there is no secure connection to {place}; check the address, and the server's certificate"
    if isinstance(error.os_error, ConnectionRefusedError):
        return f"nothing listens at {place}; check the address, and that the server runs"
    return f"there is no connection to {place}; check the address and the firewall"
