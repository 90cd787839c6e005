"""The report for many classes: its numbers are the measures', its sentences bear the rows, its page loads nothing."""

from __future__ import annotations

import json
import re
from functools import cache
from html import unescape
from xml.etree import ElementTree

import numpy as np
import pytest

import calibrant
from calibrant import AffineLogit, AutoCalibrator, OneVsRest, StructuredVectorScaling, TemperatureScaling, build_report
from calibrant.calibrators._class_cross_fit import cross_fitted_probabilities, folds_for
from calibrant.data._arrays import ClassRows
from calibrant.errors import CalibrantError, InputError, InputTypeError, OutputExistsError
from calibrant.view import ClassReport, _words
from class_cases import rows_of_classes
from test_view_page import Outline

EVIL = ('<script>alert("x")</script>', "</title><img src=x onerror=alert(1)>", "{{ 7 * 7 }} & 'q'", '"><svg onload=1>')


def quick():
    return StructuredVectorScaling()


def case_over_confident():
    return *rows_of_classes(1500, 4), {"calibrator": quick()}


def case_under_confident():
    return *rows_of_classes(1500, 4, sharpness=0.5), {"calibrator": quick()}


def case_honest():
    return *rows_of_classes(2500, 3, sharpness=1.0), {"calibrator": quick()}


def case_noise():
    p, y = rows_of_classes(800, 4)
    return p, np.random.default_rng(1).permutation(y), {"calibrator": quick()}


def case_automatic():
    return *rows_of_classes(400, 3), {}


def case_one_class_off():
    p, y = rows_of_classes(3000, 4, sharpness=1.0)
    p = p * np.array([2.5, 1, 1, 1])
    return p / p.sum(axis=1, keepdims=True), y, {"calibrator": quick(), "labels": list("wxyz")}


def case_certain_and_wrong():
    p, y = rows_of_classes(400, 3, sharpness=1.0)
    p[0] = np.eye(3)[(y[0] + 1) % 3]
    return p, y, {"calibrator": TemperatureScaling(mix=True)}


def case_tiny():
    return np.array([[0.5, 0.3, 0.2], [0.2, 0.5, 0.3], [0.1, 0.2, 0.7]]), np.array([0, 1, 1]), {"calibrator": quick()}


def case_few():
    return *rows_of_classes(24, 5), {"calibrator": quick()}


def case_absent():
    p, y = rows_of_classes(300, 5)
    return p[y != 3], y[y != 3], {"calibrator": quick()}


def case_evil():
    return *rows_of_classes(200, 4), {"calibrator": quick(), "labels": EVIL, "title": EVIL[0], "source": EVIL[1]}


def case_many():
    return *rows_of_classes(400, 60, sharpness=1.5), {"calibrator": quick()}


def case_weighted():
    p, y = rows_of_classes(300, 3)
    weights = np.random.default_rng(0).integers(1, 4, 300)
    return p, y, {"calibrator": quick(), "sample_weight": weights}


CASES = {name[5:]: make for name, make in list(globals().items()) if name.startswith("case_")}


@cache
def report_of(name):
    p, y, more = CASES[name]()
    if "labels" in more:
        y = np.array(more["labels"], dtype=object)[y]
    return build_report(y, p, **more)


@cache
def page_of(name):
    return report_of(name).html()


def said(report, part="found"):
    return {sentence.code: sentence.text for sentence in getattr(report.headline, part)}


EXPECTED = {
    "over_confident": ("use-map", {"over-confident", "example", "classes-off", "gain", "after-calibrated"}),
    "under_confident": ("use-map", {"under-confident", "gain"}),
    "honest": ("leave-alone", {"no-clear-miscalibration", "no-class-off"}),
    "noise": ("no-signal", {"over-confident", "worse-than-base-rate"}),
    "automatic": ("use-map", {"over-confident", "gain"}),
    "one_class_off": ("use-map", {"classes-off", "class-shares", "gain"}),
    "certain_and_wrong": ("leave-alone", {"infinite-log-loss", "no-gain"}),
    "tiny": ("not-cross-fitted", {"not-cross-fitted"}),
    "few": ("cannot-tell", set()),
    "absent": ("use-map", {"classes-without-rows"}),
}


