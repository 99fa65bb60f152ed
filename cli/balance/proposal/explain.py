"""``headroom balance explain``: one action of a proposal, goal by goal."""

from __future__ import annotations

import gc
from typing import Any

import click

from headroom.cli.balance.amounts import RESOURCE_NAMES, load_text
from headroom.cli.balance.loading import load_cluster
from headroom.cli.balance.proposal.options import ProposalOptions, proposal_options
from headroom.cli.balance.proposal.text_view import action_text
from headroom.cli.balance.score_json import cluster_json
from headroom.cli.common.options import config_option
from headroom.cli.common.outcome import CommandOutcome, with_format
from headroom.cli.common.output import echo, print_table
from headroom.cli.common.parameters import WholeNumber
from headroom.operations.balance.action_fields import action_fields
from headroom.operations.balance.cluster import BalanceCluster
from headroom.operations.balance.proposal_result import saved_or_searched
from headroom.planning.balance.model import Resource
from headroom.planning.balance.reports.explanation import Explanation, GoalEffect
from headroom.planning.balance.reports.explanation import explain as explain_action
from headroom.planning.balance.search.proposal import Proposal
from headroom.schemas.text.amounts import size_text


@click.command(short_help="Explain one action of a proposal, goal by goal.")
@click.argument("number", type=WholeNumber(least=1))
@config_option
@with_format
@proposal_options
def explain(number: int, config: str | None, options: ProposalOptions) -> CommandOutcome:
    """Explain action NUMBER of the proposal: loads of both brokers, and the scores in every goal, before and after.

    Give the same options as to headroom balance propose. With rates of one reading, another reading may lead to another
    proposal: save the state with --save-state there, and give it here with --state. The state has the proposal too.
    Without it, or with other options, the proposal is made again.

    An action scores (worst of both brokers after it - worst before it + 1) / 2 in each goal. 0.5 changes nothing. What
    is proposed does not depend on these scores, but on the load outside of bands: all goals weigh at once.

    \b
    Example:  headroom balance propose --save-state cluster.json
              headroom balance explain 3 --state cluster.json
              headroom balance explain 3 --max-bytes 500GB --format json
    """  # noqa: D301
    # As for propose: what was read stays until the process ends.
    gc.disable()
    cluster = load_cluster(config, options.state_file)
    proposal = saved_or_searched(cluster, options)
    explanation = explain_action(proposal, number)
    return CommandOutcome(
        lambda: explanation_json(explanation, proposal, cluster), lambda: _print(explanation, proposal, cluster)
    )


def explanation_json(explanation: Explanation, proposal: Proposal, cluster: BalanceCluster) -> dict[str, Any]:
    """Return an explanation as a JSON object; arrays have the broker that gives, and the one that takes."""
    return {
        **cluster_json(cluster),
        "number": explanation.number,
        "of": len(proposal.actions),
        "action": action_fields(explanation.action, proposal.model),
        "gain": explanation.gain,
        "outside_before": float(proposal.outside[explanation.number - 1]),
        "outside_after": float(proposal.outside[explanation.number]),
        "loads": {
            resource.name.lower(): {
                "before": explanation.loads_before[resource].tolist(),
                "after": explanation.loads_after[resource].tolist(),
            }
            for resource in cluster.observed.known_resources
        },
        "goals": [
            {
                "goal": effect.goal,
                "hard": effect.hard,
                "group": effect.group,
                "before": list(effect.before),
                "after": list(effect.after),
                "held": list(effect.held),
                "holds": list(effect.holds),
                "score": effect.score,
            }
            for effect in explanation.effects
        ],
    }


def _print(explanation: Explanation, proposal: Proposal, cluster: BalanceCluster) -> None:
    action, model = explanation.action, proposal.model
    source, target = (model.brokers[broker].broker for broker in (action.source, action.target))
    text = action_text(action, model)
    cost = f"{size_text(action.bytes_copied)} to copy" if action.copies else "nothing is copied"
    echo(f"Action {explanation.number} of {len(proposal.actions)}: {text}; {cost}.")
    outside = f"{proposal.outside[explanation.number - 1]:.3f} to {proposal.outside[explanation.number]:.3f}"
    echo(f"Gain: {explanation.gain:.3f}; load outside of bands falls from {outside}, in shares of the means.")
    echo()
    print_table(
        "Loads",
        ("resource", f"broker {source}", f"broker {target}"),
        [_load_row(explanation, resource) for resource in cluster.observed.known_resources],
    )
    echo()
    header = ("goal", "kind", "group", f"broker {source}", f"broker {target}", "score", "effect")
    print_table("Scores before and after", header, [_effect_row(effect) for effect in explanation.effects])


def _load_row(explanation: Explanation, resource: Resource) -> tuple[str, ...]:
    before, after = explanation.loads_before[resource].tolist(), explanation.loads_after[resource].tolist()
    cells = [f"{load_text(resource, b)} to {load_text(resource, a)}" for b, a in zip(before, after, strict=True)]
    return (RESOURCE_NAMES[resource], *cells)


def _effect_row(effect: GoalEffect) -> tuple[str, ...]:
    scores = [f"{b:.3f} to {a:.3f}" for b, a in zip(effect.before, effect.after, strict=True)]
    return (
        effect.goal,
        "limit" if effect.hard else "band",
        effect.group,
        *scores,
        f"{effect.score:.3f}",
        _effect(effect),
    )


def _effect(effect: GoalEffect) -> str:
    if all(effect.holds):
        return "met" if all(effect.held) else "met now"
    return "better" if effect.score > 0.5 else "worse" if effect.score < 0.5 else "unchanged"
