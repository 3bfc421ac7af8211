"""Numbers that can be had: the same ones for the same question, always. A number that ends in 99 is taken."""

from switchboard.plugins import AvailableNumber

# Country: calling code, area code where none is asked for, digits that follow it (fictional ranges where the country has one), region.
PLANS = {
    "US": ("+1", "555", "55501", 2, "Anywhere"),
    "CA": ("+1", "555", "55501", 2, "Anywhere"),
    "GB": ("+44", "20", "79460", 3, "London"),
    "DE": ("+49", "30", "23125", 3, "Berlin"),
    "FR": ("+33", "1", "99005", 3, "Paris"),
    "AU": ("+61", "2", "55501", 3, "Sydney"),
}
TAKEN = "99"
MONTHLY_COST = 1.0


def available(country: str, area_code: str | None, limit: int) -> list[AvailableNumber]:
    """Numbers of a country; none where the country has no plan here."""
    plan = PLANS.get(country)
    if plan is None:
        return []
    calling_code, default_area, middle, digits, region = plan
    found = []
    for index in range(limit):
        number = f"{calling_code}{area_code or default_area}{middle}{index:0{digits}d}"
        found.append(AvailableNumber(number, number, country, region=region, locality=region, monthly_cost=MONTHLY_COST))
    return found
