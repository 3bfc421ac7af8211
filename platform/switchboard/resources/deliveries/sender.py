"""Send one attempt of a delivery: sign, post, and evaluate the response."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic
from typing import Literal
from uuid import UUID

from opentelemetry.context import Context

from switchboard.foundation.database import now
from switchboard.foundation.encryption.content import UNREADABLE, Content, get_table, open_under_key
from switchboard.foundation.events.models import Delivery
from switchboard.foundation.events.outbox import get_secret_label
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.observability import metrics, traces
from switchboard.foundation.outbound import OutboundAnswer, OutboundClient, OutboundError, signature_headers

GONE = 410
OVERLOADED = {429, 502, 503, 504}
BODY = get_table(Delivery).c.body


@dataclass(frozen=True, slots=True)
class ClaimedDelivery:
    """A delivery under a lease, with everything needed to send it. `body` is as stored, `body_key` the encrypted key
    that it names. `clock` is the database's time of the claim, in Unix seconds.
    """

    id: UUID
    organization_id: UUID
    target_id: UUID
    target_kind: str
    url: str
    event_type: str
    subject_id: UUID
    body: Content[str]
    body_key: str | None
    attempts: int
    created_at: datetime
    secret: str | None
    previous_secret: str | None
    token: UUID


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """Result of an attempt. `delay` is the seconds until the next attempt, None without one; `slow` is true if it
    cost time without a result.
    """

    claimed: ClaimedDelivery
    status: Literal["pending", "delivered", "failed"]
    delay: float | None
    status_code: int | None
    error: str | None
    started_at: datetime
    duration_ms: int
    slow: bool


class DeliverySender:
    """Sends attempts with the retry schedule and timeout of the settings."""

    def __init__(self, outbound: OutboundClient, keyring: KeyRing, *, delays: Sequence[float], seconds: float) -> None:
        self._outbound = outbound
        self._keyring = keyring
        self._delays = tuple(delays)
        self._seconds = seconds

    async def send(self, claimed: ClaimedDelivery) -> AttemptResult:
        """Send one attempt. Raises `SecretError` if the keyring cannot decrypt the secret or the body.

        Its span is part of the trace of the call that the event is about.
        """
        attributes: traces.Attributes = {
            "switchboard.organization.id": str(claimed.organization_id),
            "switchboard.delivery.id": str(claimed.id),
            "switchboard.delivery.attempt": claimed.attempts + 1,
        }
        is_call = claimed.event_type.startswith("call.")
        context = traces.build_call_context(claimed.subject_id) if is_call else Context()
        with traces.span(f"deliver {claimed.event_type}", attributes, context=context):
            return await self._send(claimed)

    async def _send(self, claimed: ClaimedDelivery) -> AttemptResult:
        row = {"id": claimed.id, "organization_id": claimed.organization_id, BODY.name: claimed.body}
        open_under_key(self._keyring, claimed.body_key, BODY, row)
        began = monotonic()
        # The database's: receivers refuse a timestamp that is minutes off, as a worker's own clock may be.
        moment = now()
        if not claimed.body.is_readable:
            return AttemptResult(claimed, "failed", None, None, f"not sent: {UNREADABLE}", moment, 0, slow=False)
        content = claimed.body.value.encode()
        headers = self._build_headers(claimed, content, int(moment.timestamp()))
        code, error, outcome = None, None, "delivered"
        try:
            answer = await self._post(claimed.url, content, headers, began)
        except OutboundError as failure:
            error, outcome = str(failure), failure.kind
        else:
            code = answer.status
            error, outcome = _evaluate_status(code)
        took = monotonic() - began
        metrics.delivery_attempts.labels(outcome).inc()
        if claimed.attempts == 0:
            metrics.delivery_latency.observe(max(0.0, (moment - claimed.created_at).total_seconds()))
        status: Literal["pending", "delivered", "failed"] = "delivered"
        delay: float | None = None
        if error is not None and (code == GONE or claimed.attempts >= len(self._delays)):
            status = "failed"
        elif error is not None:
            status, delay = "pending", self._delays[claimed.attempts]
        slow = outcome in ("timeout", "connection") or code in OVERLOADED or took > self._seconds / 2
        return AttemptResult(
            claimed, status, delay, code, error, moment, timedelta(seconds=took) // timedelta(milliseconds=1), slow
        )

    async def _post(self, url: str, body: bytes, headers: Mapping[str, str], began: float) -> OutboundAnswer:
        try:
            return await self._outbound.post(url, body, headers=headers, seconds=self._seconds, read_limit=0)
        except OutboundError as failure:
            if not failure.stale:
                raise
        # The receiver closed an idle connection, which is not a failure of this delivery.
        left = max(0.1, began + self._seconds - monotonic())
        return await self._outbound.post(url, body, headers=headers, seconds=left, read_limit=0)

    def _build_headers(self, claimed: ClaimedDelivery, body: bytes, timestamp: int) -> dict[str, str]:
        label = get_secret_label(claimed.target_kind, claimed.target_id, claimed.organization_id)
        secrets = [
            self._keyring.decrypt(sealed, label)
            for sealed in (claimed.secret, claimed.previous_secret)
            if sealed is not None
        ]
        return {
            **signature_headers(body, *secrets, timestamp=timestamp),
            "User-Agent": "Switchboard/1.0",
            "X-Webhook-Event": claimed.event_type,
            "X-Webhook-Delivery-Id": str(claimed.id),
        }


def _evaluate_status(code: int) -> tuple[str | None, str]:
    if 200 <= code < 300:
        return None, "delivered"
    if 300 <= code < 400:
        return f"the receiver returned status {code}; redirects are not followed", "redirect"
    return f"the receiver returned status {code}", "gone" if code == GONE else "refused"
