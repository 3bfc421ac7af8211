"""E-mail over the operator's SMTP server (RFC 5321, RFC 6409)."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email.errors import MessageError
from email.message import EmailMessage
from email.utils import formatdate, make_msgid
from urllib.parse import unquote, urlsplit

import aiosmtplib

from switchboard.foundation.settings import Settings

SMTP_SECONDS = 10.0
SUBMISSION_PORTS = {"smtp": 587, "smtps": 465}
"""Default ports (RFC 8314)."""


class MailRefused(Exception):
    """The mail server cannot be reached or refuses an e-mail; the message is one line for people, without the login.

    It may contain the recipient's address, so logs get `status`, the server's reply code, None without a reply.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Mailer:
    """Sends e-mail. Messages are not queued: the sender decides what follows if the server refuses one."""

    settings: Settings

    @property
    def is_set_up(self) -> bool:
        """Return whether there is a mail server."""
        return self.settings.smtp_url is not None

    async def send(self, *, to: str, subject: str, text: str) -> None:
        """Send a message of plain text to one address. Raises `MailRefused`, also if there is no mail server."""
        sender = self.settings.mail_from or f"switchboard@{urlsplit(self.settings.base_url).hostname}"
        message = EmailMessage()
        try:
            message["From"], message["To"], message["Subject"] = sender, to, subject
        except (ValueError, MessageError) as error:
            raise MailRefused(f"the message cannot be addressed: {error}") from None
        message["Date"] = formatdate()
        message["Message-ID"] = make_msgid(domain=sender.rpartition("@")[2].rstrip(">"))
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(text)
        async with self._connect() as server:
            await server.send_message(message)

    async def check(self) -> None:
        """Connect and log in. Raises `MailRefused`."""
        async with self._connect() as server:
            await server.noop()

    @asynccontextmanager
    async def _connect(self) -> AsyncIterator[aiosmtplib.SMTP]:
        """Connect for `SMTP_SECONDS` at most. Raises `MailRefused`."""
        try:
            async with asyncio.timeout(SMTP_SECONDS), self._create_client() as server:
                yield server
        except TimeoutError:
            raise MailRefused(f"the mail server did not answer within {SMTP_SECONDS:.0f} seconds") from None
        except aiosmtplib.SMTPRecipientsRefused as error:
            refusal = error.recipients[0]
            raise MailRefused(f"the mail server refused the recipient: {refusal.message}", refusal.code) from error
        except (aiosmtplib.SMTPException, OSError, UnicodeError) as error:  # UnicodeError: the host name is not valid
            status = error.code if isinstance(error, aiosmtplib.SMTPResponseException) else None
            raise MailRefused(
                f"the mail server cannot be used: {str(error) or type(error).__name__}", status
            ) from error

    def _create_client(self) -> aiosmtplib.SMTP:
        """Return a client of the mail server.

        A login never travels in clear text, nor to a server whose certificate is not trusted. Without a login, STARTTLS
        is used if the server offers it, with any certificate, as between mail servers (RFC 7435).
        """
        if self.settings.smtp_url is None:
            raise MailRefused("SWITCHBOARD_SMTP_URL is not set")
        url = urlsplit(self.settings.smtp_url.get_secret_value())
        if url.scheme == "smtps" or url.username:
            context = ssl.create_default_context()
        else:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # without the trusted ones, whose reading takes 50 ms
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return aiosmtplib.SMTP(
            hostname=url.hostname,
            port=url.port or SUBMISSION_PORTS[url.scheme],
            username=unquote(url.username) if url.username else None,
            password=unquote(url.password) if url.password else None,
            use_tls=url.scheme == "smtps",
            start_tls=True if url.scheme == "smtp" and url.username else None,
            tls_context=context,
            timeout=SMTP_SECONDS,
        )
