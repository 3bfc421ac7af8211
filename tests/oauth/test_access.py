"""Access tokens on the API: one organization, the granted scopes, and immediate revocation."""

import asyncio
from datetime import timedelta
from uuid import UUID, uuid4

import pytest
from sqlmodel import col, delete, select, update
from switchboard.apps.embedded import DataDirectory
from switchboard.foundation.audit import AuditAction, AuditEntry
from switchboard.foundation.observability import logs
from switchboard.foundation.web.errors import NotFound
from switchboard.foundation.web.principal import SCOPES
from switchboard.resources.identity import members
from switchboard.resources.identity.models import Membership, User
from switchboard.resources.oauth import clients
from switchboard.resources.oauth.clients import delete_expired_grants
from switchboard.resources.oauth.connections import Connection, disconnect, list_connections
from switchboard.resources.oauth.models import OAuthGrant, OAuthToken
from switchboard.runtime import Runtime

from tests.fixtures.app import Caller
from tests.fixtures.json_access import objects_at
from tests.fixtures.oauth import PROOF, Application, make_user


async def test_a_token_has_the_granted_scopes_in_its_organization(
    application: Application, caller: Caller, stranger: Caller
) -> None:
    own_agent = (await caller.post("/v1/agents", {"name": "Mine"})).json["id"]
    foreign_agent = (await stranger.post("/v1/agents", {"name": "Theirs"})).json["id"]
    holder = application.build_caller(await application.obtain_tokens(scope="agents:read"))
    response = await holder.get("/v1/agents")
    assert [agent["id"] for agent in objects_at(response.json, "items")] == [own_agent]
    assert (await holder.get(f"/v1/agents/{foreign_agent}")).status == 404
    assert (await holder.post("/v1/agents", {"name": "More"})).status == 403
    assert (await holder.get("/v1/contacts")).status == 403


async def test_every_scope_can_be_granted_by_whoever_has_it(application: Application) -> None:
    holder = application.build_caller(await application.obtain_tokens(scope=" ".join(SCOPES)))
    for path in ("agents", "calls", "contacts", "campaigns", "webhook-endpoints"):
        assert (await holder.get(f"/v1/{path}")).status == 200
    assert (await holder.get("/v1/billing/balance")).status == 403, "a builder's application reads no billing"


async def test_the_audit_log_names_the_user_and_the_application(application: Application) -> None:
    holder = application.build_caller(await application.obtain_tokens(scope="agents:write"))
    assert (await holder.post("/v1/agents", {"name": "Made by an application"})).status == 201
    async with application.runtime.database.write(application.caller.organization_id) as session:
        entry = (
            await session.exec(select(AuditEntry).where(col(AuditEntry.action) == AuditAction.AGENT_CREATED))
        ).one()
    assert entry.actor == f"user:{application.user_id} via {application.client_id}"


async def test_revoking_either_token_ends_both_at_once(application: Application) -> None:
    for token_name in ("access_token", "refresh_token"):
        tokens = await application.obtain_tokens()
        holder = application.build_caller(tokens)
        assert (await holder.get("/v1/agents")).status == 200
        for _ in range(2):
            assert (await application.revoke(tokens[token_name], token_type_hint="anything")).status == 200
        assert (await holder.get("/v1/agents")).status == 401
        assert (await application.refresh(tokens["refresh_token"])).status == 400
    assert (await application.revoke("svca_unknown")).status == 200
    assert (await application.revoke("")).json["error"] == "invalid_request"


async def test_a_removed_member_loses_all_connected_applications(application: Application) -> None:
    tokens = await application.obtain_tokens()
    async with application.runtime.database.write(application.caller.organization_id) as session:
        await session.exec(delete(Membership).where(col(Membership.user_id) == application.user_id))
    assert (await application.build_caller(tokens).get("/v1/agents")).status == 401
    assert (await application.refresh(tokens["refresh_token"])).status == 400
    async with application.runtime.database.system() as session:
        session.add(Membership(organization_id=application.caller.organization_id, user_id=application.user_id))
    assert (await application.refresh(tokens["refresh_token"])).status == 400, "and does not bring them back"


async def test_deleting_a_user_ends_their_grants(application: Application) -> None:
    tokens = await application.obtain_tokens()
    async with application.runtime.database.system() as session:
        await session.exec(delete(User).where(col(User.id) == application.user_id))
    assert (await application.build_caller(tokens).get("/v1/agents")).status == 401
    assert (await application.refresh(tokens["refresh_token"])).status == 400


async def list_connected(runtime: Runtime, organization_id: UUID, user_id: UUID | None = None) -> list[Connection]:
    async with runtime.database.write(organization_id) as session:
        return await list_connections(session, user_id=user_id)


async def end_connection(runtime: Runtime, organization_id: UUID, application: UUID, user_id: UUID) -> None:
    async with runtime.database.write(organization_id, actor=f"user:{user_id}") as session:
        await disconnect(session, runtime.limiter, application=application, user_id=user_id)


async def remove_member(runtime: Runtime, organization_id: UUID, user_id: UUID) -> None:
    async with runtime.database.write(organization_id) as session:
        await members.remove_member(session, user_id)


