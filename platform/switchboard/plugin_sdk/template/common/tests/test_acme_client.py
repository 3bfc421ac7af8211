"""Failures of Acme become errors that an operator can act on, and that failover understands."""

from contextlib import aclosing

import pytest
from acme_vendor import Acme
from pydantic import HttpUrl, SecretStr
from switchboard.plugin_sdk import OutcomeUnknown, ProviderError
from switchboard_acme.client import AcmeClient, AcmeSettings

pytestmark = pytest.mark.asyncio


async def test_a_wrong_key_is_refused_with_the_vendors_words(settings: AcmeSettings) -> None:
    wrong = settings.model_copy(update={"api_key": SecretStr("wrong")})
    async with aclosing(AcmeClient(wrong)) as client:
        with pytest.raises(ProviderError, match="there is no such key") as refused:
            await client.request("GET", "/account")
    assert (refused.value.code, refused.value.retryable) == ("401", False)


@pytest.mark.parametrize(("status", "retryable"), [(400, False), (429, True), (503, True)])
async def test_the_status_says_whether_it_may_work_later(
    settings: AcmeSettings, acme: Acme, status: int, retryable: bool
) -> None:
    acme.fault = status
    async with aclosing(AcmeClient(settings)) as client:
        with pytest.raises(ProviderError, match="out of order") as failed:
            await client.request("GET", "/account")
    assert failed.value.retryable == retryable


async def test_a_vendor_that_is_away_has_done_nothing(settings: AcmeSettings) -> None:
    away = settings.model_copy(update={"base_url": HttpUrl("http://127.0.0.1:9/")})
    async with aclosing(AcmeClient(away)) as client:
        with pytest.raises(ProviderError, match="cannot be reached") as failed:
            await client.request("POST", "/things", creates=True)
    assert not isinstance(failed.value, OutcomeUnknown)
