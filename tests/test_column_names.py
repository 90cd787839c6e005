"""Score columns that are named after the classes stand in their order, or are refused; nothing is ever reordered."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import calibrant as ca
from calibrant import _checks
from calibrant.data._arrays import read_class_rows
from calibrant.errors import InputError
from calibrant.generative import stages_history
from catalogue import BINARY, MANY, MEASURES, class_rows, named
from test_same_answer import EAGER, LAZY, SPARK, every_frame

pytestmark = [
    pytest.mark.filterwarnings("ignore::calibrant.errors.DataWarning"),
    pytest.mark.filterwarnings("ignore:Dask support is moving:FutureWarning"),
]
SORTED = ("ant", "bee", "cat", "dog", "fox")
GIVEN = ("dog", "cat", "fox", "ant", "bee")
PLACES = [SORTED.index(own) for own in GIVEN]
BLOCKS = [case for case in MANY if hasattr(case.make(), "fit_blocks")]
MANY_OR_AUTO = [*MANY, *(case for case in BINARY if case.name.startswith("automatic"))]
every_many = pytest.mark.parametrize("case", **named(MANY_OR_AUTO))
every_frame_but_dask = pytest.mark.parametrize(
    "make", [*(pytest.param(make, id=name) for name, make in {**EAGER, **LAZY}.items() if name != "dask"), SPARK]
)
every_eager = pytest.mark.parametrize("make", EAGER.values(), ids=EAGER)


def data(reads="probability", before="", after="", k=5):
    """Scores in the order of the sorted labels, the same as columns in another order, and labels."""
    rows = class_rows(reads, k=k)
    order = [place for place in PLACES if place < k]
    columns = {f"{before}{SORTED[place]}{after}": rows.scores[:, place] for place in order}
    return rows.scores, columns, np.array(SORTED)[rows.y]


def refused(call, *words):
    with pytest.raises(InputError, match="are named after the classes, but stand in another order") as found:
        call()
    for word in ("never reordered", *words):
        assert word in str(found.value)


def made(case, **given):
    """The calibrator with classes=, which those of two classes have as an attribute."""
    return case.make().set_params(**given)


# ---------------------------------------------------------------- fits and their maps


@every_many
@every_eager
def test_a_fit_and_its_map(case, make):
    scores, columns, y = data(case.reads)
    frame = make(columns)
    refused(
        lambda: made(case).fit(frame, y),
        "'dog', 'cat', 'fox', 'ant', 'bee'. The classes: 'ant', 'bee', 'cat', 'dog', 'fox'.",
        "classes=['dog', 'cat', 'fox', 'ant', 'bee']",
    )
    refused(lambda: made(case, classes=SORTED).fit(frame, y))
    inline = make({own: columns[own] for own in SORTED})
    fitted, plain = made(case).fit(inline, y), made(case).fit(scores, y)
    np.testing.assert_array_equal(fitted.predict_proba(inline), plain.predict_proba(scores))
    refused(lambda: fitted.predict_proba(frame), "'dog', 'cat'", "'ant', 'bee'", "in the order of the classes.")
    refused(lambda: fitted.predict(frame))
    refused(lambda: fitted.map_(frame))


@every_many
def test_classes_in_the_order_of_the_columns(case):
    _, columns, y = data(case.reads)
    frame = pd.DataFrame(columns)
    by_name = made(case, classes=GIVEN).fit(frame, y)
    by_place = made(case, classes=GIVEN).fit(frame.to_numpy(), y)
    assert tuple(by_name.classes_) == GIVEN
    np.testing.assert_array_equal(by_name.predict_proba(frame), by_place.predict_proba(frame.to_numpy()))
    refused(lambda: by_name.predict_proba(frame[list(SORTED)]))


@pytest.mark.parametrize("case", **named(BLOCKS))
@every_eager
def test_blocks(case, make):
    _, columns, y = data(case.reads)
    whole = [(make(columns), y)]
    refused(lambda: made(case).fit_blocks(whole, SORTED), "In block 0", "'dog', 'cat'")
    assert tuple(made(case).fit_blocks(whole, GIVEN).classes_) == GIVEN
    codes = np.array([SORTED.index(own) for own in y])
    digits = {str(SORTED.index(own)): column for own, column in columns.items()}
    refused(lambda: made(case).fit_blocks([(make(digits), codes)]), "The classes: 0, 1, 2, 3, 4")


@pytest.mark.parametrize("case", **named(BINARY))
def test_two_columns(case):
    p = class_rows(k=2).scores
    scores = p if case.reads == "probability" else np.log(p)
    y = np.array(["no", "yes"])[class_rows(k=2).y]
    swapped, inline = pd.DataFrame(scores, columns=["yes", "no"]), pd.DataFrame(scores, columns=["p(no)", "p(yes)"])
    refused(lambda: case.make().fit(swapped, y), "(negative, positive)")
    fitted = case.make().fit(inline, y)
    np.testing.assert_array_equal(fitted.map_(inline), fitted.map_(scores))
    refused(lambda: fitted.map_(swapped), "The classes: 'no', 'yes'")


def test_two_columns_of_logits_that_the_automatic_choice_recognises():
    scores = np.log(class_rows(k=2).scores)
    y = np.array(["no", "yes"])[class_rows(k=2).y]
    refused(lambda: ca.AutoCalibrator().fit(pd.DataFrame(scores, columns=["yes", "no"]), y))


def test_one_vs_rest_of_two_columns():
    p = class_rows(k=2).scores
    y = np.array(["no", "yes"])[class_rows(k=2).y]
    refused(lambda: ca.OneVsRest(ca.AffineLogit()).fit(pd.DataFrame(p, columns=["yes", "no"]), y))


# ---------------------------------------------------------------- measures, tables, reports

OF_CLASSES = {
    **{case.name: case.call for case in MEASURES if case.many},
    "class_tables": ca.class_tables,
    "top_label_table": ca.top_label_table,
    "class_summary": ca.class_summary,
    "classwise_reliability_curves": ca.classwise_reliability_curves,
    "confusion_matrix": ca.confusion_matrix,
    "build_report": ca.build_report,
}


@pytest.mark.parametrize("measure", OF_CLASSES.values(), ids=OF_CLASSES)
@every_eager
def test_measures(measure, make):
    _, columns, y = data()
    refused(lambda: measure(y, make(columns)), "y_prob" if measure is not ca.roc_auc else "y_score", "labels=")
    refused(lambda: measure(y, make(columns), labels=SORTED))
    measure(y, make(columns), labels=GIVEN)
    measure(y, make({own: columns[own] for own in SORTED}))


def test_the_value_is_that_of_the_columns_in_order():
    scores, columns, y = data()
    assert ca.log_loss(y, pd.DataFrame(columns), labels=GIVEN) == pytest.approx(ca.log_loss(y, scores), rel=1e-14)


def test_measures_of_two_columns():
    rows = class_rows(k=2)
    y = np.array(["no", "yes"])[rows.y]
    swapped = pd.DataFrame(rows.scores[:, ::-1], columns=["yes", "no"])
    refused(lambda: ca.log_loss(y, swapped, pos_label="yes"))
    assert ca.log_loss(y, swapped, pos_label="no") == ca.log_loss(y, rows.scores, pos_label="yes")


def test_comparisons_and_surfaces():
    scores, columns, y = data(k=3)
    frame = pd.DataFrame(columns)
    refused(lambda: ca.compare(ca.log_loss, y, scores, frame))
    refused(lambda: ca.estimate(ca.log_loss, y, frame))
    refused(lambda: ca.volume_under_roc_surface(y, frame))
    refused(lambda: ca.estimate_prior(scores, [0.3, 0.3, 0.4], method="bbse", reference=(y, frame)))
    refused(lambda: stages_history(y, [frame]), "stages")


@every_frame
@pytest.mark.parametrize("table", [ca.class_tables, ca.top_label_table])
def test_tables_of_frames(make, table):
    _, columns, y = data(before="p_")
    frame = make({**columns, "animal": y})
    refused(lambda: table(frame, scores=list(columns), label="animal"), "'p_dog', 'p_cat'", "'ant', 'bee'", "labels=")
    in_order = table(frame, scores=[f"p_{own}" for own in SORTED], label="animal")
    as_named = table(frame, scores=list(columns), label="animal", labels=GIVEN)
    if table is ca.class_tables:
        assert [in_order[PLACES[k]].total_positives for k in range(5)] == [one.total_positives for one in as_named]
    else:
        assert in_order.total_positives == as_named.total_positives


# ---------------------------------------------------------------- maps on named columns


@every_frame_but_dask
def test_a_map_on_a_frame(make):
    _, columns, y = data(before="p_")
    names = [f"p_{own}" for own in SORTED]
    record = ca.VectorScaling().fit(pd.DataFrame(columns)[names], y).map_
    refused(lambda: record.apply_frame(make(columns), list(columns)), "'p_dog', 'p_cat'", "'ant', 'bee'")
    record.apply_frame(make(columns), names)


def test_a_map_as_sql():
    _, _, y = data()
    record = ca.VectorScaling(classes=GIVEN).fit(data()[0], y).map_
    refused(lambda: record.to_sql(list(SORTED)))
    assert "SELECT" in record.to_sql(list(GIVEN))


# ---------------------------------------------------------------- which names are those of classes


@pytest.mark.parametrize(
    ("before", "after"), [("", ""), ("p_", ""), ("", " (%)"), ("p(", ")"), ("ca", "g"), ("*", "+"), ("ant", "ant")]
)
def test_text_around_the_class(before, after):
    _, columns, y = data(before=before, after=after)
    refused(lambda: ca.log_loss(y, pd.DataFrame(columns)))
    ca.log_loss(y, pd.DataFrame({f"{before}{own}{after}": columns[f"{before}{own}{after}"] for own in SORTED}))


def test_classes_that_begin_or_end_alike():
    frame = pd.DataFrame([[0.2, 0.5, 0.3]] * 3, columns=["p_aba", "p_ab", "p_a"])
    refused(lambda: ca.log_loss(["a", "ab", "aba"], frame), "labels=", "['aba', 'ab', 'a']")


OTHERS = {
    "one name of another kind": ["dog", "cat", "fox", "ant", "cow"],
    "another case": ["Dog", "Cat", "Fox", "Ant", "Bee"],
    "two affixes": ["p_dog", "q_cat", "p_fox", "p_ant", "p_bee"],
    "one name twice": ["dog", "dog", "fox", "ant", "bee"],
    "no text": [4, 3, 2, 1, 0],
    "levels": pd.MultiIndex.from_product([["p"], GIVEN]),
}


@pytest.mark.parametrize("names", OTHERS.values(), ids=OTHERS)
def test_other_names_say_nothing(names):
    scores, _, y = data()
    frame = pd.DataFrame(scores)
    frame.columns = names
    assert ca.log_loss(y, frame) == ca.log_loss(y, scores)


def test_numbers_as_labels():
    rows = class_rows(k=3)
    frame = pl.DataFrame(rows.scores, schema=["p1", "p2", "p0"])
    refused(lambda: ca.log_loss(rows.y, frame), "The classes: 0, 1, 2", "classes=[1, 2, 0]")
    refused(lambda: ca.log_loss(rows.y.astype(float), frame), "classes=[1, 2, 0]")
    text = pa.table({f"p{k}": rows.scores[:, k] for k in range(3)})
    assert ca.log_loss(rows.y, text) == ca.log_loss(rows.y, rows.scores)


def test_hundreds_of_columns_are_shown_from_the_first_that_differs():
    k = 300
    classes = [f"c{place:03d}" for place in range(k)]
    names = [*classes[:200], *classes[:199:-1]]
    with pytest.raises(InputError, match=r"The columns from number 201 on: 'c299', .*The classes: 'c200'") as found:
        read_class_rows(pd.DataFrame(np.full((k, k), 1 / k), columns=names), classes)
    assert len(str(found.value)) < 600


def test_one_way_to_read_names():
    """Whatever stands around, a name is read as the class that it was made of."""
    rng = np.random.default_rng(0)
    read = 0
    for _ in range(500):
        classes = sorted({"".join(rng.choice(list("ab"), rng.integers(1, 4))) for _ in range(4)})
        before, after = ("".join(rng.choice(list("ab"), rng.integers(0, 3))) for _ in range(2))
        order = rng.permutation(len(classes))
        names = [f"{before}{classes[place]}{after}" for place in order]
        if len(classes) < 2 or np.all(order == np.arange(len(classes))):
            _checks.columns_in_order(names, classes, "frame")
            continue
        read += 1
        with pytest.raises(InputError, match=re.escape(f"The classes: {_checks.shown(classes)}")):
            _checks.columns_in_order(names, classes, "frame")
        _checks.columns_in_order(names, [classes[place] for place in order], "frame")
    assert read > 300
