"""Access tokens on the API: one organization, the granted scopes, and immediate revocation."""

import asyncio
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
import structlog
from sqlmodel import col, delete, select, update
from switchboard.apps.embedded import DataDirectory
from switchboard.apps.worker import jobs
from switchboard.foundation.audit import AuditAction, AuditEntry
from switchboard.foundation.observability import logs
from switchboard.foundation.web.errors import NotFound
from switchboard.foundation.web.principal import SCOPES
from switchboard.resources.identity import members
from switchboard.resources.identity.models import Membership, User
from switchboard.resources.oauth import clients
from switchboard.resources.oauth.connections import Connection, disconnect, list_connections
from switchboard.resources.oauth.models import OAuthGrant, OAuthToken
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller
from tests.fixtures.json_access import objects_at
from tests.fixtures.oauth import PROOF, Application, make_user


async def test_a_token_may_do_what_was_granted_in_its_organization(
    application: Application, caller: Caller, stranger: Caller
) -> None:
    mine = (await caller.post("/v1/agents", {"name": "Mine"})).json["id"]
    theirs = (await stranger.post("/v1/agents", {"name": "Theirs"})).json["id"]
    holder = application.holder(await application.tokens(scope="agents:read"))
    listed = await holder.get("/v1/agents")
    assert [agent["id"] for agent in objects_at(listed.json, "items")] == [mine]
    assert (await holder.get(f"/v1/agents/{theirs}")).status == 404
    assert (await holder.post("/v1/agents", {"name": "More"})).status == 403
    assert (await holder.get("/v1/contacts")).status == 403


async def test_every_scope_can_be_granted(application: Application) -> None:
    holder = application.holder(await application.tokens(scope=" ".join(SCOPES)))
    for path in ("agents", "calls", "contacts", "campaigns", "billing/balance", "webhook-endpoints"):
        assert (await holder.get(f"/v1/{path}")).status == 200


async def test_the_audit_log_names_the_user_and_the_application(application: Application) -> None:
    holder = application.holder(await application.tokens(scope="agents:write"))
    assert (await holder.post("/v1/agents", {"name": "Made by an application"})).status == 201
    async with application.runtime.database.tenant(application.caller.organization_id) as session:
        entry = (
            await session.exec(select(AuditEntry).where(col(AuditEntry.action) == AuditAction.AGENT_CREATED))
        ).one()
    assert entry.actor == f"user:{application.user_id} via {application.client_id}"


async def test_either_token_given_back_ends_both_at_once(application: Application) -> None:
    for given_back in ("access_token", "refresh_token"):
        tokens = await application.tokens()
        holder = application.holder(tokens)
        assert (await holder.get("/v1/agents")).status == 200
        for _ in range(2):
            assert (await application.revoke(tokens[given_back], token_type_hint="anything")).status == 200
        assert (await holder.get("/v1/agents")).status == 401
        assert (await application.refresh(tokens["refresh_token"])).status == 400
    assert (await application.revoke("svca_unknown")).status == 200
    assert (await application.revoke("")).json["error"] == "invalid_request"


async def test_who_leaves_the_organization_takes_the_applications_along(application: Application) -> None:
    tokens = await application.tokens()
    async with application.runtime.database.tenant(application.caller.organization_id) as session:
        await session.exec(delete(Membership).where(col(Membership.user_id) == application.user_id))
    assert (await application.holder(tokens).get("/v1/agents")).status == 401
    assert (await application.refresh(tokens["refresh_token"])).status == 400
    async with application.runtime.database.system() as session:
        session.add(Membership(organization_id=application.caller.organization_id, user_id=application.user_id))
    assert (await application.refresh(tokens["refresh_token"])).status == 400, "and does not bring them back"


async def test_a_deleted_user_has_no_applications(application: Application) -> None:
    tokens = await application.tokens()
    async with application.runtime.database.system() as session:
        await session.exec(delete(User).where(col(User.id) == application.user_id))
    assert (await application.holder(tokens).get("/v1/agents")).status == 401
    assert (await application.refresh(tokens["refresh_token"])).status == 400


