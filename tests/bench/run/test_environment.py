from opmark.bench.backends.null import BACKEND
from opmark.bench.clock.machine import caches, device_slug
from opmark.bench.run.environment import probe
from opmark.core.canonical import canonical_json


def test_this_machine_can_be_described() -> None:
    found = probe([BACKEND])
    assert found.device == device_slug()
    assert found.checked["null.version"] == "1.0"
    assert found.checked["last_level_bytes"] == caches().last_level_bytes
    canonical_json(found)
    assert probe([BACKEND]).id == found.id, "what changes from minute to minute is only noted"
