"""Releases built from journals, from other releases, or from rows at hand."""

import hashlib
import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from opmark.core.errors import ContentError
from opmark.core.measurements.calm_readings import after_like_work, deviations_of_readings
from opmark.core.measurements.host_clock import host_clock
from opmark.core.measurements.journal import Journal, calm_and_fastest_of, read_journal
from opmark.core.reading import LARGE_BYTES, PACKED, read_content
from opmark.core.slug import path_inside
from opmark.datasets.format.manifest import FILE, RowSource
from opmark.datasets.release.contents import Contents, from_measurements
from opmark.datasets.release.memory_levels import Told, at_calm_memory
from opmark.datasets.release.network_kernels import GraphFinder
from opmark.datasets.release.release import Release, load
from opmark.datasets.release.writing import write

# Machines whose sentinels differ by more are different machines, even if their facts agree.
SENTINEL_TOLERANCE = 0.03


def build(
    journals: Sequence[Path],
    folder: Path,
    *,
    version: str | None = None,
    with_journals: bool = False,
    find: GraphFinder | None = None,
) -> Release:
    """Build a release in `folder/<device>/<version>` (default: the next version) from journals of one machine.

    The order of the journals does not change the bytes; one calm clock is the reference of all, and so is the
    memory of calm hours (`memory_levels`). With `with_journals`, the release also holds them, compressed, so that
    every label can be traced to its samples; those that another release of the device in `folder` holds stay
    there. With `find`, which gives the graphs of networks, it holds the kernels that its networks consist of.
    Raises `ContentError` naming journal and line, or the facts or sentinels on which journals differ, `UsageError`
    for an existing version. Nothing is left behind on an error.
    """
    # In an order of their own, for sums of floating-point numbers depend on it.
    found = sorted(map(read_journal, journals), key=lambda journal: _sha256_of_text(journal.path))
    calm_ns, fastest_ns = calm_and_fastest_of(found)
    for journal in found:
        _check_alike(journal, fastest_ns)
    told = [journal.beside(calm_ns) for journal in found]
    parts = [_contents(journal, rows) for journal, rows in zip(told, at_calm_memory(told), strict=True)]
    kept = {one.path for one, part in zip(found, parts, strict=True) if with_journals and not _is_held(part, folder)}
    return load(write(parts, folder, version=version, journals=sorted(kept), find=find))


def build_from(parts: Sequence[Contents], folder: Path, *, version: str | None = None) -> Release:
    """Build a release from given rows; see `build` and `contents.from_measurements`."""
    return load(write(list(parts), folder, version=version))


def _check_alike(journal: Journal, fastest_ns: Mapping[str, Mapping[str, float]]) -> None:
    """Raise `ContentError` where sentinels moved apart, as on another machine; on another clock they move alike.

    The fastest readings are compared, because neighbours can disturb a machine during a whole run, and with those after
    work of the same length. They may differ by as much between hours as they do within one.
    """
    for target, reading in journal.fastest_ns.items():
        now = after_like_work(reading, fastest_ns[target])
        ratio = host_clock(now, fastest_ns[target]).ratio
        blocks = (block for key, own in journal.blocks.items() if journal.trials[key].target == target for block in own)
        deviations = deviations_of_readings(blocks)
        offs = {
            name: abs(ns / fastest_ns[target][name] / ratio - 1)
            for name, ns in now.items()
            if name in fastest_ns[target]
        }
        too_far = [off for name, off in offs.items() if off > max(SENTINEL_TOLERANCE, deviations.get(name, 0.0))]
        if too_far:
            off = max(too_far)
            raise ContentError(
                f"its sentinels on {target} are {off:.1%} off those of the other journals beside what a clock explains",
                where=str(journal.path),
                hint="a neighbour was busy throughout: measure again; or it is another machine: build its own release",
            )


def journal_contents(path: Path) -> Contents:
    """Read the rows of one journal. Raises `ContentError` naming file and line or row and column."""
    journal = read_journal(path)
    return _contents(journal, (journal.measurements, journal.networks))


def _contents(journal: Journal, rows: Told) -> Contents:
    kernels, networks = rows
    source = RowSource(
        name=journal.name,
        sha256=_sha256_of_text(journal.path),
        kernels=len(kernels),
        networks=len(networks),
        sentinels_ns=_sentinels_ns(journal),
        sampled_s=_sampled_s(journal),
    )
    return from_measurements(
        str(journal.path),
        kernels,
        networks,
        environments=(journal.environment,),
        targets=journal.targets,
        sources=(source,),
        fusions=journal.fusions,
        links=journal.links,
    )


def _sha256_of_text(journal: Path) -> str:
    """Compute the checksum of a journal's text, which a packed journal has as well."""
    return hashlib.sha256(read_content(journal, at_most=LARGE_BYTES)).hexdigest()


def _is_held(part: Contents, folder: Path) -> bool:
    """Tell whether a release of the device in `folder` holds the journal of `part`: git and people need it once."""
    (source,) = part.sources
    packed = path_inside(folder, part.device).glob(f"*/{source.name}{PACKED}")
    return any(_sha256_of_text(path) == source.sha256 for path in packed)


def _sentinels_ns(journal: Journal) -> dict[str, float]:
    found = {f"{target}/{name}": ns for target, calm in journal.calm_ns.items() for name, ns in calm.items()}
    return dict(sorted(found.items()))


def _sampled_s(journal: Journal) -> dict[str, float]:
    """Sum the seconds inside samples by target."""
    spent: dict[str, float] = defaultdict(float)
    for key, blocks in journal.blocks.items():
        spent[journal.trials[key].target] += sum(sum(block.ns) * block.calls for block in blocks) / 1e9
    return {target: round(spent[target], 1) for target in sorted(spent)}


def merge(sources: Sequence[Path], folder: Path, *, version: str | None = None) -> Release:
    """Build a release in `folder/<device>/<version>` of everything in `sources`, journals or release folders.

    Of repeated measurements, the best trial enters the tables and the others become repeats. Raises `ContentError`
    naming the facts or sentinels that differ between two sources.
    """
    parts = [load(path).contents() if (path / FILE).is_file() else journal_contents(path) for path in sources]
    for first, other in itertools.combinations(parts, 2):
        _check_sentinels(first, other)
    return load(write(parts, folder, version=version))


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


def _drifted(first: RowSource, other: RowSource) -> str:
    ratios = {}
    for target in sorted({key.partition("/")[0] for key in first.sentinels_ns}):
        ours, theirs = _of_target(first, target), _of_target(other, target)
        for name, ns in after_like_work(theirs, ours).items():
            if name in ours:
                ratios[f"{target}/{name}"] = ns / ours[name] - 1
    return ", ".join(f"{name} {ratio:+.1%}" for name, ratio in ratios.items() if abs(ratio) > SENTINEL_TOLERANCE)


def _of_target(source: RowSource, target: str) -> dict[str, float]:
    named = {key.partition("/")[::2]: ns for key, ns in source.sentinels_ns.items()}
    return {name: ns for (of, name), ns in named.items() if of == target}
