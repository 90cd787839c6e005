"""The report's record: its numbers are the measures', and its sentences say what the rows can bear."""

import json
import math
from functools import cache

import numpy as np
import pytest

import calibrant
from calibrant import AffineLogit, IsotonicCalibration, PlattScaling, ScoreTable, SplineCalibration, build_report
from calibrant.calibrators._cross_fit import cross_fitted_table
from calibrant.errors import InputError, InputTypeError, OutputExistsError


def expit(z):
    return 1 / (1 + np.exp(-z))


def honest(n, mean=-1.0, seed=1):
    """Log-odds, and labels drawn from them."""
    rng = np.random.default_rng(seed)
    z = rng.normal(mean, 1.5, n)
    return z, (rng.random(n) < expit(z)).astype(int)


def case_honest():
    z, y = honest(20_000)
    return y, expit(z)


def case_over_confident():
    z, y = honest(5_000)
    return y, expit(2.5 * z)


def case_under_confident():
    z, y = honest(5_000)
    return y, expit(0.4 * z)


def case_shifted():
    z, y = honest(20_000)
    return y, expit(z + 0.8)


def case_slight():
    z = np.linspace(-5, 3, 161)
    rows = np.round(20_000 * np.exp(-((z + 1) ** 2) / 4.5))
    events = np.round(rows * expit(z))
    return (ScoreTable.from_counts(expit(1.03 * z), events, rows - events),)


def case_curved():
    z, y = honest(30_000)
    return y, expit(z + 0.8 * np.sin(2 * z))


def case_flipped():
    z, y = honest(5_000)
    return 1 - y, expit(z)


def case_margins():
    z, y = honest(5_000)
    return y, 3 * z + 1


def case_noise():
    rng = np.random.default_rng(0)
    return rng.integers(0, 2, 3_000), rng.random(3_000)


def case_useless():
    rng = np.random.default_rng(5)
    return (rng.random(30_000) < 0.2).astype(int), 0.2 + 0.001 * rng.random(30_000)


def case_separable():
    return np.repeat([0, 1], 50), np.concatenate([np.linspace(0.05, 0.4, 50), np.linspace(0.6, 0.95, 50)])


def case_constant():
    return [0, 1, 0, 0] * 20, np.full(80, 0.3)


def case_one_event():
    return [1] + [0] * 30, np.linspace(0.9, 0.01, 31)


def case_tiny():
    z, y = honest(20, seed=3)
    return y, expit(z)


def case_one_event_margins():
    return [1] + [0] * 30, np.linspace(3, -4, 31)


def case_decisions():
    z, y = honest(3_000)
    return y, (z > 0).astype(float)


def case_saturated():
    z, y = honest(5_000)
    return y, np.round(expit(3 * z), 2)


def case_rare():
    z, y = honest(60_000, mean=-8)
    return y, expit(1.3 * z)


CASES = {name[5:]: make for name, make in list(globals().items()) if name.startswith("case_")}


@cache
def report_of(name):
    return build_report(*CASES[name]())


def said(report, part="found"):
    return {sentence.code: sentence.text for sentence in getattr(report.headline, part)}


