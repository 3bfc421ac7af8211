"""Attacks on the authorization code flow: RFC 6749, 5.2, 6, and 10; RFC 7636, 4.6; RFC 9700, 4."""

from urllib.parse import urlsplit

from switchboard.foundation.web.principal import get_role_scopes

from tests.attack.http_client import Answer
from tests.attack.oauth_client import CHALLENGE, ORGANIZATION, VERIFIER, Application
from tests.attack.report import AttackResult
from tests.attack.scene import Scene
from tests.fixtures.redirect_uris import REDIRECT_URI_TRICKS

WIDER = ("agents:read agents:write", "agents:write", "contacts:read", "everything", "AGENTS:READ", "agents:*")
BAD_REQUESTS: tuple[dict[str, str | None], ...] = (
    {"response_type": "token"},
    {"response_type": "code token"},
    {"response_type": None},
    {"state": None},
    {"state": ""},
    {"scope": None},
    {"scope": "agents:fly"},
    {"code_challenge_method": "plain", "code_challenge": VERIFIER},
    {"code_challenge_method": None},
    {"code_challenge": None},
    {"code_challenge": "short"},
)
UNKNOWN_CLIENTS: tuple[dict[str, str | None], ...] = (
    {"client_id": None},
    {"client_id": "nobody"},
    {"client_id": "a\0b"},
    {"redirect_uri": None},
)


def is_refused(answer: Answer, *errors: str) -> bool:
    """Return whether the token endpoint refused, with one of these errors and no tokens."""
    errors = errors or ("invalid_grant", "invalid_request", "invalid_client", "invalid_scope")
    return answer.status in (400, 401) and answer.json.get("error") in errors and b"svc" not in answer.body


