"""The front's picture: steps that only better answers go below, and labels that hide nothing."""

import re
from itertools import combinations, pairwise

from tests.leaderboards.provisioning.offers import MS, diamond

from opmark.leaderboards.provisioning.exploration import Exploration
from opmark.leaderboards.provisioning.front_picture import LETTER, LINE, RADIUS, Box, front_picture
from opmark.leaderboards.provisioning.goal import Goal
from opmark.leaderboards.provisioning.recommendation import recommend


def picture():
    exploration = Exploration(diamond(), Goal(latency_at_most_ns=9 * MS), devices_at_most=3)
    exploration.run(10.0)
    return front_picture(recommend(exploration, 10.0, draws=5))


def labels(svg):
    """The box of every answer's name."""
    found = re.findall(r'<text x="([\d.]+)" y="([\d.]+)" text-anchor="(\w+)">([^<]+)</text>', svg)
    for x, y, anchor, name in found:
        width = LETTER * len(name)
        left = {"start": float(x), "middle": float(x) - width / 2, "end": float(x) - width}[anchor]
        yield name, Box(left=left, top=float(y) - LINE + 3, right=left + width, bottom=float(y) + 3)


def test_the_line_is_steps_down_to_the_right():
    line = re.search(r'<polyline[^>]*points="([^"]+)"', picture())[1]
    corners = [tuple(map(float, point.split(","))) for point in line.split()]
    assert len(corners) >= 4
    for (x, y), (next_x, next_y) in pairwise(corners):
        assert (x == next_x) != (y == next_y), "each stroke is level or upright"
        assert next_x >= x
        assert next_y >= y, "a dearer answer is a faster one, which stands lower"


def test_labels_hide_neither_one_another_nor_a_point():
    svg = picture()
    boxes = dict(labels(svg))
    assert boxes, "at least the recommended answer is named"
    assert not any(a.meets(b) for a, b in combinations(boxes.values(), 2))
    for x, y in re.findall(r'cx="([\d.]+)" cy="([\d.]+)" r="\d', svg):
        point = Box(
            left=float(x) - RADIUS + 1,
            top=float(y) - RADIUS + 1,
            right=float(x) + RADIUS - 1,
            bottom=float(y) + RADIUS - 1,
        )
        assert not any(point.meets(box) for box in boxes.values())