EXPECTED = {
    "honest": ("leave-alone", {"no-clear-miscalibration"}, "No clear miscalibration", "Leave the scores alone"),
    "over_confident": ("use-map", {"over-confident+too-low", "example", "gain"}, "over-confident", "Use the map"),
    "under_confident": ("use-map", {"under-confident+too-high", "gain"}, "under-confident", "Use the map"),
    "shifted": ("use-map", {"too-high", "gain"}, "too high on the whole", "Use the map"),
    "slight": ("small-gain", {"gain"}, "slightly", "otherwise leave"),
    "curved": ("map-not-enough", {"map-misses"}, "more than chance explains", "Try AutoCalibrator"),
    "flipped": ("flipped", {"falling"}, "falls as the event gets likelier", "Check which label is the event"),
    "margins": ("use-map", {"not-probabilities", "gain"}, "not probabilities", "Use the map"),
    "noise": ("no-signal", {"no-signal"}, "do not rank better than chance", "Do not act on these scores"),
    "useless": ("no-signal", {"no-signal", "calibrated-but-useless"}, "no merit", "look for a better model"),
    "separable": ("separable", {"separable"}, "No event scored below", "not trained on"),
    "constant": ("constant", {"constant"}, "Every row has the same score", "base rate"),
    "one_event": ("not-cross-fitted", {"not-cross-fitted"}, "no “after”", "Use no map yet"),
    "one_event_margins": ("not-cross-fitted", {"not-probabilities"}, "only their order", "Use no map yet"),
    "tiny": ("cannot-tell", {"miscalibration-unclear"}, "no miscalibration is clear", "collect more rows"),
    "decisions": ("decisions", {"hard-labels", "infinite-log-loss"}, "decisions, not probabilities", "decision values"),
    "saturated": (None, {"saturated"}, "exactly 0 or 1", "log-odds"),
    "rare": ("use-map", {"over-confident+too-low", "gain"}, "over-confident", "Use the map"),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_the_headline_says_what_was_found_and_what_to_do(name):
    verdict, codes, found, advice = EXPECTED[name]
    report = report_of(name)
    assert verdict in (None, report.headline.verdict)
    assert codes <= set(said(report))
    assert found in " ".join(said(report).values())
    assert advice in " ".join(said(report, "advice").values())


@pytest.mark.parametrize("name", EXPECTED)
def test_every_headline_says_what_it_cannot_say(name):
    assert {"intervals", "in-sample", "population"} <= set(said(report_of(name), "limits"))


@pytest.mark.parametrize("name", ["honest", "useless", "tiny", "constant"])
def test_not_clear_is_never_sold_as_proof(name):
    assert "not proof" in said(report_of(name), "limits")["intervals"]
    assert "well calibrated" not in report_of(name).to_json()


def test_a_map_that_was_certain_and_wrong_is_not_recommended():
    y, p = CASES["over_confident"]()
    report = build_report(y, p, calibrator=IsotonicCalibration())
    assert report.after.log_loss.score.value is None
    assert report.headline.verdict == "map-not-enough"
    assert "infinite" in said(report)["infinite-log-loss-after"]
    assert "smoothing" in said(report, "advice")["map-not-enough"]
    smoothed = build_report(y, p, calibrator=IsotonicCalibration(smoothing=0.5))
    assert smoothed.headline.verdict == "use-map"


def test_few_rows_are_named():
    assert "hint" in said(report_of("tiny"), "limits")["few-rows"]
    assert "rough" in said(report_of("separable"), "limits")["few-rows"]
    assert "few-rows" not in said(report_of("honest"), "limits")


def test_the_example_is_a_bin_of_the_table():
    report = report_of("over_confident")
    worst = max(report.before.reliability.bins, key=lambda b: b.weight * abs(b.gap))
    assert f"{worst.rows:,.0f} rows" in said(report)["example"]


# ---------------------------------------------------------------- numbers


def test_before_is_the_measures_of_the_rows():
    y, p = CASES["over_confident"]()
    before = report_of("over_confident").before
    assert before.log_loss.score.value == pytest.approx(calibrant.log_loss(y, p), rel=1e-12)
    assert before.brier.score.value == pytest.approx(calibrant.brier_score(y, p), rel=1e-12)
    line = calibrant.calibration_slope_intercept(y, p)
    assert (before.slope.value, before.intercept.value) == pytest.approx((line.slope, line.intercept), rel=1e-9)
    assert before.roc_auc == pytest.approx(calibrant.roc_auc(y, p), rel=1e-12)
    assert before.average_precision == pytest.approx(calibrant.average_precision(y, p), rel=1e-12)
    assert before.mean_predicted == pytest.approx(p.mean(), rel=1e-12)
    curve = calibrant.reliability_curve(y, p)
    assert [b.rows for b in before.reliability.bins] == curve.rows.tolist()
    assert [b.gap for b in before.reliability.bins] == pytest.approx(
        (curve.observed_rate - curve.mean_predicted).tolist(), abs=1e-12
    )
    for row in before.sweep:
        for n, value in zip((5, 10, 15, 20, 30, 50), row.values):
            error = calibrant.expected_calibration_error(y, p, n_bins=n, strategy=row.strategy)
            assert value == pytest.approx(error, abs=1e-12)


def test_after_is_the_measures_of_the_cross_fitted_table():
    y, p = CASES["over_confident"]()
    after = report_of("over_confident").after
    table = cross_fitted_table(AffineLogit(), ScoreTable.from_arrays(p, y), 5, 0)
    assert after.log_loss.score.value == pytest.approx(calibrant.log_loss(table), rel=1e-12)
    assert after.roc_auc == pytest.approx(calibrant.roc_auc(table), rel=1e-12)
    assert after.slope.value == pytest.approx(calibrant.calibration_slope_intercept(table).slope, rel=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_every_decomposition_adds_up(name):
    report = report_of(name)
    for side in filter(None, (report.before, report.after)):
        for parts in (side.brier, side.log_loss):
            if parts.score.value is None:
                assert parts.score.reason
                assert parts.miscalibration.reason
                continue
            total = parts.miscalibration.value - parts.discrimination + parts.uncertainty
            assert total == pytest.approx(parts.score.value, abs=1e-12)


@pytest.mark.parametrize("name", CASES)
def test_bins_and_bars_hold_every_row(name):
    report = report_of(name)
    for side in filter(None, (report.before, report.after)):
        shown = side.reliability
        assert sum(b.weight for b in shown.bins) == pytest.approx(report.data.total_weight)
        assert sum(shown.bar_weights) + shown.outside_scale == pytest.approx(report.data.total_weight)
        for b in shown.bins:
            assert (b.weight == 0) == (b.mean_predicted is None) == (b.observed_rate is None)


def test_the_map_is_the_fit_on_all_rows():
    y, p = CASES["over_confident"]()
    fitted = AffineLogit().fit(p, y)
    card = report_of("over_confident").map
    assert (card.slope, card.intercept) == pytest.approx((fitted.slope_, fitted.intercept_), rel=1e-9)
    assert [e.after for e in card.examples] == pytest.approx([fitted.map_(e.score) for e in card.examples], rel=1e-9)
    assert [e.score for e in card.examples] == [0.01, 0.1, 0.5, 0.9, 0.99]


def test_the_roc_curve_is_thinned_but_keeps_its_ends_and_its_hull():
    y, p = CASES["honest"]()
    roc = report_of("honest").roc
    assert roc.points_of_curve > 19_000
    assert len(roc.false_positive_rate) <= 500
    assert (roc.false_positive_rate[0], roc.true_positive_rate[0]) == (0, 0)
    assert (roc.false_positive_rate[-1], roc.true_positive_rate[-1]) == (1, 1)
    drawn = set(zip(roc.false_positive_rate, roc.true_positive_rate))
    assert set(zip(roc.hull_false_positive_rate, roc.hull_true_positive_rate)) <= drawn
    area = np.trapezoid(roc.true_positive_rate, roc.false_positive_rate)
    assert area == pytest.approx(calibrant.roc_auc(y, p), abs=2e-3)
    slopes = np.diff(roc.hull_true_positive_rate) / np.maximum(np.diff(roc.hull_false_positive_rate), 1e-12)
    assert np.all(np.diff(slopes) < 0)


def test_rare_events_get_a_closer_scale_and_bins_of_equal_mass():
    bins = report_of("rare").before.reliability
    assert bins.bar_edges[-1] <= 0.05
    assert {round(b.rows) for b in bins.bins} == {6_000}
    assert report_of("over_confident").before.reliability.bar_edges[-1] == 1


# ---------------------------------------------------------------- evidence


def test_intervals_stand_beside_the_numbers():
    y, p = CASES["over_confident"]()
    side = report_of("over_confident").before
    pairs = {
        "log_loss": calibrant.estimate(calibrant.log_loss, y, p),
        "brier": calibrant.estimate(calibrant.brier_score, y, p),
        "roc_auc": calibrant.estimate(calibrant.roc_auc, y, p),
        "slope": calibrant.estimate(calibrant.calibration_slope_intercept, y, p).slope,
        "calibration_error": calibrant.calibration_error(y, p),
    }
    for name, found in pairs.items():
        shown = getattr(side.proof, name)
        assert (shown.value, shown.low, shown.high) == pytest.approx((found.value, found.low, found.high), rel=1e-9)
    bands = calibrant.reliability_bands(y, p, strategy="uniform")
    limits = [(b.rate_low, b.rate_high) for b in side.reliability.bins]
    assert limits == [pytest.approx(pair, abs=1e-12) for pair in zip(bands.low, bands.high)]


@pytest.mark.parametrize("name", CASES)
def test_bands_hold_their_curve_and_infinite_ends_are_none(name):
    for side in filter(None, (report_of(name).before, report_of(name).after)):
        band = side.proof.band
        assert all(low <= rate <= high for low, rate, high in zip(band.low, band.observed, band.high))
        assert len(band.predicted) <= 80
        assert (side.proof.log_loss.value is None) == (side.log_loss.score.value is None)


@pytest.mark.parametrize(
    "name, code, words",
    [
        ("honest", "calibrated-within-margin", "within a margin of 2 points"),
        ("over_confident", "miscalibrated-beyond-margin", "beyond a margin of 2 points"),
        ("tiny", "margin-undecided", "rows would"),
        ("useless", "calibrated-within-margin", "the base rate would do as well"),
    ],
)
def test_the_verdict_is_said_with_its_margin(name, code, words):
    assert words in said(report_of(name))[code]


def test_no_number_of_rows_is_named_near_the_margin():
    z, y = honest(3_000)
    report = build_report(y, expit(1.15 * z))
    text = said(report)["margin-undecided"]
    assert report.before.proof.near_margin
    assert report.before.proof.rows_needed > 30_000
    assert 0.01 < report.before.proof.calibration_error.value < 0.04
    assert "about as large as the margin, so more rows may not settle that" in text
    assert "rows would" not in text


def test_the_map_is_judged_by_the_same_margin():
    assert "margin-undecided-after" in said(report_of("over_confident"))
    y, p = CASES["honest"]()
    strict = build_report(y, p, margin=0.001)
    assert strict.before.proof.margin == 0.001
    assert "margin-undecided" in said(strict)
    assert report_of("rare").before.proof.margin < 0.001
    with pytest.raises(InputError, match="margin must be a number strictly between 0 and 1"):
        build_report(y, p, margin=2)


# ---------------------------------------------------------------- choices


def test_the_default_map_depends_on_the_scores():
    assert report_of("honest").map.name == "AffineLogit"
    assert "read as probabilities" in report_of("honest").map.chosen
    margins = report_of("margins")
    assert margins.map.name == "PlattScaling"
    assert margins.before is None
    assert margins.gain.over == "the base rate"


def test_log_odds_are_read_as_what_they_stand_for():
    z, y = honest(5_000)
    report = build_report(y, 2.5 * z, calibrator=AffineLogit(from_logits=True))
    same = report_of("over_confident")
    assert report.data.scale == "log-odds"
    assert report.before.log_loss.score.value == pytest.approx(same.before.log_loss.score.value, rel=1e-9)
    assert report.map.slope == pytest.approx(same.map.slope, rel=1e-6)


def test_any_binary_calibrator_can_be_asked_for_and_is_left_unfitted():
    y, p = CASES["curved"]()
    asked = IsotonicCalibration()
    report = build_report(y, p, calibrator=asked)
    assert report.map.name == "IsotonicCalibration"
    assert report.map.chosen == "It was asked for."
    assert report.map.slope is None
    assert not hasattr(asked, "map_")


def test_rows_and_table_and_counts_and_repeats_agree():
    y, p = CASES["saturated"]()
    table = ScoreTable.from_arrays(p, y)
    by_row, by_table = build_report(y, p), build_report(table)
    assert by_row.to_json() == by_table.to_json() == build_report(table.distinct).to_json()
    order = np.random.default_rng(0).permutation(len(p))
    assert build_report(np.asarray(y)[order], p[order]).to_json() == by_row.to_json()
    doubled = build_report(y, p, sample_weight=np.full(len(p), 2.0))
    assert doubled.data.weighted
    assert doubled.before.brier.score.value == pytest.approx(by_row.before.brier.score.value, rel=1e-12)
    assert "weights" in said(doubled, "limits")


def test_fewer_folds_when_a_class_is_small():
    report = build_report([1, 1, 1] + [0] * 40, np.linspace(0.9, 0.01, 43))
    assert report.method.folds == 3
    assert report_of("one_event").method.folds is None
    assert report_of("one_event").after is None
    assert report_of("one_event").roc_after is None


def test_what_the_fits_warn_of_stands_in_the_notes():
    assert any("separate the classes" in note for note in report_of("separable").map.notes)
    assert any("falls as the event" in note for note in report_of("flipped").map.notes)


# ---------------------------------------------------------------- files


@pytest.mark.parametrize("name", CASES)
def test_json_is_strict(name):
    report = report_of(name)
    text = report.to_json()

    def refuse(token):
        raise AssertionError(token)

    content = json.loads(text, parse_constant=refuse)
    assert content["format"] == "calibrant report"
    assert content["headline"]["verdict"] == report.headline.verdict
    assert all(math.isfinite(value) for value in content["roc"]["true_positive_rate"])


def test_a_date_is_shown_only_when_given():
    y, p = CASES["tiny"]()
    assert report_of("tiny").method.date is None
    assert build_report(y, p, date="2031-05-06").html().count("2031-05-06") == 2


def test_the_page_is_written_and_never_over_a_file(tmp_path):
    path = tmp_path / "page.html"
    report_of("tiny").to_html(path)
    assert path.read_text(encoding="utf-8") == report_of("tiny").html()
    with pytest.raises(OutputExistsError, match="force"):
        report_of("tiny").to_html(path)
    report_of("tiny").to_html(path, force=True)
    assert [item.name for item in tmp_path.iterdir()] == ["page.html"]


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ({"n_folds": 1}, InputError, "n_folds must be a whole number of at least 2"),
        ({"random_state": "x"}, InputError, "random_state must be"),
        ({"title": 3}, InputTypeError, "title must be text"),
        ({"calibrator": "platt"}, InputTypeError, "calibrator must be a calibrator of two classes"),
    ],
)
def test_bad_arguments_are_named(arguments, error, message):
    with pytest.raises(error, match=message):
        build_report([0, 1], [0.2, 0.8], **arguments)


