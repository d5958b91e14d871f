"""The job of training a model whose layers were measured: one step of micro-batches on the types of a catalogue.

Each type needs a profile of the model without tensor parallelism; types without one are left out.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from opmark.core.errors import ContentError, OpMarkError, UsageError
from opmark.core.registry import unknown_name
from opmark.leaderboards.making.instances import Sources
from opmark.leaderboards.plans.layer_problem import OPTIMIZER_STATE, layer_tensors, layer_units, layer_weights
from opmark.leaderboards.plans.layer_times import LayerProfiles, TrainedModel
from opmark.leaderboards.problem.checks import checked
from opmark.leaderboards.problem.fields import CostOrigin
from opmark.leaderboards.problem.problem import Problem
from opmark.leaderboards.provisioning.catalogue import LAYERS, Catalogue
from opmark.leaderboards.provisioning.fleet import Fleet
from opmark.leaderboards.provisioning.job import UNITS_AT_MOST, Job, job_of, reasons_of

TRAINING = "@training"
# Sequences of one step, and the micro-batches that it has at most.
SEQUENCES, MICRO_BATCHES_AT_MOST = 8, 8
PROFILES = "profiles"


def has_layers(catalogue: Catalogue) -> bool:
    """True where the types of a catalogue have measured layers instead of predictors."""
    return all(table.layers for table in catalogue.tables.values())


def layers_job(
    model: str, catalogue: Catalogue, leaderboards: Path, *, sequences: int | None = None, in_a_pipeline: bool = False
) -> Job:
    """The job of training `model`, such as `opt-350@training`, with steps of `sequences` sequences.

    A step has up to eight micro-batches; in a pipeline that never ends, each step is one. Raises `UnknownNameError`
    for a model without profiles, `UsageError` for a model that is not trained or a step that cannot be cut evenly,
    `ContentError` where no type has a profile of the micro-batch.
    """
    found, profiles = _model(model, catalogue, leaderboards)
    step = SEQUENCES if sequences is None else sequences
    micro_batches = 1 if in_a_pipeline else min(step, MICRO_BATCHES_AT_MOST)
    if step % micro_batches:
        raise UsageError(
            f"a step of {step} sequences cannot be cut into {micro_batches} equal micro-batches",
            hint=f"give a --batch that {micro_batches} divides",
        )
    times, left_out = {}, {}
    for kind, table in catalogue.tables.items():
        try:
            times[kind] = [profiles.layer_times(found, table.layers.rpartition("/")[2], step // micro_batches, 1)]
        except OpMarkError as error:
            left_out[kind] = str(error)
    if not times:
        raise ContentError(f"no device type can train {model}: {reasons_of(left_out)}", where=catalogue.name)
    usable = catalogue.only([kind for kind in catalogue.types if kind in times])
    whole = Problem(
        name=model.replace("@", "-").replace(".", "-"),
        cluster=usable.cluster(Fleet.of(dict.fromkeys(usable.types, 1))),
        units=layer_units(found, times),
        tensors=layer_tensors(found, step // micro_batches),
        weights=layer_weights(found),
        memory_mode="stash",
        optimizer_state=OPTIMIZER_STATE,
        micro_batches=0 if in_a_pipeline else micro_batches,
        provenance=CostOrigin(model=found.name, family="sailor"),
    )
    return Job(model=model, batch=step, whole=checked(whole, model), catalogue=usable, left_out=left_out)


def _model(model: str, catalogue: Catalogue, leaderboards: Path) -> tuple[TrainedModel, LayerProfiles]:
    """The measured model behind a name, and the profiles of the catalogue's folder of layers."""
    name = model.removesuffix(TRAINING)
    folders = sorted({table.layers.rpartition("/")[0] for table in catalogue.tables.values()})
    if len(folders) > 1:
        raise ContentError(f"layers of one source are needed, not of {' and '.join(folders)}", where=catalogue.name)
    published = leaderboards / LAYERS / folders[0]
    profiles = LayerProfiles(published / PROFILES, published)
    known = {one.lower(): one for one in profiles.models if one in profiles.files}
    if name.lower() not in known:
        raise unknown_name("model with measured layers", model, [f"{one}{TRAINING}" for one in known])
    if not model.endswith(TRAINING):
        raise UsageError("the layers were measured in training", hint=f"write {model}{TRAINING}")
    return profiles.models[known[name.lower()]], profiles


def any_job(
    model: str,
    catalogue: Catalogue,
    sources: Sources,
    *,
    dimensions: Mapping[str, int],
    in_a_pipeline: bool,
    units_at_most: int = UNITS_AT_MOST,
    tell: Callable[[str], object] = lambda _: None,
) -> Job:
    """The job of `model`, of measured layers where the catalogue has them, else of kernels. Raises as these do.

    `tell` hears each step of the latter.
    """
    if has_layers(catalogue):
        leaderboards, sequences = sources.workspace.leaderboards, dimensions.get("batch")
        return layers_job(model, catalogue, leaderboards, sequences=sequences, in_a_pipeline=in_a_pipeline)
    return job_of(model, catalogue, sources, dimensions=dimensions, units_at_most=units_at_most, tell=tell)
