"""Text output of ``headroom balance propose``: what is gained and copied, prefixes, actions, batches, and commands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice

from headroom.cli.balance.amounts import RESOURCE_NAMES, load_text
from headroom.cli.balance.proposal.files import BatchFiles, elect_commands, run_all_command, run_command, status_command
from headroom.cli.balance.score_text import MAX_ROWS, print_losses, verdict
from headroom.cli.common.output import echo, print_table
from headroom.operations.balance.proposal_result import PricedBatch, ProposalResult
from headroom.planning.balance.model import ClusterModel
from headroom.planning.balance.reports.prefixes import PrefixPrice
from headroom.planning.balance.reports.throttle_choice import ThrottleSource
from headroom.planning.balance.search.actions import ActionKind, BalanceAction
from headroom.planning.balance.search.limits import WHY_EXCLUDED
from headroom.schemas.text.amounts import duration_text, percent_text, rate_text, size_text

_NEVER = "never"
_PREFIXES = ("actions", "last one", "gain", "copied", "replicas", "batches", "rough time")
_ACTIONS = ("no.", "action", "partition", "from", "to", "lead", "to copy", "gain", "gain per GB")
_BATCHES = ("batch", "actions", "to copy", "required", "throttle", "after a leader switch", "peak disk", "time")
_SOURCES = {
    ThrottleSource.GIVEN: "--throttle",
    ThrottleSource.DEADLINE: "the least for --finish-within",
    ThrottleSource.IN_FORCE: "in force on these brokers",
    ThrottleSource.CAPACITY: "cluster.replication_capacity",
    ThrottleSource.RECOMMENDED: "the least that survives any single leader switch",
}


def print_proposal(result: ProposalResult, files: Sequence[BatchFiles], config: str | None) -> None:
    """Print the proposal.

    Args:
        result: the proposal with its price.
        files: files of each batch; empty if none were asked for.
        config: settings file as given on the command line.
    """
    echo(verdict(result.before, result.cluster.state.cluster))
    for line in _summary(result):
        echo(line)
    echo()
    if result.proposal.actions:
        _print("Prefixes: every one is a valid plan", _PREFIXES, [_prefix_row(row, result) for row in result.rows])
        _print("Actions", _ACTIONS, list(islice(_action_rows(result), MAX_ROWS)), len(result.proposal.actions))
        rows = [_batch_row(number, batch) for number, batch in enumerate(result.batches, start=1)]
        _print("Batches", _BATCHES, rows)
        _print("Loads before and after", *_load_table(result))
    for line in _left_out_lines(result):
        echo(line)
    print_losses(result.cluster.observed)
    for warning in result.warnings():
        echo(f"Warning: {warning}")
    _print_commands(result, files, config)


def action_text(action: BalanceAction, model: ClusterModel) -> str:
    """Return an action in a sentence without its end."""
    name, ids = model.name(action.partition), [b.broker for b in model.brokers]
    source, target = ids[action.source], ids[action.target]
    if action.kind is ActionKind.ELECT:
        return f"elect broker {target} as leader of {name} instead of broker {source}"
    lead = " with its lead" if action.leads else ""
    return f"move {name} from broker {source} to broker {target}{lead}"


def _summary(result: ProposalResult) -> Iterator[str]:
    proposal = result.proposal
    if not proposal.actions:
        if not result.is_outside:
            yield "Nothing has to change."
        else:
            yield "No action is proposed: none is accepted by all goals and limits (see what is left out below)."
        return
    kinds = Counter(action.kind for action in proposal.actions[: result.chosen])
    parts = [f"{kinds[kind]:,} {kind.value}{_plural(kind, kinds[kind])}" for kind in ActionKind if kinds[kind]]
    copied = float(proposal.copied_bytes[result.chosen])
    cost = "copy nothing" if not copied else f"copy {size_text(copied)}"
    first = f"The first {result.chosen} of {len(proposal.actions)}" if result.chosen < len(proposal.actions) else "All"
    yield f"{first} actions ({', '.join(parts) or 'none'}) {cost}{_time_text(result)}."
    counted = result.after.model.is_counted
    before, after = (int((card.is_balanced() & counted).sum()) for card in (result.before, result.after))
    outside = f"{proposal.outside[0]:.2f} to {proposal.outside[result.chosen]:.2f}"
    yield (
        f"Brokers in band: {before} of {int(counted.sum())} before, {after} after. Load outside of bands, in shares of "
        f"the means: {outside}."
    )
    if result.throttle.bytes_per_s is not None:
        yield f"Throttle: {rate_text(result.throttle.bytes_per_s)} ({_SOURCES[result.throttle.source]})."


def _plural(kind: ActionKind, count: int) -> str:
    noun = "ion" if kind is ActionKind.ELECT else ""
    return noun + ("s" if count > 1 else "")


def _time_text(result: ProposalResult) -> str:
    if result.throttle.bytes_per_s is None:
        return ""
    return " and never end" if result.duration_s is None else f" in about {duration_text(result.duration_s)}"


def _time(seconds: float | None) -> str:
    return _NEVER if seconds is None else duration_text(seconds)


def _print(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], count: int | None = None) -> None:
    """Print the first rows of a table, and how many more there are; ``count`` if these are not all that there are."""
    if not rows:
        return
    print_table(title, header, rows[:MAX_ROWS])
    more = (len(rows) if count is None else count) - MAX_ROWS
    if more > 0:
        echo(f"and {more:,} more; --format json shows all")
    echo()


def _prefix_row(row: PrefixPrice, result: ProposalResult) -> tuple[str, ...]:
    action = result.proposal.actions[row.actions - 1]
    return (
        f"{row.actions:,}{' (chosen)' if row.actions == result.chosen else ''}",
        f"{action.kind.value} {result.proposal.model.name(action.partition)}",
        percent_text(row.gain_ratio),
        size_text(row.copied_bytes),
        f"{row.copied_replicas:,}",
        f"{row.batches:,}",
        _time(row.duration_s),
    )


def _action_rows(result: ProposalResult) -> Iterator[tuple[str, ...]]:
    proposal, model = result.proposal, result.proposal.model
    start, gains = float(proposal.outside[0]), proposal.gains.tolist()
    for number, (action, fall) in enumerate(zip(proposal.actions, gains, strict=True), start=1):
        gain = fall / start if start else 0.0
        gigabytes = action.bytes_copied / 1e9
        yield (
            str(number),
            action.kind.value,
            str(model.name(action.partition)),
            str(model.brokers[action.source].broker),
            str(model.brokers[action.target].broker),
            "yes" if action.leads else "no",
            size_text(action.bytes_copied),
            percent_text(gain),
            # An election copies nothing, so its gain has no price.
            percent_text(gain / gigabytes) if gigabytes else "free",
        )


def _batch_row(number: int, batch: PricedBatch) -> tuple[str, ...]:
    price = batch.price
    # Of equals the broker with the lowest id, so that one proposal always prints the same.
    most = max(price.taken_bytes.items(), key=lambda item: (item[1], -item[0]), default=None)
    return (
        str(number),
        f"{len(batch.batch.actions):,} {'moves' if batch.batch.moves else 'elections'}",
        size_text(price.bytes_copied),
        rate_text(price.required_bytes_per_s) if batch.batch.moves else "none",
        "none" if price.throttle_bytes_per_s is None else rate_text(price.throttle_bytes_per_s),
        "none"
        if price.throttle_after_switch_bytes_per_s is None
        else rate_text(price.throttle_after_switch_bytes_per_s),
        "" if most is None else f"+{size_text(most[1])} on broker {most[0]}",
        _time(batch.duration_s),
    )


def _load_table(result: ProposalResult) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    known = result.cluster.observed.known_resources
    rows = []
    for broker, state in enumerate(result.before.model.brokers):
        before, after = result.before.loads[:, broker], result.after.loads[:, broker]
        if (before != after).any():
            cells = (f"{load_text(r, float(before[r]))} to {load_text(r, float(after[r]))}" for r in known)
            rows.append((str(state.broker), *cells))
    return ("broker", *(RESOURCE_NAMES[resource] for resource in known)), rows


def _left_out_lines(result: ProposalResult) -> Iterator[str]:
    for left in result.left_out:
        number = f"{left.count:,} partition{'s' if left.count > 1 else ''}"
        yield f"Left out: {number}, such as {left.first}, because {WHY_EXCLUDED[left.reason]}."
    for broker in result.proposal.model.brokers:
        # A broker that takes nothing, but may give, is part of the proposal.
        if broker.takes and broker.takes == broker.gives:
            yield f"Left out: broker {broker.broker}, because it is {broker.takes}."


def _print_commands(result: ProposalResult, files: Sequence[BatchFiles], config: str | None) -> None:
    if not result.batches:
        return
    echo()
    if not files:
        echo("Nothing was changed. For the files of the batches and the commands that run them: --dir DIR")
        return
    echo("Nothing was changed. To carry it out, and weigh what is left before each batch:")
    echo(f"  $ {run_all_command(files[0], map(result.throttle_of, result.batches), config)}")
    echo("Or one batch after the other:")
    for own, batch in zip(files, result.batches, strict=True):
        echo(f"  $ {run_command(own.plan, result.throttle_of(batch), config, batch.fingerprint)}")
    echo(f"Before each one, to compare the proposal with the cluster: {status_command(files[0], config)}")
    electing = [own for own in files if own.elections is not None]
    if electing:
        echo("Each run elects the leaders of its batch. To elect them again, by Headroom or by Kafka's own tool:")
        for line in elect_commands(electing[0], result, config):
            echo(f"  $ {line}")
    # A later batch may have moved a replica of an earlier one further.
    echo("To take a batch back, the last one first:")
    echo(f"  $ {run_command(files[-1].rollback, result.throttle_of(result.batches[-1]), config)}")
