"""Bad input: every line of DESIGN's list, and that the message names the argument, the place and the next step."""

from __future__ import annotations

import copy
import datetime
import json
import re
import warnings
from decimal import Decimal
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_matrix

import calibrant as ca
from calibrant.errors import (
    CalibrantError,
    CalibrantWarning,
    DataWarning,
    FitWarning,
    InputError,
    InputTypeError,
    MapFileError,
    OutputExistsError,
)
from calibrant.maps import AffineLogitMap, LineMap, Map, MixtureMap, OneVsRestMap, StepMap
from catalogue import BINARY, MANY, MEASURES, binary_rows, named

P = [0.1, 0.4, 0.6, 0.9]
Y = [0, 1, 0, 1]
P3 = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3], [0.2, 0.2, 0.6], [0.3, 0.4, 0.3]])
Y3 = [0, 1, 2, 1]

every_binary = pytest.mark.parametrize("case", **named(BINARY))
every_many = pytest.mark.parametrize("case", **named(MANY))
every_measure = pytest.mark.parametrize("case", **named(MEASURES))


def refused(call, *parts, kind=CalibrantError):
    """Demand one of our errors whose message holds every part (as a pattern)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrantWarning)
        with pytest.raises(kind) as caught:
            call()
    text = str(caught.value)
    for part in parts:
        assert re.search(part, text), f"{part!r} is not in {text!r}"
    assert text.endswith((".", ")", "?")), text
    return text


@cache
def good(case):
    """A fitted calibrator of the catalogue."""
    rows = binary_rows(case.reads)
    return case.make().fit(rows.scores, rows.y)


# ---------------------------------------------------------------- scores, labels and weights, by row

SCORES = {
    "NaN": ([0.1, np.nan, 0.6, np.nan], "2 missing values", "row 1 ", "Drop or fill"),
    "None": ([0.1, 0.2, None, 0.6], "1 missing value ", "row 2 ", "Drop or fill"),
    "pandas NA": (pd.Series([0.1, pd.NA, 0.6, 0.7], dtype="Float64"), "1 missing value ", "row 1 "),
    "Polars null": (pl.Series([None, 0.2, 0.6, 0.7]), "1 missing value ", "row 0 "),
    "masked": (np.ma.array([0.1, 0.2, 0.3, 0.4], mask=[0, 0, 0, 1]), "1 missing value ", "row 3 "),
    "infinite": ([0.1, np.inf, -np.inf, 0.6], "2 infinite values", "row 1 ", "finite"),
    "lengths": ([0.1, 0.2, 0.3], "3 rows", "4 rows", "lengths differ"),
    "three dimensions": (np.zeros((4, 1, 1)), r"shape is \(4, 1, 1\)", r"\(n,\)"),
    "one number": (0.5, r"shape is \(\)"),
    "no columns": (np.zeros((4, 0)), r"shape is \(4, 0\)"),
    "complex": (np.array(P) + 1j, "complex numbers", "Convert"),
    "dates": (np.array(["2020", "2021", "2022", "2023"], "M8[D]"), "dates", "Convert"),
    "text": (["0.1", "0.2", "0.3", "0.4"], "text", "Convert"),
    "objects": ([object(), 0.1, 0.2, 0.3], "numbers", "row 0 "),
    "ragged": ([[0.1], [0.2, 0.3], [0.4], [0.5]], "different lengths"),
    "mixed": ([0.1, "0.2", 0.3, 0.4], "numbers", "row 1 "),
    "a dict": ({"p": P}, "one value per row", "dict"),
    "a set": ({0.1, 0.2, 0.3, 0.4}, "set", "order"),
    "a text": ("0.1", "one value per row", "str"),
    "None alone": (None, "None"),
    "a lazy frame": (pl.DataFrame({"p": P}).lazy(), "lazy", "collect"),
    "too large": ([10**400, 1, 2, 3], "too large"),
    "signalling NaN": ([0.1, Decimal("sNaN"), 0.6, 0.7], "1 missing value", "row 1 "),
    "records": (np.zeros(4, dtype=[("a", float)]), "numbers"),
    "a table": (ca.ScoreTable.from_arrays(P, Y), "ScoreTable"),
}

LABELS = {
    "NaN": ([0, 1, np.nan, 1], "1 missing value ", "row 2 "),
    "None": ([0, None, None, 1], "2 missing values ", "row 1 "),
    "pandas NA": (pd.Series([True, None, False, True], dtype="boolean"), "1 missing value", "row 1 "),
    "infinite": ([0, 1, np.inf, 1], "1 infinite value", "row 2 "),
    "three": ([0, 1, 2, 1], "two classes", "3 different values: 0, 1, 2", "many classes"),
    "soft": ([0, 0.5, 1, 1], "two classes", "0, 0.5, 1"),
    "continuous": (P, "two classes", "4 different values"),
    "three texts": (list("abca"), "two classes", "'a', 'b', 'c'"),
    "text and numbers": (["a", 1, "a", 1], "mixes text and numbers", "'a', 1"),
    "two columns": (np.eye(4)[:, :2], "one label per row", r"\(4, 2\)"),
    "lengths": ([0, 1], "4 rows", "2 rows"),
    "dates": (np.array(["2020", "2021", "2020", "2021"], "M8[Y]"), "labels", "dates"),
    "date objects": ([datetime.date(2020, 1, 1 + k) for k in Y], "labels", "row 0 ", "Convert"),
    "complex": (np.array([0, 1j, 0, 1j]), "labels", "complex"),
    "objects": ([object()] * 4, "labels", "row 0 "),
    "ragged": ([[1], [0, 1], [1], [1]], "different lengths"),
    "lists": (pl.Series([[1.0], [2.0], [3.0], [4.0]]), "labels", "row 0 ", "Convert"),
    "sparse": (csr_matrix(np.array(Y)[:, None]), "labels", "row 0 ", "Convert"),
    "signalling NaN": ([0, 1, Decimal("sNaN"), 1], "1 missing value", "row 2 "),
    "a number": (1, "lengths differ|one label per row"),
    "None alone": (None, "None"),
}

WEIGHTS = {
    "negative": ([1, -2, 1, -1], "2 negative values", r"-2\.0", "row 1 ", "cannot be negative"),
    "NaN": ([1, np.nan, 1, 1], "1 missing value", "row 1 "),
    "infinite": ([1, np.inf, 1, 1], "1 infinite value", "row 1 ", "finite"),
    "all zero": ([0, 0, 0, 0], "zero in every row"),
    "lengths": ([1, 1], "4 rows", "2 rows"),
    "a number": (2.0, "one value per row"),
    "text": (list("abcd"), "text"),
    "two columns": (np.ones((4, 2)), r"\(4, 2\)"),
    "overflow": ([1e308] * 4, "1e100", "divide"),
    "vanishing": ([1e-300] * 4, "1e-100", "multiply"),
}


@every_binary
@pytest.mark.parametrize("bad", SCORES)
def test_scores_of_a_fit_and_of_its_map(case, bad):
    given, *parts = SCORES[bad]
    refused(lambda: case.make().fit(given, Y), "scores", *parts)
    if bad not in ("lengths", "one number", "a table"):
        refused(lambda: good(case).map_(given), "scores", *parts)
        refused(lambda: good(case).predict_proba(given), "scores", *parts)


@every_measure
@pytest.mark.parametrize("bad", [bad for bad in SCORES if bad != "None alone"])
def test_scores_of_a_measure(case, bad):
    given, *parts = SCORES[bad]
    refused(lambda: case.call(Y, given), "y_score|ScoreTable" if case.ranks else "y_prob|ScoreTable", *parts)


@every_binary
@pytest.mark.parametrize("bad", LABELS)
def test_labels_of_a_fit(case, bad):
    given, *parts = LABELS[bad]
    refused(lambda: case.make().fit(P, given), r"\by\b", *parts)


@every_measure
@pytest.mark.parametrize("bad", LABELS)
def test_labels_of_a_measure(case, bad):
    given, *parts = LABELS[bad]
    refused(lambda: case.call(given, P, pos_label="a" if "text" in bad else None), "y_true", *parts)


@pytest.mark.parametrize("bad", LABELS)
def test_labels_of_a_table(bad):
    given, *parts = LABELS[bad]
    refused(lambda: ca.ScoreTable.from_arrays(P, given), r"\by\b", *parts)


@every_binary
@pytest.mark.parametrize("bad", WEIGHTS)
def test_weights_of_a_fit(case, bad):
    given, *parts = WEIGHTS[bad]
    refused(lambda: case.make().fit(P, Y, given), "sample_weight", *parts)


@every_measure
@pytest.mark.parametrize("bad", WEIGHTS)
def test_weights_of_a_measure(case, bad):
    given, *parts = WEIGHTS[bad]
    refused(lambda: case.call(Y, P, sample_weight=given), "sample_weight", *parts)


@every_many
@pytest.mark.parametrize("bad", WEIGHTS)
def test_weights_of_many_classes(case, bad):
    given, *parts = WEIGHTS[bad]
    refused(lambda: case.make().fit(P3, Y3, given), "sample_weight", *parts)


@every_binary
def test_empty_input(case):
    refused(lambda: case.make().fit([], []), "scores is empty", "at least one row")


@every_measure
def test_empty_input_of_a_measure(case):
    refused(lambda: case.call([], []), "is empty", "at least one row")


@every_binary
@pytest.mark.parametrize(
    ("y", "weight", "only"),
    [([1, 1, 1, 1], None, "positive"), ([0, 0, 0, 0], None, "negative"), (Y, [1, 0, 1, 0], "negative")],
)
def test_one_class_only(case, y, weight, only):
    refused(lambda: case.make().fit(P, y, weight), f"only the {only} class", "both classes")


@every_binary
def test_one_class_only_in_text(case):
    refused(lambda: case.make().fit(P, ["a"] * 4), "only the positive class", "both classes")


@every_measure
def test_text_labels_need_pos_label(case):
    refused(lambda: case.call(list("abab"), P), "y_true holds text", "'a', 'b'", "pos_label='b'")
    refused(lambda: case.call(list("abab"), P, pos_label="c"), "pos_label is 'c'", "'a', 'b'")


def test_text_labels_of_a_table_need_pos_label():
    refused(lambda: ca.ScoreTable.from_arrays(P, list("abab")), "y holds text", "'a', 'b'", "pos_label='b'")
    refused(lambda: ca.ScoreTable.from_arrays(P, Y, pos_label="1"), "pos_label is '1'", "0, 1")


@every_binary
def test_three_columns_for_a_binary_method(case):
    if "partitioning" in case.name or case.make()._many_classes:
        return  # takes any number of columns
    refused(lambda: case.make().fit(P3, Y), "3 columns", "binary", "OneVsRest")
    refused(lambda: good(case).map_(P3), "3 columns", "binary")


@every_measure
def test_three_columns_for_a_binary_measure(case):
    if case.many or case.name.startswith("ECE"):
        refused(lambda: case.call(Y3, P3, pos_label=1), "pos_label", "labels=")
    else:
        refused(lambda: case.call(Y3, P3), "two classes", "3 columns", "column k")


# ---------------------------------------------------------------- probabilities

of_probabilities = pytest.mark.parametrize("case", **named([case for case in BINARY if case.reads == "probability"]))

OUTSIDE = {
    "logits": ([-3, 0.5, 2, 4], "3 rows are outside", "-3 at row 0", "from_logits=True"),
    "percentages": ([10, 50, 0, 90], "3 rows are outside", "divide them by 100"),
    "sentinel": ([0.5, -1] * 1 + [0.5] * 8, "1 row is outside", "-1 at row 1", "missing value"),
    "a few": ([0.5, 1.2, -0.1] + [0.5] * 17, "2 rows are outside", "1.2 at row 1", "Correct or drop"),
}


@of_probabilities
@pytest.mark.parametrize("bad", OUTSIDE)
def test_out_of_range(case, bad):
    given, *parts = OUTSIDE[bad]
    y = np.arange(len(given)) % 2
    refused(lambda: case.make().fit(given, y), "scores", r"\[0, 1\]", *parts)
    if good(case).map_.reads == "probability":  # a step function takes any score
        refused(lambda: good(case).map_(given), "scores", *parts)
    table = ca.ScoreTable.from_arrays(given, y)
    refused(lambda: case.make().fit_table(table), r"table\.scores", *parts)


@every_measure
@pytest.mark.parametrize("bad", OUTSIDE)
def test_out_of_range_for_a_measure(case, bad):
    given, *parts = OUTSIDE[bad]
    y = np.arange(len(given)) % 2
    if case.ranks:
        return  # any score can be ranked
    refused(lambda: case.call(y, given), "y_prob", r"\[0, 1\]", *parts)
    refused(lambda: case.call(ca.ScoreTable.from_arrays(given, y)), r"table\.scores", *parts)


@of_probabilities
def test_rows_that_do_not_sum_to_one(case):
    two = [[0.5, 0.6], [0.3, 0.7], [0.2, 0.2], [0.9, 0.1]]
    refused(lambda: case.make().fit(two, Y), "sum to 1", "2 rows do not", "row 0 ", r"1\.1", "divide each row")


@every_measure
def test_rows_of_a_measure_that_do_not_sum_to_one(case):
    if case.ranks:
        return
    two = [[0.4, 0.6], [0.3, 0.7], [0.2, 0.2], [0.9, 0.1]]
    refused(lambda: case.call(Y, two), "y_prob", "1 row does not", "row 2 ", r"0\.4", "divide each row")
    if case.many:
        refused(lambda: case.call(Y3, P3 * 1.01), "y_prob", "4 rows do not", "row 0 ")


# ---------------------------------------------------------------- indexes


@every_binary
def test_misaligned_pandas(case):
    moved = pd.Series(Y, index=[3, 2, 1, 0])
    refused(lambda: case.make().fit(pd.Series(P), moved), "indexes of scores and y differ", "reset_index")
    refused(lambda: case.make().fit(pd.Series(P), Y, moved + 1.0), "scores and sample_weight differ", "reset_index")
    refused(lambda: case.make().fit(pd.DataFrame({"p": P}), moved), "indexes of scores and y differ")


@every_measure
def test_misaligned_pandas_in_a_measure(case):
    refused(lambda: case.call(pd.Series(Y, index=list("dcba")), pd.Series(P)), "indexes of", "y_true", "reset_index")


def test_pandas_of_one_index_is_used_by_position():
    index = [7, 7, 3, 0]
    straight = ca.brier_score(Y, P)
    assert ca.brier_score(pd.Series(Y, index=index), pd.Series(P, index=index)) == straight
    assert ca.brier_score(Y, pd.Series(P, index=index)) == straight


# ---------------------------------------------------------------- many classes


@every_many
def test_many_labels_and_columns(case):
    fit = lambda scores, y, **given: case.make(**given).fit(scores, y)  # noqa: E731
    refused(lambda: fit(P3, [0, 1, 2, 3]), "3 columns", "4 classes", "classes=")
    refused(lambda: fit(P3, list("abab")), "3 columns", "2 classes", "classes=")
    refused(lambda: fit(P3, list("abxb"), classes=list("abc")), "'x'", "'a', 'b', 'c'")
    refused(lambda: fit(P3, Y3, classes=[0, 1]), "3 columns", "0, 1")
    refused(lambda: fit(P3, Y3, classes=[0, 1, 1]), "once", "0, 1, 1")
    refused(lambda: fit(P3, list("abcb"), classes="abc"), "classes must be", "'abc'")
    refused(lambda: fit(P3, list("abcb"), classes=["a", None, "c"]), "once", "None")
    refused(lambda: fit(P3, list("abcb"), classes=[["a"], ["b"], ["c"]]), "numbers, bool or text")
    refused(lambda: fit(P3, np.eye(3)[Y3]), "y must hold one label per row", r"\(4, 3\)")
    refused(lambda: fit(P3, [0, 1, np.nan, 1]), "y has 1 missing value", "row 2 ")
    refused(lambda: fit(P3, [0, 1, None, 1]), "y has 1 missing value", "row 2 ")
    refused(lambda: fit(P3, [0, 1, np.inf, 1]), "y has 1 infinite value", "row 2 ")
    refused(lambda: fit(np.where(P3 == 0.6, np.nan, P3), Y3), "scores has 2 missing values", "row 1 ")
    refused(lambda: fit(P3[None], Y3), "scores", r"\(1, 4, 3\)")
    refused(lambda: fit(P3[:0], []), "scores is empty")
    refused(lambda: fit(P3[:3], Y3), "3 rows", "4 rows")
    refused(lambda: fit(pd.DataFrame(P3), pd.Series(Y3, index=[3, 2, 1, 0])), "indexes of scores and y differ")


@every_many
def test_many_columns_of_a_map(case):
    y = np.tile(Y3, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = case.make().fit(np.tile(P3, (3, 1)), y).map_
    refused(lambda: made(np.full((2, 4), 0.25)), "4 columns", "3 classes", "0, 1, 2")
    refused(lambda: made(0.3), r"\(n, K\)", r"\(\)")
    refused(lambda: made(P3[None]), r"\(1, 4, 3\)")
    assert made(np.empty((0, 3))).shape == (0, 3)


@pytest.mark.parametrize("inner", ["a name", ca.AffineLogit, 3, None])
def test_one_vs_rest_needs_a_binary_calibrator(inner):
    refused(lambda: ca.OneVsRest(inner).fit(P3, Y3), "OneVsRest: calibrator must be")


def test_logits_too_far_apart_to_subtract():
    far = [[1e308, -1e308], [0, 1], [2, 1], [3, 1]]
    for make in (ca.AffineLogit, ca.TemperatureScaling):
        refused(lambda make=make: make(from_logits=True).fit(far, Y), "logits", "row 0 ", "divide")


@pytest.mark.parametrize("labels", [3, "ab", [0], [0, 0], [0, 1, 2], [0, None], {0, 1, 2}, [[0], [1]]])
def test_labels_of_a_measure_must_name_the_columns(labels):
    refused(lambda: ca.brier_score(Y, P, labels=labels), "labels must")


def test_labels_and_pos_label_must_agree():
    assert ca.brier_score(Y, P, labels=[0, 1], pos_label=1) == ca.brier_score(Y, P)
    refused(lambda: ca.brier_score(Y, P, labels=[0, 1], pos_label=0), "labels", "pos_label", "one of the two")


# ---------------------------------------------------------------- options

NO_NAMES = ("other", None, 3, ["l1"], np.array(["l1", "l2"]))
OPTIONS = [
    *[(measure, {"n_bins": n}) for measure in ("ece", "curve", "parts") for n in (0, -1, 1.5, True, "3", None, 2.0)],
    *[("ece", {name: bad}) for name in ("strategy", "norm", "kind") for bad in NO_NAMES],
    *[("curve", {"strategy": bad}) for bad in ("other", None, ["uniform"])],
    *[("parts", {name: bad}) for name in ("score", "method") for bad in ("other", None, 1)],
    *[("log", {"eps": bad}) for bad in (0, 1, -1e-9, "x", np.nan, [0.1])],
    *[("auc", {"multi_class": bad}) for bad in ("other", None, ["ovr"])],
]
CALLS = {
    "ece": ca.expected_calibration_error,
    "curve": ca.reliability_curve,
    "parts": ca.score_decomposition,
    "log": ca.log_loss,
    "auc": ca.roc_auc,
}


@pytest.mark.parametrize(("call", "given"), OPTIONS, ids=str)
def test_unknown_options(call, given):
    ((name, value),) = given.items()
    refused(lambda: CALLS[call](Y, P, **given), f"{name} must", re.escape(repr(value)) if np.ndim(value) == 0 else "")


def test_norm_of_a_curve():
    refused(lambda: ca.reliability_curve(Y, P).calibration_error("l3"), "norm must be one of 'l1', 'l2', 'max'", "'l3'")


# ---------------------------------------------------------------- tables


@every_binary
@pytest.mark.parametrize(
    "given", [P, None, np.array(P), pd.DataFrame({"p": P}), "table"], ids=lambda x: type(x).__name__
)
def test_fit_table_needs_a_table(case, given):
    refused(lambda: case.make().fit_table(given), "needs a ScoreTable", r"fit\(scores, y\)", kind=InputTypeError)


@every_measure
def test_a_table_is_given_alone(case):
    table = ca.ScoreTable.from_arrays(P, Y)
    for extra in ({"sample_weight": [1] * 4}, {"pos_label": 1}):
        refused(lambda extra=extra: case.call(table, **extra), "holds its weights and labels already")
    refused(lambda: case.call(table, P), "ScoreTable", "alone")
    refused(lambda: case.call(Y, table), "ScoreTable", "alone")
    refused(lambda: case.call(Y), "y_true, y_prob", "ScoreTable", "list", kind=InputTypeError)


def test_tables_of_different_codings_do_not_add():
    table = ca.ScoreTable.from_arrays(P, Y)
    others = [
        ca.ScoreTable.from_arrays(P, [-1, 1, -1, 1]),
        ca.ScoreTable.from_arrays(P, list("abab"), pos_label="b"),
        ca.ScoreTable.from_arrays(P, Y, pos_label=0),
    ]
    for other in others:
        refused(lambda other=other: table + other, r"\(0, 1\)", re.escape(str(other.classes)), "same labels")
    with pytest.raises(TypeError):
        table + 1
    with pytest.raises(TypeError, match="from_arrays"):
        ca.ScoreTable()


COUNTS = {
    "negative": (([0.1, 0.2], [1, -2], [3, 4]), "positives must not be negative", "row 1 ", "-2"),
    "zero": (([0.1, 0.2], [0, 0], [0, 0]), "zero throughout"),
    "lengths": (([0.1, 0.2], [1, 2, 3], [3, 4]), "2 rows", "positives has 3 rows"),
    "NaN": (([0.1, np.nan], [1, 2], [3, 4]), "scores has 1 missing value", "row 1 "),
    "NaN counts": (([0.1, 0.2], [1, 2], [np.nan, 4]), "negatives has 1 missing value", "row 0 "),
    "empty": (([], [], []), "scores is empty"),
    "numbers": ((0.1, 1, 2), "scores", r"\(\)"),
    "matrix": ((np.zeros((2, 2)), [1, 2], [3, 4]), "scores", r"\(2, 2\)"),
    "text": (([0.1, 0.2], ["1", "2"], [3, 4]), "positives must be numbers", "text"),
    "overflow": (([0.1, 0.2], [1e308, 1e308], [1e308, 1]), "1e100", "divide"),
    "index": ((pd.Series([0.1, 0.2]), pd.Series([1, 2], index=[1, 0]), [1, 2]), "indexes of scores and positives"),
}


@pytest.mark.parametrize("bad", COUNTS)
def test_counts(bad):
    given, *parts = COUNTS[bad]
    refused(lambda: ca.ScoreTable.from_counts(*given), *parts)


def test_unknown_column_lists_the_columns(tmp_path):
    frame = pd.DataFrame({"p": P, "y": Y})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    for build in (
        lambda **names: ca.ScoreTable.from_frame(frame, **names),
        lambda **names: ca.ScoreTable.from_file(tmp_path / "rows.csv", **names),
    ):
        refused(lambda build=build: build(score="prob", label="y"), "'prob'", "p", "y", kind=ca.errors.ColumnError)
        refused(lambda build=build: build(score="p", label="Y"), "'Y'", "p", kind=ca.errors.ColumnError)


# ---------------------------------------------------------------- weights that are not frequencies


def test_small_weights_are_frequencies_and_said_to_be():
    with pytest.warns(DataWarning, match=r"add up to 0\.4 over 4 rows.*frequencies"):
        ca.brier_score(Y, P, sample_weight=[0.1] * 4)


# ---------------------------------------------------------------- map files

GOOD = AffineLogitMap((0, 1), 0.75, -0.5, False).to_dict()
STEPS = StepMap((0, 1), [0.25, 0.5], [0.1, 0.4, 0.9]).to_dict()
MIXED = MixtureMap((0, 1), [0.25, 0.75], (AffineLogitMap((0, 1), 1, 0), StepMap((0, 1), [], [0.5]))).to_dict()


def edited(content, path, value):
    """A copy with another value at a dotted path; ... removes it."""
    changed = copy.deepcopy(content)
    *way, last = path.split(".")
    place = changed
    for key in way:
        place = place[int(key)] if isinstance(place, list) else place[key]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return json.dumps(changed)


DAMAGED = {
    "another version": (edited(GOOD, "version", 2), "version 2", "reads version 1", "Update"),
    "a version that is not a number": (edited(GOOD, "version", True), "version True"),
    "another format": (edited(GOOD, "format", "pickle"), "format"),
    "unknown field": (edited(GOOD, "colour", 1), "unknown fields: colour"),
    "unknown parameter": (edited(GOOD, "parameters.bend", 1), "unknown fields: bend"),
    "lost field": (edited(GOOD, "classes", ...), "lacks the fields: classes", "fit the map again"),
    "lost parameter": (edited(GOOD, "parameters.slope", ...), "lacks the fields: slope"),
    "unknown kind": (edited(GOOD, "kind", "magic"), "'magic' is unknown", "affine_logit"),
    "kind of another type": (edited(GOOD, "kind", ["steps"]), "unknown"),
    "parameters of another type": (edited(GOOD, "parameters", []), "must be an object"),
    "text for a number": (edited(GOOD, "parameters.slope", "1"), r"affine_logit\.slope", "finite numbers"),
    "true for a number": (edited(GOOD, "parameters.slope", True), r"affine_logit\.slope", "finite numbers"),
    "null for a number": (edited(GOOD, "parameters.slope", None), r"affine_logit\.slope", "finite numbers"),
    "list for a number": (edited(GOOD, "parameters.slope", [1]), r"affine_logit\.slope must be a number"),
    "NaN": (edited(GOOD, "parameters.slope", float("nan")), r"affine_logit\.slope", "finite"),
    "infinite": (edited(GOOD, "parameters.slope", float("inf")), r"affine_logit\.slope", "finite"),
    "overflow": (json.dumps(GOOD).replace("0.75", "1e999"), r"affine_logit\.slope", "finite"),
    "number for a flag": (edited(GOOD, "parameters.from_logits", 1), "true or false"),
    "one class": (edited(GOOD, "classes", [0]), "two or more different labels"),
    "equal classes": (edited(GOOD, "classes", [1, True]), "two or more different labels"),
    "three classes": (edited(GOOD, "classes", [0, 1, 2]), "two classes, not 3"),
    "classes of another type": (edited(GOOD, "classes", [[0], [1]]), "labels"),
    "text for classes": (edited(GOOD, "classes", "ab"), "labels"),
    "NaN class": (edited(GOOD, "classes", [0, float("nan")]), "labels"),
    "falling thresholds": (edited(STEPS, "parameters.thresholds", [0.5, 0.25]), "thresholds must increase strictly"),
    "equal thresholds": (edited(STEPS, "parameters.thresholds", [0.5, 0.5]), "thresholds must increase strictly"),
    "lost threshold": (edited(STEPS, "parameters.thresholds", [0.5]), "one value more"),
    "value above one": (edited(STEPS, "parameters.values", [0.1, 0.4, 1.5]), r"\[0, 1\], but holds 1.5"),
    "value below zero": (edited(STEPS, "parameters.values", [-0.1, 0.4, 1]), r"\[0, 1\], but holds -0.1"),
    "nested values": (edited(STEPS, "parameters.values", [[0.1], [0.4], [0.9]]), "list of numbers"),
    "ragged values": (edited(STEPS, "parameters.values", [0.1, [0.4], 0.9]), "list of numbers"),
    "null values": (edited(STEPS, "parameters.values", None), "list of numbers"),
    "weights of a mixture": (edited(MIXED, "parameters.weights", [0.5, 0.75]), "sum to 1"),
    "no parts": (edited(MIXED, "parameters.maps", []), "list of maps"),
    "part that is not a map": (edited(MIXED, "parameters.maps", [1, 2]), "object with kind"),
    "part of other classes": (edited(MIXED, "parameters.maps.0.classes", ["a", "b"]), "classes of the mixture"),
    "truncated": (json.dumps(GOOD)[:-20], "not JSON"),
    "empty": ("", "not JSON"),
    "a list": ("[]", "format"),
    "a number": ("3", "format"),
    "deep": ("[" * 100_000, "not JSON"),
    "csv": ("p,y\n0.1,0\n", "not JSON"),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_damaged_map_files(damage, tmp_path):
    text, *parts = DAMAGED[damage]
    path = tmp_path / "map.json"
    path.write_text(text, encoding="utf-8")
    refused(lambda: ca.load_map(path), re.escape(str(path)), *parts, kind=MapFileError)


def test_files_that_are_no_maps(tmp_path):
    refused(lambda: ca.load_map(tmp_path / "none.json"), "no map file", "calibrant fit", kind=MapFileError)
    refused(lambda: ca.load_map(tmp_path), re.escape(str(tmp_path)), kind=MapFileError)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00\x01")
    refused(lambda: ca.load_map(tmp_path / "binary"), "not UTF-8", kind=MapFileError)
    for given in (None, 3, GOOD):
        refused(lambda given=given: ca.load_map(given), "path", kind=InputTypeError)
    for given in (None, [], {1: 2, **GOOD}, {"format": "calibrant map"}):
        refused(lambda given=given: Map.from_dict(given), kind=MapFileError)


def test_a_map_file_may_start_with_a_byte_order_mark(tmp_path):
    (tmp_path / "map.json").write_text("\ufeff" + json.dumps(GOOD), encoding="utf-8")
    assert ca.load_map(tmp_path / "map.json") == Map.from_dict(GOOD)


def test_an_existing_file_is_kept(tmp_path):
    made, path = Map.from_dict(GOOD), tmp_path / "map.json"
    path.write_text("mine")
    refused(lambda: made.save(path), "exists", "force", kind=OutputExistsError)
    assert path.read_text() == "mine"
    made.save(path, force=True)
    assert ca.load_map(path) == made
    refused(lambda: made.save(tmp_path / "no" / "map.json"), "folder", "does not exist")
    assert [item.name for item in tmp_path.iterdir()] == ["map.json"]


MADE = {
    "NaN": (lambda: AffineLogitMap((0, 1), np.nan, 0), "finite"),
    "falling": (lambda: StepMap((0, 1), [2, 1], [0, 0.5, 1]), "increase strictly"),
    "short": (lambda: LineMap((0, 1), [1, 2], [0.5]), "value for every knot"),
    "outside": (lambda: StepMap((0, 1), [1], [0, 1.1]), r"\[0, 1\]"),
    "classes": (lambda: AffineLogitMap((0, np.inf), 1, 0), "different labels"),
    "parts": (lambda: OneVsRestMap((0, 1, 2), (StepMap((0, 1), [], [0.5]),)), "map for every class"),
    "reads": (
        lambda: MixtureMap((0, 1), [0.5, 0.5], (AffineLogitMap((0, 1), 1, 0), AffineLogitMap((0, 1), 1, 0, True))),
        "same kind of score",
    ),
}


@pytest.mark.parametrize("bad", MADE)
def test_maps_are_checked_when_they_are_made(bad):
    make, part = MADE[bad]
    refused(make, part)


def test_maps_are_frozen():
    made = StepMap((0, 1), np.array([0.5]), np.array([0.1, 0.9]))
    with pytest.raises(AttributeError):
        made.values = [0, 1]
    with pytest.raises(ValueError, match="read-only"):
        made.values[0] = 1


def test_swapped_arguments_are_guessed():
    refused(lambda: ca.brier_score(P, Y), "many|4 different values", r"look like probabilities.*\(y_true, y_prob\)")
    refused(lambda: ca.AffineLogit().fit(Y, P), r"look like probabilities.*fit\(scores, y\)")


def test_the_label_is_no_score_and_no_weight(tmp_path):
    frame = pd.DataFrame({"p": P, "y": Y})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    for columns in ({"score": "y", "label": "y"}, {"score": "p", "label": "y", "weight": "y"}):
        refused(lambda: ca.ScoreTable.from_frame(frame, **columns), "same column", "'y'")  # noqa: B023
        refused(lambda: ca.ScoreTable.from_file(tmp_path / "rows.csv", **columns), "same column", "'y'")  # noqa: B023


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ({"separator": 3}, "separator must be"),
        ({"separator": ["tab"]}, "separator must be"),
        ({"decimal": ["."]}, "decimal must be"),
        ({"header": "no"}, "header must be True or False"),
        ({"header": None}, "header must be True or False"),
    ],
    ids=str,
)
def test_options_of_a_file(given, part, tmp_path):
    (tmp_path / "rows.csv").write_text("p,y\n0.1,0\n0.9,1\n")
    refused(lambda: ca.ScoreTable.from_file(tmp_path / "rows.csv", score="p", label="y", **given), part)


def test_a_path_that_is_none():
    refused(lambda: ca.ScoreTable.from_file("", score="p", label="y"), "path is empty")


def test_a_line_that_is_too_long_is_said_to_be(tmp_path):
    (tmp_path / "rows.csv").write_text("p,y,note\n0.1,0,a\n0.9,1," + "x" * 2_500_000 + "\n")
    refused(lambda: ca.ScoreTable.from_file(tmp_path / "rows.csv", score="p", label="y"), "Line 3", "longer than")


@pytest.mark.parametrize("bad", [None, 3, b"map.json", "", "a\0b", ["map.json"]], ids=repr)
def test_outputs_that_name_no_file(bad):
    straight = ca.AffineLogit().fit(P, Y).map_
    refused(lambda: straight.save(bad), "output", "name of a file|another name")
    refused(lambda: straight.save(bad, force=True), "output", "name of a file|another name")


@pytest.mark.parametrize("bad", [None, 3, "", "a\0b", ["s"], b"s"], ids=repr)
def test_columns_of_sql(bad):
    refused(lambda: ca.AffineLogit().fit(P, Y).map_.to_sql(bad), "column must be")


@pytest.mark.parametrize("bad", [None, "mysql", ["duckdb"], 3], ids=repr)
def test_dialects_of_sql(bad):
    refused(lambda: ca.AffineLogit().fit(P, Y).map_.to_sql("s", bad), "dialect must be")


def test_a_spread_that_no_curvature_fits():
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=600), rng.integers(0, 2, 600)
    for far in (1e300, 1e-300):
        refused(lambda: ca.SplineCalibration(from_logits=True).fit(z * far, y), "divide all scores")  # noqa: B023
        assert np.isfinite(ca.AutoCalibrator(from_logits=True).fit(z * far, y).map_(z * far)).all()


def test_margins_whose_distances_no_curvature_fits():
    rng = np.random.default_rng(0)
    z, y = np.append(5e-324 * np.arange(200), rng.normal(size=200)), rng.integers(0, 2, 400)
    found = ca.SplineCalibration(from_logits=True).fit(z, y).map_
    assert np.diff(found.knots).min() > 1e-30
    assert np.isfinite(found(z)).all()


MARGINS = [
    ca.PlattScaling(target_correction=False),
    ca.AffineLogit(from_logits=True),
    ca.QuadraticLogit(from_logits=True),
]
ROUNDED = [(one, at) for one in MARGINS for at in (0.3, 3.7, -12.3, 1e6)]
ROUNDED += [(one, at) for one in (ca.AffineLogit(), ca.BetaCalibration()) for at in (0.3, 0.7)]


def test_folds_bins_and_smoothing_beyond_reason():
    y = [0, 1] * 20
    p = np.linspace(0.1, 0.9, 40)
    for many in (21, 10**9, 10**30):
        refused(lambda: ca.IsotonicCalibration(n_folds=many).fit(p, y), "too few positive rows", "fewer folds")  # noqa: B023
    for many in (10**7, 10**30):
        refused(lambda: ca.expected_calibration_error(y, p, n_bins=many), "n_bins must be", "1,000,000")  # noqa: B023
        refused(lambda: ca.HistogramBinning(n_bins=many).fit(p, y), "n_bins must be")  # noqa: B023
    for much in (1e308, 10**400):
        refused(lambda: ca.IsotonicCalibration(smoothing=much).fit(p, y), "smoothing must be")  # noqa: B023


@pytest.mark.parametrize("times", [1e10, 1e18, 1e20, 1e60])
@pytest.mark.parametrize(
    "calibrator", [ca.AutoCalibrator(), ca.SplineCalibration(), ca.IsotonicCalibration(n_folds=3)], ids=str
)
def test_weights_beyond_whole_numbers_are_dealt(calibrator, times):
    counts = np.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]) * times
    fitted = copy.deepcopy(calibrator).fit_table(ca.ScoreTable.from_counts([0.1, 0.5, 0.9], *counts))
    assert fitted.map_([0.1, 0.5, 0.9]) == pytest.approx([0.25, 0.5, 0.75], abs=1e-3)


@pytest.mark.parametrize(("calibrator", "at"), ROUNDED, ids=str)
def test_scores_that_differ_by_rounding_only_are_one_value(calibrator, at):
    scores = at + np.spacing(abs(at)) * np.array([0, 1, 2, 2, 0, 1, 2, 0])
    y = np.array([0, 1, 1, 0, 0, 0, 1, 1])
    for order in (np.arange(8), np.array([7, 3, 1, 0, 2, 6, 5, 4])):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CalibrantWarning)
            p = copy.deepcopy(calibrator).fit(scores[order], y[order]).map_(scores)
        assert p == pytest.approx(np.full(8, 0.5), abs=1e-9)


def test_rounding_is_not_mistaken_for_a_signal_in_silence():
    scores = 3.7 + np.spacing(3.7) * np.array([0, 1, 2, 2, 0, 1])
    with pytest.warns(FitWarning, match="rounding noise.*subtract a constant"):
        ca.PlattScaling().fit(scores, [0, 1, 1, 0, 0, 0])


# ---------------------------------------------------------------- what must go on working


def test_unusual_but_good_input():
    straight = ca.AffineLogit().fit(P, Y).map_
    assert ca.AffineLogit().fit(P, np.array(Y)[:, None].view(np.matrix)).map_ == straight
    assert ca.AffineLogit().fit(P, pl.Series(Y, dtype=pl.Int128)).map_ == straight
    assert ca.AffineLogit().fit(P, np.where(Y, 1e300, 0)).map_.classes == (0, 1e300)
    assert ca.AffineLogit().fit([Decimal(str(p)) for p in P], Y).map_ == straight
    assert ca.AffineLogit().fit((p for p in P), Y).map_ == straight
    assert ca.AffineLogit().fit(memoryview(np.array(P)), Y).map_ == straight
    assert ca.AffineLogit().fit(np.array(P)[::-1][::-1], Y).map_ == straight
    assert ca.AffineLogit().fit(np.array(P, ">f8"), np.array(Y, ">i4")).map_ == straight
    assert ca.AffineLogit().fit(P, np.array(list("abab"), "S1")).map_.classes == ("a", "b")
    assert ca.AffineLogit().fit(P, pd.Series(list("abab"), dtype="category")).map_.classes == ("a", "b")
    assert ca.AffineLogit().fit(P, np.array(list("abab"), np.dtypes.StringDType())).map_.classes == ("a", "b")
    assert ca.AffineLogit().fit(P, np.array(list("abab"))[:, None]).map_.classes == ("a", "b")


def test_errors_are_also_the_usual_ones():
    assert issubclass(InputError, ValueError)
    assert issubclass(InputTypeError, TypeError)
    assert issubclass(MapFileError, ValueError)
    assert issubclass(ca.errors.NotFittedError, (ValueError, AttributeError))
