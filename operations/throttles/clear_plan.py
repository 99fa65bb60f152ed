"""Plan and result of ``headroom throttle clear``; the plan is complete before anything is changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from headroom.alerts.recommendations.commands import headroom_reassign_clean
from headroom.cluster.admin.config_keys import FOLLOWER_LIST, LEADER_LIST, LOG_DIRS_RATE
from headroom.cluster.live.throttle_state import ThrottleState
from headroom.cluster.model import TopicConfig
from headroom.cluster.throttles.broker_rates import KEY_OF, keys_from, rate_of
from headroom.operations.throttles.apply_plan import DOWN, SILENT
from headroom.planning.reassignments.run.journal import JournalStep, StepKind, StepState
from headroom.planning.reassignments.run.owners import ThrottleOwner, subjects_by_owner
from headroom.schemas.errors import HeadroomError
from headroom.schemas.text.amounts import join_names


@dataclass(frozen=True)
class ClearPlan:
    """The configuration keys that ``clear`` removes: only keys that are set on a broker, a topic or the default.

    Attributes:
        brokers: brokers whose rates are removed.
        topics: topics whose lists are removed.
        cluster_default: whether the cluster-wide default rates are removed too.
        broker_keys: configuration keys to clear, by broker; empty if only the cluster default is in force.
        topic_keys: configuration keys to clear, by topic.
        default_keys: configuration keys to clear of the cluster-wide default.
        passed_over: reasons by skipped broker.
    """

    brokers: tuple[int, ...]
    topics: tuple[str, ...]
    cluster_default: bool
    broker_keys: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    topic_keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    default_keys: tuple[str, ...] = ()
    passed_over: dict[int, str] = field(default_factory=dict)

    def empty(self) -> bool:
        """Return whether there is nothing to remove."""
        return not self.brokers and not self.topics and not self.cluster_default

    def silent_error(self) -> HeadroomError | None:
        """Return an error that names the brokers that are up but did not report their rates; None without any."""
        silent = [broker for broker, reason in sorted(self.passed_over.items()) if reason == SILENT]
        if not silent:
            return None
        remedy = "See that it is up and that this user may DescribeConfigs, then run the command again."
        return HeadroomError(f"broker {', '.join(map(str, silent))}", f"{SILENT}, so they were not cleared", remedy)


@dataclass(frozen=True)
class ClearResult:
    """Result of the command: the plan, and what came of it.

    Attributes:
        plan: the plan.
        executed: whether the plan was executed.
        error: the first error; None if there was none.
    """

    plan: ClearPlan
    executed: bool
    error: HeadroomError | None


def clear_plan(view: ThrottleState, only: str | None, cluster_default: bool) -> ClearPlan:
    """Return the plan that removes the rates and lists that are set.

    Args:
        view: throttles in force.
        only: ``rates`` or ``lists``; both if None.
        cluster_default: whether to remove the cluster-wide default rates too, not only the brokers' own.
    """
    rates, lists = only != "lists", only != "rates"
    entities = ("broker", "default") if cluster_default else ("broker",)
    limited = tuple(b for b, r in sorted(view.rates.items()) if keys_from(r, *entities)) if rates else ()
    topics = {topic: _list_keys(config) for topic, config in view.listed_topics().items()} if lists else {}
    default_keys = _default_keys(view) if rates and cluster_default else ()
    return ClearPlan(
        brokers=limited,
        topics=tuple(topics),
        cluster_default=bool(default_keys),
        broker_keys={broker: keys_from(view.rates[broker], "broker") for broker in limited},
        topic_keys=topics,
        default_keys=default_keys,
        passed_over=dict.fromkeys(view.down(), DOWN) | dict.fromkeys(view.silent(), SILENT) if rates else {},
    )


def _list_keys(config: TopicConfig) -> tuple[str, ...]:
    lists = {LEADER_LIST: config.leader_list, FOLLOWER_LIST: config.follower_list}
    return tuple(key for key, value in lists.items() if value is not None)


def _default_keys(view: ThrottleState) -> tuple[str, ...]:
    """Return the keys of the cluster-wide default, as the default itself or any broker without its own reports."""
    configs = [view.default, *view.rates.values()]
    return tuple(dict.fromkeys(key for rates in configs for key in keys_from(rates, "default")))


def clear_steps(view: ThrottleState, plan: ClearPlan) -> list[JournalStep]:
    """Return what a plan removes as steps of the journal."""
    rates = [
        (f"broker {broker} as {role}", rate_of(view.rates[broker], role)[0])
        for broker, keys in plan.broker_keys.items()
        for role, key in KEY_OF.items()
        if key in keys
    ]
    rates += [
        (f"the cluster-wide default as {role}", rate_of(view.default, role)[0])
        for role, key in KEY_OF.items()
        if key in plan.default_keys
    ]
    lists = [
        (f"topic {topic} as {role}", text)
        for topic, keys in plan.topic_keys.items()
        for role, key, text in (
            ("leader", LEADER_LIST, view.listed_topics()[topic].leader_list),
            ("follower", FOLLOWER_LIST, view.listed_topics()[topic].follower_list),
        )
        if key in keys
    ]
    return [
        *(
            JournalStep(StepKind.RATE, StepState.INTENDED, subject, None if rate is None else str(rate))
            for subject, rate in rates
        ),
        *(JournalStep(StepKind.LIST, StepState.INTENDED, subject, text) for subject, text in lists),
    ]


def clear_notes(view: ThrottleState, plan: ClearPlan) -> list[str]:
    """Return notes about the plan, in sentences."""
    notes = [_passed_over_note(broker, reason) for broker, reason in sorted(plan.passed_over.items())]
    if view.unread_topics():
        notes.append(f"Unknown, and left as they are: the lists of {', '.join(view.unread_topics()[:5])}.")
    if _default_keys(view) and not plan.cluster_default:
        notes.append("The cluster-wide default rate stays; --cluster-default clears it too.")
    if view.moving() and not plan.empty():
        notes.append("A reassignment is running; without its throttle it copies as fast as it can.")
    if any(LOG_DIRS_RATE in keys for keys in (plan.default_keys, *plan.broker_keys.values())):
        notes.append("A move between log directories that is still running then copies as fast as it can.")
    return notes


def owner_notes(
    steps: Iterable[JournalStep],
    owners: Mapping[str, ThrottleOwner],
    config: str | None = None,
    *,
    moves: bool = False,
) -> list[str]:
    """Return by whom the journal has it that the rates and lists to remove were set, in sentences.

    Args:
        steps: rates and lists to remove.
        owners: owner of each rate and list, by its subject in the journal.
        config: settings file that recommended commands name; the default one if None.
        moves: whether any reassignment is running.
    """
    subjects = subjects_by_owner((step.subject for step in steps), owners)
    return [_owner_note(owner, owned, config, moves) for owner, owned in subjects.items()]


def _owner_note(owner: ThrottleOwner, subjects: Sequence[str], config: str | None, moves: bool) -> str:
    what, state = f"{owner} has set {join_names(subjects)}", owner.state_text(moves=moves)
    what = f"{what[0].upper()}{what[1:]}{' and ' if state else ''}{state}"
    if not owner.runs_plan:
        return f"{what}."
    # The lock of the run refuses the command that cleans.
    if owner.process is not None:
        return f"{what}. It removes that itself when it ends."
    return f"{what}; only that is removed by: {headroom_reassign_clean([owner.run_id], config)}"


def _passed_over_note(broker: int, reason: str) -> str:
    if reason == DOWN:
        return (
            f"Broker {broker} is down and is skipped: rates that are set on it stay, and are in force when it "
            "returns. Run the command again when it is up."
        )
    return f"Broker {broker} {reason}: unknown, and left as they are."


def require_idle(view: ThrottleState, force: bool) -> None:
    """Check that no reassignment is running, unless ``force`` is true.

    Raises:
        HeadroomError: a reassignment is running.
    """
    if view.moving() and not force:
        rule = "is moving: without its throttle it would copy as fast as it can"
        raise HeadroomError(str(view.moving()[0].name), rule, "Wait for the end of the move, or clear with --force.")
