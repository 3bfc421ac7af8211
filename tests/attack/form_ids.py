"""Ids in the fields of the dashboard's forms: each field that offers ids of the own organization gets foreign ones."""

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import uuid4

from tests.attack.crawl import Form, crawl_dashboard
from tests.attack.dashboard_pages import FormAnswer, submit_form
from tests.attack.http_client import HttpClient
from tests.attack.organization import PERSON, UUID, Organization
from tests.attack.report import AttackResult
from tests.attack.scene import Scene

TYPED = {
    "name": "x",
    "to_number": PERSON,
    "people": PERSON,
    "body": "x",
    "tag": "x",
    "handoffs.0.description": "x",
    "variables.0.name": "x",
}
"""Values of fields that a user has to fill in."""
NOT_TRIED = {"/campaigns/new/preview": "the preview shows the typed people, and looks up nothing"}
"""Endings of the addresses of forms whose ids are not looked up, with the reason."""


@dataclass(frozen=True, slots=True)
class IdField:
    """A field that takes an id: the form's target and fields, its name, an own id, and the foreign ids to try."""

    path: str
    form: Form
    name: str
    own: str
    foreign: list[str]

    async def submit(self, browser: HttpClient, key: str) -> FormAnswer:
        """Post the form with an id in this field, own ids in the others, and the session's own token."""
        fields = [(name, value or self._choose(name)) for name, value in self.form.fields if name != self.name]
        return await submit_form(browser, self.path, [*fields, (self.name, key)])

    def _choose(self, name: str) -> str:
        ids = [value for value in self.form.offered.get(name, []) if UUID.fullmatch(value)]
        return ids[0] if ids else TYPED.get(name, "")

    async def attack(self, browser: HttpClient, result: AttackResult) -> None:
        """Compare the response to each foreign id with the one to an unknown id, and see that it was looked up."""
        request, unknown = f"POST {self.path} with {self.name}", str(uuid4())
        expected = (await self.submit(browser, unknown)).without(unknown)
        if expected.status == 303:
            is_looked_up = (await self.submit(browser, self.own)).without(self.own) != expected
        else:
            fault = f'id="fault-{self.name.removesuffix("[]")}"'
            is_looked_up = expected.status == 404 or (expected.status == 422 and fault in expected.text)
        reasons = [reason for ending, reason in NOT_TRIED.items() if self.path.endswith(ending)]
        result.left_out += [f"{request}: {reason}" for reason in reasons]
        result.check(is_looked_up or bool(reasons), f"{request}: the id is not looked up", expected)
        for key in self.foreign:
            answer = (await self.submit(browser, key)).without(key)
            result.check(answer == expected, f"{request} {key}", answer)


def find_id_fields(forms: dict[str, Form], attacker: Organization, victim: Organization) -> Iterator[IdField]:
    """Yield the fields that offer ids of the attacker's rows, with the victim's rows of the same kind."""
    for path, form in sorted(forms.items()):
        for name, offered in form.offered.items():
            for collection, ids in attacker.ids.items():
                if own := [value for value in offered if value in ids]:
                    yield IdField(path, form, name, own[0], victim.ids[collection])


async def attack_form_ids(scene: Scene, result: AttackResult) -> None:
    """Post each form of the dashboard with ids of another organization in its fields."""
    victim, stranger = scene.victim, scene.stranger
    foreign = [key for ids in victim.ids.values() for key in ids]
    crawled = await crawl_dashboard(stranger.owner)
    # One after the other: a notice is shown on the next page of the session.
    for field in find_id_fields(crawled.forms, stranger, victim):
        await field.attack(stranger.owner, result)
    written = {path for path, text in (await stranger.read_rows()).items() if any(key in text for key in foreign)}
    result.check(not written, "rows of the attacker that name the victim's", written)
