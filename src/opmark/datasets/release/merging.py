"""Several journals and releases of like machines become one release: shards of one campaign, rounds of another."""

import itertools
from collections.abc import Sequence
from pathlib import Path

from opmark.core.errors import ContentError
from opmark.datasets.format import manifest
from opmark.datasets.format.manifest import Source
from opmark.datasets.release import writing as writer
from opmark.datasets.release.contents import Contents
from opmark.datasets.release.release import SENTINEL_TOLERANCE, Release, journal_contents, load


def merge(sources: Sequence[Path], folder: Path, *, version: str | None = None) -> Release:
    """A new release in `folder/<device>/<version>` of everything in `sources`, journals or release folders.

    Nothing is lost: what several of them measured keeps its best trial in the tables and the others as repeats.
    Raises `ContentError` naming the facts or sentinels that differ between two sources.
    """
    parts = [load(path).contents() if (path / manifest.FILE).is_file() else journal_contents(path) for path in sources]
    for first, other in itertools.combinations(parts, 2):
        _check_sentinels(first, other)
    return load(writer.write(parts, folder, version=version))


def _check_sentinels(first: Contents, other: Contents) -> None:
    for ours, theirs in itertools.product(first.sources, other.sources):
        if ours.sha256 == theirs.sha256:
            continue
        drifted = _drifted(ours, theirs)
        if drifted:
            raise ContentError(
                f"its sentinels differ from those of {first.name} by more than {SENTINEL_TOLERANCE:.0%}: {drifted}",
                where=other.name,
                hint="build a release of its own from it; one machine's journals at two clocks: opmark datasets build",
            )


def _drifted(first: Source, other: Source) -> str:
    ratios = {
        name: other.sentinels_ns[name] / latency_ns - 1
        for name, latency_ns in first.sentinels_ns.items()
        if name in other.sentinels_ns
    }
    return ", ".join(f"{name} {ratio:+.1%}" for name, ratio in ratios.items() if abs(ratio) > SENTINEL_TOLERANCE)
