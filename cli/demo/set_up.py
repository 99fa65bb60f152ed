"""What every demo begins with: progress, brokers, and settings for a watch of some minutes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kafka.errors import KafkaError

from headroom.cli.common.output import console
from headroom.cli.common.progress import ProgressView
from headroom.cluster.embedded import EmbeddedCluster, write_config
from headroom.schemas.errors import HeadroomError
from headroom.streaming.machine import this_machine
from headroom.streaming.session_profile import QUICK_COMPILER

_QUICK = f'driver_java_options = "{QUICK_COMPILER}"'


def demo_progress() -> ProgressView:
    """Return the progress of a demo, which begins with a note if the machine is busy."""
    progress = ProgressView(console())
    machine = this_machine()
    if machine is not None and machine.is_overloaded:
        progress.print_line(f"Note: this machine is busy ({machine}), so that times will be long")
    return progress


@contextmanager
def running_cluster(cluster: EmbeddedCluster, progress: ProgressView, text: str) -> Iterator[EmbeddedCluster]:
    """Run the brokers of a cluster for the length of the block.

    Args:
        cluster: the cluster.
        progress: progress output.
        text: the step of the start.

    Raises:
        HeadroomError: a broker could not be started, or a request to Kafka failed.
    """
    try:
        with progress.step(text):
            cluster.start()
        yield cluster
    except KafkaError as error:
        rule, remedy = f"{type(error).__name__}: {error}", f"See the brokers' logs in {cluster.folder}"
        raise HeadroomError("Kafka", rule, remedy) from error
    finally:
        cluster.stop()


def demo_config(cluster: EmbeddedCluster, sections: str = "", name: str = "embedded") -> Path:
    """Return the settings file of a demo, in the cluster's folder.

    Args:
        cluster: the started cluster.
        sections: further sections, as TOML.
        name: name of the cluster.
    """
    config = write_config(cluster, name=name)
    with config.open("a", encoding="utf-8") as file:
        file.write(
            f"\n[spark]\n# For a watch that runs for minutes; remove this line for one that runs for days.\n{_QUICK}\n"
            f"{sections}"
        )
    return config