@pytest.mark.parametrize("name", EXPECTED)
def test_verdicts_and_sentences(name):
    verdict, codes = EXPECTED[name]
    report = report_of(name)
    assert report.headline.verdict == verdict
    assert codes <= set(said(report))
    assert report.headline.advice[0].code == verdict
    assert {"intervals", "in-sample", "population", "whole-rows"} <= set(said(report, "limits"))
    texts = [s.text for part in ("found", "advice", "limits") for s in getattr(report.headline, part)]
    assert all(text.endswith(".") and not re.search(r"\bnan\b|None|\binf\b|  ", text) for text in texts)


def test_the_class_that_is_off_is_named():
    report = report_of("one_class_off")
    assert report.lines[0].name == "w"
    assert report.lines[0].before.clear
    assert "“w” is put too high" in said(report)["class-shares"]
    assert "“w”" in said(report)["classes-off"]


def test_a_certain_mistake_is_not_left_alone():
    report = report_of("certain_and_wrong")
    assert "certain and wrong" in report.headline.title
    assert "exactly 0" in said(report, "advice")["no-zeros"]
    assert report.before.log_loss.value is None
    assert report.gain.measure == "Brier score"


# ---------------------------------------------------------------- numbers


@pytest.mark.parametrize("name", ["over_confident", "weighted", "absent"])
def test_before_is_the_measures(name):
    p, y, more = CASES[name]()
    report, w = report_of(name), more.get("sample_weight")
    before = report.before
    assert before.log_loss.value == pytest.approx(calibrant.log_loss(y, p, sample_weight=w))
    assert before.brier.value == pytest.approx(calibrant.brier_score(y, p, sample_weight=w))
    top = calibrant.top_label_table(y, p, sample_weight=w)
    assert before.accuracy == pytest.approx(top.prevalence)
    assert before.top_error.value == pytest.approx(calibrant.calibration_error(top).value)
    summary = calibrant.class_summary(y, p, sample_weight=w)
    by_name = {line.name: line for line in report.lines}
    for k in range(p.shape[1]):
        line = by_name[str(k)]
        assert (line.weight, line.share) == pytest.approx((summary.weight[k], summary.observed_rate[k]))
        assert line.before.mean_predicted == pytest.approx(summary.mean_predicted[k])
        area = float("nan") if line.before.roc_auc is None else line.before.roc_auc
        assert area == pytest.approx(summary.roc_auc[k], nan_ok=True)
    errors = [line.before.error.value for line in report.lines if line.weight]
    assert errors == sorted(errors, reverse=True)
    assert before.class_error == pytest.approx(np.mean([line.before.error.value for line in report.lines]))
    if w is None:
        confusion = calibrant.confusion_matrix(y, p).weights
        assert report.before.accuracy == pytest.approx(np.trace(confusion) / len(y))


def test_after_is_cross_fitted():
    p, y, _ = CASES["over_confident"]()
    rows = ClassRows(p / p.sum(axis=1, keepdims=True), y, None, (0, 1, 2, 3))
    after = cross_fitted_probabilities(quick(), rows, folds_for(rows, 5))
    report = report_of("over_confident")
    assert report.after.log_loss.value == pytest.approx(calibrant.log_loss(y, after))
    assert report.gain.gain == pytest.approx(report.before.log_loss.value - report.after.log_loss.value)
    assert report.decisions.side == "after"
    counts = calibrant.confusion_matrix(y, after).weights
    assert np.allclose(report.decisions.matrix, counts)
    assert report.decisions.wrong == pytest.approx(1 - np.trace(counts) / len(y))
    assert sum(one.weight for one in report.decisions.mistakes) == pytest.approx(counts.sum() - np.trace(counts))


def test_the_order_of_the_rows_is_nothing():
    p, y, more = CASES["over_confident"]()
    order = np.random.default_rng(3).permutation(len(y))
    shuffled = build_report(y[order], p[order], **more)
    assert shuffled.after.log_loss.value == pytest.approx(report_of("over_confident").after.log_loss.value, rel=1e-6)


