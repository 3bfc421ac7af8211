"""`doctor --trunk-call`: a real call over an organization's own trunks, with the sound of both directions measured."""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from switchboard.apps.cli.findings import Finding
from switchboard.engine.providers.instances import Providers, list_provider_names
from switchboard.foundation.database import Database
from switchboard.plugin_sdk import ProviderError, TelephonyProvider, TrunkCarrier
from switchboard.plugin_sdk.registry import Capability
from switchboard.resources.identity.models import Organization
from switchboard.resources.phone_numbers.service import list_numbers_at_carrier

E164: Final = re.compile(r"\+[1-9][0-9]{6,14}")


@dataclass(frozen=True, slots=True)
class TrunkCall:
    """A number to call, in E.164, for one organization or for all."""

    to_number: str
    organization_id: UUID | None


async def measure_trunk_calls(
    database: Database, providers: Providers, organization: Organization, order: TrunkCall | None
) -> AsyncIterator[Finding]:
    """Place the ordered call over each of the organization's carriers with trunks, from its oldest number there."""
    if order is None or order.organization_id not in (None, organization.id):
        return
    async with database.tenant(organization.id) as session:
        carriers = {
            name: await list_numbers_at_carrier(session, name)
            for name in await list_provider_names(session, Capability.TELEPHONY)
        }
    for name, numbers in carriers.items():
        subject = f"{organization.name}: a call over {name} to {order.to_number}"
        try:
            async with providers.use(organization.id, TelephonyProvider, name) as carrier:
                if not isinstance(carrier, TrunkCarrier):
                    continue
                if not numbers:
                    yield Finding(subject, False, "No call tried: enter a phone number of the trunk to call from.")
                    continue
                measured = await carrier.measure_call(numbers[0].phone_number, order.to_number)
        except ProviderError as error:
            yield Finding(subject, False, error.message)
            continue
        yield Finding(f"{subject}: {measured.message}", not measured.advice, measured.advice)
