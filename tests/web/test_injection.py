"""Arguments by name: each parameter of a handler, job, or socket has one source, or the process does not start."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import pytest
from quart import Quart, Response
from redis.asyncio import Redis
from switchboard.foundation.database import WriteSession
from switchboard.foundation.injection import InvalidParameter, resolve_parameters
from switchboard.foundation.jobs import bind_job
from switchboard.foundation.keyring import KeyRing
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.endpoint import endpoint
from switchboard.foundation.web.pipeline import inject, resolve_handlers
from switchboard.runtime import Runtime

NO_ARGUMENTS: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Signer:
    """Service of parts."""

    settings: Settings
    keyring: KeyRing


@dataclass(frozen=True, slots=True)
class Office:
    """Service of a part and a service."""

    redis: Redis
    signer: Signer


@dataclass(frozen=True, slots=True)
class Broken:
    """Service of something that is no part."""

    certificate: str


async def parts_and_service(settings: Settings, office: Office) -> None: ...


async def unknown_part(settings: Settings, certificate: str) -> None: ...


async def wrong_type(settings: KeyRing) -> None: ...


async def unknown_part_of_service(broken: Broken) -> None: ...


def test_parts_and_services_are_resolved_by_name(runtime: Runtime) -> None:
    resolved = resolve_parameters(parts_and_service, runtime.parts, NO_ARGUMENTS)
    office = Office(runtime.redis, Signer(runtime.settings, runtime.keyring))
    assert resolved == {"settings": runtime.settings, "office": office}
    assert runtime.call(Office) == office


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (unknown_part, "unknown_part: certificate: nobody provides this argument"),
        (unknown_part_of_service, "Broken: certificate: nobody provides this argument"),
        (wrong_type, "wrong_type: settings: the part is a Settings, not a KeyRing"),
    ],
)
def test_a_parameter_that_cannot_be_provided_is_refused(
    runtime: Runtime, function: Callable[..., object], message: str
) -> None:
    with pytest.raises(InvalidParameter, match=message):
        resolve_parameters(function, runtime.parts, NO_ARGUMENTS)


async def test_a_job_gets_its_parts_and_the_arguments_of_its_wake_up(runtime: Runtime) -> None:
    received = []

    async def greet(signer: Signer, *, name: str) -> None:
        received.append((signer, name))

    await bind_job(greet, runtime.parts)(name="Ada")
    await runtime.call(greet, name="Bob")
    signer = Signer(runtime.settings, runtime.keyring)
    assert received == [(signer, "Ada"), (signer, "Bob")]


def test_a_job_whose_argument_would_hide_a_part_is_refused(runtime: Runtime) -> None:
    async def move(*, node: str) -> None: ...

    with pytest.raises(InvalidParameter, match="move: the argument node would hide the part of that name"):
        bind_job(move, runtime.parts)


async def plain(node: str) -> str:
    return node


async def of_path_and_decorator(session: WriteSession, data: str) -> None: ...


async def without_body(session: WriteSession, data: str) -> None: ...


@pytest.mark.parametrize(
    ("path", "view", "message"),
    [
        ("/<node>", inject(plain), "plain: the argument node would hide the part of that name"),
        (
            "/<session>",
            endpoint(scope="calls:read")(of_path_and_decorator),
            "of_path_and_decorator: the path's session would hide the decorator's",
        ),
        (
            "/calls",
            endpoint(scope="calls:read")(without_body),
            "without_body: data: nobody provides this argument",
        ),
    ],
)
def test_a_handler_whose_argument_has_no_source_or_two_is_refused(
    runtime: Runtime, path: str, view: Callable[..., Awaitable[Response]], message: str
) -> None:
    app = Quart(__name__)
    app.add_url_rule(path, "view", view)
    with pytest.raises(InvalidParameter, match=message):
        resolve_handlers(app, runtime.parts)
