"""Phone numbers of the Telnyx server: search, orders, and the account's own."""

from collections.abc import Mapping
from uuid import uuid4

from switchboard_offline.loopback import stock

from tests.carriers.telnyx.wire import Number
from tests.carriers.vendor import JsonBody, Refused


def create_refusal(status: int, code: str, title: str, detail: str = "") -> Refused:
    """Return an error in Telnyx's format."""
    return Refused(status, {"errors": [{"code": code, "title": title, **({"detail": detail} if detail else {})}]})


def create_not_found() -> Refused:
    return create_refusal(404, "10005", "Resource not found", "The requested resource or URL could not be found.")


class TelnyxNumbers:
    """Endpoints for phone numbers. An ordered number becomes active after `looks_until_active` requests for it."""

    numbers: dict[str, Number]
    orders: list[JsonBody]
    campaigns: dict[str, str]
    looks_until_active: int
    purchases: int

    async def search_numbers(self, query: Mapping[str, str]) -> JsonBody:
        country, kind = query["filter[country_code]"], query["filter[phone_number_type]"]
        if kind != "local" or country not in ("US", "CA", "GB"):
            return {"data": [], "meta": {"total_results": 0}}
        stock_numbers = stock.search_stock(
            country, query.get("filter[national_destination_code]"), int(query["filter[limit]"])
        )
        cost = {"upfront_cost": "0.00", "monthly_cost": "1.15", "currency": "USD"}
        numbers = [
            {
                "record_type": "available_phone_number",
                "phone_number": one.phone_number,
                "features": [{"name": "sms"}, {"name": "voice"}],
                "region_information": [{"region_type": "location", "region_name": one.locality}],
                "cost_information": cost,
            }
            for one in stock_numbers
        ]
        return {"data": numbers, "meta": {"total_results": len(numbers)}}

    async def list_numbers(self, query: Mapping[str, str]) -> JsonBody:
        wanted = query["filter[phone_number]"]
        assert wanted.isdecimal(), "non-numerical characters result in no values"
        numbers = [number for number in self.numbers.values() if wanted in number.phone_number]
        for number in numbers:
            number.looks_until_active -= 1
        return {
            "data": [self._number_body(number) for number in numbers],
            "meta": {"page_number": 1, "total_pages": 1, "total_results": len(numbers)},
        }

    async def list_orders(self, query: Mapping[str, str]) -> JsonBody:
        reference = query["filter[customer_reference]"]
        number = self.numbers.get(reference)
        numbers = [
            order
            for order in self.orders
            if order["customer_reference"] == reference and number and number.looks_until_active >= 0
        ]
        return {"data": numbers, "meta": {"page_number": 1, "total_pages": 1}}

    async def order_number(self, body: Mapping[str, object]) -> JsonBody:
        requested = body["phone_numbers"]
        assert isinstance(requested, list)
        phone_number = str(requested[0]["phone_number"])
        if phone_number.endswith("99") or phone_number in self.numbers:
            raise create_refusal(422, "85006", "Number not available", f"{phone_number} is not available.")
        self.purchases += 1
        self.numbers[phone_number] = Number(
            str(uuid4().int)[:19], phone_number, looks_until_active=self.looks_until_active
        )
        self.orders.append(
            {
                "id": str(uuid4()),
                "status": "pending",
                "customer_reference": body["customer_reference"],
                "phone_numbers": requested,
            }
        )
        return {"data": self.orders[-1]}

    async def assign_campaign(self, body: Mapping[str, object]) -> JsonBody:
        """Assign a number to a 10DLC campaign; it can be in one only."""
        phone_number, campaign = str(body["phoneNumber"]), str(body["campaignId"])
        if phone_number in self.campaigns:
            raise create_refusal(400, "10015", "Bad Request", f"{phone_number} is assigned to a campaign already.")
        self.campaigns[phone_number] = campaign
        return await self.find_campaign(phone_number)

    async def find_campaign(self, phone_number: str) -> JsonBody:
        if phone_number not in self.campaigns:
            raise create_not_found()
        moment = "2026-11-23T08:00:00Z"
        campaign = {"phoneNumber": phone_number, "campaignId": self.campaigns[phone_number]}
        return {**campaign, "createdAt": moment, "updatedAt": moment, "assignmentStatus": "ASSIGNED"}

    async def update_number(self, number_id: str, body: Mapping[str, object]) -> JsonBody:
        number = self._number(number_id)
        number.connection_id = str(body["connection_id"])
        return {"data": self._number_body(number)}

    async def update_texting(self, number_id: str, body: Mapping[str, object]) -> JsonBody:
        number = self._number(number_id)
        number.messaging_profile_id = str(body["messaging_profile_id"])
        features = {
            "sms": {"domestic_two_way": True, "international_inbound": True, "international_outbound": True},
            "mms": None,
        }
        return {"data": {"id": number_id, "phone_number": number.phone_number, "features": features}}

    async def release_number(self, number_id: str) -> JsonBody:
        number = self._number(number_id)
        del self.numbers[number.phone_number]
        return {"data": self._number_body(number)}

    def _number(self, number_id: str) -> Number:
        numbers = next((number for number in self.numbers.values() if number.id == number_id), None)
        if numbers is None:
            raise create_not_found()
        return numbers

    def _number_body(self, number: Number) -> JsonBody:
        status = "active" if number.looks_until_active < 0 else "purchase-pending"
        return {"id": number.id, "record_type": "phone_number", "phone_number": number.phone_number, "status": status}
