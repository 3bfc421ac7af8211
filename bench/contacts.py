"""Latency of a search over one organization's 100,000 contacts through the API, including the page's `total`.

The baseline is a naive search with ILIKE for each word in each field, in a transaction of the same role. The tables
also hold the contacts of four other organizations.
"""

import random
import time
from collections.abc import Awaitable, Callable
from statistics import median
from uuid import UUID

import asyncpg
import numpy as np
from quart.typing import TestClientProtocol
from sqlalchemy import or_
from sqlmodel import col
from switchboard.apps.embedded import DataDirectory
from switchboard.apps.process_runtime import open_process_runtime
from switchboard.apps.server import app
from switchboard.foundation.database import new_id, now
from switchboard.foundation.settings import Settings
from switchboard.foundation.web.paging import paginate
from switchboard.foundation.web.schemas import PageQuery
from switchboard.migrations import upgrade
from switchboard.resources.contacts import search
from switchboard.resources.contacts.models import Contact
from switchboard.resources.contacts.queries import select_contacts
from switchboard.resources.contacts.schemas import ContactOut
from switchboard.resources.identity import service as identity
from switchboard.resources.identity.policy import Policy, RateLimit, RateLimits
from switchboard.runtime import Runtime

from bench.embedded_server import run_with_servers

OURS, OTHERS, OTHER_ORGANIZATIONS = 100_000, 20_000, 4
ROUNDS = 10
SYLLABLES = [
    "an",
    "bel",
    "cor",
    "dan",
    "el",
    "fen",
    "gar",
    "han",
    "is",
    "jon",
    "kel",
    "lin",
    "mar",
    "nor",
    "os",
    "pet",
    "quin",
    "ros",
    "sam",
    "tor",
    "ul",
    "ver",
    "wil",
    "xan",
    "yor",
    "zel",
    "ber",
    "ching",
    "ford",
    "ham",
    "ley",
    "smith",
    "ton",
]
COLUMNS = (
    "id",
    "organization_id",
    "created_at",
    "updated_at",
    "phone_number",
    "name",
    "email",
    "company",
    "notes",
    "tags",
    "is_favorite",
)
Search = Callable[[str], Awaitable[int]]


def invent_contact(chance: random.Random, number: int, organization_id: UUID, words: list[str]) -> Contact:
    first, last, company = (chance.choice(words) for _ in range(3))
    return Contact(
        id=new_id(),
        organization_id=organization_id,
        created_at=now(),
        phone_number=f"+1555{number:07d}",
        name=f"{first.title()} {last.title()}",
        email=f"{first}.{last}@example.com",
        company=f"{company.title()} Limited",
        notes=" ".join(chance.choice(words) for _ in range(25)),
        tags=chance.choice(["vip", "lead", "customer", "customer, west"]),
        updated_at=now(),
    )


async def fill(url: str, organization_id: UUID, number: int, words: list[str]) -> None:
    chance = random.Random(str(number))
    contacts = [invent_contact(chance, index, organization_id, words) for index in range(number)]
    connection = await asyncpg.connect(url)
    await connection.copy_records_to_table(
        "contact", columns=COLUMNS, records=[[getattr(one, name) for name in COLUMNS] for one in contacts]
    )
    rows = [(one.id, organization_id, one.created_at, *search.build_search_columns(one).values()) for one in contacts]
    await connection.copy_records_to_table(
        "contact_search", columns=("id", "organization_id", "created_at", "content", "notes"), records=rows
    )
    await connection.close()


async def create_benchmark_organization(parts: Runtime) -> tuple[UUID, str]:
    unlimited = RateLimit(per_second=100_000, burst=1_000_000)
    async with parts.database.system() as session:
        organization = identity.create_organization(
            session, name="Bench", policy=Policy(rate_limits=RateLimits(read=unlimited, write=unlimited))
        )
    async with parts.database.system() as session, session.narrow(organization.id) as tenant:
        _, key = await identity.create_api_key(tenant, name="bench", scopes=["organization:read"])
    return organization.id, key


