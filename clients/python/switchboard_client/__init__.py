"""Typed client of Switchboard's API.

    from switchboard_client import Switchboard

    with Switchboard(api_key="svc_live_…", base_url="https://voice.example.com") as client:
        call = client.calls.create(agent_id=agent_id, from_number_id=number_id, to_number="+15550100001")

`AsyncSwitchboard` has the same methods as coroutines.
"""

from switchboard_client import webhooks
from switchboard_client.client import AsyncSwitchboard, Switchboard
from switchboard_client.errors import (
    ApiError,
    AuthenticationError,
    ConflictError,
    ConnectionFailed,
    FieldError,
    InvalidResponse,
    InvalidSignature,
    NotFoundError,
    PermissionDeniedError,
    RateLimitError,
    ServerError,
    SwitchboardError,
    ValidationError,
)
from switchboard_client.pages import AsyncPage, Page

__all__ = [
    "ApiError",
    "AsyncPage",
    "AsyncSwitchboard",
    "AuthenticationError",
    "ConflictError",
    "ConnectionFailed",
    "FieldError",
    "InvalidResponse",
    "InvalidSignature",
    "NotFoundError",
    "Page",
    "PermissionDeniedError",
    "RateLimitError",
    "ServerError",
    "Switchboard",
    "SwitchboardError",
    "ValidationError",
    "webhooks",
]
