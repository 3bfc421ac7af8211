"""STOP, START and HELP: what a contact texts to the platform itself, and what it answers.

A text that is one of these words, and nothing else, counts; case and punctuation do not. START's words mean something only to somebody who has
said STOP: to everybody else "yes" is an answer to the agent.
"""

from typing import Literal

from sqlmodel.ext.asyncio.session import AsyncSession

from switchboard.phone_numbers.models import PhoneNumber
from switchboard.sms.models import SmsConversation
from switchboard.sms.service import write

Keyword = Literal["stop", "start", "help"]
WORDS: dict[Keyword, frozenset[str]] = {
    "stop": frozenset(
        ("stop", "stopall", "stop all", "unsubscribe", "cancel", "end", "quit", "revoke", "optout", "opt out", "arret", "arrêt", "alto")
    ),
    "start": frozenset(("start", "yes", "unstop")),
    "help": frozenset(("help", "info")),
}
ANSWERS: dict[Keyword, str] = {
    "stop": "You will get no more texts from this number. Reply START to get them again.",
    "start": "You will get texts from this number again. Reply HELP for help, STOP to end them.",
    "help": "Reply STOP to get no more texts from this number, START to get them again.",
}


def keyword(body: str) -> Keyword | None:
    """The keyword that a text is, None for one that says something."""
    said = " ".join(body.casefold().strip(" \t\r\n.,!?;:\"'-").split())
    return next((name for name, words in WORDS.items() if said in words), None)


async def obey(session: AsyncSession, conversation: SmsConversation, number: PhoneNumber, said: Keyword, *, answered: bool) -> bool:
    """Do what a keyword asks for; answers False where it means nothing here. `answered`: the carrier has confirmed it to the contact itself."""
    if said == "start" and conversation.status == "open":
        return False
    is_news = said == "help" or (said == "stop") == (conversation.status == "open")
    if said == "stop":
        conversation.status = "closed"
        conversation.reply_due_at = conversation.answering_until = None
    elif said == "start":
        conversation.status = "open"
    if is_news and not answered:
        await write(session, conversation, number, ANSWERS[said], author="platform")
    return True
