"""The stability of recommendations: the share of draws of the predictors' errors in which each stays the best one.

    python benchmarks/provision_stability.py [--models resnet-50,bert-base,…] [--catalogue cloud-gpus] [--seconds 10]

For each network, without a goal and with each kind of goal: the recommended fleet, that share, and where it is below
90 %, the fleets that win the other draws. The row fails where the command's text, its JSON or its page does not name
them. Seconds are those of one processor, so that other work on the machine changes little.
"""

import argparse
import json
import sys
import time
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
from opmark.leaderboards.provisioning.verdict import sentences
from opmark.leaderboards.search.placer import PLACERS

ROOT = Path(__file__).resolve().parents[1]
MODELS = ("resnet-50", "bert-base", "inception", "vit-base", "mobilenet-v2", "efficientnet-b0", "gpt2")
BATCH, DEVICES_AT_MOST = 8, 6
# Goals as multiples of what the best single device does.
TIMES_THE_LATENCY, TIMES_THE_RATE, TIMES_THE_PRICE = 1.1, 2.5, 1.5


def recommendations(model: str, catalogue_name: str, seconds: float) -> dict[str, Recommendation | None]:
    """The recommendation of each goal; None where nothing meets it."""
    workspace = Workspace(ROOT)
    catalogue = load_catalogue(workspace.leaderboards, catalogue_name)
    jobs = {
        pipeline: any_job(
            model, catalogue, Sources(workspace=workspace), dimensions={"batch": BATCH}, in_a_pipeline=pipeline
        )
        for pipeline in (False, True)
    }
    singles = Exploration(jobs[False], Goal(), devices_at_most=1)
    singles.look_at_all(lambda: False)
    known = list(singles.answers.values())
    goals = {
        "cheapest sample": Goal(),
        "latency": Goal(latency_at_most_ns=TIMES_THE_LATENCY * min(one.latency_ns for one in known)),
        "throughput": Goal(samples_per_second=TIMES_THE_RATE * max(one.samples_per_second for one in known)),
        "budget": Goal(price_per_hour_at_most=TIMES_THE_PRICE * max(one.price_per_hour for one in known)),
    }
    found: dict[str, Recommendation | None] = {}
    for name, goal in goals.items():
        exploration = Exploration(jobs[goal.in_a_pipeline], goal, devices_at_most=DEVICES_AT_MOST)
        exploration.run(seconds)
        try:
            found[name] = recommend(exploration, seconds)
        except NothingSelectedError:
            found[name] = None
    return found


def told(found: Recommendation) -> str:
    """The rivals of a recommendation that wavers, or `stable`; empty where text, JSON or page does not say so."""
    text, document, page = (
        " ".join(sentences(found)),
        json.loads(json.dumps(found.document())),
        provisioning_page(found),
    )
    share = f"{found.stability:.0%}"
    if found.stability >= STABLE:
        said = "so it is stable" in text and "so it is stable" in page and document["stable"] and share in text
        return "stable" if said else ""
    titles = [found.recommended.fleet.title, *found.wavering]
    enough = found.stability + sum(found.wavering.values()) >= STABLE
    said = all(title in text and title in page for title in titles) and "wavers between" in text
    said = said and "wavers between" in page and set(document["wavering"]) == set(found.wavering)
    named = ", ".join(f"{title} {share:.0%}" for title, share in found.wavering.items())
    return named if enough and said and not document["stable"] else ""


def main() -> int:
    """Print the table; returns 1 where a recommendation is neither stable nor told to waver."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--models", type=lambda text: text.split(","), default=list(MODELS))
    parser.add_argument("--catalogue", default="cloud-gpus")
    parser.add_argument("--seconds", type=float, default=10.0)
    given = parser.parse_args()
    time.monotonic = time.process_time
    PLACERS.load("opmark").prepare()
    rows, silent, stable = [], 0, 0
    for model in given.models:
        for name, found in recommendations(model, given.catalogue, given.seconds).items():
            if found is None:
                rows.append((model, name, "nothing meets it", "–", "–"))
                continue
            words = told(found)
            silent += not words
            stable += found.stability >= STABLE
            rows.append((model, name, found.recommended.fleet.title, f"{found.stability:.0%}", words or "NOT TOLD"))
            print("  ".join(rows[-1]), file=sys.stderr, flush=True)
    show_table(("network", "goal", "recommended", "best in", "otherwise"), rows, left=3)
    print(f"{stable} of {len(rows)} are stable; {silent} waver without a word.")
    return 1 if silent else 0


if __name__ == "__main__":
    sys.exit(main())
