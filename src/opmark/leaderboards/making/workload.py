"""What a new problem asks: its objective, and the requests or micro-batches that belong to it."""

from dataclasses import dataclass, replace

from opmark.core.errors import UsageError
from opmark.leaderboards.making.served_problem import REQUESTS, served
from opmark.leaderboards.problem.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """An objective by name; `arrivals` is the process that requests are drawn from where it is serving.

    Without a rate or a target they follow from what the best single device can do.
    """

    objective: str = "latency"
    micro_batches: int = 0
    arrivals: str = ""
    rate_per_s: float | None = None
    requests: int = REQUESTS
    target_ns: int | None = None
    seed: int = 0


def asked(problem: Problem, question: Question) -> Problem:
    """`problem` with that question. Raises `UsageError` where serving has no arrivals, or something else has them."""
    if (question.objective == "serving") != bool(question.arrivals):
        raise UsageError("the objective serving needs arrivals, and only that one", hint="--arrivals poisson")
    if question.arrivals:
        return served(
            problem,
            process=question.arrivals,
            rate_per_s=question.rate_per_s,
            requests=question.requests,
            target_ns=question.target_ns,
            seed=question.seed,
        ).checked(problem.name)
    posed = replace(problem, objective=question.objective, micro_batches=question.micro_batches)
    return replace(posed, unit="$" if question.objective == "cost" else posed.unit).checked(problem.name)
