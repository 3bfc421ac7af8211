"""Endpoint of the integration."""

from switchboard.foundation.database import WriteSession
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.outbound import OutboundClient
from switchboard.foundation.web.endpoint import ApiBlueprint, endpoint
from switchboard.resources.integrations import service as integrations
from switchboard.resources.integrations.schemas import IntegrationOut, IntegrationUpdate

blueprint = ApiBlueprint("integrations", __name__, tags={"integrations": "The organization's integration."})


@blueprint.put("/v1/integrations")
@endpoint(scope="webhooks:write")
async def change_integration(
    session: WriteSession, data: IntegrationUpdate, keyring: KeyRing, outbound: OutboundClient
) -> IntegrationOut:
    """Set the integration's credentials.

    Only the given fields change; null removes one. Secrets are never returned.
    """
    return await integrations.update_integration(session, data, keyring=keyring, outbound=outbound)
