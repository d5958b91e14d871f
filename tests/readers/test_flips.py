"""Flipped bits: in files that carry a checksum, each is refused by name, or changes nothing that is loaded."""

import random
from pathlib import Path

import pytest
from tests.readers.mutations import flipped
from tests.readers.subjects import SUBJECTS, Subject

from opmark.core.errors import OpMarkError

FLIPS = 60
GUARDED = [subject for subject in SUBJECTS if subject.guarded]


@pytest.mark.parametrize("subject", GUARDED, ids=lambda subject: subject.name)
def test_no_flipped_bit_passes_unseen(subject: Subject, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    path = subject.make(tmp_path)
    content, loaded = path.read_bytes(), repr(subject.read(path))
    draw, sentences = random.Random(subject.name), []
    bits = range(8 * len(content))
    for place in draw.sample(bits, min(len(bits), request.config.getoption("--flips") or FLIPS)):
        path.write_bytes(flipped(content, place))
        try:
            found = subject.read(path)
        except OpMarkError as error:
            sentences.append(str(error))
        else:
            assert repr(found) == loaded, f"bit {place} changes what is loaded"
    assert sentences
    assert all(path.name in sentence for sentence in sentences)