class OAuthAttack:
    """The attacks of one run."""

    def __init__(self, scene: Scene, result: AttackResult) -> None:
        self.scene, self.check = scene, result.check
        given = scene.credentials
        self.application = Application(scene, given.application)
        self.other = Application(scene, given.other_application)
        self.public = Application(scene, given.public_application)
        self.user = scene.victim.owner

    async def is_live(self, access_token: str) -> bool:
        return (await self.scene.victim.api.with_token(access_token).get("/v1/agents")).status == 200

    async def attack_requests(self) -> None:
        """Redirect nowhere but to the registered address, and give no code for a malformed request."""
        tricks: list[dict[str, str | None]] = [{"redirect_uri": uri} for uri in REDIRECT_URI_TRICKS]
        for change in (*UNKNOWN_CLIENTS, *tricks):
            for answer in (
                await self.application.request_consent(self.user, **change),
                await self.application.approve(self.user, **change),
            ):
                self.check(answer.status == 400 and "Location" not in answer.headers, f"authorize {change}", answer)
        without: dict[str, str | None] = {"code_challenge": None, "code_challenge_method": None}
        for application, requests in (
            (self.application, BAD_REQUESTS),
            (self.public, (*BAD_REQUESTS, without)),
        ):
            for bad in requests:
                answer = await application.approve(self.user, **bad)
                location = answer.headers.get("Location", "")
                self.check(answer.status in (303, 400) and "code=" not in location, f"authorize {bad}", answer)

    async def attack_consent(self) -> None:
        """Give no access without the user's own decision, or to an organization of others."""
        query = f"/oauth/authorize?{self.application.build_query({})}"
        page = await self.application.request_consent(self.user)
        found = ORGANIZATION.search(page.text)
        assert found, page
        decision = {"decision": "approve", "organization_id": found[1]}
        foreign_token = await self.scene.stranger.owner.read_csrf_token()
        for request, answer in (
            ("another user's organization", await self.application.decide(self.scene.stranger.owner, found[1])),
            ("no CSRF token", await self.user.send("POST", query, form=decision)),
            ("foreign CSRF token", await self.user.send("POST", query, form={**decision, "csrf_token": foreign_token})),
            ("not signed in", await self.scene.nobody.send("POST", query, form=decision)),
        ):
            self.check("code=" not in answer.headers.get("Location", ""), f"consent: {request}", answer)
        self.check("frame-ancestors 'none'" in page.headers.get("Content-Security-Policy", ""), "framing", page)
        headers = {"Origin": "https://evil.example.com"}
        form = {**decision, "csrf_token": await self.user.read_csrf_token()}
        answer = await self.user.send("POST", query, form=form, headers=headers)
        self.check(answer.status == 403, "consent: another origin", answer)

    async def attack_codes(self) -> None:
        """Redeem codes twice, for others, elsewhere, and without or with another proof."""
        code = await self.application.obtain_code(self.user)
        self.check(is_refused(await self.other.redeem(code)), "another application's code", code)
        tokens = (await self.application.redeem(code)).json
        replay = await self.application.redeem(code)
        self.check(is_refused(replay, "invalid_grant"), "replayed code", replay)
        self.check(not await self.is_live(tokens["access_token"]), "token of a replayed code", tokens["scope"])
        refreshed = await self.application.refresh(tokens["refresh_token"])
        self.check(is_refused(refreshed), "refresh token of a replayed code", refreshed)
        verifiers = (None, "", CHALLENGE, VERIFIER[:42], VERIFIER + "!", "x" * 129, "x" * 43)
        changes: list[dict[str, str | None]] = [{"code_verifier": verifier} for verifier in verifiers]
        changes += [
            {"redirect_uri": uri} for uri in (None, "https://evil.example.com/cb", "https://app.example.com/cb/")
        ]
        changes += [{"client_secret": secret} for secret in (None, "", "x", self.other.credentials.client_secret)]
        changes += [{"client_id": name} for name in (None, self.public.credentials.client_id, "nobody")]
        for change in changes:
            answer = await self.application.redeem(await self.application.obtain_code(self.user), **change)
            self.check(is_refused(answer), f"redeem {change}", answer)
        without = {"code_challenge": None, "code_challenge_method": None}
        downgraded = await self.application.obtain_code(self.user, **without)
        answer = await self.application.redeem(downgraded, code_verifier=VERIFIER)
        self.check(is_refused(answer), "verifier without a challenge", answer)
        for grant_type in ("password", "client_credentials", "implicit", "urn:ietf:params:oauth:grant-type:jwt-bearer"):
            answer = await self.application.ask_for_tokens({"grant_type": grant_type, "username": "a", "password": "b"})
            self.check(is_refused(answer, "unsupported_grant_type"), f"grant {grant_type}", answer)

    async def attack_tokens(self) -> None:
        """Widen, steal, swap, and reuse tokens."""
        tokens = await self.application.obtain_tokens(self.user)
        refresh, access = tokens["refresh_token"], tokens["access_token"]
        for scope in WIDER:
            answer = await self.application.refresh(refresh, scope=scope)
            self.check(is_refused(answer, "invalid_scope"), f"refresh with {scope}", answer)
        widened = await self.application.redeem(await self.application.obtain_code(self.user), scope="agents:write")
        self.check(widened.json.get("scope") == "agents:read", "redeem with agents:write", widened)
        self.check(is_refused(await self.other.refresh(refresh)), "another application's refresh token", "")
        self.check(is_refused(await self.application.refresh(access)), "access token as refresh token", "")
        self.check(not await self.is_live(refresh), "refresh token as access token", "")
        for token in (refresh, access):
            self.check(is_refused(await self.other.revoke(token)), "revocation by another application", "")
        self.check(await self.is_live(access), "tokens after others' revocation", "the token was revoked")
        newest = (await self.application.refresh(refresh)).json
        again = await self.application.refresh(refresh)
        self.check(is_refused(again, "invalid_grant"), "reused refresh token", again)
        await self.application.revoke(newest["refresh_token"])
        self.check(not await self.is_live(newest["access_token"]), "access token after revocation", "")
        await self.attack_resources()

    async def attack_resources(self) -> None:
        """Read and write another organization with a token, and more than the granting member may."""
        everything = " ".join(sorted({operation.scope or "" for operation in self.scene.victim.operations} - {""}))
        tokens = await self.application.obtain_tokens(self.scene.stranger.owner, scope=everything)
        holder = self.scene.stranger.api.with_token(tokens["access_token"])
        for operation, path in self.scene.victim.iterate_reads():
            if "{" in operation.path:
                answer = await holder.get(path)
                own_of_nobody = answer.status == 200 and answer.json.get("items") == []
                self.check(answer.status == 404 or own_of_nobody, f"GET {path} with a foreign token", answer)
        granted = await self.application.obtain_tokens(self.scene.victim.member, scope=everything)
        owners = set(granted["scope"].split()) - get_role_scopes("builder")
        self.check(not owners, "a member grants the scopes of owners", owners)
        page = await self.application.request_consent(self.user)
        self.check(urlsplit(page.headers.get("Location", "")).query == "", "consent page", page)


async def attack_oauth(scene: Scene, result: AttackResult) -> None:
    """Attack requests, consent, codes, and tokens."""
    attack = OAuthAttack(scene, result)
    await attack.attack_requests()
    await attack.attack_consent()
    await attack.attack_codes()
    await attack.attack_tokens()
