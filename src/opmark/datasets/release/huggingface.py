"""The tables of a release as configurations of Hugging Face's `datasets.load_dataset`."""

from opmark.datasets.format.columns import TABLES
from opmark.datasets.format.manifest import ReleaseManifest
from opmark.datasets.release.network_kernels import NETWORK_KERNELS

_NETWORK_KERNELS = (NETWORK_KERNELS, f"{NETWORK_KERNELS}.parquet")
_EDGE = "---\n"


def configurations(manifest: ReleaseManifest) -> tuple[tuple[str, str], ...]:
    """The names of the tables that have rows with their files, the default one first."""
    known = (*((table.name, table.file) for table in TABLES.values()), _NETWORK_KERNELS)
    return tuple(
        (name, file) for name, file in known if (entry := manifest.entry(file)) is not None and entry.rows != 0
    )


def configurations_text(manifest: ReleaseManifest) -> str:
    """The configurations as YAML: the file `.huggingface.yaml`, or a part of a card's header.

    `load_dataset` tells releases in folders of one name, such as `1.0.0`, apart by their descriptions alone: it keeps
    what it has read under a hash of the configurations.
    """
    import yaml

    found = [
        {
            "config_name": name,
            "data_files": file,
            "description": f"OpMark {manifest.device} {manifest.version}, id {manifest.id}",
        }
        for name, file in configurations(manifest)
    ]
    listed = [{**one, "default": True} if one is found[0] else one for one in found]
    return yaml.safe_dump({"configs": listed}, sort_keys=False, width=200)


def with_configurations(card: str, manifest: ReleaseManifest) -> str:
    """A card with the configurations in its header, which the first cards do not have."""
    before, header, text = card.split(_EDGE, 2) if card.startswith(_EDGE) and card.count(_EDGE) > 1 else ("", "", card)
    if "configs:" in header.splitlines():
        return card
    return _EDGE.join((before, header + configurations_text(manifest), text))
