"""The job that devices are rented for: one network, with its costs on every device type of a catalogue."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from opmark.core.errors import ContentError, OpMarkError, UnknownNameError
from opmark.core.hardware.cluster import Cluster
from opmark.core.kernels.graph import Graph
from opmark.leaderboards.making.coarsening import coarsened, colocated_by_weight
from opmark.leaderboards.making.instances import Sources
from opmark.leaderboards.making.units import make_problem
from opmark.leaderboards.problem.fields import Unit
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.provisioning.catalogue import Catalogue
from opmark.leaderboards.provisioning.fleet import Fleet

# More units make a search over fleets slower than their placements gain.
UNITS_AT_MOST = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A network and its costs on all types of a catalogue; `whole` has one device of each type.

    `left_out` maps the types that cannot run the network to the reason.
    """

    model: str
    batch: int
    whole: Problem
    catalogue: Catalogue
    left_out: Mapping[str, str]

    def problem(self, fleet: Fleet, *, objective: str) -> Problem:
        """The placement problem of the job on the devices of `fleet`."""
        cluster = self.catalogue.cluster(fleet)
        name, pipelined = f"{self.model} on {fleet.title}", objective == "throughput"
        return replace(self.whole, name=name, cluster=cluster, objective=objective, replication=pipelined)

    def unit_ns(self) -> npt.NDArray[np.float64]:
        """Units × types: the time of each unit on each type, infinite where the type cannot run it."""
        rows = [[unit.exec_ns.get(kind, np.inf) for kind in self.catalogue.types] for unit in self.whole.units]
        return np.array(rows, dtype=np.float64)

    def runs_of(self, unit: Unit) -> int:
        """The number of times that a unit runs in one step: once, or once in every micro-batch."""
        return self.whole.micro_batches if self.whole.in_micro_batches and unit.phase != "update" else 1


def job_of(
    model: str,
    catalogue: Catalogue,
    sources: Sources,
    *,
    batch: int | None = None,
    dimensions: Mapping[str, int] | None = None,
    units_at_most: int = UNITS_AT_MOST,
    tell: Callable[[str], object] = lambda _: None,
) -> Job:
    """The job of running `model` (a file or a zoo name) in batches on the types of `catalogue`; `tell` hears each step.

    Types whose runtime cannot run the network, or whose predictor lacks one of its kernels, are left out. Raises
    `UnknownNameError` for a network that nobody knows, `ContentError` where no type is left.
    """
    sizes = dict(dimensions or {}) | ({} if batch is None else {"batch": batch})
    graphs, costs, words = {}, {}, {}
    left_out: dict[str, str] = {}
    for number, (kind, table) in enumerate(catalogue.tables.items(), 1):
        place = f"on {kind}, {number} of {len(catalogue.tables)} device types"
        target = table.target(catalogue.offers[kind].device)
        try:
            model_costs, source = sources.costs(target, table)
            if sources.must_capture(model, table, sizes):
                tell(f"capturing the kernels of {model} {place}; the next run finds them stored")
            graph = sources.graph(model, table, sizes, 0)
            tell(f"predicting the kernels of {model} {place}")
            model_costs.network(graph)
        except UnknownNameError:
            raise
        except OpMarkError as error:
            left_out[kind] = str(error)
            continue
        graphs[target], costs[target], words[target] = graph, model_costs, source
    kept = [kind for kind in catalogue.types if kind not in left_out]
    if not kept:
        raise ContentError(f"no device type can run {model}: {reasons_of(left_out)}", where=catalogue.name)
    tell(f"cutting {model} into units")
    usable = catalogue.only(kept)
    one_each = _one_each(usable)
    made = make_problem(model, graphs, one_each, costs, model=model, bundles=words)
    whole = replace(coarsened(colocated_by_weight(made), units_at_most), unit="ns")
    return Job(
        model=model,
        batch=batch or _batch_of(next(iter(graphs.values()))),
        whole=whole,
        catalogue=usable,
        left_out=left_out,
    )


def reasons_of(left_out: Mapping[str, str]) -> str:
    """Why types are left out: one reason for all, or each with its own."""
    if len(set(left_out.values())) == 1:
        return next(iter(left_out.values()))
    return "; ".join(f"{kind}: {reason}" for kind, reason in left_out.items())


def _one_each(catalogue: Catalogue) -> Cluster:
    """One device of each type; links between them play no role."""
    return replace(catalogue.cluster(Fleet.of(dict.fromkeys(catalogue.types, 1))), name=catalogue.name)


def _batch_of(graph: Graph) -> int:
    """The first dimension of the network's first input; 1 for a network without inputs."""
    shapes = [graph.tensors[name].shape for name in graph.inputs if name in graph.tensors]
    return next((int(shape[0]) for shape in shapes if shape), 1)
