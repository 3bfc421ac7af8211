"""Kamailio as the registrar and proxy of a trunk, which asks for the digest of REGISTER and of calls."""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.fixtures.debian_tools import find_tool
from tests.fixtures.eventually import eventually

USER, PASSWORD = "switchboard", "the password of a trunk"
EXPIRES_SECONDS = 20
OPTIONS = (
    "OPTIONS sip:127.0.0.1:{port} SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1:{own_port};branch=z9hG4bK-wait\r\n"
    "From: <sip:test@127.0.0.1>;tag=1\r\nTo: <sip:127.0.0.1>\r\nCall-ID: wait\r\nCSeq: 1 OPTIONS\r\n"
    "Max-Forwards: 70\r\nContent-Length: 0\r\n\r\n"
)
SETTINGS = """#!KAMAILIO
debug=1
log_stderror=yes
children=1
auto_aliases=no
disable_tcp=yes
listen=udp:127.0.0.1:{port}
mpath="/usr/lib/x86_64-linux-gnu/kamailio/modules/"
loadmodule "kex.so"
loadmodule "tm.so"
loadmodule "sl.so"
loadmodule "rr.so"
loadmodule "pv.so"
loadmodule "maxfwd.so"
loadmodule "usrloc.so"
loadmodule "registrar.so"
loadmodule "siputils.so"
loadmodule "textops.so"
loadmodule "xlog.so"
loadmodule "auth.so"
modparam("registrar", "max_expires", {expires})
modparam("usrloc", "db_mode", 0)

request_route {{
    if (!mf_process_maxfwd_header("10")) {{
        sl_send_reply("483", "Too Many Hops");
        exit;
    }}
    if (has_totag()) {{
        if (loose_route() || (is_method("ACK") && t_check_trans())) {{
            t_relay();
        }} else if (!is_method("ACK")) {{
            sl_send_reply("404", "Not Here");
        }}
        exit;
    }}
    if (is_method("CANCEL")) {{
        if (t_check_trans()) {{
            t_relay();
        }}
        exit;
    }}
    if (is_method("REGISTER")) {{
        if (!pv_www_authenticate("$td", "{password}", "0")) {{
            www_challenge("$td", "0");
            exit;
        }}
        save("location");
        xlog("L_ALERT", "registered $ct\\n");
        exit;
    }}
    if (is_method("OPTIONS")) {{
        sl_send_reply("200", "OK");
        exit;
    }}
    record_route();
    if ($sp == {telephone_port}) {{
        # The subscriber is in the location table; the number stays in To.
        $rU = "{user}";
        if (!lookup("location")) {{
            sl_send_reply("480", "Not Registered");
            exit;
        }}
        t_relay();
        exit;
    }}
    if (!pv_proxy_authenticate("$fd", "{password}", "0")) {{
        proxy_challenge("$fd", "0");
        exit;
    }}
    consume_credentials();
    $du = "sip:127.0.0.1:{telephone_port}";
    t_relay();
}}
"""


@dataclass
class Kamailio:
    """A proxy that can be killed and started again. `telephone_port` is that of its other side."""

    folder: Path
    port: int
    telephone_port: int
    settings: str = SETTINGS
    _process: asyncio.subprocess.Process | None = field(default=None)

    @property
    def log(self) -> str:
        path = self.folder / "kamailio.log"
        return path.read_text() if path.exists() else ""

    async def start(self) -> None:
        program = find_tool("kamailio")
        self.folder.mkdir(exist_ok=True)
        settings = self.folder / "kamailio.cfg"
        settings.write_text(
            self.settings.format(
                port=self.port,
                telephone_port=self.telephone_port,
                user=USER,
                password=PASSWORD,
                expires=EXPIRES_SECONDS,
            )
        )
        with (self.folder / "kamailio.log").open("ab") as output:
            self._process = await asyncio.create_subprocess_exec(
                *(program, "-f", str(settings), "-DD", "-E", "-m", "32", "-Y", str(self.folder)),
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    async def wait_until_it_answers(self) -> None:
        """Wait until it answers OPTIONS."""
        loop = asyncio.get_running_loop()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
            asking.setblocking(False)
            asking.connect(("127.0.0.1", self.port))
            request = OPTIONS.format(port=self.port, own_port=asking.getsockname()[1]).encode()

            async def ask() -> bytes:
                with suppress(OSError, TimeoutError):  # refused until Kamailio listens
                    await loop.sock_sendall(asking, request)
                    async with asyncio.timeout(0.5):
                        return await loop.sock_recv(asking, 4096)
                return b""

            await eventually(ask, bool)

    async def kill(self) -> None:
        """Kill it and its children at once."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        await self._process.wait()

    async def wait_for_registrations(self, count: int) -> None:
        """Wait until it has accepted so many registrations since the first start."""

        async def look() -> str:
            return self.log

        await eventually(look, lambda log: log.count("registered ") >= count)


@asynccontextmanager
async def run_kamailio(
    folder: Path, port: int, telephone_port: int, settings: str = SETTINGS
) -> AsyncIterator[Kamailio]:
    """Run Kamailio between a registered gateway and a telephone at this port. `settings` are a format string."""
    kamailio = Kamailio(folder, port, telephone_port, settings)
    await kamailio.start()
    try:
        yield kamailio
    finally:
        await kamailio.kill()
