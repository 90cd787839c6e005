"""Numbers in words: never more certain than they are, always in line."""

import pytest

from calibrant.view import _svg, _words


def plain(text):
    return text.replace("\u202f", " ").replace("\u2212", "-")


@pytest.mark.parametrize(
    "share, text",
    [
        (0.0, "0 %"),
        (1.0, "100 %"),
        (0.5, "50 %"),
        (0.97, "97 %"),
        (0.614, "61 %"),
        (0.097, "9.7 %"),
        (0.9994, "99.94 %"),
        (0.00085, "0.085 %"),
        (0.9999999, "above 99.9999 %"),
        (1e-9, "below 0.0001 %"),
    ],
)
def test_percentages_tell_themselves_from_none_and_all(share, text):
    assert plain(_words.percent(share)) == text


def test_a_pair_shows_its_difference():
    assert [plain(text) for text in _words.percent_pair(0.3261, 0.3289)] == ["32.6 %", "32.9 %"]
    assert [plain(text) for text in _words.percent_pair(0.2, 0.2)] == ["20 %", "20 %"]
    a, b = _words.fixed_pair(0.159391, 0.159364)
    assert a != b
    assert _words.fixed_pair(0.5, 0.25) == ("0.5000", "0.2500")


def test_counts_signs_and_points():
    assert _words.count(12345.0) == "12,345"
    assert _words.count(2.5) == "2.5"
    assert _words.counted(1, "row") == "1 row"
    assert plain(_words.signed(-0.012, 3)) == "-0.012"
    assert _words.signed(0.012, 3) == "+0.012"
    assert _words.signed(-0.0001, 2) == "0.00"
    assert _words.points(0.01) == "1.0 point"
    assert _words.points(0.16) == "16 points"
    assert _words.joined(["a", "b", "c"]) == "a, b and c"


def test_numbers_of_any_size():
    assert [plain(_words.general(value)) for value in (0.0, 3.0, -17.97, 0.04281, 1e-7, 2.5e8)] == [
        "0",
        "3",
        "-17.97",
        "0.04281",
        "1.00e-07",
        "2.50e+08",
    ]


@pytest.mark.parametrize("low, high, last", [(0, 1, "20 %"), (0.92, 1, "93.6 %"), (0, 0.001, "0.02 %")])
def test_ticks_have_the_decimals_that_their_steps_need(low, high, last):
    assert plain(_svg.percents(_svg.steps(low, high))[1]) == last


@pytest.mark.parametrize("value", [1e-6, 0.00069, 0.04, 0.0101, 0.3, 0.99, 1.0])
def test_the_top_of_an_axis_is_round_and_close(value):
    top = _svg.nice_top(value)
    assert value * 0.999 <= top <= 2 * value
