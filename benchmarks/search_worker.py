"""The process in which `benchmarks/search.py` runs one revision's `opmark` placer: questions in, answers out, as JSON.

It runs with the revision's sources on PYTHONPATH, so it uses only what every revision has. With `--cpu-time` all
clocks show this process's CPU time, so budgets mean the same on a busy machine.
"""

import importlib
import json
import sys
import time
from typing import Any

if "--cpu-time" in sys.argv:
    time.monotonic = time.perf_counter = time.process_time

# Classes that count their annealing steps (`steps`) and the method that makes them, old and new.
COUNTERS = (("opmark.leaderboards.walks", "Walks", "walk"), ("opmark.leaderboards.search.annealing", "Annealer", "run"))


class Counter:
    """Steps and seconds of annealing, read off every instance of one class."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.made: list[Any] = []

    def watch(self, module: str, name: str, method: str) -> None:
        """Wrap the class where the revision has it."""
        try:
            owner: Any = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError):
            return
        create, run = owner.__init__, getattr(owner, method)

        def created(self: Any, *given: Any, **named: Any) -> None:
            create(self, *given, **named)
            counter.made.append(self)

        def timed(self: Any, *given: Any, **named: Any) -> Any:
            begun = time.perf_counter()
            found = run(self, *given, **named)
            counter.seconds += time.perf_counter() - begun
            return found

        owner.__init__ = created
        setattr(owner, method, timed)

    def per_second(self) -> float | None:
        """Steps per second since the last call; None where nothing was counted."""
        steps = sum(one.steps for one in self.made)
        found = steps / self.seconds if steps and self.seconds else None
        self.made, self.seconds = [], 0.0
        return found


counter = Counter()


def main() -> None:
    """Answer until there are no more questions."""
    for place in COUNTERS:
        counter.watch(*place)
    module = importlib.import_module("opmark.leaderboards.placers.opmark")
    schema = importlib.import_module("opmark.core.schema")
    canonical = importlib.import_module("opmark.core.canonical")
    module.PLACER.prepare()
    for line in sys.stdin:
        asked = json.loads(line)
        problem = schema.convert(asked["problem"], module.Problem, where="problem")
        problem.arrays  # noqa: B018 (compiled before the clock starts)
        if asked["warm_up"]:
            module.PLACER.place(problem, budget_s=asked["budget_s"], seed=0)
        counter.per_second()
        begun = time.process_time()
        try:
            solution = module.PLACER.place(problem, budget_s=asked["budget_s"], seed=asked["seed"])
            answer = {"solution": canonical.plain(solution)}
        except Exception as error:  # noqa: BLE001 (whatever a placer raises is its answer)
            answer = {"failed": f"{type(error).__name__}: {error}"}
        answer |= {"cpu_s": time.process_time() - begun, "per_second": counter.per_second()}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
