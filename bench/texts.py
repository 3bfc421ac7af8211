"""Cost of encrypted texts: CPU time of this process for each transcript line that a live call writes, and for each read
of a transcript of 50 lines, of two organizations side by side, one of which encrypts.
"""

from statistics import median
from time import process_time

from switchboard.apps.embedded import DataDirectory
from switchboard.apps.process_runtime import open_process_runtime
from switchboard.engine.conversation.call import TranscriptEntry
from switchboard.foundation.database import Database
from switchboard.foundation.settings import Settings
from switchboard.migrations import upgrade
from switchboard.resources.calls import service as calls
from switchboard.resources.calls.media.call_log import DatabaseCallLog
from switchboard.resources.calls.models import Call
from switchboard.resources.identity.policy import Encryption, Policy
from switchboard.resources.identity.service import create_organization

from bench.embedded_server import run_with_servers

ROUNDS, LINES, READS = 20, 50, 20
WORDS = "I would like to order a cake for Saturday, for about twelve people, with cherries if you have them."


async def write_call(database: Database, policy: Policy) -> tuple[Call, float]:
    """Write a call's lines as a live call does; return the call, and the CPU time of a line in microseconds."""
    async with database.system() as session:
        organization = create_organization(session, name="Bench", policy=policy)
    call = Call(
        organization_id=organization.id,
        direction="inbound",
        from_number="+15550100001",
        to_number="+15550100002",
        carrier="loopback",
    )
    async with database.write(organization.id) as session:
        session.add(call)
    began = process_time()
    async with DatabaseCallLog(database, call) as log:
        for position in range(LINES):
            log.record_entry(TranscriptEntry("user", WORDS, 1000 * position, 1000 * position + 900))
    return call, (process_time() - began) / LINES * 1e6


async def read_call(database: Database, call: Call) -> float:
    """Return the CPU time of reading a transcript in microseconds."""
    began = process_time()
    for _ in range(READS):
        async with database.write(call.organization_id) as session:
            lines = await calls.get_transcript(session, call.id)
            if [line.content.value for line in lines] != [WORDS] * LINES:
                raise RuntimeError("the transcript is not what was written")
    return (process_time() - began) / READS * 1e6


async def measure(directory: DataDirectory) -> None:
    """Alternate both organizations, so that other work on the machine slows both."""
    await upgrade(directory.database_url)
    policies = {"plain": Policy(), "encrypted": Policy(encryption=Encryption(texts=True))}
    written: dict[str, list[float]] = {name: [] for name in policies}
    read: dict[str, list[float]] = {name: [] for name in policies}
    async with open_process_runtime(
        Settings(data_dir=directory.path), database_url=directory.database_url, redis_url=directory.redis_url
    ) as runtime:
        for _ in range(ROUNDS):
            for name, policy in policies.items():
                call, microseconds = await write_call(runtime.database, policy)
                written[name].append(microseconds)
                read[name].append(await read_call(runtime.database, call))
    print("| CPU time, µs | plain | encrypted | ratio |\n| --- | --- | --- | --- |")
    for name, found in (("a line written", written), (f"a transcript of {LINES} lines read", read)):
        plain, encrypted = median(found["plain"]), median(found["encrypted"])
        print(f"| {name} | {plain:.0f} | {encrypted:.0f} | {encrypted / plain:.2f} |")


def run() -> None:
    """Measure over the embedded servers."""
    run_with_servers(measure)
