"""Counters of rows, which must equal the rows."""

from tests.interleavings.world import World


async def check_counter(world: World, table: str, rows: int) -> None:
    """Compare the total of a list with its rows."""
    counted = await world.fetch(
        "select coalesce(sum(rows), 0) as rows from (select list, rows from row_count union all "  # noqa: S608 - ours
        f"select list, rows from row_count_change) counts where list = '{table}'"
    )
    if counted[0]["rows"] != rows:
        world.complain(f"counters: {counted[0]['rows']} rows of {table} are counted, and there are {rows}")


LIMIT_COUNTS = """
    select name, sum(number) as number, sum(amount) as amount from (
      select name, number, amount from limit_counter union all select name, number, amount from limit_counter_change
    ) counts group by name having sum(number) <> 0 or sum(amount) <> 0
    order by name
"""
ROWS_OF_LIMITS = """
    with outbound as (select * from call where direction = 'outbound' or transferred_to not like 'client:%'),
    counted as (
      select 'running' as name, count(*) as number, 0 as amount from call where ended_at is null and carrier <> 'chat'
      union all select 'begun', count(*), 0 from outbound
      union all select 'talking', 2 * count(*) filter (where ended_at is null),
        coalesce(sum(extract(epoch from started_at) - coalesce(extract(epoch from ended_at), 0)), 0)
        from outbound where started_at is not null
      union all select 'spent', count(*), -coalesce(sum(amount), 0) from ledger_entry where kind <> 'credit'
      union all select 'held', count(*), coalesce(sum(amount), 0) from ledger_hold
    )
    select * from counted where number <> 0 or amount <> 0 order by name
"""


async def check_limit_counters(world: World) -> None:
    """Compare the counters of the organization's limits with its rows, all of which are younger than an hour."""
    counted, rows = [[tuple(row) for row in await world.fetch(query)] for query in (LIMIT_COUNTS, ROWS_OF_LIMITS)]
    if counted != rows:
        world.complain(f"counters: limits compare {counted}, and the rows are {rows}")
