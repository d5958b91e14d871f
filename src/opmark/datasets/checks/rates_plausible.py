"""No row is faster than the hardware: rates stay below the peak that other rows support."""

from collections.abc import Iterator

from opmark.core.units import format_count
from opmark.datasets.format.columns import KERNELS
from opmark.datasets.validation.check import ERROR, WARNING, Check, Finding, ReleaseTables
from opmark.datasets.validation.peaks import LABEL_OF, REFUSED_ABOVE, Group, peaks, rates

# The noise of labels: a row may exceed the peak of the others by this factor.
_TOLERANCE = 1.05


def findings(tables: ReleaseTables) -> Iterator[Finding]:
    """Find rates above the peak (warnings) and above four times the peak (errors).

    The peak is the lower of the one in the manifest and the one that the rows support, so that changing one of both
    does not help.
    """
    ceilings: dict[Group, float] = {}
    found = peaks(row for _, _, row in tables.rows(KERNELS.name))
    for peak in (*tables.manifest.peaks, *found):
        group = (peak.target, peak.quantity, peak.dtype)
        ceilings[group] = min(peak.rate, ceilings.get(group, peak.rate))
    for file, number, row in tables.rows(KERNELS.name):
        for group, rate in rates(row):
            excess = rate / ceilings[group]
            if excess <= _TOLERANCE:
                continue
            _, quantity, dtype = group
            yield Finding(
                check=CHECK.name,
                level=ERROR if excess > REFUSED_ABOVE else WARNING,
                file=file,
                row=number,
                column=LABEL_OF[quantity],
                message=f"{dtype} {quantity} of {format_count(rate)} is {excess:.1f} times the measured peak".strip(),
            )


CHECK = Check(
    name="rates-plausible",
    title="Rates are possible",
    description="FLOP/s and bytes/s above the release's measured peak are flagged, above four times it refused.",
    findings=findings,
)
