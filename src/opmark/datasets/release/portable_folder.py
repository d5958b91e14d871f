"""A folder that other programs load wherever it lies: the tables of a release, its card, and Croissant beside them."""

import shutil
from pathlib import Path

from opmark.core.errors import UsageError
from opmark.core.files import atomic_path, json_text, write_text
from opmark.core.reading import read_text
from opmark.datasets.release import card
from opmark.datasets.release.croissant import FILE, croissant_of
from opmark.datasets.release.huggingface import with_configurations
from opmark.datasets.release.release import Release


def write_portable_folder(release: Release, folder: Path) -> tuple[Path, ...]:
    """Copy the tables of `release` to `folder`, which is new or empty, with a card and Croissant; return the files.

    `datasets.load_dataset(folder, table)` and mlcroissant read it. It is no release: it has no manifest. Raises
    `UsageError` where the folder holds something.
    """
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise UsageError("exists, and is not an empty folder", where=str(folder), hint="name a new folder")
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for entry in release.manifest.files:
        if entry.name.endswith(".parquet"):
            made.append(folder / entry.name)
            with atomic_path(made[-1]) as temporary:
                shutil.copyfile(release.path / entry.name, temporary)
    texts = {card.FILE: portable_card(release), FILE: json_text(croissant_of(release.path, release.manifest))}
    for name, text in texts.items():
        write_text(folder / name, text)
    return (*made, *(folder / name for name in texts))


def portable_card(release: Release) -> str:
    """The card of a release, with configurations for `load_dataset` in its header."""
    return with_configurations(read_text(release.path / card.FILE), release.manifest)
