"""The monitor: sums that add, evidence that is a fair bet, causes, repairs, and a state that survives."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import calibrant as ca
from calibrant.errors import InputError, InputTypeError
from calibrant.maps import Map
from calibrant.monitoring._evidence import Capital, Frame, label_ratios, score_ratios
from calibrant.monitoring._sums import reference_of, sums_of_scores, sums_of_table
from calibrant.monitoring._words import repair_in_words
from streams import KINDS, batch

LIMIT_LABELS, LIMIT_SCORES = 1 / 0.03, 1 / 0.01


def watched(seed, kind, before=5, after=15, n=2000):
    """A monitor that saw quiet batches and then some of a kind, and the record of the first alarm and of the last."""
    rng = np.random.default_rng(seed)
    monitor = ca.CalibrationMonitor(batch(rng, 20000))
    for _ in range(before):
        assert not monitor.update(batch(rng, n)).alarm
    first = None
    for _ in range(after):
        record = monitor.update(batch(rng, n, kind))
        first = record if record.new else first
    return monitor, first, record


@pytest.mark.parametrize("kind", KINDS)
def test_a_change_is_noticed_and_named(kind):
    monitor, first, last = watched(1, kind)
    assert first is not None
    assert last.alarm
    assert last.cause == KINDS[kind]
    assert abs(last.since - 6) <= 1
    assert 0 < last.causes[last.cause] <= 1
    assert monitor.alarm


def test_quiet_streams_stay_quiet():
    rng = np.random.default_rng(0)
    monitor = ca.CalibrationMonitor(batch(rng, 3000))
    for _ in range(60):
        record = monitor.update(batch(rng, 200))
    assert not record.alarm
    assert record.cause is None
    assert record.evidence.labels < LIMIT_LABELS


def test_scores_without_labels():
    rng = np.random.default_rng(2)
    monitor = ca.CalibrationMonitor(batch(rng, 20000))
    monitor.update(batch(rng, 2000).scores)
    for _ in range(12):
        record = monitor.update(batch(rng, 2000, "prevalence 10 % to 15 %").scores)
    assert record.alarm
    assert record.cause == "prevalence moved"
    assert record.observed_prevalence is None
    assert record.repair is None
    assert record.evidence.labels == pytest.approx(1)


def test_labels_that_come_later():
    rng = np.random.default_rng(3)
    monitor, other = (ca.CalibrationMonitor(batch(np.random.default_rng(9), 5000)) for _ in range(2))
    for day in range(4):
        table = batch(rng, 1000, "slope 0.8")
        monitor.update(table.scores, name=f"day {day}")
        late = monitor.add_labels(table, name=f"day {day}")
        at_once = other.update(table, name=f"day {day}")
    assert late.evidence == at_once.evidence
    assert late.rows == 0
    assert late.labelled_rows == 1000
    assert [entry["name"] for entry in monitor.history][:2] == ["day 0", "day 0"]


# ---------------------------------------------------------------- the evidence is a fair bet


def test_ratios_have_expectation_at_most_one():
    """Averaged over many batches of the null hypothesis, within four standard errors."""
    rng = np.random.default_rng(0)
    reference = reference_of(batch(rng, 100_000))
    frame = Frame(reference)
    bets = frame.bets(0.05)
    labels, scores = [], []
    for _ in range(3000):
        sums = sums_of_table(reference, batch(rng, 60))
        labels.append(np.exp(label_ratios(frame, sums)))
        scores.append(np.exp(score_ratios(bets, sums)))
    for found in (np.array(labels), np.array(scores)):
        error = found.std(axis=0) / np.sqrt(len(found))
        assert np.all(found.mean(axis=0) <= 1 + 4 * error)


def test_label_ratio_is_the_likelihood_ratio():
    rng = np.random.default_rng(1)
    reference = reference_of(batch(rng, 5000))
    frame = Frame(reference)
    p = np.repeat(reference.mean_p, 3)
    y = rng.random(len(p)) < p
    got = label_ratios(frame, sums_of_table(reference, ca.ScoreTable.from_arrays(p, y)))
    z = np.log(p / (1 - p))
    shift = np.repeat(frame.curves(frame.log_odds), 3, axis=1)
    q = 1 / (1 + np.exp(-(z + shift)))
    want = np.where(y, np.log(q / p), np.log((1 - q) / (1 - p))).sum(axis=1)
    assert np.allclose(got, want, atol=1e-8)


def test_capital_is_a_mixture_over_beginnings():
    rng = np.random.default_rng(0)
    ratios = rng.normal(size=(6, 3))
    capital = Capital.start(3)
    for row in ratios:
        capital = capital.after(row)
    shares = [1 / (k * (k + 1)) for k in range(1, 7)]
    paths = [share * np.exp(ratios[k:].sum(axis=0)) for k, share in enumerate(shares)]
    assert np.exp(capital.log_value) == pytest.approx(np.mean(sum(paths) + 1 / 7))
    both = capital.times(capital)
    assert np.allclose(np.logaddexp(both.active, both.reserve), 2 * np.logaddexp(capital.active, capital.reserve))


def test_certain_rows_are_fair():
    """Scores of exactly 0 and 1 that keep their promise bring no evidence, one that breaks it brings much."""
    rng = np.random.default_rng(4)
    p = np.where(rng.random(20000) < 0.5, np.where(rng.random(20000) < 0.3, 1.0, 0.0), rng.random(20000))
    table = ca.ScoreTable.from_arrays(p, rng.random(20000) < p)
    monitor = ca.CalibrationMonitor(table)
    for _ in range(30):
        p = np.where(rng.random(1000) < 0.8, np.where(rng.random(1000) < 0.3, 1.0, 0.0), rng.random(1000))
        record = monitor.add_labels(ca.ScoreTable.from_arrays(p, rng.random(1000) < p))
    assert not record.alarm
    assert record.evidence.labels < 3
    record = monitor.add_labels(ca.ScoreTable.from_arrays([0.0] * 20, [1] * 20, pos_label=1))
    assert record.alarm


def test_weights_bring_no_more_evidence_than_rows():
    rng = np.random.default_rng(5)
    monitor, weighted = (ca.CalibrationMonitor(batch(np.random.default_rng(9), 5000)) for _ in range(2))
    table = batch(rng, 1000, "slope 0.8")
    ten = ca.ScoreTable.from_arrays(table.scores, table.positives, sample_weight=np.full(1000, 10.0))
    assert monitor.update(table).evidence.labels == pytest.approx(weighted.update(ten).evidence.labels)


# ---------------------------------------------------------------- repair


@pytest.mark.parametrize("rows", [1, 5])
def test_the_interval_of_a_repair_is_that_of_a_mean(rows):
    """One later row says nothing of the spread: it once had an interval of no width."""
    _, _, record = watched(2, "slope 0.8", after=12)
    gains = np.random.default_rng(0).normal(size=rows)
    tested = replace(record.repair, tested_rows=float(rows), gain=gains.sum(), squares=(gains**2).sum())
    if rows == 1:
        assert (tested.low, tested.high) == (-np.inf, np.inf)
        assert "tested on 1 later row: it takes 0.1257 off the log loss of a row." in repair_in_words(tested)
        worse = replace(tested, gain=-gains.sum())
        assert "it adds 0.1257 to the log loss of a row." in repair_in_words(worse)
    else:
        half = 1.959963984540054 * gains.std(ddof=1) / np.sqrt(rows)
        assert (tested.low, tested.high) == pytest.approx((gains.mean() - half, gains.mean() + half))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "scores"])
def test_a_repair_is_tested_and_adopted(kind):
    monitor, _, record = watched(2, kind, after=12)
    repair = record.repair
    assert repair.confirmed
    assert repair.low > 0
    assert repair.cause == KINDS[kind]
    record_map = monitor.adopt()
    assert isinstance(record_map, Map)
    assert not monitor.alarm
    assert monitor.repair is None
    rng = np.random.default_rng(77)
    fresh = batch(rng, 20000, kind)
    repaired = fresh.with_scores(record_map(fresh.scores))
    assert ca.log_loss(repaired) < ca.log_loss(fresh)
    for _ in range(5):
        table = batch(rng, 500, kind)
        last = monitor.update(table.with_scores(record_map(table.scores)))
    assert not last.alarm
    assert last.batch == 22


def test_moved_scores_need_no_repair():
    monitor, _, record = watched(3, "scores")
    assert record.repair is None
    with pytest.raises(InputError, match="no repair"):
        monitor.adopt()


def test_a_repair_waits_for_later_rows():
    rng = np.random.default_rng(4)
    monitor = ca.CalibrationMonitor(batch(rng, 20000))
    record = monitor.update(batch(rng, 4000, "slope 0.8"))
    assert record.new
    assert record.repair.tested_rows == 0
    with pytest.raises(InputError, match="not been confirmed"):
        monitor.adopt()
    assert monitor.adopt(force=True).kind == "affine_logit"


# ---------------------------------------------------------------- state


def test_state_survives_a_restart(tmp_path):
    monitor, _, _ = watched(5, "slope 0.8", after=4)
    monitor.save(tmp_path / "state.json")
    again = ca.CalibrationMonitor.load(tmp_path / "state.json")
    assert again.to_dict() == monitor.to_dict()
    table = batch(np.random.default_rng(6), 500)
    assert str(monitor.update(table)) == str(again.update(table))
    assert again.to_dict() == monitor.to_dict()


def test_state_stays_small():
    rng = np.random.default_rng(0)
    monitor = ca.CalibrationMonitor(batch(rng, 5000))
    for k in range(600):
        monitor.update(batch(rng, 50, "waves"), name=f"a batch with a long name, number {k}")
    assert len(json.dumps(monitor.to_dict())) < 1_000_000
    assert len(monitor.history) == 500
    assert monitor.n_batches == 600


def test_merging_multiplies_the_evidence():
    reference = batch(np.random.default_rng(0), 20000)
    north, south = ca.CalibrationMonitor(reference), ca.CalibrationMonitor(reference)
    rng = np.random.default_rng(1)
    for _ in range(4):
        north.update(batch(rng, 300, "slope 0.8"))
        south.update(batch(rng, 300, "slope 0.8"))
    both = north.merge(south)
    turned = south.merge(north).to_dict()["labels"]
    assert both.to_dict()["labels"]["active"] == pytest.approx(turned["active"])
    assert both.evidence.labels > max(north.evidence.labels, south.evidence.labels)
    assert both.reliability().rows.sum() == 2400
    for _ in range(8):
        record = both.update(batch(rng, 600, "slope 0.8"))
    assert record.alarm
    with pytest.raises(InputError, match="same reference"):
        north.merge(ca.CalibrationMonitor(batch(rng, 1000)))


@pytest.mark.parametrize(
    "content, words",
    [
        ({}, "not a monitor state"),
        ({"format": "calibrant monitor", "version": 7}, "version 7"),
        ({"format": "calibrant monitor", "version": 1, "alpha": 0.05}, "damaged"),
    ],
)
def test_damaged_states_are_refused(content, words):
    with pytest.raises(InputError, match=words):
        ca.CalibrationMonitor.from_dict(content)


def test_files_that_are_no_state(tmp_path):
    with pytest.raises(InputError, match="no monitor state"):
        ca.CalibrationMonitor.load(tmp_path / "none.json")
    (tmp_path / "text.json").write_text("hello")
    with pytest.raises(InputError, match="not JSON"):
        ca.CalibrationMonitor.load(tmp_path / "text.json")


# ---------------------------------------------------------------- the rest


def test_window_curve_is_the_reliability_of_the_rows():
    rng = np.random.default_rng(0)
    monitor = ca.CalibrationMonitor(batch(rng, 5000))
    tables = [batch(rng, 400) for _ in range(3)]
    for table in tables:
        monitor.update(table)
    curve = monitor.reliability(last=2)
    assert curve.weight.sum() == 800
    both = tables[1] + tables[2]
    assert np.nansum(curve.observed_rate * curve.weight) == pytest.approx(both.total_positives)
    assert np.nansum(curve.mean_predicted * curve.weight) == pytest.approx(both.scores.sum())


def test_sums_are_those_of_the_parts():
    rng = np.random.default_rng(0)
    reference = reference_of(batch(rng, 1000))
    a, b = batch(rng, 300), batch(rng, 200)
    whole, parts = sums_of_table(reference, a + b), sums_of_table(reference, a) + sums_of_table(reference, b)
    for name in ("scored", "positives", "negatives", "sum_p", "totals"):
        assert np.allclose(getattr(whole, name), getattr(parts, name), rtol=1e-12)
    assert np.array_equal(sums_of_scores(reference, a.scores).scored, sums_of_table(reference, a).scored)


def test_expected_performance_is_met_by_calibrated_rows():
    table = batch(np.random.default_rng(0), 200_000)
    expected = ca.expected_performance(table.scores, threshold=0.2)
    curve = ca.threshold_curve(table)
    at = curve.at(0.2)
    assert expected.prevalence == pytest.approx(table.prevalence, abs=0.003)
    assert expected.brier_score == pytest.approx(ca.brier_score(table), abs=0.002)
    assert expected.log_loss == pytest.approx(ca.log_loss(table), abs=0.005)
    assert expected.roc_auc == pytest.approx(ca.roc_auc(table), abs=0.005)
    assert expected.precision == pytest.approx(curve.precision[at], abs=0.01)
    assert expected.recall == pytest.approx(curve.recall[at], abs=0.01)
    assert ca.expected_performance([0.2, 0.4]).precision is None
    assert ca.expected_performance([0.2, 0.4], threshold=0.9).precision is None


@pytest.mark.parametrize(
    "call, kind, words",
    [
        (lambda m: m.update([]), InputError, "empty"),
        (lambda m: m.update([2.0]), InputError, "probabilities"),
        (lambda m: m.add_labels([0.2]), InputTypeError, "ScoreTable"),
        (lambda m: m.merge("other"), InputTypeError, "monitor"),
        (lambda m: m.reliability(last=0.5), InputError, "whole number"),
        (
            lambda m: m.update(ca.ScoreTable.from_arrays([0.2, 0.4], ["no", "yes"], pos_label="yes")),
            InputError,
            "labels",
        ),
        (lambda m: ca.CalibrationMonitor([0.2]), InputTypeError, "ScoreTable"),
        (lambda m: ca.CalibrationMonitor(ca.ScoreTable.from_arrays([0.2, 0.4], [0, 1])), InputError, "at least 100"),
        (lambda m: ca.CalibrationMonitor(batch(np.random.default_rng(0), 200), alpha=2), InputError, "alpha"),
    ],
)
def test_errors_are_for_people(call, kind, words):
    monitor = ca.CalibrationMonitor(batch(np.random.default_rng(0), 500))
    with pytest.raises(kind, match=words):
        call(monitor)


def test_a_record_reads_as_sentences():
    _, first, last = watched(2, "slope 0.8")
    text = str(last)
    assert "ALARM: the map no longer holds (slope) since batch" in text
    assert "Confirmed: adopt it." in text
    assert "waits for later labelled rows" in str(first)
    assert "nan" not in text
