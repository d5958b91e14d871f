"""The blocks of a journal that count: older journals hold some that were measured in another way than today's."""

from collections.abc import Iterator, Sequence

from opmark.core.measurements.records import (
    VALUES,
    Block,
    KernelTrial,
    NetworkTrial,
    Record,
    Sentinels,
    Session,
)

# A target that keeps freed memory has few page faults a call. Where there are more, another setting of malloc gave the
# results new pages.
_MOST_FAULTS = 256
# The revisions of `records.VALUES` that changed the time of some kernels.
_OF_IMAGES = 3
_OF_VECTORS = 4
# Vectors of so many channels fill lines; narrower ones cross fewer of them.
_WIDE_BLOCK = 16


def counted_blocks(records: Sequence[Record]) -> Iterator[Block]:
    """The blocks of accepted rounds, on memory and values as they are used today."""
    rejected = {record.round for record in records if isinstance(record, Sentinels) and not record.accepted}
    keeping: set[str] = set()
    trials: dict[str, KernelTrial | NetworkTrial] = {}
    values = VALUES
    for record in records:
        if isinstance(record, Session):
            keeping |= {target.name for target in record.targets if target.keeps_memory}
            values = record.values
        elif isinstance(record, KernelTrial | NetworkTrial):
            trials[record.trial] = record
        elif isinstance(record, Block) and record.round not in rejected:
            trial = trials.get(record.trial)
            on_new_pages = trial is not None and trial.target in keeping and record.faults_per_call > _MOST_FAULTS
            if not on_new_pages and not _has_changed(trial, values):
                yield record


def _has_changed(trial: KernelTrial | NetworkTrial | None, values: int) -> bool:
    """Return True if the kernel takes another time since revision `values` of what it computes on."""
    if not isinstance(trial, KernelTrial) or values >= VALUES:
        return False
    kind, given = trial.kernel.kind, trial.kernel.params
    if trial.target.startswith("torch-"):
        return values < _OF_IMAGES and kind == "pool" and given.get("op") == "max"
    # Other convolutions on blocked channels read single numbers, and only write vectors.
    reads_vectors = kind != "conv" or given.get("groups", 1) != 1
    bound = trial.target.startswith("onnxruntime-")
    return bound and values < _OF_VECTORS and given.get("block", 0) == _WIDE_BLOCK and reads_vectors
