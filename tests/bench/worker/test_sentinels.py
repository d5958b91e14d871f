from opmark.bench.clock.clock import machine_timer
from opmark.bench.worker.sentinels import processor_sentinels


def test_the_machine_has_a_clock_and_two_sentinels() -> None:
    timer = machine_timer()
    start = timer.now_ns()
    sentinels = processor_sentinels()
    assert set(sentinels) == {"compute", "memory"}
    for item in sentinels.values():
        item.call()
        item.close()
    assert timer.now_ns() > start
    assert timer.faults() >= 0