async def test_a_superadmin_who_is_one_no_longer_loses_what_was_granted_where_they_are_no_member(
    application: Application,
) -> None:
    application.user_id = await make_user(application.runtime, superadmin=True)
    first, second = await application.tokens(), await application.tokens()
    assert (await application.holder(first).get("/v1/agents")).status == 200
    async with application.runtime.database.system() as session:
        await session.exec(update(User).where(col(User.id) == application.user_id).values(is_superadmin=False))
    assert (await application.holder(second).get("/v1/agents")).status == 401
    assert (await application.refresh(second["refresh_token"])).status == 400


async def list_connected(runtime: Runtime, organization_id: UUID, user_id: UUID | None = None) -> list[Connection]:
    async with runtime.database.tenant(organization_id) as session:
        return await list_connections(session, user_id=user_id)


async def end_connection(runtime: Runtime, organization_id: UUID, application: UUID, user_id: UUID) -> None:
    async with runtime.database.tenant(organization_id, actor=f"user:{user_id}") as session:
        await disconnect(session, runtime.limiter, application=application, user_id=user_id)


async def remove_member(runtime: Runtime, organization_id: UUID, user_id: UUID) -> None:
    async with runtime.database.tenant(organization_id) as session:
        await members.remove_member(session, user_id)


async def test_connected_applications_are_listed_and_disconnected_at_once(
    application: Application, caller: Caller
) -> None:
    runtime, colleague = application.runtime, await make_user(application.runtime, caller.organization_id)
    mine = [await application.tokens(scope="agents:read"), await application.tokens(scope="calls:read agents:read")]
    unredeemed = await application.code()
    user_id, application.user_id = application.user_id, colleague
    theirs = await application.tokens()
    application.user_id = user_id
    holders = [application.holder(tokens) for tokens in (*mine, theirs)]
    assert [(await holder.get("/v1/agents")).status for holder in holders] == [200, 200, 200]

    found = await list_connected(runtime, caller.organization_id)
    assert [(entry.name, entry.user_id) for entry in found] == [
        ("Calendar sync", colleague),
        ("Calendar sync", user_id),
    ]
    (entry,) = await list_connected(runtime, caller.organization_id, user_id)
    assert entry.scopes == ("agents:read", "calls:read")
    assert entry.last_used_at is not None
    assert not await list_connected(runtime, uuid4())

    await end_connection(runtime, caller.organization_id, application.id, user_id)
    assert [(await holder.get("/v1/agents")).status for holder in holders] == [401, 401, 200]
    assert (await application.redeem(unredeemed)).status == 400
    assert [entry.user_id for entry in await list_connected(runtime, caller.organization_id)] == [colleague]
    with pytest.raises(NotFound):
        await end_connection(runtime, caller.organization_id, application.id, user_id)


async def test_one_organization_neither_sees_nor_ends_what_another_granted(
    application: Application, stranger: Caller
) -> None:
    runtime, tokens = application.runtime, await application.tokens()
    assert not await list_connected(runtime, stranger.organization_id)
    with pytest.raises(NotFound):
        await end_connection(runtime, stranger.organization_id, application.id, application.user_id)
    async with runtime.database.tenant(stranger.organization_id) as session:
        assert not (await session.exec(select(OAuthGrant))).all()
        assert not (await session.exec(select(OAuthToken))).all()
    assert (await application.holder(tokens).get("/v1/agents")).status == 200


async def test_a_user_of_two_organizations_grants_each_by_itself(application: Application, stranger: Caller) -> None:
    async with application.runtime.database.system() as session:
        session.add(Membership(organization_id=stranger.organization_id, user_id=application.user_id))
    theirs = (await stranger.post("/v1/agents", {"name": "Theirs"})).json["id"]
    holder = application.holder(await application.tokens())
    assert (await holder.get(f"/v1/agents/{theirs}")).status == 404
    application.caller = stranger
    assert (await application.holder(await application.tokens()).get(f"/v1/agents/{theirs}")).status == 200