def test_bad_rows_are_refused():
    with pytest.raises(InputError, match="only the positive class"):
        build_report([1, 1], [0.2, 0.8])
    with pytest.raises(InputError, match="pos_label is for two classes"):
        build_report([0, 1, 2], np.eye(3), pos_label=2)
    with pytest.raises(InputError, match="reads probabilities"):
        build_report([0, 1, 1], [-2.0, 0.1, 3.0], calibrator=AffineLogit())
    assert build_report([0, 1, 1], [-2.0, 0.1, 3.0], calibrator=PlattScaling()).before is None


def test_a_bend_that_the_line_leaves_is_followed_up_in_the_advice() -> None:
    rng = np.random.default_rng(0)
    z = rng.normal(0, 2, 8000)
    y = (rng.random(len(z)) < 1 / (1 + np.exp(-z))).astype(int)
    straight, bent = (1 / (1 + np.exp(-distorted)) for distorted in (2 * z + 0.5, 3 * np.sign(z) * np.abs(z) ** 0.8))
    for scores, calibrator, said in (
        (bent, None, True),
        (straight, None, False),
        (bent, SplineCalibration(), False),
    ):
        advice = build_report(y, scores, calibrator=calibrator).headline.advice
        assert ("bending-map" in [sentence.code for sentence in advice]) is said