async def test_connected_applications_are_listed_and_disconnected_at_once(
    application: Application, caller: Caller
) -> None:
    runtime, colleague = application.runtime, await make_user(application.runtime, caller.organization_id)
    own_grants = [
        await application.obtain_tokens(scope="agents:read"),
        await application.obtain_tokens(scope="calls:read agents:read"),
    ]
    unredeemed = await application.obtain_code()
    user_id, application.user_id = application.user_id, colleague
    foreign_tokens = await application.obtain_tokens()
    application.user_id = user_id
    holders = [application.build_caller(tokens) for tokens in (*own_grants, foreign_tokens)]
    assert [(await holder.get("/v1/agents")).status for holder in holders] == [200, 200, 200]

    connections = await list_connected(runtime, caller.organization_id)
    assert [(entry.name, entry.user_id) for entry in connections] == [
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


async def test_organizations_neither_see_nor_end_each_others_grants(application: Application, stranger: Caller) -> None:
    runtime, tokens = application.runtime, await application.obtain_tokens()
    assert not await list_connected(runtime, stranger.organization_id)
    with pytest.raises(NotFound):
        await end_connection(runtime, stranger.organization_id, application.id, application.user_id)
    async with runtime.database.write(stranger.organization_id) as session:
        assert not (await session.exec(select(OAuthGrant))).all()
        assert not (await session.exec(select(OAuthToken))).all()
    assert (await application.build_caller(tokens).get("/v1/agents")).status == 200


async def test_a_user_of_two_organizations_grants_access_to_each_separately(
    application: Application, stranger: Caller
) -> None:
    async with application.runtime.database.system() as session:
        session.add(Membership(organization_id=stranger.organization_id, user_id=application.user_id))
    foreign_agent = (await stranger.post("/v1/agents", {"name": "Theirs"})).json["id"]
    holder = application.build_caller(await application.obtain_tokens())
    assert (await holder.get(f"/v1/agents/{foreign_agent}")).status == 404
    application.caller = stranger
    assert (
        await application.build_caller(await application.obtain_tokens()).get(f"/v1/agents/{foreign_agent}")
    ).status == 200


async def test_removing_an_application_ends_its_grants(application: Application) -> None:
    tokens = await application.obtain_tokens()
    holder = application.build_caller(tokens)
    assert (await holder.get("/v1/agents")).status == 200
    await clients.delete_client(application.runtime.database, application.runtime.limiter, application.id)
    assert (await holder.get("/v1/agents")).status == 401
    assert (await application.refresh(tokens["refresh_token"])).json["error"] == "invalid_client"
    with pytest.raises(NotFound):
        await clients.delete_client(application.runtime.database, application.runtime.limiter, application.id)


async def test_only_expired_rows_are_deleted(application: Application) -> None:
    live, expired = await application.obtain_tokens(), await application.obtain_tokens()
    refreshed = await application.refresh(live["refresh_token"])
    runtime = application.runtime
    async with runtime.database.system() as session:
        newest = (await session.exec(select(OAuthGrant).order_by(col(OAuthGrant.created_at).desc()).limit(1))).one()
        for table, column in ((OAuthGrant, col(OAuthGrant.id)), (OAuthToken, col(OAuthToken.grant_id))):
            await session.exec(
                update(table).where(column == newest.id).values(expires_at=newest.created_at - timedelta(seconds=1))
            )
    await runtime.call(delete_expired_grants)
    async with runtime.database.system() as session:
        own_grants = select(OAuthGrant.id).where(col(OAuthGrant.client_id) == application.id)
        assert len((await session.exec(own_grants)).all()) == 1
        assert len((await session.exec(select(OAuthToken).where(col(OAuthToken.grant_id).in_(own_grants)))).all()) == 2
    assert (await application.refresh(expired["refresh_token"])).status == 400
    assert (await application.refresh(refreshed.json["refresh_token"])).status == 200


@pytest.mark.usefixtures("server_logs")
async def test_secrets_appear_neither_in_the_database_nor_in_the_logs(
    servers: DataDirectory, application: Application, public_application: Application, capfd: pytest.CaptureFixture[str]
) -> None:
    logs.configure_logging("DEBUG", json=True)
    secrets = [str(application.secret)]
    for client, proof in ((application, {}), (public_application, PROOF)):
        secrets.append(await client.obtain_code(**proof))
        tokens = await client.obtain_tokens(**proof)
        refreshed = await client.refresh(tokens["refresh_token"])
        secrets += [
            tokens["access_token"],
            tokens["refresh_token"],
            str(refreshed.json["access_token"]),
            str(refreshed.json["refresh_token"]),
        ]
        await client.refresh(tokens["refresh_token"])
        await client.build_caller(tokens).get("/v1/agents")
        await client.revoke(tokens["access_token"])
    logged = "".join(capfd.readouterr())
    assert "/api/oauth/token" in logged
    async with application.runtime.database.system() as session:
        connection = await session.connection()
        for table in ("oauth_client", "oauth_grant", "oauth_token", "audit_entry"):
            rows = (await connection.exec_driver_sql(f"select t::text from {table} t")).scalars()  # noqa: S608
            logged += "\n".join(rows)
    for secret in secrets:
        assert secret not in logged
        assert secret.encode().hex() not in logged


async def test_a_membership_may_end_during_a_refresh(application: Application, caller: Caller) -> None:
    for _ in range(5):
        application.user_id = await make_user(application.runtime, caller.organization_id)
        families = [await application.obtain_tokens() for _ in range(6)]
        removal = remove_member(application.runtime, caller.organization_id, application.user_id)
        refreshes = asyncio.gather(*(application.refresh(tokens["refresh_token"]) for tokens in families))
        responses, _ = await asyncio.gather(refreshes, removal)
        assert {response.status for response in responses} <= {200, 400}
        for tokens in families:
            assert not await list_connected(application.runtime, caller.organization_id, application.user_id)
            assert (await application.build_caller(tokens).get("/v1/agents")).status == 401
