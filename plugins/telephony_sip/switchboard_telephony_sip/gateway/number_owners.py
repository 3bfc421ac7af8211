"""Choice of the trunk for a request from an address that trunks of several organizations share: the trunk of the
organization that has the called number.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

import structlog
from aiosipua.message import SipRequest
from switchboard.plugin_sdk import ProviderError

from switchboard_telephony_sip.gateway.directory import TrunkDirectory
from switchboard_telephony_sip.gateway.parties import read_parties
from switchboard_telephony_sip.signaling import TrunkQuota, TrunkUndecided

logger = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class NumberOwners:
    """Finds the organization of a called number with `find_owner`, so that no other organization learns of the call."""

    directory: TrunkDirectory
    find_owner: Callable[[str], Awaitable[UUID | None]]

    async def choose_trunk(self, request: SipRequest, trunks: Sequence[TrunkQuota]) -> TrunkQuota | None:
        """Return the first trunk of the organization that has the called number, as this trunk writes numbers.

        None if none of the trunks' organizations has it. Raises `TrunkUndecided`.
        """
        owners: dict[str, UUID | None] = {}
        for line in filter(None, map(self.directory.find_line, (trunk.name for trunk in trunks))):
            _, callee = read_parties(line, request)
            if callee not in owners:
                owners[callee] = await self._find_owner(callee)
            if owners[callee] == line.account.organization_id:
                return line.quota
        logger.warning(
            "SIP request refused: its address belongs to several trunks, and the called number to none of them",
            method=request.method,
            trunks=[trunk.name.rpartition("/")[2] for trunk in trunks],
        )
        return None

    async def _find_owner(self, callee: str) -> UUID | None:
        try:
            return await self.find_owner(callee)
        except ProviderError as error:
            logger.warning("the owner of a called number cannot be found", reason=error.message)
            raise TrunkUndecided from error