def test_logits_are_their_softmax():
    p, y, _ = CASES["over_confident"]()
    asked = StructuredVectorScaling(from_logits=True)
    report = build_report(y, np.log(p) + 5.0, calibrator=asked)
    assert report.data.scale == "logits"
    assert report.before.log_loss.value == pytest.approx(report_of("over_confident").before.log_loss.value)
    assert not hasattr(asked, "map_")
    assert build_report(y[:100], np.log(p[:100]), from_logits=True).map.code == "AutoCalibrator(from_logits=True)"


def test_any_calibrator_of_many_classes_can_be_asked_for():
    p, y, _ = CASES["automatic"]()
    report = build_report(y, p, calibrator=OneVsRest(AffineLogit()))
    assert report.map.name == "OneVsRest"
    assert report.map.chosen == "It was asked for."
    assert report.map.candidates == ()
    chosen = report_of("automatic").map
    assert chosen.name == "AutoCalibrator"
    assert sum(one.weight for one in chosen.candidates) == pytest.approx(1)
    same = build_report(y, p, calibrator=AutoCalibrator())
    assert same.after.log_loss.value == report_of("automatic").after.log_loss.value


def test_folds_are_fewer_where_rows_are_few_or_cells_are_many():
    def rows(labels, k=3):
        return ClassRows(np.full((len(labels), k), 1 / k), np.array(labels), None, tuple(range(k)))

    assert folds_for(rows([0, 1, 2]), 5) == 0
    assert folds_for(rows([0, 0, 1, 2]), 5) == 0
    assert folds_for(rows([0, 0, 0, 1, 1, 2]), 5) == 2
    assert folds_for(rows([0] * 9 + [1] * 9), 5) == 5
    assert folds_for(rows([0, 1] * 3000, k=400), 5) == 2


# ---------------------------------------------------------------- files


@pytest.mark.parametrize("name", CASES)
def test_json_is_strict_and_bytes_are_stable(name):
    report = report_of(name)

    def refuse(token):
        raise AssertionError(token)

    content = json.loads(report.to_json(), parse_constant=refuse)
    assert content["format"] == "calibrant report of classes"
    assert [line["name"] for line in content["lines"]] == [line.name for line in report.lines]
    assert isinstance(report, ClassReport)


@pytest.mark.parametrize("name", ["weighted", "tiny", "evil", "automatic"])
def test_the_page_is_the_same_every_time(name):
    p, y, more = CASES[name]()
    y = np.array(more["labels"], dtype=object)[y] if "labels" in more else y
    again = build_report(y, p, **more)
    assert again.html() == page_of(name)
    assert again.to_json() == report_of(name).to_json()


@pytest.mark.parametrize("name", CASES)
def test_the_page_says_what_the_json_says(name):
    content = json.loads(report_of(name).to_json())
    text = unescape(page_of(name))
    for part in ("found", "advice", "limits"):
        for sentence in content["headline"][part]:
            assert sentence["text"] in text
    assert content["headline"]["title"] in text
    for line in content["lines"]:
        assert f'<th scope="row">{line["name"]}</th><td>{_words.count(line["weight"])}</td>' in text
    for side in filter(None, (content["before"], content["after"])):
        for b in side["reliability"]["bins"]:
            assert f"<td>{_words.count(b['rows'])}</td>" in text
        value = side["brier"]["value"]
        assert any(f"{value:.{digits}f}" in text for digits in range(3, 8))
    for one in content["map"]["candidates"]:
        assert one["name"] in text
    assert len(content["panels"]) <= 12
    assert text.count('id="class-') == 2 * len(content["panels"])


