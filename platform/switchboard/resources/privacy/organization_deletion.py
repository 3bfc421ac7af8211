"""Delete an organization: its files and vectors first, then its rows, all in one transaction."""

from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

import structlog

from switchboard.engine.providers.instances import Providers
from switchboard.foundation.database import Database
from switchboard.foundation.object_store import ObjectStore
from switchboard.foundation.web.rate_limits import RateLimiter
from switchboard.plugin_sdk import VectorStore
from switchboard.plugin_sdk.registry import Registry
from switchboard.resources.billing import ledger
from switchboard.resources.identity.models import ApiKey, Organization
from switchboard.resources.knowledge_bases.models import KnowledgeBase
from switchboard.resources.phone_numbers.queries import list_numbers_in_use
from switchboard.resources.phone_numbers.service import is_simulated
from switchboard.resources.privacy.queries import delete_organization_rows, delete_records, list_ids

logger = structlog.get_logger()


class OrganizationInUse(Exception):
    """Something still goes on, or costs money. The message says what to end first."""


@dataclass(frozen=True, slots=True)
class DeletionReport:
    """Balance in US dollars, and the numbers of deleted recordings and knowledge bases."""

    balance: Decimal
    recordings: int
    knowledge_bases: int


@dataclass(frozen=True, slots=True)
class OrganizationDeleter:
    database: Database
    registry: Registry
    providers: Providers
    recordings: ObjectStore
    limiter: RateLimiter

    async def delete(self, organization_id: UUID) -> DeletionReport:
        """Delete an organization for good. If a store fails, the rows stay and the command can be repeated.

        Raises `OrganizationInUse` while calls are live, or numbers are rented and have not moved with the organization,
        `ProviderError` if the vector store fails, and `ObjectStoreAway`.
        """
        async with self.database.read(organization_id) as session:
            organization = await session.get(Organization, organization_id)
        if organization is None or organization.frozen_at is None:  # else its numbers are another installation's
            await self._require_no_rent(organization_id)
        async with self.database.read(organization_id) as session:
            balance, _ = await ledger.get_account_balance(session)
            keys, bases = await list_ids(session, ApiKey), await list_ids(session, KnowledgeBase)
        if bases:
            async with self.providers.use(organization_id, VectorStore) as store:
                for base in bases:
                    await store.delete_knowledge_base(organization_id, base)
        recordings = await self._delete_recordings(organization_id)
        async with self.database.system() as system:
            live = await delete_organization_rows(system, organization_id)
        if live:
            raise OrganizationInUse(f"{live} calls are queued or live: wait for their end, or hang up")
        for key in keys:
            await self.limiter.announce_revocation(str(key))
        # What processes stored meanwhile.
        recordings += await self._delete_recordings(organization_id)
        async with self.database.system() as system:
            await delete_records(system, organization_id)
        # The audit log goes with the organization; the log of the command is what remains.
        logger.info("organization deleted", organization_id=str(organization_id), balance=str(balance))
        return DeletionReport(balance, recordings, len(bases))

    async def _require_no_rent(self, organization_id: UUID) -> None:
        async with self.database.read(organization_id) as session:
            numbers = await list_numbers_in_use(session)
        rented = sorted(number.phone_number for number in numbers if not is_simulated(self.registry, number))
        if rented:
            raise OrganizationInUse(f"phone numbers are rented: {', '.join(rented[:5])}; release them first")

    async def _delete_recordings(self, organization_id: UUID) -> int:
        keys = await self.recordings.list_keys(str(organization_id))
        await self.recordings.delete(keys)
        return len(keys)
