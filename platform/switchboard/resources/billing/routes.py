"""Endpoint of the balance."""

from switchboard.foundation.database import ReadSession
from switchboard.foundation.web.endpoint import ApiBlueprint, endpoint
from switchboard.foundation.web.principal import Principal
from switchboard.resources.billing import ledger
from switchboard.resources.billing.schemas import BalanceOut
from switchboard.resources.identity.models import Organization

blueprint = ApiBlueprint("billing", __name__, tags={"billing": "The balance."})


@blueprint.get("/v1/billing/balance")
@endpoint(scope="billing:read")
async def get_balance(session: ReadSession, principal: Principal) -> BalanceOut:
    """Get the balance.

    The sum of all costs and top-ups. A prepaid organization gets 402 before its balance would become negative; a
    postpaid balance may be negative.
    """
    organization = await session.get_one(Organization, principal.organization_id)
    balance, updated_at = await ledger.get_account_balance(session)
    mode = organization.policy.billing_mode
    return BalanceOut(balance=balance, billing_mode=mode, updated_at=updated_at or organization.created_at)
