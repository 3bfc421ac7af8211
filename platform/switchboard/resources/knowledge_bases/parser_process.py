"""Reads HTML, PDF and DOCX in a process of their own, because strangers made them: it has so much memory and time, and then it is gone.

It also keeps their parsing, which is Python through and through, away from the process that holds live calls.
"""

import asyncio
import resource
import sys
from collections.abc import Callable

from switchboard.resources.knowledge_bases.formats import DOCX, HTML, PDF, FormatError

SECONDS, MEMORY_BYTES = 60, 1024**3
AT_ONCE = 2
UNREADABLE = 3
_rooms = asyncio.Semaphore(AT_ONCE)


async def read(kind: str, data: bytes) -> str:
    """The text of a file. Raises `FormatError`."""
    async with _rooms:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            __name__,
            kind,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(SECONDS):
                text, told = await process.communicate(data)
        except TimeoutError:
            raise FormatError(f"takes longer than {SECONDS} seconds to read") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    if process.returncode == UNREADABLE:
        raise FormatError(told.decode().strip())
    if process.returncode != 0:
        raise FormatError("needs more memory or time to read than one file may have")
    return text.decode()


def _reader(kind: str) -> Callable[[bytes], str]:
    if kind == HTML:
        from switchboard.resources.knowledge_bases.html_text import html_text

        return html_text
    if kind == PDF:
        from switchboard.resources.knowledge_bases.pdf_text import pdf_text

        return pdf_text
    if kind == DOCX:
        from switchboard.resources.knowledge_bases.docx_text import docx_text

        return docx_text
    raise ValueError(kind)


def main() -> int:
    """The confined process: a file on standard input, its text on standard output."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    try:
        text = _reader(sys.argv[1])(sys.stdin.buffer.read())
    except FormatError as error:
        sys.stderr.write(str(error))
        return UNREADABLE
    sys.stdout.buffer.write(text.encode(errors="replace"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
