from opmark.studies.quickstart.report import short


def test_parameters_that_say_nothing_are_left_out() -> None:
    assert (
        short({"n": 1, "bias": False, "activation": "", "pads": (1, 1), "scale": None, "groups": 0}) == "n=1, pads=1×1"
    )


def test_shapes_are_written_as_people_write_them() -> None:
    assert short({"op": "add", "shapes": ((1, 64), (64,))}) == "op=add, shapes=1×64, 64"
