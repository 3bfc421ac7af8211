"""Tests of a tool: one real request, signed and checked as in a call."""

import time
from dataclasses import dataclass
from uuid import UUID

from pydantic import JsonValue

from switchboard.engine.conversation.agent_settings import DeclaredTool
from switchboard.foundation.audit import AuditAction, record_audit
from switchboard.foundation.database import Database, new_id
from switchboard.foundation.events.outbox import decrypt_agent_secret
from switchboard.foundation.outbound import OutboundClient, OutboundError, validate_public_url
from switchboard.foundation.web.errors import RateLimited
from switchboard.foundation.web.paging import get_row
from switchboard.foundation.web.principal import Limit, Principal
from switchboard.foundation.web.rate_limits import RateLimiter
from switchboard.plugin_sdk import ToolContext
from switchboard.resources.agents.models import Agent
from switchboard.resources.agents.permissions import SCOPE
from switchboard.resources.agents.tools import HttpTool, build_tool_request, require_free_name

TEST_LIMIT = Limit(per_second=0.5, burst=20)
CALLER, CALLED = "+15550100001", "+15550100000"
"""The numbers of tests and simulations, which tools are given; nobody has them."""


@dataclass(frozen=True, slots=True)
class ToolTest:
    """The request of a test, and its answer: `status` is None, and `error` says why, if there was none."""

    request: str
    status: int | None
    answer: str
    error: str
    milliseconds: int


@dataclass(frozen=True, slots=True)
class ToolTester:
    """Tests tools that need not be saved."""

    database: Database
    outbound: OutboundClient
    limiter: RateLimiter

    async def test_tool(
        self, principal: Principal, agent_id: UUID | None, tool: DeclaredTool, arguments: dict[str, JsonValue]
    ) -> ToolTest:
        """Send a tool the request that a call would send, without a call. `agent_id` is None for a new agent, whose
        requests are not signed.

        Raises `NotFound`, `InsufficientScope`, `RateLimited`, and `ValidationFailed` for an address that is not public.
        """
        principal.require_scope(SCOPE, purpose="The test of a tool")
        require_free_name(tool, field="name")
        url = validate_public_url(self.outbound, tool.url, field="url") or ""
        organization_id = principal.organization_id
        if not (await self.limiter.check("tool-test", str(organization_id), TEST_LIMIT)).allowed:
            raise RateLimited("Too many tests of tools. Wait a moment, then try again.")
        secret = None
        async with self.database.write(organization_id, actor=principal.actor) as session:
            if agent_id is not None:
                await get_row(session, Agent, agent_id)
                secret = await decrypt_agent_secret(session, agent_id)
            record_audit(session, AuditAction.AGENT_TOOL_TESTED, f"{agent_id or 'new'} {tool.name}")
        context = ToolContext(organization_id, agent_id or new_id(), None, CALLER, CALLED)
        body = build_tool_request(tool.name, arguments, context)
        endpoint = HttpTool(self.outbound, tool.model_copy(update={"url": url}), secret)
        began = time.monotonic()
        status, answer, fault = None, "", ""
        try:
            reply = await endpoint.send(body)
            status, answer = reply.status, reply.body.decode(errors="replace")
        except OutboundError as error:
            fault = str(error)
        return ToolTest(body.decode(), status, answer, fault, round((time.monotonic() - began) * 1000))
