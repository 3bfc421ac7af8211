"""Endpoints of campaigns."""

from uuid import UUID

from switchboard.foundation.database import ReadSession, WriteSession
from switchboard.foundation.web.endpoint import ApiBlueprint, endpoint
from switchboard.foundation.web.errors import InvalidState
from switchboard.foundation.web.paging import get_row, get_row_answer, paginate, paginate_table
from switchboard.foundation.web.schemas import Page, PageQuery
from switchboard.resources.calls.allowance import REQUESTS_TURN
from switchboard.resources.campaigns import service as campaigns
from switchboard.resources.campaigns.models import Campaign
from switchboard.resources.campaigns.queries import select_campaign_contacts
from switchboard.resources.campaigns.schemas import (
    CampaignContactOut,
    CampaignContactQuery,
    CampaignCreate,
    CampaignOut,
)

blueprint = ApiBlueprint("campaigns", __name__, tags={"campaigns": "Outbound calls to a list of contacts."})


@blueprint.get("/v1/campaigns")
@endpoint(scope="campaigns:read")
async def list_campaigns(session: ReadSession, query: PageQuery) -> Page[CampaignOut]:
    """List campaigns."""
    return await paginate_table(session, Campaign, CampaignOut, query)


@blueprint.post("/v1/campaigns")
@endpoint(scope="campaigns:write", status=201)
async def create_campaign(session: WriteSession, data: CampaignCreate) -> CampaignOut:
    """Create a campaign.

    It is a draft with its contact list; nobody is called before it is started. A number that is listed twice is called
    once: the second contact is `skipped`.
    """
    return CampaignOut.model_validate(await campaigns.create_campaign(session, data))


@blueprint.get("/v1/campaigns/<campaign_id>")
@endpoint(scope="campaigns:read")
async def get_campaign(session: ReadSession, campaign_id: UUID) -> CampaignOut:
    """Get a campaign."""
    return await get_row_answer(session, Campaign, CampaignOut, campaign_id)


@blueprint.delete("/v1/campaigns/<campaign_id>")
@endpoint(scope="campaigns:write", status=204, turn=REQUESTS_TURN)
async def delete_campaign(session: WriteSession, campaign_id: UUID) -> None:
    """Delete a campaign.

    A running campaign is canceled first. Its calls stay.
    """
    await campaigns.delete_campaign(session, campaign_id)


@blueprint.get("/v1/campaigns/<campaign_id>/contacts")
@endpoint(scope="campaigns:read")
async def list_campaign_contacts(
    session: ReadSession, campaign_id: UUID, query: CampaignContactQuery
) -> Page[CampaignContactOut]:
    """List a campaign's contacts."""
    await get_row(session, Campaign, campaign_id)
    return await paginate(
        session,
        select_campaign_contacts(session, campaign_id, status=query.status),
        CampaignContactOut.model_validate,
        query,
    )


@blueprint.post("/v1/campaigns/<campaign_id>/start")
@endpoint(scope="campaigns:write", errors=[InvalidState], turn=REQUESTS_TURN)
async def start_campaign(session: WriteSession, campaign_id: UUID) -> CampaignOut:
    """Start a campaign.

    A draft starts to dial, or is scheduled if its `scheduled_at` is in the future.
    """
    return CampaignOut.model_validate(await campaigns.start_campaign(session, campaign_id))


@blueprint.post("/v1/campaigns/<campaign_id>/pause")
@endpoint(scope="campaigns:write", errors=[InvalidState], turn=REQUESTS_TURN)
async def pause_campaign(session: WriteSession, campaign_id: UUID) -> CampaignOut:
    """Pause a campaign.

    No new contacts are dialed; running calls end by themselves.
    """
    return CampaignOut.model_validate(await campaigns.pause_campaign(session, campaign_id))


@blueprint.post("/v1/campaigns/<campaign_id>/resume")
@endpoint(scope="campaigns:write", errors=[InvalidState], turn=REQUESTS_TURN)
async def resume_campaign(session: WriteSession, campaign_id: UUID) -> CampaignOut:
    """Resume a paused campaign."""
    return CampaignOut.model_validate(await campaigns.resume_campaign(session, campaign_id))


@blueprint.post("/v1/campaigns/<campaign_id>/cancel")
@endpoint(scope="campaigns:write", errors=[InvalidState], turn=REQUESTS_TURN)
async def cancel_campaign(session: WriteSession, campaign_id: UUID) -> CampaignOut:
    """Cancel a campaign for good.

    Ringing calls are hung up, and answered calls continue to their end; contacts that were not reached become
    `canceled`.
    """
    return CampaignOut.model_validate(await campaigns.cancel_campaign(session, campaign_id))