@pytest.mark.parametrize("name", CASES)
def test_the_page_loads_nothing_and_its_markup_is_sound(name):
    text = page_of(name)
    outline = Outline(text)
    assert not outline.open
    assert not re.search(r"https?://|@import|url\(|javascript:", text)
    assert "default-src 'none'; style-src 'unsafe-inline'" in text
    for tag, attributes in outline.tags:
        assert tag not in ("script", "link", "img", "iframe", "object", "embed", "base", "form", "a")
        assert not [key for key in attributes if key.startswith("on") or key in ("src", "href", "srcset", "action")]
    assert outline.headings[0] == 1
    assert outline.headings.count(1) == 1
    assert all(b - a <= 1 for a, b in zip(outline.headings, outline.headings[1:]))
    assert text.count("<table") == text.count("<caption>")
    assert all("scope" in attributes for tag, attributes in outline.tags if tag == "th")
    charts = [ElementTree.fromstring(svg) for svg in re.findall(r"<svg[^>]*role=\"img\".*?</svg>", text, re.DOTALL)]
    assert charts
    ids = [item.get("id") for chart in charts for item in chart.iter() if item.get("id")]
    assert len(ids) == len(set(ids))
    assert not re.search(r"\b(nan|inf|None)\b", " ".join(outline.texts))


def test_what_comes_from_the_user_is_shown_and_never_markup():
    seen = " ".join(Outline(page_of("evil")).texts)
    for words in EVIL:
        assert words in seen
    assert "49" not in said(report_of("evil")).get("classes-off", "")
    assert "sandbox" in report_of("evil")._repr_html_()


def test_many_classes_are_folded_away_and_long_names_cut():
    text = page_of("many")
    assert "The other 30 classes" in text
    assert "shown are 12 of 60" in text
    assert "The most frequent mistakes" in text
    p, y = rows_of_classes(60, 3)
    names = ["n" * 300, "b", "c"]
    page = build_report(np.array(names, dtype=object)[y], p, labels=names, calibrator=quick()).html()
    assert "n" * 59 + "…" in page


def test_a_thousand_classes_make_a_page_below_half_a_megabyte():
    p, y = rows_of_classes(300, 1000, sharpness=1.2)
    report = build_report(y, p, calibrator=TemperatureScaling(mix=True))
    assert len(report.html().encode()) < 500_000
    assert report.decisions.matrix is None
    assert len(report.data.without_rows) == 1000 - len(np.unique(y))


def test_the_page_is_written_and_never_over_a_file(tmp_path):
    path = tmp_path / "page.html"
    report_of("tiny").to_html(path)
    assert path.read_text(encoding="utf-8") == page_of("tiny")
    with pytest.raises(OutputExistsError):
        report_of("tiny").to_html(path)
    report_of("tiny").to_html(path, force=True)


@pytest.mark.parametrize(
    "more, error, message",
    [
        ({"calibrator": AffineLogit()}, InputTypeError, "a calibrator of many classes, such as AutoCalibrator"),
        ({"calibrator": StructuredVectorScaling(), "from_logits": True}, InputError, "Give from_logits=True to it"),
        ({"from_logits": "yes"}, CalibrantError, "from_logits must be True or False"),
        ({"pos_label": 1}, InputError, "pos_label is for two classes"),
        ({"margin": 0.1, "groups": [0, 1]}, InputError, "margin and groups are for two classes"),
        ({"labels": ["a", "b"]}, InputError, "must name each of the 3 columns once"),
        ({"labels": ["a", "b", "c"]}, InputError, "holds 0, 1, which is not among the classes"),
        ({"n_folds": 1}, InputError, "n_folds must be"),
        ({"title": 3}, InputTypeError, "title must be text"),
    ],
)
def test_bad_arguments_are_named(more, error, message):
    with pytest.raises(error, match=message):
        build_report([0, 1], [[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]], **more)


def test_bad_rows_are_refused():
    with pytest.raises(InputError, match="one class"):
        build_report([1, 1], [[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]])
    with pytest.raises(InputError, match="must sum to 1"):
        build_report([0, 1], [[0.5, 0.3, 0.2], [0.1, 0.2, 0.9]])
    with pytest.raises(InputError, match="from_logits=True"):
        build_report([0, 1], [[5, 0.3, 0.2], [-3, 0.2, 0.9]])
    with pytest.raises(InputError, match="labels names the columns of three"):
        build_report([0, 1], [0.2, 0.8], labels=[0, 1])
    assert build_report([0, 0, 1, 1], [-1.0, 0.2, 0.1, 3.0], from_logits=True).data.scale == "log-odds"
