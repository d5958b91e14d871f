"""The manifest describes every row's target and environment, and all belong to one device."""

from collections.abc import Iterator

from opmark.datasets.format.manifest import FILE, conflicts
from opmark.datasets.validation.check import ERROR, Check, Finding, ReleaseTables


def findings(tables: ReleaseTables) -> Iterator[Finding]:
    """Find targets and environments that are missing, of another device, or contradictory."""
    manifest = tables.manifest
    for key, message in _manifest_problems(tables):
        yield Finding(check=CHECK.name, level=ERROR, file=FILE, column=key, message=message)
    targets = {target.name for target in manifest.targets}
    environments = {environment.id for environment in manifest.environments}
    for file, number, row in tables.rows():
        for column, known in (("target", targets), ("environment_id", environments)):
            # links have no target
            if column in row and row[column] not in known:
                yield Finding(
                    check=CHECK.name,
                    level=ERROR,
                    file=file,
                    row=number,
                    column=column,
                    message=f"{row[column]!r} is not in {FILE}",
                )


def _manifest_problems(tables: ReleaseTables) -> Iterator[tuple[str, str]]:
    manifest = tables.manifest
    if not manifest.environments:
        yield "environments", "none is recorded"
    for environment in manifest.environments:
        if environment.device != manifest.device:
            yield "environments", f"an environment of {environment.device!r}, not {manifest.device!r}"
        if not environment.checked:
            yield "environments", "an environment without any checked fact"
        differing = conflicts(manifest.environments[0], environment)
        if differing:
            yield "environments", f"checked facts differ: {', '.join(differing)}"
    for target in manifest.targets:
        if target.device != manifest.device:
            yield "targets", f"{target} is not a target of {manifest.device!r}"


CHECK = Check(
    name="environment-complete",
    title="Environments are described",
    description="Each row's target and environment are in the manifest; environments agree on every checked fact.",
    findings=findings,
)
