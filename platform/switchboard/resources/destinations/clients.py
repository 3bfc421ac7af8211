"""Clients: browsers and apps that are rung by a name (docs/decisions/0075-clients.md).

`client:reception` is a destination wherever a call is passed on. At the carrier the name is part of an identity with
the organization's id, so that organizations that share an account never ring each other.
"""

from uuid import UUID

from switchboard.engine.providers.instances import find_first_provider
from switchboard.foundation.database import ReadSession
from switchboard.foundation.web.errors import ApiError, InvalidState
from switchboard.plugin_sdk import CLIENT_PREFIX, TelephonyProvider, find_client_identity
from switchboard.plugin_sdk.carrier_extensions import CLIENT_IDENTITY_PREFIX
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.destinations.service import find_refusal


def is_client(destination: str) -> bool:
    """Return whether a destination is a client and not a phone number."""
    return find_client_identity(destination) is not None


def build_client_identity(organization_id: UUID, name: str) -> str:
    """Return a client's identity at the carrier: letters, digits, and underscores, which every carrier accepts."""
    return f"{CLIENT_IDENTITY_PREFIX}{organization_id.hex}_{name}"


def build_carrier_destination(organization_id: UUID, destination: str) -> str:
    """Return a destination as the carrier knows it."""
    name = find_client_identity(destination)
    return destination if name is None else f"{CLIENT_PREFIX}{build_client_identity(organization_id, name)}"


async def find_client_carrier(session: ReadSession, registry: Registry) -> str | None:
    """Return the name of the organization's first carrier that can ring clients, which has all of its clients."""
    return await find_first_provider(
        session, registry, TelephonyProvider, lambda carrier: carrier.capabilities.client_calls
    )


async def find_client_refusal(session: ReadSession, registry: Registry, carrier: str) -> str | None:
    """Return why calls of a carrier cannot ring the organization's clients, as a sentence; None if they can."""
    client_carrier = await find_client_carrier(session, registry)
    if client_carrier is None:
        return "None of the organization's carriers can ring clients."
    if client_carrier != carrier:
        return f"Clients are rung over {client_carrier}, and the call is at {carrier}."
    return None


async def find_transfer_refusal(
    session: ReadSession, registry: Registry, carrier: str, destination: str
) -> ApiError | None:
    """Return why a call at a carrier may not, or cannot, be passed on to a destination now; None if it can.

    Rules and limits of destinations bound what calls to phone numbers cost, so they do not apply to clients: only
    `InvalidState` for a client that the carrier cannot ring.
    """
    if not is_client(destination):
        return await find_refusal(session, destination)
    refusal = await find_client_refusal(session, registry, carrier)
    return InvalidState(refusal) if refusal is not None else None
