"""A recommendation as sentences: its gain over equal types, how sure it is, and what the second-best type costs."""

from opmark.leaderboards.provisioning.answer import Answer
from opmark.leaderboards.provisioning.recommendation import Recommendation


def sentences(found: Recommendation) -> tuple[str, ...]:
    """The gain over equal types, a better fleet that is too unsure, the stability over draws, the second-best type."""
    return tuple(filter(None, (_gain(found), _set_aside(found), _stability(found), _second_type(found))))


def _gain(found: Recommendation) -> str:
    best, equal = found.recommended, found.roles["best_equal"]
    if equal is None:
        return f"No fleet of equal types can run it: {best.fleet.title} is needed."
    if best.fleet == equal.fleet:
        return f"Equal types are {'recommended' if found.set_aside else 'best here'}: {best.fleet.title}."
    if found.goal.shortfall(equal) > 1.0:
        return (
            f"Only unequal types meet the goal: {best.fleet.title}. Of equal types, {equal.fleet.title} comes closest."
        )
    changes = [
        f"{_changed(best.latency_ns, equal.latency_ns)} time",
        f"{_changed(best.price_per_hour, equal.price_per_hour)} money per hour",
        f"{_changed(best.cost_per_million, equal.cost_per_million)} money per sample",
    ]
    sure = f"it is the better one in {found.probability_better:.0%} of the draws of the predictors' errors"
    return f"{best.fleet.title} needs {', '.join(changes)} than {equal.fleet.title}; {sure}."


def _set_aside(found: Recommendation) -> str:
    aside, equal = found.set_aside, found.roles["best_equal"]
    if aside is None or equal is None:
        return ""
    return (
        f"By prediction, {aside.fleet.title} is better still, at {_value(found, aside)} against"
        f" {_value(found, found.recommended)}; but it beats {equal.fleet.title} in only {found.set_aside_better:.0%} of"
        " the draws, so it is not recommended."
    )


def _stability(found: Recommendation) -> str:
    held = f"The recommendation is the best of all fleets in {found.stability:.0%} of the draws"
    if found.stable:
        return f"{held}, so it is stable."
    others = ", ".join(f"{title} (best in {share:.0%})" for title, share in found.wavering.items())
    if not others:
        return f"{held}."
    return f"{held}: it wavers between {found.recommended.fleet.title} and {others}."


def _second_type(found: Recommendation) -> str:
    """The cost of the second-best type alone, beside that of the best type alone."""
    ranked = sorted(found.by_type.items(), key=lambda pair: found.goal.rank(pair[1]))
    if len(ranked) < 2:
        return ""
    (_, first), (kind, second) = ranked[:2]
    told = f"The second-best type alone is {kind}: {second.fleet.title} at {_value(found, second)}"
    if found.goal.shortfall(second) > 1.0:
        return f"{told}, which misses the goal."
    return f"{told}, against {_value(found, first)} for {first.fleet.title}."


def _value(found: Recommendation, answer: Answer) -> str:
    return found.goal.value_words(answer, found.job.catalogue.currency)


def _changed(new: float, old: float) -> str:
    return f"{abs(1 - new / old):.1%} {'less' if new <= old else 'more'}"