async def test_a_removed_application_is_at_its_end(application: Application) -> None:
    tokens = await application.tokens()
    holder = application.holder(tokens)
    assert (await holder.get("/v1/agents")).status == 200
    await clients.delete_client(application.runtime.database, application.runtime.limiter, application.id)
    assert (await holder.get("/v1/agents")).status == 401
    assert (await application.refresh(tokens["refresh_token"])).json["error"] == "invalid_client"
    with pytest.raises(NotFound):
        await clients.delete_client(application.runtime.database, application.runtime.limiter, application.id)


async def test_what_has_expired_is_deleted_and_nothing_else(application: Application) -> None:
    live, over = await application.tokens(), await application.tokens()
    used = await application.refresh(live["refresh_token"])
    runtime = application.runtime
    async with runtime.database.system() as session:
        newest = (await session.exec(select(OAuthGrant).order_by(col(OAuthGrant.created_at).desc()).limit(1))).one()
        for table, which in ((OAuthGrant, col(OAuthGrant.id)), (OAuthToken, col(OAuthToken.grant_id))):
            await session.exec(
                update(table).where(which == newest.id).values(expires_at=newest.created_at - timedelta(seconds=1))
            )
    await jobs.delete_expired_grants(runtime)
    async with runtime.database.system() as session:
        mine = select(OAuthGrant.id).where(col(OAuthGrant.client_id) == application.id)
        assert len((await session.exec(mine)).all()) == 1
        assert len((await session.exec(select(OAuthToken).where(col(OAuthToken.grant_id).in_(mine)))).all()) == 2
    assert (await application.refresh(over["refresh_token"])).status == 400
    assert (await application.refresh(used.json["refresh_token"])).status == 200


async def test_no_secret_is_in_the_database_or_the_logs(
    servers: DataDirectory, application: Application, public_application: Application, capfd: pytest.CaptureFixture[str]
) -> None:
    logs.configure_logging("DEBUG", json=True)
    secrets = [str(application.secret)]
    try:
        for one, proof in ((application, {}), (public_application, PROOF)):
            secrets.append(await one.code(**proof))
            tokens = await one.tokens(**proof)
            fresh = await one.refresh(tokens["refresh_token"])
            secrets += [
                tokens["access_token"],
                tokens["refresh_token"],
                str(fresh.json["access_token"]),
                str(fresh.json["refresh_token"]),
            ]
            await one.refresh(tokens["refresh_token"])
            await one.holder(tokens).get("/v1/agents")
            await one.revoke(tokens["access_token"])
    finally:
        logged = "".join(capfd.readouterr())
        logs.configure_logging("WARNING", json=True)
        structlog.reset_defaults()
    assert "/api/oauth/token" in logged
    async with application.runtime.database.system() as session:
        connection = await session.connection()
        for table in ("oauth_client", "oauth_grant", "oauth_token", "audit_entry"):
            rows = (await connection.exec_driver_sql(f"select t::text from {table} t")).scalars()  # noqa: S608
            logged += "\n".join(rows)
    for secret in secrets:
        assert secret not in logged
        assert secret.encode().hex() not in logged


async def test_a_membership_ends_while_its_applications_refresh(application: Application, caller: Caller) -> None:
    for _ in range(5):
        application.user_id = await make_user(application.runtime, caller.organization_id)
        families = [await application.tokens() for _ in range(6)]
        removal = remove_member(application.runtime, caller.organization_id, application.user_id)
        refreshes = asyncio.gather(*(application.refresh(tokens["refresh_token"]) for tokens in families))
        answers, _ = await asyncio.gather(refreshes, removal)
        assert {answer.status for answer in answers} <= {200, 400}
        for tokens in families:
            assert not await list_connected(application.runtime, caller.organization_id, application.user_id)
            assert (await application.holder(tokens).get("/v1/agents")).status == 401
