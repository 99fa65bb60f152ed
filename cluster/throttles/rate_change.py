"""A change of brokers' own rates: requested in parallel, and read back from each broker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from headroom.cluster.admin.alter_configs import REMEDY, ConfigChange, Failure, alter_each
from headroom.cluster.admin.command_connection import OnStep
from headroom.cluster.admin.config_keys import BROKER
from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.cluster.model import BrokerThrottles
from headroom.cluster.throttles.broker_rates import Done, await_rates
from headroom.schemas.errors import HeadroomError
from headroom.schemas.text.names import broker_names


class RatesError(HeadroomError):
    """Rates of some brokers are not, or not known to be, as requested; those of the others are in force.

    Attributes:
        in_force: rates of the other brokers, read back from each.
    """

    def __init__(self, subject: str, rule: str, remedy: str, in_force: Mapping[int, BrokerThrottles]) -> None:
        super().__init__(subject, rule, remedy)
        self.in_force = dict(in_force)


@dataclass(frozen=True)
class RateOutcome:
    """What became of a change.

    Attributes:
        in_force: rates of the brokers whose change is in force, read back from each.
        late: brokers that accepted the change, but did not read it back.
        failures: failure of each broker that is not known to have the change.
        deadline_s: time that the brokers had to read it back, seconds.
        others: failures of other subjects that belong to the same change.
    """

    in_force: Mapping[int, BrokerThrottles]
    late: Sequence[int]
    failures: Mapping[int, Failure]
    deadline_s: float
    others: Mapping[str, Failure] = field(default_factory=dict)

    def reasons(self) -> dict[int, str]:
        """Return by broker why its change is not in force."""
        return {broker: failure.rule for broker, failure in self.failures.items()} | dict.fromkeys(
            self.late, self._late_rule
        )

    def require(self) -> dict[int, BrokerThrottles]:
        """Return the rates in force of every broker.

        Raises:
            RatesError: a change failed or is late; names each broker.
        """
        failures = {**self.others, **{f"broker {broker}": failure for broker, failure in self.failures.items()}}
        if not self.late and not failures:
            return {broker: self.in_force[broker] for broker in sorted(self.in_force)}
        rules = list(dict.fromkeys(failure.rule for failure in failures.values()))
        rules += [self._late_rule] * bool(self.late)
        others = "; the others were changed" if self.in_force else ""
        subjects = [*failures, *(f"broker {broker}" for broker in self.late)]
        remedy = f"{REMEDY} Then run the command again."
        raise RatesError(", ".join(subjects), f"{'; '.join(rules)}{others}", remedy, self.in_force)

    @property
    def _late_rule(self) -> str:
        return f"accepted, but did not read the change back within {self.deadline_s:.0f} s"


@dataclass(frozen=True)
class RateChange:
    """Changes of several brokers' own rates.

    Attributes:
        values: new value by configuration key of each broker, None to clear; a broker without keys is only read back.
        done: returns whether a broker's rates are as requested.
        step: text of the step after the brokers accepted, with a place for their names.
    """

    values: Mapping[int, Mapping[str, str | None]]
    done: Done
    step: str

    def make(
        self, connection: AdminConnection, wait_s: float, deadline_s: float, on_step: OnStep = lambda text: None
    ) -> RateOutcome:
        """Make the changes, wait until each broker reads its own back, and return what became of them.

        Args:
            connection: the admin connection.
            wait_s: longest wait for one answer, seconds.
            deadline_s: longest wait until the changes are in force, seconds.
            on_step: called with one line of text per step.
        """
        requested = {b: ConfigChange(BROKER, str(b), values) for b, values in sorted(self.values.items()) if values}
        results = dict(zip(requested, alter_each(connection, list(requested.values()), wait_s), strict=True))
        failed = {broker: failure for broker, failure in results.items() if failure is not None}
        accepted = self.values.keys() - failed.keys()
        if accepted:
            on_step(self.step.format(broker_names(sorted(accepted))))
        in_force = await_rates(connection, accepted, self.done, wait_s, deadline_s)
        late = sorted(accepted - in_force.keys())
        # A change without an answer may have been made: read it back once.
        unanswered = [broker for broker, failure in failed.items() if not failure.refused]
        in_force |= await_rates(connection, unanswered, self.done, wait_s, 0.0)
        failures = {broker: failure for broker, failure in failed.items() if broker not in in_force}
        return RateOutcome(in_force, late, failures, deadline_s)
