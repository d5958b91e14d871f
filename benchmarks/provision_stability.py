"""The stability of recommendations: the share of draws of the predictors' errors in which each stays the best one.

    python benchmarks/provision_stability.py [--models resnet-50,bert-base,…] [--catalogue cloud-gpus] [--seconds 10]

For each network and goal: the recommended fleet, that share, and where it is below 90 %, the fleets that win the other
draws, as `opmark provision` and its page name them. The row fails where neither is told.
"""

import argparse
import sys
from pathlib import Path

from opmark.cli.text.terminal import show_table
from opmark.core.errors import NothingSelectedError
from opmark.core.workspace import Workspace
from opmark.leaderboards.making.instances import Sources
from opmark.leaderboards.provisioning.catalogue import load_catalogue
from opmark.leaderboards.provisioning.exploration import Exploration
from opmark.leaderboards.provisioning.goal import Goal
from opmark.leaderboards.provisioning.layers_job import any_job
from opmark.leaderboards.provisioning.page import provisioning_page
from opmark.leaderboards.provisioning.recommendation import STABLE, Recommendation, recommend
from opmark.leaderboards.search.placer import PLACERS

ROOT = Path(__file__).resolve().parents[1]
MODELS = ("resnet-50", "bert-base", "inception", "vit-base", "mobilenet-v2")
BATCH, DEVICES_AT_MOST, TIMES_THE_RATE = 8, 6, 2.5


def recommendations(model: str, catalogue_name: str, seconds: float) -> dict[str, Recommendation | None]:
    """The recommendation of each goal; None where nothing meets it."""
    workspace = Workspace(ROOT)
    catalogue = load_catalogue(workspace.leaderboards, catalogue_name)
    found: dict[str, Recommendation | None] = {}
    rate = price = 0.0
    for name in ("cheapest sample", "throughput", "budget"):
        goal = {
            "cheapest sample": Goal(),
            "throughput": Goal(samples_per_second=TIMES_THE_RATE * rate or None),
            "budget": Goal(price_per_hour_at_most=1.5 * price or None),
        }[name]
        sources = Sources(workspace=workspace)
        job = any_job(model, catalogue, sources, dimensions={"batch": BATCH}, in_a_pipeline=goal.in_a_pipeline)
        exploration = Exploration(job, goal, devices_at_most=DEVICES_AT_MOST)
        exploration.run(seconds)
        singles = [one for one in exploration.answers.values() if one.fleet.size == 1]
        rate = rate or max(one.samples_per_second for one in singles)
        price = price or max(one.price_per_hour for one in singles)
        try:
            found[name] = recommend(exploration, seconds)
        except NothingSelectedError:
            found[name] = None
    return found


def told(found: Recommendation) -> str:
    """The rivals of a recommendation that wavers, or `stable`; empty where its page says neither."""
    if found.stability >= STABLE:
        return "stable"
    named = ", ".join(f"{title} {share:.0%}" for title, share in found.wavering.items())
    page = provisioning_page(found)
    enough = found.stability + sum(found.wavering.values()) >= STABLE
    return named if enough and all(title in page for title in found.wavering) else ""


def main() -> int:
    """Print the table; returns 1 where a recommendation is neither stable nor told to waver."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", type=lambda text: text.split(","), default=list(MODELS))
    parser.add_argument("--catalogue", default="cloud-gpus")
    parser.add_argument("--seconds", type=float, default=10.0)
    given = parser.parse_args()
    PLACERS.load("opmark").prepare()
    rows, silent = [], 0
    for model in given.models:
        for name, found in recommendations(model, given.catalogue, given.seconds).items():
            if found is None:
                rows.append((model, name, "nothing meets it", "–", "–"))
                continue
            words = told(found)
            silent += not words
            rows.append((model, name, found.recommended.fleet.title, f"{found.stability:.0%}", words or "NOT TOLD"))
    show_table(("network", "goal", "recommended", "best in", "otherwise"), rows, left=3)
    return 1 if silent else 0


if __name__ == "__main__":
    sys.exit(main())