def search_through_api(client: TestClientProtocol, key: str) -> Search:
    async def run(query: str) -> int:
        answer = await client.get(
            "/v1/contacts", query_string={"search": query}, headers={"Authorization": f"Bearer {key}"}
        )
        total: int = (await answer.get_json())["total"]
        return total

    return run


def search_naively(parts: Runtime, organization_id: UUID) -> Search:
    async def run(query: str) -> int:
        async with parts.database.write(organization_id) as session:
            rows = select_contacts(session)
            for word in query.split():
                rows = rows.where(
                    or_(
                        *(
                            col(getattr(Contact, name)).icontains(word, autoescape=True)
                            for name in (*search.SEARCHED, "notes")
                        )
                    )
                )
            return (await paginate(session, rows, ContactOut.model_validate, PageQuery())).total

    return run


async def time_search(run: Search, query: str) -> tuple[float, int]:
    started_at = time.perf_counter()
    total = await run(query)
    return (time.perf_counter() - started_at) * 1000, total


async def compare(ours: Search, naive: Search, queries: dict[str, list[str]]) -> None:
    print("query                  |  found | p50 ms | p95 ms | naive p50 ms | times as fast")
    everything: list[float] = []
    for kind, texts in queries.items():
        mine, other, totals = [], [], []
        for text in texts:
            (took, total), (took_naively, total_naively) = await time_search(ours, text), await time_search(naive, text)
            if total != total_naively:
                raise SystemExit(f"{text!r} finds {total}, and naively {total_naively}")
            mine.append(took)
            other.append(took_naively)
            totals.append(total)
        everything += mine
        p50, p95 = np.percentile(mine, [50, 95])
        print(
            (
                f"{kind:22} | {median(totals):6.0f} | {p50:6.1f} | {p95:6.1f} | {median(other):12.1f} | "
                f"{median(other) / p50:13.1f}"
            ),
            flush=True,
        )
    print(
        f"\nall kinds, each counting the same: p50 {np.percentile(everything, 50):.1f} ms, p95 "
        f"{np.percentile(everything, 95):.1f} ms"
    )


async def measure(directory: DataDirectory) -> None:
    chance = random.Random("words")
    words = sorted({"".join(chance.choices(SYLLABLES, k=chance.randint(1, 4))) for _ in range(20_000)})
    await upgrade(directory.database_url)
    settings = Settings(data_dir=directory.path)
    async with open_process_runtime(
        settings, database_url=directory.database_url, redis_url=directory.redis_url
    ) as parts:
        ours, key = await create_benchmark_organization(parts)
        await fill(directory.database_url, ours, OURS, words)
        for _ in range(OTHER_ORGANIZATIONS):
            await fill(directory.database_url, (await create_benchmark_organization(parts))[0], OTHERS, words)
        connection = await asyncpg.connect(directory.database_url)
        for table in ("contact", "contact_search"):
            await connection.execute(f"vacuum analyze {table}")
        await connection.close()
        chosen_words = [chance.choice(words) for _ in range(3 * ROUNDS)]
        queries = {
            "a word": chosen_words[:ROUNDS],
            "two words": [
                " ".join(pair)
                for pair in zip(chosen_words[ROUNDS : 2 * ROUNDS], chosen_words[2 * ROUNDS :], strict=True)
            ],
            "five digits": [f"{chance.randrange(OURS):05d}" for _ in range(ROUNDS)],
            "nothing of the kind": ["qwrtpsdfg"] * ROUNDS,
            "a quarter (vip)": ["vip"] * ROUNDS,
            "everybody (limited)": ["limited"] * ROUNDS,
            "everybody, two letters": ["ex"] * ROUNDS,
            "everybody, one letter": ["e"] * ROUNDS,
        }
        await compare(
            search_through_api(app.create_app(parts).test_client(), key), search_naively(parts, ours), queries
        )


def run() -> None:
    """Print the table."""
    run_with_servers(measure)
