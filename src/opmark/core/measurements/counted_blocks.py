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
            if not on_new_pages and not (values < VALUES and _has_other_values(trial)):
                yield record


def _has_other_values(trial: KernelTrial | NetworkTrial | None) -> bool:
    """Return True if the kernel's time depends on values that have changed since (`records.VALUES`)."""
    if not isinstance(trial, KernelTrial) or not trial.target.startswith("torch-"):
        return False
    return trial.kernel.kind == "pool" and trial.kernel.params.get("op") == "max"
