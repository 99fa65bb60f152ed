"""Pages and requests that carry out a command of the page: what it would change, a yes, and how it goes."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from functools import lru_cache

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import BaseModel, ConfigDict
from starlette.concurrency import run_in_threadpool

from headroom.dashboard.acting.actions import ActionProgress, Actions, ChosenAction
from headroom.dashboard.acting.curve import ProposalCurve, cut_at
from headroom.dashboard.acting.offers import CommandOffer
from headroom.dashboard.address import Address, View
from headroom.dashboard.form_pages import form_url
from headroom.dashboard.live import Live
from headroom.dashboard.rendering import ENVIRONMENT
from headroom.dashboard.security import user_of
from headroom.dashboard.site import Site
from headroom.dashboard.stream import Stream, require_stream
from headroom.dashboard.views.blocks import Tone
from headroom.dashboard.views.chart import ChartLine, over_actions

_LOOK_EVERY_S, _AT_LEAST_EVERY_S = 0.5, 5.0
_TEXTS = {
    ActionProgress.LOOKING: (Tone.QUIET, "Reading the cluster, to see what would be changed. Nothing is changed."),
    ActionProgress.NOT_POSSIBLE: (Tone.WARNING, "It cannot be carried out. Nothing was changed."),
    ActionProgress.NOTHING: (Tone.WARNING, "There is nothing to carry out: why is below. Nothing was changed."),
    ActionProgress.SHOWN: (Tone.QUIET, "Nothing is changed yet."),
    ActionProgress.OUTDATED: (Tone.UNKNOWN, "This was shown too long ago to be carried out. Nothing was changed."),
    ActionProgress.CHANGING: (Tone.QUIET, "It is being carried out. It goes on when this page is closed."),
    ActionProgress.DONE: (Tone.GOOD, "Done."),
    ActionProgress.FAILED: (Tone.CRITICAL, "It ended with an error."),
    ActionProgress.LOST: (Tone.UNKNOWN, "Its process is gone, and how it ended is not known."),
}
_STOPPING = (
    "It was asked to stop: a move ends after the current batch and removes its throttle, a migration after its step."
)
# Of commands that change the cluster.
_JOURNALLED = "What it changed is in Runs."


class Chosen(BaseModel):
    """A command of a page, as the page had it."""

    model_config = ConfigDict(extra="forbid")

    offer: str


def action_pages(site: Site, actions: Actions, live: Live) -> APIRouter:
    """Return the routes.

    Args:
        site: tables and settings.
        actions: carries out commands.
        live: follows the tables.
    """
    router = APIRouter(prefix="/actions", include_in_schema=False)

    @router.post("")
    def choose(chosen: Chosen, request: Request) -> Response:
        offer = site.offers.read(chosen.offer)
        if offer is None:
            raise HTTPException(409, "This button is of an earlier state of the page: load the page again.")
        return JSONResponse({"url": f"/actions/{actions.begin(offer, user_of(request.scope))}"}, 201)

    @router.get("/{action_id}", response_class=HTMLResponse)
    def page(action_id: str) -> str:
        action = _action(site, actions, action_id)
        return ENVIRONMENT.get_template("action.html").render(
            cluster=action.offer.cluster,
            events=f"/actions/{action_id}/events",
            content=_content(site, action),
            said=_said(action)[1],
            now_ms=site.clock_ms(),
            back=Address(cluster=action.offer.cluster).url(View.MOVES),
        )

    @router.get("/{action_id}/events")
    async def events(action_id: str) -> Response:
        require_stream(live)
        await run_in_threadpool(_action, site, actions, action_id)
        return Stream(_events(site, actions, live, action_id))

    @router.post("/{action_id}/change")
    def change(action_id: str, request: Request) -> Response:
        _action(site, actions, action_id)
        actions.change(action_id, user_of(request.scope))
        return JSONResponse({"url": f"/actions/{action_id}"}, 202)

    @router.post("/{action_id}/stop")
    def stop(action_id: str) -> Response:
        _action(site, actions, action_id)
        actions.stop(action_id)
        return JSONResponse({"url": f"/actions/{action_id}"}, 202)

    return router


def _action(site: Site, actions: Actions, action_id: str) -> ChosenAction:
    with suppress(LookupError):
        action = actions.read(action_id)
        # Another page of this store may have other clusters.
        if site.serves(action.offer):
            return action
    raise HTTPException(404, "There is no such action here: the last 200 are kept.")


def _said(action: ChosenAction) -> tuple[Tone, str]:
    tone, text = _TEXTS[action.progress]
    if action.is_stopping:
        text = _STOPPING
    ended_badly = action.progress in (ActionProgress.FAILED, ActionProgress.LOST)
    return tone, f"{text} {_JOURNALLED}" if ended_badly and action.offer.command.looks_first else text


def _content(site: Site, action: ChosenAction) -> str:
    tone, text = _said(action)
    curve, command = action.curve, action.offer.command
    # A cut is looked at as a proposal of its own.
    cuts = {} if curve is None or action.progress.is_running else _cuts(site, action, curve)
    return ENVIRONMENT.get_template("action_content.html").render(
        action=action,
        tone=tone,
        text=text,
        # A plan that was given is in the folder of this action alone: its form gives it to another one. A throttle of
        # an earlier tick may be too low now, which the look does not say.
        again=site.offers.sign(action.offer) if command.plan_digest is None and not command.sets_rate else None,
        throttles_url=Address(cluster=action.offer.cluster).url(View.THROTTLES) if command.sets_rate else None,
        form_url=form_url(action.offer.cluster, command, action.action_id),
        curve=curve,
        picture=None if curve is None else _picture(curve),
        cuts=cuts,
        Progress=ActionProgress,
    )


@lru_cache(maxsize=32)
def _picture(curve: ProposalCurve) -> str:
    """Return a curve as SVG; an open page asks for it twice a second."""
    lines = [
        ChartLine("bytes that are copied", curve.copied, is_area=True),
        ChartLine("load outside of bands that is gone", curve.gained),
    ]
    title = f"What the first of {curve.actions:,} actions gain and copy, by their number"
    return over_actions(title, lines, curve.chosen)


def _cuts(site: Site, action: ChosenAction, curve: ProposalCurve) -> dict[int, str]:
    """Return what a button sends to have only the first actions proposed, by their number."""
    cluster, command = action.offer
    numbers = [row.number for row in curve.rows if row.number != curve.chosen]
    return {number: site.offers.sign(CommandOffer(cluster, cut_at(command, number))) for number in numbers}


async def _events(site: Site, actions: Actions, live: Live, action_id: str) -> AsyncGenerator[str, None]:
    """Yield the page of an action as it goes on."""
    sent: dict[str, str] = {}
    sent_s = 0.0
    yield "retry: 2000\n\n"
    async with aclosing(live.changes(_LOOK_EVERY_S)) as changes:
        async for _ in changes:
            try:
                action = await run_in_threadpool(actions.read, action_id)
            except LookupError:
                # It was forgotten meanwhile.
                yield "event: end\ndata: This action is not kept any more: the last 200 are.\n\n"
                return
            regions = {"action": _content(site, action), "said": _said(action)[1]}
            changed = {name: html for name, html in regions.items() if sent.get(name) != html}
            if changed or time.monotonic() - sent_s >= _AT_LEAST_EVERY_S:
                sent, sent_s = regions, time.monotonic()
                yield f"data: {json.dumps({'now_ms': site.clock_ms(), 'regions': changed})}\n\n"
