"""STOP, START and HELP: what a contact texts to the platform itself, and what it answers.

A text that is one of these words, and nothing else, counts; case and punctuation do not. START's words mean something only to somebody who has
said STOP: to everybody else "yes" is an answer to the agent. STOP closes the conversation and puts the contact on the do-not-call list; START
opens the conversation that it is said in and lifts what a STOP has listed, but no wish that was heard elsewhere.
"""

from typing import Literal

from sqlmodel import col

from switchboard.foundation.database import TenantSession
from switchboard.resources.do_not_call import service as do_not_call
from switchboard.resources.do_not_call.models import DoNotCallEntry
from switchboard.resources.identity.service import find_organization
from switchboard.resources.phone_numbers.models import PhoneNumber
from switchboard.resources.sms.models import SmsConversation
from switchboard.resources.sms.service import can_be_called, has_opted_out, save_outbound_message

Keyword = Literal["stop", "start", "help"]
WORDS: dict[Keyword, frozenset[str]] = {
    "stop": frozenset(
        (
            "stop",
            "stopall",
            "stop all",
            "unsubscribe",
            "cancel",
            "end",
            "quit",
            "revoke",
            "optout",
            "opt out",
            "arret",
            "arrêt",
            "alto",
        )
    ),
    "start": frozenset(("start", "yes", "unstop")),
    "help": frozenset(("help", "info")),
}
ANSWERS: dict[Keyword, str] = {
    "stop": "you will get no more texts from us. Reply START to get them again.",
    "start": "you will get texts from us again. Reply HELP for help, STOP to end them.",
    "help": "reply STOP to get no more texts from us, START to get them again.",
}


def keyword(body: str) -> Keyword | None:
    """The keyword that a text is, None for one that says something."""
    said = " ".join(body.casefold().strip(" \t\r\n.,!?;:\"'-").split())
    return next((name for name, words in WORDS.items() if said in words), None)


async def obey(
    session: TenantSession, conversation: SmsConversation, number: PhoneNumber, said: Keyword, *, answered: bool
) -> bool:
    """Do what a keyword asks for; answers False where it means nothing here. `answered`: the carrier has confirmed it to the contact itself."""
    listing = await _own_listing(session, conversation)
    if said == "start" and conversation.status == "open" and listing is None:
        return False
    is_news = said == "help" or conversation.status == "open"
    if said == "stop":
        conversation.status = "closed"
        conversation.reply_due_at = conversation.answering_until = None
        if can_be_called(conversation):
            await do_not_call.add_entry(session, conversation.contact_number, source="text")
    elif said == "start":
        conversation.status = "open"
        if listing is not None:
            await do_not_call.delete_entry(session, listing.id)
        is_news = not await has_opted_out(session, conversation)
    if is_news and not answered:
        organization = await find_organization(session, conversation.organization_id)
        await save_outbound_message(
            session, conversation, number, f"{organization.name}: {ANSWERS[said]}", author="platform"
        )
    return True


async def _own_listing(session: TenantSession, conversation: SmsConversation) -> DoNotCallEntry | None:
    """The contact's entry in the do-not-call list, where a text of theirs made it: others are not theirs to lift."""
    rows = do_not_call.list_entries(session, phone_number=conversation.contact_number).where(
        col(DoNotCallEntry.source) == "text"
    )
    return (await session.exec(rows)).one_or_none()
