"""The page of configurations: one line per target and type, a circle for each best one, all of it in a table."""

from opmark.studies.configurations.page import configurations_page, line_name, sweep_picture
from opmark.studies.configurations.sweep import Configuration, LeftOut, Sweep


def one(target: str, batch: int, latency_ns: float) -> Configuration:
    return Configuration(
        target=target,
        type="float32",
        sizes={"batch": batch, "size": 64},
        batch=batch,
        latency_ns=latency_ns,
        low_ns=0.9 * latency_ns,
        high_ns=1.1 * latency_ns,
        warnings=("nobody measured <gelu>",) if batch == 4 else (),
    )


FOUND = Sweep(
    model="net",
    configurations=(one("a/t", 1, 1e6), one("a/t", 4, 3e6), one("b/t", 1, 2e6)),
    left_out=(LeftOut(target="c/t", type="bf16", reason="no predictor for kind conv"),),
    limit_ns=2e6,
)


def test_the_picture_has_a_line_per_target_and_a_point_per_configuration() -> None:
    picture = sweep_picture(FOUND)
    assert picture.count('class="dash0"') == 2 + 2
    assert picture.count('class="point') == 3
    assert picture.count('r="9"') == 3
    assert "the latency limit" in picture


def test_the_page_tells_warnings_and_what_is_left_out() -> None:
    page = configurations_page(FOUND)
    assert page.count('<th scope="row">') == 3
    assert "nobody measured &lt;gelu&gt;" in page
    assert "no predictor for kind conv" in page
    assert "most samples per second within 2.00 ms" in page


def test_a_line_is_named_by_all_but_the_batch() -> None:
    assert line_name(one("a/t", 4, 1e6)) == "a/t, float32, size=64"


def test_one_configuration_is_enough_for_a_picture() -> None:
    assert "<circle" in sweep_picture(Sweep(model="net", configurations=(one("a/t", 1, 1e6),)))
