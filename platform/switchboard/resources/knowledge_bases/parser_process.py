"""Parse HTML, PDF, and DOCX files, which are untrusted, in a separate process with limited memory and time.

The limit is processor time, which is the same on a busy machine. The elapsed time only bounds a process that waits.

This also keeps slow pure-Python parsing away from the process that holds live calls.
"""

import asyncio
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path
from uuid import UUID
from weakref import WeakValueDictionary

from switchboard.resources.knowledge_bases.formats import DOCX, HTML, PDF, FormatError

PROCESSOR_SECONDS, ELAPSED_SECONDS, MEMORY_BYTES = 10, 60, 1024**3
AT_ONCE = 2
UNREADABLE = 3
_processes = asyncio.Semaphore(AT_ONCE)
_organizations: WeakValueDictionary[UUID, asyncio.Lock] = WeakValueDictionary()


async def parse_file(organization_id: UUID, kind: str, data: bytes) -> str:
    """Extract the text of a file. Raises `FormatError`.

    An organization has one process at a time, so that its files do not keep those of others waiting.
    """
    # The same modules and libraries, and nothing that is secret.
    environment = {
        "LD_LIBRARY_PATH": os.environ.get("LD_LIBRARY_PATH", ""),
        "PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path),
    }
    turn = _organizations.setdefault(organization_id, asyncio.Lock())
    async with turn, _processes:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-m",
            __name__,
            kind,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment,
        )
        try:
            async with asyncio.timeout(ELAPSED_SECONDS):
                text, error_output = await process.communicate(data)
        except TimeoutError:
            raise FormatError(f"takes longer than {ELAPSED_SECONDS} seconds to read") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    if process.returncode == UNREADABLE:
        raise FormatError(error_output.decode().strip())
    if process.returncode != 0:
        raise FormatError("needs more memory or time to read than one file is allowed")
    return text.decode()


def _reader(kind: str) -> Callable[[bytes], str]:
    if kind == HTML:
        from switchboard.resources.knowledge_bases.html_text import extract_html_text

        return extract_html_text
    if kind == PDF:
        from switchboard.resources.knowledge_bases.pdf_text import extract_pdf_text

        return extract_pdf_text
    if kind == DOCX:
        from switchboard.resources.knowledge_bases.docx_text import extract_docx_text

        return extract_docx_text
    raise ValueError(kind)


def main() -> int:
    """Run the parser process: read a file from standard input, and write its text to standard output."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_SECONDS, PROCESSOR_SECONDS))
    try:
        text = _reader(sys.argv[1])(sys.stdin.buffer.read())
    except FormatError as error:
        sys.stderr.write(str(error))
        return UNREADABLE
    sys.stdout.buffer.write(text.encode(errors="replace"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
