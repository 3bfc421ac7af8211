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
