"""Progress over the years: the best so far, and no picture where there is no progress to show."""

from opmark.pages.records import Dated, record_picture


def test_the_line_goes_through_the_records_only() -> None:
    methods = [
        Dated(label="first", year=1989, score=0.5),
        Dated(label="worse", year=2002, score=0.4),
        Dated(label="better", year=2010, score=0.8),
    ]
    made = record_picture(methods, title="scores", today=Dated(label="own", year=2011, score=0.9))
    caption = made.split("<figcaption>")[1]
    assert "first (1989, 0.500), better (2010, 0.800), own (today, 0.900)" in caption
    assert "worse" not in caption
    assert made.count("<circle") == 4


def test_one_year_is_no_progress() -> None:
    assert record_picture([], title="scores") == ""
    assert record_picture([Dated(label="a", year=2000, score=1.0)], title="scores") == ""
