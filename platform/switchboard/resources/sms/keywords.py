"""Keywords: STOP, START, and HELP, which contacts send to the platform itself, and the replies.

A message counts if it is one of these words and nothing else, ignoring case and punctuation. START's words only matter
after a STOP: otherwise "yes" is an answer to the agent. STOP closes the conversation and adds the contact to the
do-not-call list; START reopens its conversation and removes an entry that a STOP made, but no other entry.
"""

from typing import Literal

from switchboard.foundation.database import WriteSession
from switchboard.foundation.encryption.content import Content
from switchboard.resources.do_not_call import service as do_not_call
from switchboard.resources.identity.service import find_organization
from switchboard.resources.sms.models import SmsConversation
from switchboard.resources.sms.service import MessageContent, can_be_called, has_opted_out, save_outbound_message

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
    "stop": "you will receive no more text messages from us. Reply START to receive them again.",
    "start": "you will receive text messages from us again. Reply HELP for help, STOP to end them.",
    "help": "reply STOP to receive no more text messages from us, START to receive them again.",
}


def parse_keyword(body: str) -> Keyword | None:
    """Return the keyword in a message; None for any other message."""
    said = " ".join(body.casefold().strip(" \t\r\n.,!?;:\"'-").split())
    return next((name for name, words in WORDS.items() if said in words), None)


async def obey_keyword(session: WriteSession, conversation: SmsConversation, said: Keyword, *, answered: bool) -> bool:
    """Obey a keyword; return False if it has no meaning here. `answered`: the carrier has confirmed it already."""
    has_opt_out = await do_not_call.has_text_opt_out(session, conversation.contact_number)
    if said == "start" and conversation.status == "open" and not has_opt_out:
        return False
    is_news = said == "help" or conversation.status == "open"
    if said == "stop":
        conversation.status = "closed"
        conversation.reply_due_at = conversation.answering_until = None
        conversation.parts, conversation.variables = Content([]), Content({})  # it outlives its messages
        if can_be_called(conversation):
            await do_not_call.add_entry(session, conversation.contact_number, source="text")
    elif said == "start":
        conversation.status = "open"
        if has_opt_out:
            await do_not_call.withdraw_text_opt_out(session, conversation.contact_number)
        is_news = not await has_opted_out(session, conversation)
    if is_news and not answered:
        organization = await find_organization(session, conversation.organization_id)
        answer = MessageContent(f"{organization.name}: {ANSWERS[said]}")
        await save_outbound_message(session, conversation, answer, author="platform")
    return True
