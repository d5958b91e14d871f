"""The site of a whole leaderboards folder."""

from pathlib import Path

from opmark.core.workspace import Workspace
from opmark.leaderboards.scoring.track import load_track, track_names
from opmark.leaderboards.site.exhibit import board_of
from opmark.leaderboards.site.predictor_card import predictor_cards
from opmark.leaderboards.site.publish import publish


def publish_tracks(leaderboards: Path, folder: Path) -> tuple[Path, ...]:
    """Write the site of every track with stored solutions; returns its files, `index.html` first.

    Raises `NothingSelectedError` where no track has any.
    """
    boards = []
    for name in track_names(leaderboards):
        track = load_track(leaderboards, name)
        if track.solutions():
            rules = track.rules
            boards.append(
                board_of(
                    track.problems(),
                    track.standings(),
                    name=name,
                    title=rules.title,
                    description=rules.description,
                    version=rules.version,
                )
            )
    return publish(folder, boards, predictor_cards(Workspace(leaderboards.parent)))
