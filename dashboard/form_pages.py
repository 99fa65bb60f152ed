"""Pages with the forms that make a command, and what they send."""

from __future__ import annotations

from hashlib import sha256
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from headroom.dashboard.acting.actions import Actions
from headroom.dashboard.acting.allowed import AllowedCommand
from headroom.dashboard.acting.forms import FORMS, FormName
from headroom.dashboard.acting.offers import CommandOffer
from headroom.dashboard.address import Address, View
from headroom.dashboard.rendering import ENVIRONMENT
from headroom.dashboard.security import MOST_PLAN_BYTES, PLAN_TOO_LARGE, user_of
from headroom.dashboard.site import Site
from headroom.planning.reassignments.plan import given_plan
from headroom.schemas.errors import HeadroomError

_CLUSTER = "cluster"
_NO_CLUSTER = "This page has no settings for a cluster of that name."
_BACK = {
    FormName.MOVE: View.MOVES,
    FormName.FILE: View.MOVES,
    FormName.BALANCE: View.LEADERS,
    FormName.MIGRATION: View.MIGRATION,
}
# An action whose plan the form has; a plan as a file, and as text.
_OF, _FILE, _TEXT = "of", "plan_file", "plan"
_SUBJECT = "The plan"
# More than any form has.
_MOST_FIELDS = 100


class FilledForm(BaseModel):
    """A form, as somebody has filled it in.

    Attributes:
        cluster: the cluster.
        values: values by name of the field; with the plan where one is given.
    """

    model_config = ConfigDict(extra="forbid")

    cluster: str
    values: dict[str, str]

    @model_validator(mode="before")
    @classmethod
    def _is_a_form(cls, content: Any) -> Any:
        # Of 2 MB of wrong fields each would be an error with its own text, and nothing else is answered meanwhile.
        for part in (content, content.get("values") if isinstance(content, dict) else None):
            if isinstance(part, dict) and len(part) > _MOST_FIELDS:
                raise ValueError(f"no form has more than {_MOST_FIELDS} fields")
        return content


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
        of = values.pop(_OF, "")
        return ENVIRONMENT.get_template("form.html").render(
            name=name,
            form=FORMS[name],
            values=values,
            plan=_plan_of(actions, of, cluster) if FORMS[name].takes_plan else "",
            most_bytes=MOST_PLAN_BYTES,
            too_large=PLAN_TOO_LARGE,
            cluster=cluster,
            # It follows nothing.
            events=None,
            now_ms=site.clock_ms(),
            back=Address(cluster=cluster).url(_BACK[name]),
        )

    @router.post("/{name}")
    def choose(name: FormName, filled: FilledForm, request: Request) -> Response:
        cluster = _cluster(site, filled.cluster)
        form, values = FORMS[name], dict(filled.values)
        plan: str | None = None
        digest: str | None = None
        try:
            if form.takes_plan:
                plan = _given(values.pop(_FILE, ""), values.pop(_TEXT, ""))
                digest = sha256(plan.encode()).hexdigest()
            command = form.command(values, site.watched(cluster).config, digest)
        except HeadroomError as error:
            raise HTTPException(422, str(error)) from None
        action_id = actions.begin(CommandOffer(cluster, command), user_of(request.scope), plan)
        return JSONResponse({"url": f"/actions/{action_id}"}, 201)

    return router


def _cluster(site: Site, name: str | None) -> str:
    try:
        address = Address(cluster=name)
    except ValidationError:
        raise HTTPException(404, _NO_CLUSTER) from None
    if not site.can_act(address):
        raise HTTPException(404, _NO_CLUSTER)
    return site.cluster(address)


def _given(*texts: str) -> str:
    """Return the one plan of a form, if the command can read it.

    Raises:
        HeadroomError: there is none, or more than one, or it is no plan.
    """
    given = [text for text in texts if text.strip()]
    if len(given) != 1:
        rule = "is given twice" if given else "is not given"
        raise HeadroomError(_SUBJECT, rule, "Choose a file, or paste its text, and not both.")
    given_plan(given[0], _SUBJECT)
    return given[0]


def _plan_of(actions: Actions, action_id: str, cluster: str) -> str:
    try:
        return actions.plan_of(action_id) if actions.read(action_id).offer.cluster == cluster else ""
    except LookupError:
        return ""


def form_url(cluster: str, command: AllowedCommand, action_id: str) -> str | None:
    """Return the address of the form that has made a command, with its values and plan; None if none has."""
    for name, form in FORMS.items():
        values = form.values(command)
        if values is not None:
            of = {_OF: action_id} if form.takes_plan else {}
            return f"/new/{name.value}?{urlencode({_CLUSTER: cluster, **of, **values})}"
    return None
