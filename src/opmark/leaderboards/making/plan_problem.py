"""Make the problem of a candidate that names a plan: the imported layers of its model, on the plan's devices."""

from dataclasses import replace
from pathlib import Path

from opmark.leaderboards.making.importer import IMPORTERS, ImportOptions
from opmark.leaderboards.making.recipe import Candidate
from opmark.leaderboards.problem.problem import Problem

FOLDER = "layers"
FORMAT = "sailor"
SOURCE = "imported: layers and links that Sailor's authors measured (SOSP 2025, MIT); they lie in leaderboards/layers"


def problem_of_plan(candidate: Candidate, leaderboards: Path, objective: str) -> Problem:
    """The problem of a plan under the candidate's objective, not checked. Raises `OpMarkError` for a wrong plan."""
    loads = objective == "throughput"
    options = ImportOptions(objective="max-load" if loads else "latency", contiguous=candidate.contiguous)
    found = IMPORTERS.load(FORMAT).read(leaderboards / FOLDER / candidate.plan, options)
    devices = tuple(replace(device, target=f"{FORMAT}/{device.type}") for device in found.cluster.devices)
    return replace(
        found,
        name=candidate.title,
        objective=objective,
        unit="$" if objective == "cost" else found.unit,
        memory_mode=candidate.memory_mode or found.memory_mode,
        micro_batches=candidate.micro_batches or found.micro_batches,
        cluster=replace(found.cluster, devices=devices),
        provenance=replace(
            found.provenance,
            family=found.provenance.model.lower(),
            bundles={device.target: SOURCE for device in devices},
        ),
    )
