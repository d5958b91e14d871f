"""OpMark: measured operator latencies, predictors, and placement leaderboards.

`opmark.interface` defines the names below; it is imported when one of them is first used, so that `import opmark` stays
light. The stub beside this file gives type checkers the same names.
"""

from typing import Any

__all__ = [
    "OpMarkError",
    "PlacedProblem",
    "PredictedKernel",
    "Prediction",
    "Problem",
    "SimulatedSolution",
    "Solution",
    "load_problem",
    "load_release",
    "place",
    "predict",
    "simulate",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("opmark")
    if name in __all__:
        from importlib import import_module

        # By name, because the interface lies above the rooms that import this package.
        home = "opmark.core.errors" if name == "OpMarkError" else "opmark.interface"
        return getattr(import_module(home), name)
    raise AttributeError(f"module 'opmark' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__, "__version__"])
