"""What the library knows of kafka-python's clients."""

from __future__ import annotations

from types import SimpleNamespace

from kafka.producer.transaction_manager import ProducerIdAndEpoch, TransactionManager, TransactionState

from headroom.routing.clients import renew_producer_id


def ready_manager() -> TransactionManager:
    """An idempotent producer's, which has an id."""
    manager = TransactionManager()
    manager.init_producer_id()
    manager.set_producer_id_and_epoch(ProducerIdAndEpoch(17, 0))
    manager._transition_to(TransactionState.READY)
    manager._pending_requests.clear()
    return manager


def test_a_producer_that_gave_its_id_up_asks_for_another_one() -> None:
    manager = ready_manager()
    producer = SimpleNamespace(_transaction_manager=manager)
    assert not renew_producer_id(producer)
    # As kafka-python does for an expired record that was sent before.
    manager.reset_producer_id()
    manager.init_producer_id()
    assert manager._pending_requests == [], "kafka-python asks again by itself: this is needed no more"
    assert renew_producer_id(producer)
    manager.init_producer_id()
    assert len(manager._pending_requests) == 1
    # It asks once.
    assert not renew_producer_id(producer)


def test_other_producers_are_left_alone() -> None:
    assert not renew_producer_id(SimpleNamespace(_transaction_manager=None))
    assert not renew_producer_id(SimpleNamespace())
    assert not renew_producer_id(SimpleNamespace(_transaction_manager=TransactionManager()))
    assert not renew_producer_id(SimpleNamespace(_transaction_manager=TransactionManager(transactional_id="t")))
