"""The page: one file that loads nothing, escapes everything, says what the JSON says, and can be read by everyone."""

import json
import re
from functools import cache
from html import unescape
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

import calibrant
from calibrant import build_report
from calibrant.view import _words
from test_view_report import CASES, report_of

EVIL_TITLE = """<script>alert("t")</script> & 'quotes' "more" {{ 7 * 7 }}"""
EVIL_SOURCE = """</style><img src=x onerror="alert(1)">"""
EVIL_LABELS = ('"><svg onload=alert(2)>', "</title><script>alert(3)</script>")
VOID = {"meta", "rect", "line", "circle", "polygon", "polyline", "path", "br", "link", "img"}


@cache
def page_of(name):
    return report_of(name).html()


class Outline(HTMLParser):
    """Every start tag with its attributes, the headings, and whether the tags are balanced."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.headings, self.open, self.texts = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def evil_page():
    y, p = CASES["over_confident"]()
    labels = np.array(EVIL_LABELS)[np.asarray(y)]
    return build_report(labels, p, pos_label=EVIL_LABELS[1], title=EVIL_TITLE, source=EVIL_SOURCE, date="<b>today</b>")


@pytest.mark.parametrize("name", [*CASES, "evil"])
def test_the_page_loads_nothing_and_runs_nothing(name):
    text = evil_page().html() if name == "evil" else page_of(name)
    assert "<script" not in text.lower()
    assert not re.search(r"https?://|@import|url\(|javascript:", text)
    assert "default-src 'none'; style-src 'unsafe-inline'" in text
    for tag, attributes in Outline(text).tags:
        assert tag not in ("script", "link", "img", "iframe", "object", "embed", "base", "form", "a")
        assert not [key for key in attributes if key.startswith("on") or key in ("src", "href", "srcset", "action")]


def test_what_comes_from_the_user_is_shown_and_never_markup():
    report = evil_page()
    text = report.html()
    outline = Outline(text)
    seen = " ".join(outline.texts)
    for words in (EVIL_TITLE, EVIL_SOURCE, *EVIL_LABELS, "<b>today</b>"):
        assert words in seen
    assert not outline.open
    assert "b" not in {tag for tag, _ in outline.tags}
    frame = report._repr_html_()
    assert "<script" not in frame
    assert Outline(frame).tags[0][1]["srcdoc"] == text


def test_charts_escape_what_they_are_given():
    from calibrant.view import _svg

    drawn = _svg.picture(
        'a"b', (1, 1), "<b>&", '"<i>', [_svg.text(0, 0, "<script>"), _svg.box(0, 0, 1, 1, 'x"y', "<u>")]
    )
    assert "<script" not in drawn
    root = ElementTree.fromstring(drawn)
    assert [item.text for item in root.iter() if item.text] == ["<b>&", '"<i>', "<script>", "<u>"]


@pytest.mark.parametrize("name", CASES)
def test_the_page_is_the_same_every_time(name):
    again = build_report(*CASES[name]())
    assert again.html() == page_of(name)
    assert again.to_json() == report_of(name).to_json()


@pytest.mark.parametrize("name", CASES)
def test_the_page_says_what_the_json_says(name):
    content = json.loads(report_of(name).to_json())
    text = unescape(page_of(name))
    for part in ("found", "advice", "limits"):
        for sentence in content["headline"][part]:
            assert sentence["text"] in text
    for words in (content["headline"]["title"], content["map"]["code"], content["map"]["formula"]):
        assert words in text
    assert f"{content['data']['rows']:,}" in text
    assert _words.percent(content["data"]["prevalence"]) in text
    assert f"{content['ranking']['roc_auc']:.3f}" in text
    for side in filter(None, (content["before"], content["after"])):
        rates = (content["data"]["prevalence"], side["mean_predicted"])
        assert any(_words.percent(side["mean_predicted"], _words.percent_decimals(rates) + k) in text for k in range(3))
        for b in side["reliability"]["bins"]:
            assert f"<td>{_words.count(b['rows'])}</td>" in text
        value = side["brier"]["score"]["value"]
        assert any(f"{value:.{digits}f}" in text for digits in range(3, 8))


@pytest.mark.parametrize("name", CASES)
def test_markup_is_balanced_and_headings_are_in_order(name):
    outline = Outline(page_of(name))
    assert not outline.open
    assert outline.headings[0] == 1
    assert outline.headings.count(1) == 1
    assert all(b - a <= 1 for a, b in zip(outline.headings, outline.headings[1:]))


@pytest.mark.parametrize("name", CASES)
def test_charts_are_well_formed_titled_and_inside_their_numbers(name):
    text = page_of(name)
    charts = [ElementTree.fromstring(svg) for svg in re.findall(r"<svg[^>]*role=\"img\".*?</svg>", text, re.DOTALL)]
    assert charts
    ids = [item.get("id") for chart in charts for item in chart.iter() if item.get("id")]
    assert len(ids) == len(set(ids))
    for chart in charts:
        assert chart.get("aria-labelledby").split() == [chart.find("title").get("id"), chart.find("desc").get("id")]
        assert chart.find("title").text
        assert chart.find("desc").text
    assert not re.search(r"\b(nan|inf|None)\b", "".join(re.findall(r"<svg.*?</svg>", text, re.DOTALL)))


@pytest.mark.parametrize("name", CASES)
def test_tables_have_captions_and_scopes(name):
    text = page_of(name)
    assert text.count("<table") == text.count("<caption>")
    assert all("scope" in attributes for tag, attributes in Outline(text).tags if tag == "th")


@pytest.mark.parametrize("name", CASES)
def test_no_raw_values_leak_into_the_text(name):
    words = " ".join(Outline(page_of(name)).texts)
    body = words[words.index("What to do") :]
    assert not re.search(r"\bnan\b|\bNone\b|\bTrue\b|e-\d\d|0000000", body)


def luminance(colour):
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a, b):
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_text_and_marks_stand_out_on_light_and_on_dark():
    schemes = re.findall(r":root \{(.*?)\}", page_of("tiny"), re.DOTALL)
    assert len(schemes) == 3
    for scheme in schemes:
        colour = dict(re.findall(r"--(\w+): (#\w+)", scheme))
        colour = {
            name: value if len(value) == 7 else "#" + "".join(2 * c for c in value[1:])
            for name, value in colour.items()
        }
        for ground in ("paper", "panel", "ground"):
            for ink in ("ink", "quiet", "before", "after", "won"):
                assert contrast(colour[ink], colour[ground]) >= 4.5, (ink, ground)


def test_before_and_after_differ_by_more_than_colour():
    text = page_of("over_confident")
    assert text.count('class="mark before"') > 5
    assert re.search(r"<circle[^>]*mark before", text)
    assert re.search(r"<polygon[^>]*mark after", text)
    assert ".link.after { stroke-dasharray" in text


@pytest.mark.slow
def test_a_million_scores_make_a_small_page():
    rng = np.random.default_rng(0)
    z = rng.normal(-1, 2, 1_000_000)
    y = rng.random(len(z)) < 1 / (1 + np.exp(-0.6 * z))
    report = build_report(y, 1 / (1 + np.exp(-z)))
    assert report.data.distinct_scores > 990_000
    assert len(report.html().encode()) < 400_000


def test_pages_are_small():
    assert all(len(page_of(name).encode()) < 150_000 for name in CASES)


# ---------------------------------------------------------------- the lines to keep the map

CODINGS = {
    "0/1, event 1": ((0, 1), None),
    "0/1, event 0": ((1, 0), 0),
    "-1/1": ((-1, 1), None),
    "1/2, event 1": ((2, 1), 1),
    "booleans": ((False, True), None),
    "booleans, event False": ((True, False), False),
    "text, the event last": (("ja", "nein"), "nein"),
    "text, the event first": (("nein", "ja"), "ja"),
    "text with marks": (("no", 'it\'s "so" <&>'), 'it\'s "so" <&>'),
}


def executed(text, **names):
    """The map that the first code block of the page gives."""
    code = unescape(re.search(r"Keep it</h3>\s*<pre><code>(.*?)</code></pre>", text, re.S).group(1))
    space = {**vars(calibrant), **{name: getattr(calibrant, name) for name in calibrant.__all__}, **names}
    exec(code, space)
    return space["fitted"].map_


@pytest.mark.parametrize("calibrator", [calibrant.AffineLogit(), calibrant.AutoCalibrator(), None], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("coding", CODINGS)
def test_the_printed_lines_give_the_map_of_the_page(coding, weighted, calibrator, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (other, event), pos_label = CODINGS[coding]
    rng = np.random.default_rng(0)
    z = rng.normal(-1, 1.5, 600)
    labels = np.where(rng.random(600) < 1 / (1 + np.exp(-z)), event, other)
    scores = 1 / (1 + np.exp(-2 * z))
    weights = rng.integers(1, 4, 600).astype(float) if weighted else None
    report = build_report(labels, scores, sample_weight=weights, pos_label=pos_label, calibrator=calibrator)
    made = executed(report.html(), scores=scores, labels=labels, weights=weights)
    assert made == calibrant.load_map("map.json")
    assert (made.classes[1], report.map.kind) == (event, made.kind)
    np.testing.assert_allclose(made([row.score for row in report.map.curve]), [row.after for row in report.map.curve])
    assert ("ScoreTable" in report.map.keep) == (event < other)


@pytest.mark.parametrize("names", [(0, 1, 2), ("c", "a", "b")], ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_printed_lines_give_the_map_of_many_classes(names, weighted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    scores = rng.dirichlet([0.5, 0.5, 0.5], 900)
    labels = np.array(names)[[rng.choice(3, p=0.7 * p + 0.1) for p in scores]]
    weights = rng.integers(1, 4, 900).astype(float) if weighted else None
    calibrator = calibrant.StructuredVectorScaling()
    report = build_report(labels, scores, sample_weight=weights, labels=names, calibrator=calibrator)
    text = report.html()
    wanted = calibrant.StructuredVectorScaling(classes=names).fit(scores, labels, weights).map_
    assert executed(text, scores=scores, labels=labels, weights=weights, classes=names) == wanted
