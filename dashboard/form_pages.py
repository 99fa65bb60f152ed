"""Pages with the forms that make a command, and what they send."""

from __future__ import annotations

from urllib.parse import urlencode

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import BaseModel, ConfigDict, ValidationError

from headroom.dashboard.acting.actions import Actions
from headroom.dashboard.acting.allowed import AllowedCommand
from headroom.dashboard.acting.forms import FORMS, FormName
from headroom.dashboard.acting.offers import CommandOffer
from headroom.dashboard.address import Address, View
from headroom.dashboard.rendering import ENVIRONMENT
from headroom.dashboard.site import Site
from headroom.schemas.errors import HeadroomError

_CLUSTER = "cluster"
_NO_CLUSTER = "This page has no settings for a cluster of that name."
_BACK = {FormName.MOVE: View.MOVES, FormName.BALANCE: View.LEADERS}


class FilledForm(BaseModel):
    """A form, as somebody has filled it in.

    Attributes:
        cluster: the cluster.
        values: values by name of the field.
    """

    model_config = ConfigDict(extra="forbid")

    cluster: str
    values: dict[str, str]


def form_pages(site: Site, actions: Actions) -> APIRouter:
    """Return the routes.

    Args:
        site: tables and settings.
        actions: carries out commands.
    """
    router = APIRouter(prefix="/new", include_in_schema=False)

    @router.get("/{name}", response_class=HTMLResponse)
    def page(name: FormName, request: Request) -> str:
        values = dict(request.query_params)
        cluster = _cluster(site, values.pop(_CLUSTER, None))
        return ENVIRONMENT.get_template("form.html").render(
            name=name,
            form=FORMS[name],
            values=values,
            cluster=cluster,
            # It follows nothing.
            events=None,
            now_ms=site.clock_ms(),
            back=Address(cluster=cluster).url(_BACK[name]),
        )

    @router.post("/{name}")
    def choose(name: FormName, filled: FilledForm) -> Response:
        cluster = _cluster(site, filled.cluster)
        try:
            command = FORMS[name].command(filled.values, site.watched(cluster).config)
        except HeadroomError as error:
            raise HTTPException(422, str(error)) from None
        return JSONResponse({"url": f"/actions/{actions.begin(CommandOffer(cluster, command))}"}, 201)

    return router


def _cluster(site: Site, name: str | None) -> str:
    try:
        address = Address(cluster=name)
    except ValidationError:
        raise HTTPException(404, _NO_CLUSTER) from None
    if not site.can_act(address):
        raise HTTPException(404, _NO_CLUSTER)
    return site.cluster(address)


def form_url(cluster: str, command: AllowedCommand) -> str | None:
    """Return the address of the form that has made a command, with its values; None if none has."""
    for name, form in FORMS.items():
        values = form.values(command)
        if values is not None:
            return f"/new/{name.value}?{urlencode({_CLUSTER: cluster, **values})}"
    return None
