"""E-mail over an SMTP server: encryption, logins, and refusals (RFC 5321, RFC 3207, RFC 4954)."""

import asyncio
import ssl
from email.headerregistry import Address
from pathlib import Path
from urllib.parse import quote

import pytest
from pydantic import SecretStr
from switchboard.foundation.mail import Mailer, MailRefused
from switchboard.foundation.settings import Settings, SettingsError, load_settings

from tests.fixtures.free_ports import find_free_port
from tests.fixtures.mail import LOGIN, LOGIN_SECRET, serve_mail
from tests.fixtures.redis_servers import Certificates

USER = f"{quote(LOGIN, safe='')}:{quote(LOGIN_SECRET, safe='')}@"


def create_mailer(url: str, sender: str = "") -> Mailer:
    return Mailer(Settings(smtp_url=SecretStr(url), mail_from=sender, public_url="https://phone.example.com/"))


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    return Certificates.create(tmp_path)


def present_own_certificate(certificates: Certificates) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.folder / "own.pem", certificates.folder / "own.key")
    return context


def trust(certificates: Certificates, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.folder / "authority.pem"))


async def test_a_server_without_encryption_and_login_takes_a_message() -> None:
    async with serve_mail() as server:
        mailer = create_mailer(f"smtp://127.0.0.1:{server.port}", "Äcme Phone <phone@example.com>")
        await mailer.check()
        await mailer.send(to="ada@example.com", subject="Grüße", text="One line.\n")
    message = server.messages[0]
    sender = message["From"].addresses[0]
    assert sender == Address("Äcme Phone", "phone", "example.com")
    assert (message["To"], message["Subject"], message.get_content()) == ("ada@example.com", "Grüße", "One line.\r\n")
    assert message["Message-ID"].endswith("@example.com>")
    assert message["Auto-Submitted"] == "auto-generated"


async def test_the_sender_is_at_the_public_host_unless_it_is_set() -> None:
    async with serve_mail() as server:
        await create_mailer(f"smtp://127.0.0.1:{server.port}").send(to="a@example.com", subject="x", text="x")
    assert server.messages[0]["From"] == "switchboard@phone.example.com"


@pytest.mark.parametrize("scheme", ["smtp", "smtps"])
async def test_a_login_goes_over_an_encrypted_connection(
    certificates: Certificates, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    trust(certificates, monkeypatch)
    context = present_own_certificate(certificates)
    serving = serve_mail(tls=context, login=True) if scheme == "smtps" else serve_mail(starttls=context, login=True)
    async with serving as server:
        mailer = create_mailer(f"{scheme}://{USER}127.0.0.1:{server.port}")
        await mailer.send(to="ada@example.com", subject="x", text="x")
        with pytest.raises(MailRefused, match="Authentication"):
            await create_mailer(f"{scheme}://{quote(LOGIN, safe='')}:wrong@127.0.0.1:{server.port}").check()
    assert len(server.messages) == 1


async def test_a_login_is_not_sent_in_clear_text() -> None:
    async with serve_mail() as server:
        with pytest.raises(MailRefused, match="STARTTLS"):
            await create_mailer(f"smtp://{USER}127.0.0.1:{server.port}").send(to="a@example.com", subject="x", text="x")
    assert server.messages == []


async def test_a_login_is_not_sent_to_a_server_with_an_unknown_certificate(certificates: Certificates) -> None:
    async with serve_mail(starttls=present_own_certificate(certificates), login=True) as server:
        with pytest.raises(MailRefused, match="certificate"):
            await create_mailer(f"smtp://{USER}127.0.0.1:{server.port}").send(to="a@example.com", subject="x", text="x")
    assert server.messages == []


async def test_without_a_login_an_offered_encryption_is_used_with_any_certificate(certificates: Certificates) -> None:
    async with serve_mail(starttls=present_own_certificate(certificates)) as server:
        await create_mailer(f"smtp://127.0.0.1:{server.port}").send(to="ada@example.com", subject="x", text="x")
    assert server.encrypted == [True]


async def test_refusals_say_why() -> None:
    async with serve_mail() as server:
        server.refused.add("nobody@example.com")
        mailer = create_mailer(f"smtp://127.0.0.1:{server.port}")
        with pytest.raises(MailRefused, match="no such mailbox"):
            await mailer.send(to="nobody@example.com", subject="x", text="x")
        with pytest.raises(MailRefused, match="cannot be addressed"):
            await mailer.send(to="a@example.com", subject="x\nBcc: everybody@example.com", text="x")
    with pytest.raises(MailRefused):
        await create_mailer(f"smtp://127.0.0.1:{find_free_port()}").check()
    with pytest.raises(MailRefused, match="cannot be used"):
        await create_mailer("smtp://mail..internal").check()
    with pytest.raises(MailRefused, match="SWITCHBOARD_SMTP_URL is not set"):
        await Mailer(Settings()).check()


async def test_a_server_that_does_not_answer_is_given_up() -> None:

    async def stay_silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.read()
        finally:
            writer.close()

    async with await asyncio.start_server(stay_silent, "127.0.0.1", 0) as server:
        with pytest.raises(MailRefused, match="did not answer within"):
            await create_mailer(f"smtp://127.0.0.1:{server.sockets[0].getsockname()[1]}").check()


@pytest.mark.parametrize("url", ["mail.internal", "http://mail.internal", "smtp://", "smtp://a/b?c", "smtp://a@b@c"])
def test_addresses_of_mail_servers_are_checked_and_not_shown(url: str) -> None:
    with pytest.raises(SettingsError, match="SWITCHBOARD_SMTP_URL: an address such as") as refused:
        load_settings({"SWITCHBOARD_SMTP_URL": url})
    assert url not in str(refused.value) or url == "smtp://"


@pytest.mark.parametrize("sender", ["Acme", "a@b <", "a@b\nBcc: c@d", "<a@b> c"])
def test_senders_are_checked(sender: str) -> None:
    with pytest.raises(SettingsError, match="SWITCHBOARD_MAIL_FROM"):
        load_settings({"SWITCHBOARD_MAIL_FROM": sender})
