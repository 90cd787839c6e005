"""The command line for many classes: which column is which class, and what fit, apply, evaluate and report do."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

import calibrant
from calibrant import load_map
from calibrant.cli import _class_methods
from class_cases import rows_of_classes, write_classes
from cli_runs import run, write


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


ASK = ("--scores", "p_*", "--label", "label")
NAMES = ("cat", "dog", "fox", "owl")
QUICK = ("--method", "svs")


# ---------------------------------------------------------------- fit


def test_fit_writes_the_map_of_the_classes_in_the_columns() -> None:
    p, y = write_classes()
    done = run("fit", "in.csv", *ASK, *QUICK)
    assert (done.code, done.err) == (0, "")
    expected = calibrant.StructuredVectorScaling(classes=NAMES).fit(p, np.array(NAMES)[y]).map_
    assert load_map("map.json").classes == NAMES
    assert np.allclose(load_map("map.json")(p), expected(p), rtol=0, atol=1e-12)
    assert "600 rows of in.csv, 4 classes" in done.out
    assert "The map lowers the log loss" in done.out
    assert "calibrant apply map.json new.csv --scores 'p_*' -o calibrated.csv" in done.out


def test_the_default_is_automatic_and_explained() -> None:
    write_classes(n=300)
    said = json.loads(run("fit", "in.csv", *ASK, "--json").out)
    assert said["method"] == "AutoCalibrator"
    assert "out of fold" in said["reason"]
    assert said["columns"] == [f"p_{name}" for name in NAMES]
    assert said["classes"] == list(NAMES)
    assert sum(said["class_weights"]) == said["rows"] == 300
    judged = said["cross_fitted"]
    assert judged["gain"] == pytest.approx(judged["before"]["log_loss"] - judged["after"]["log_loss"])
    assert judged["gain_low"] < judged["gain"] < judged["gain_high"]


@pytest.mark.parametrize("method", [*_class_methods.TABLE, "one-versus-rest:isotonic", "one-versus-rest:affine"])
def test_every_method_fits_and_applies(method: str) -> None:
    p, _ = write_classes(n=200)
    assert run("fit", "in.csv", *ASK, "--method", method).code == 0
    assert run("apply", "map.json", "in.csv", "--scores", "p_*", "-o", "out.csv").code == 0
    record = load_map("map.json")
    found = np.genfromtxt("out.csv", delimiter=",", skip_header=1, usecols=range(6, 10), encoding="utf-8")
    assert np.allclose(found, record(p), rtol=0, atol=1e-12)
    assert method.partition(":")[0] in run("fit", "--help").out


def test_columns_in_a_list_in_any_order_and_classes_by_option() -> None:
    p, _ = write_classes()
    run("fit", "in.csv", *ASK, *QUICK, "-o", "star.json")
    listed = ("--scores", "p_owl,p_cat", "--scores", "p_dog", "--scores", "p_fox", "--classes", "owl,cat,dog,fox")
    done = run("fit", "in.csv", *listed, "--label", "label", *QUICK, "-o", "list.json")
    assert done.code == 0
    assert load_map("list.json").classes == ("owl", "cat", "dog", "fox")
    order = [3, 0, 1, 2]
    assert np.allclose(load_map("list.json")(p[:, order]), load_map("star.json")(p)[:, order], atol=1e-8)
    assert "--scores owl,p_cat" not in done.out
    assert "--scores p_owl,p_cat --scores p_dog --scores p_fox --classes owl,cat,dog,fox" in done.out


def test_plain_names_of_columns_are_classes_and_numbers_are_numbers() -> None:
    write_classes("names.csv", prefix="")
    assert run("fit", "names.csv", "--scores", "cat,dog,fox,owl", "--label", "label", *QUICK).code == 0
    assert load_map("map.json").classes == NAMES
    write_classes("numbers.csv", names=("3", "1", "0", "2"))
    assert run("fit", "numbers.csv", *ASK, *QUICK, "--force").code == 0
    assert load_map("map.json").classes == (3, 1, 0, 2)


def test_a_star_in_the_middle_and_without_header() -> None:
    p, y = rows_of_classes(60, 3)
    write("in.csv", {**{f"p({k})": p[:, k].tolist() for k in range(3)}, "label": y.tolist()})
    assert run("fit", "in.csv", "--scores", "p(*)", "--label", "label", *QUICK).code == 0
    rows = "\n".join(",".join(map(repr, [*map(float, row), int(own)])) for row, own in zip(p, y))
    Path("bare.csv").write_text(rows + "\n")
    bare = ("--scores", "column_1,column_2,column_3", "--label", "column_4", "--no-header")
    done = run("fit", "bare.csv", *bare, *QUICK, "--force")
    assert done.code == 2
    assert "The labels: 0, 1, 2. The classes of the columns: 'column_1', 'column_2', 'column_3'" in done.err
    assert run("fit", "bare.csv", *bare, "--classes", "0,1,2", *QUICK, "--force").code == 0


def test_logits_weights_and_missing_cells() -> None:
    p, y = rows_of_classes(120, 3)
    logits = np.log(p) + 7.0
    cells = [[*map(float, row), int(own), 1 + own] for row, own in zip(logits, y)]
    cells[5][1] = ""
    write("in.csv", {name: [row[k] for row in cells] for k, name in enumerate(("l_0", "l_1", "l_2", "y", "w"))})
    ask = ("--scores", "l_*", "--label", "y", "--weight", "w", "--from-logits", *QUICK)
    done = run("fit", "in.csv", *ask)
    assert done.code == 2
    assert "'l_1' 1" in done.err
    assert "--missing drop" in done.err
    done = run("fit", "in.csv", *ask, "--missing", "drop")
    assert done.code == 0
    assert "119 rows of in.csv, total weight" in done.out
    assert "Left out: 1 with missing cells" in done.out
    assert load_map("map.json").to_dict()["parameters"]["from_logits"] is True
    kept = np.arange(120) != 5
    expected = calibrant.StructuredVectorScaling(from_logits=True).fit(logits[kept], y[kept], 1 + y[kept]).map_
    assert load_map("map.json") == expected


def test_a_class_without_rows_keeps_its_column() -> None:
    p, y = rows_of_classes(200, 4)
    kept = y != 2
    columns = {f"p_{name}": p[kept, k].tolist() for k, name in enumerate(NAMES)}
    write("in.csv", {**columns, "label": [NAMES[k] for k in y[kept]]})
    done = run("fit", "in.csv", *ASK, *QUICK)
    assert done.code == 0
    assert "Without rows: 'fox'." in done.out
    assert load_map("map.json").classes == NAMES
    assert run("report", "in.csv", *ASK, *QUICK, "--json").code == 0


def test_rows_that_sum_to_one_in_single_precision_only() -> None:
    p, y = rows_of_classes(100, 3)
    write("in.csv", {**{f"p_{k}": [f"{v:.6f}" for v in p[:, k]] for k in range(3)}, "label": y.tolist()})
    assert run("fit", "in.csv", *ASK, *QUICK).code == 0
    assert run("evaluate", "in.csv", *ASK).code == 0


def test_few_rows_are_not_judged() -> None:
    write("in.csv", {"p_a": [0.5, 0.2, 0.3], "p_b": [0.3, 0.5, 0.3], "p_c": [0.2, 0.3, 0.4], "label": list("abc")})
    done = run("fit", "in.csv", *ASK)
    assert done.code == 0
    assert "Not judged" in done.out
    said = json.loads(run("fit", "in.csv", *ASK, "--json", "--force").out)
    assert said["cross_fitted"] is None
    done = run("report", "in.csv", *ASK)
    assert "Too few rows to judge any map" in done.out


# ---------------------------------------------------------------- evaluate


def test_evaluate_as_json_is_the_measures() -> None:
    p, y = write_classes()
    said = json.loads(run("evaluate", "in.csv", *ASK, "--json", "--bins", "7").out)
    assert said["log_loss"] == pytest.approx(calibrant.log_loss(y, p))
    assert said["brier_score"] == pytest.approx(calibrant.brier_score(y, p))
    assert said["accuracy"] == pytest.approx((p.argmax(axis=1) == y).mean())
    top = said["top_label_calibration_error"]
    assert top["value"] == pytest.approx(calibrant.expected_calibration_error(y, p, n_bins=7))
    assert len(top["bins"]) == 7
    classwise = calibrant.expected_calibration_error(y, p, n_bins=7, kind="classwise")
    assert said["classwise_calibration_error"] == pytest.approx(classwise)
    errors = [line["calibration_error"] for line in said["by_class"]]
    assert errors == sorted(errors, reverse=True)
    assert {line["class"] for line in said["by_class"]} == set(NAMES)
    for line in said["by_class"]:
        gap = sum(b["weight"] * abs(b["mean_predicted"] - b["observed_rate"]) for b in line["bins"]) / 600
        assert gap == pytest.approx(line["calibration_error"])
    right = sum(cell["weight"] for cell in said["confusion"] if cell["true"] == cell["decided"])
    assert right / 600 == pytest.approx(said["accuracy"])
    assert sum(cell["weight"] for cell in said["confusion"]) == 600


def test_evaluate_in_words() -> None:
    write_classes()
    done = run("evaluate", "in.csv", *ASK)
    assert (done.code, done.err) == (0, "")
    for words in ("Accuracy", "over these 15 bins of equal width", "worst calibrated first", "taken for", "owl"):
        assert words in done.out


def test_evaluate_a_map_whose_columns_stand_in_another_order() -> None:
    p, y = write_classes()
    run("fit", "in.csv", *ASK, *QUICK)
    made = load_map("map.json")(p)
    lists = ("--scores", "p_owl,p_fox,p_dog,p_cat", "--classes", "owl,fox,dog,cat", "--label", "label")
    said = json.loads(run("evaluate", "in.csv", *lists, "--map", "map.json", "--json").out)
    assert said["log_loss"] == pytest.approx(calibrant.log_loss(y, made))
    assert said["classes"] == ["owl", "fox", "dog", "cat"]
    shares = {line["class"]: line["mean_predicted"] for line in said["by_class"]}
    assert [shares[name] for name in NAMES] == pytest.approx(made.mean(axis=0).tolist())


def test_numbers_that_do_not_exist_say_why() -> None:
    write("in.csv", {"p_a": [1.0, 0.2], "p_b": [0.0, 0.5], "p_c": [0.0, 0.3], "label": ["b", "b"]})
    done = run("evaluate", "in.csv", *ASK)
    assert done.code == 0
    assert "infinite: 1 row had probability 0" in " ".join(done.out.split())
    said = json.loads(run("evaluate", "in.csv", *ASK, "--json").out)
    assert said["log_loss"] is None
    assert said["by_class"][0]["roc_auc"] is None
    assert said["reasons"]["log_loss"].startswith("infinite")


def test_a_thousand_classes() -> None:
    p, y = rows_of_classes(60, 1000, sharpness=1.0)
    columns = {f"p_{k}": [f"{v:.8f}" for v in p[:, k]] for k in range(1000)}
    write("in.csv", {**columns, "label": y.tolist()})
    done = run("evaluate", "in.csv", *ASK)
    assert done.code == 0
    assert "The first 20; --json has all 1,000." in done.out
    assert run("fit", "in.csv", *ASK, "--method", "temperature").code == 0
    assert run("apply", "map.json", "in.csv", "--scores", "p_*", "-o", "out.parquet").code == 0


# ---------------------------------------------------------------- report


def test_report_writes_a_page_and_tells_its_findings() -> None:
    write_classes()
    done = run("report", "in.csv", *ASK, *QUICK)
    assert (done.code, done.err) == (0, "")
    assert "Over-confident: use the map" in done.out
    assert "Page written to report.html" in done.out
    assert "calibrant fit in.csv --scores 'p_*' --label label --method svs" in done.out
    assert "<!doctype html>" in Path("report.html").read_text(encoding="utf-8")[:20]
    assert run("report", "in.csv", *ASK, *QUICK).code == 2


def test_report_as_json_agrees_with_fit() -> None:
    write_classes()
    said = json.loads(run("report", "in.csv", *ASK, *QUICK, "--json").out)
    assert os.listdir() == ["in.csv"]
    judged = json.loads(run("fit", "in.csv", *ASK, *QUICK, "--json").out)["cross_fitted"]
    for side in ("before", "after"):
        assert said[side]["log_loss"]["value"] == pytest.approx(judged[side]["log_loss"], rel=1e-9)
        assert said[side]["accuracy"] == pytest.approx(judged[side]["accuracy"])


# ---------------------------------------------------------------- wrong input

FIT = ("fit", "in.csv", *ASK)
HEAD = "p_a,p_b,p_c,label\n"
GOOD = HEAD + ".5,.3,.2,a\n.2,.5,.3,b\n.2,.3,.5,c\n.5,.2,.3,a\n"
APPLY = ("apply", "map.json", "in.csv", "-o", "out.csv")
WRONG = {
    "labels not among the columns": (
        HEAD + ".5,.3,.2,a\n.2,.5,.3,z\n",
        FIT,
        "hold 'z', which is not among .* labels: 'a', 'z'. The classes of the columns: 'a', 'b', 'c'. .* --classes",
    ),
    "numbers for names": (
        HEAD + ".5,.3,.2,0\n.2,.5,.3,1\n",
        FIT,
        "The labels: 0, 1. The classes of the columns: 'a', 'b', 'c'",
    ),
    "no column matches": (
        GOOD,
        ("fit", "in.csv", "--scores", "q_*", "--label", "label"),
        "'q_\\*' matches no column.*'p_a'",
    ),
    "two stars": (GOOD, ("fit", "in.csv", "--scores", "*_*", "--label", "label"), "more than one star"),
    "unknown column": (
        GOOD,
        ("fit", "in.csv", "--scores", "p_a,p_b,p_d", "--label", "label"),
        "--scores 'p_d' is not a column.*Did you mean",
    ),
    "two columns": (
        GOOD,
        ("fit", "in.csv", "--scores", "p_a,p_b", "--label", "label"),
        "three or more classes.*--score",
    ),
    "a column twice": (
        GOOD,
        ("fit", "in.csv", "--scores", "p_a,p_b,p_c,p_a", "--label", "label"),
        "the column 'p_a' twice",
    ),
    "too few classes": (GOOD, (*FIT, "--classes", "a,b"), "each of the 3 columns .* names 2. The classes: 'a', 'b'"),
    "a class twice": (GOOD, (*FIT, "--classes", "a,b,a"), "the class 'a' has two columns"),
    "a number twice": (
        HEAD + ".5,.3,.2,1\n.2,.5,.3,2\n",
        (*FIT, "--classes", "1,1.0,2"),
        "Two columns are of one class.*1, 1, 2",
    ),
    "classes without scores": (GOOD, ("fit", "in.csv", "--classes", "a,b,c", "--label", "label"), "give .* --scores"),
    "score and scores": (GOOD, (*FIT, "--score", "p_a"), "--score is for two classes"),
    "pos-label": (GOOD, (*FIT, "--pos-label", "a"), "--pos-label is for two classes"),
    "group": (GOOD, ("evaluate", "in.csv", *ASK, "--group", "label"), "--group is for two classes"),
    "margin": (GOOD, ("report", "in.csv", *ASK, "--margin", ".1"), "--margin is for two classes"),
    "costs": (GOOD, ("report", "in.csv", *ASK, "--false-positive", "1"), "--false-positive is for two classes"),
    "no label": (GOOD, ("fit", "in.csv", "--scores", "p_*"), "--label NAME"),
    "one class": (HEAD + ".5,.3,.2,a\n.2,.5,.3,a\n", FIT, "All rows are of the class 'a'"),
    "one class in a report": (HEAD + ".5,.3,.2,a\n", ("report", "in.csv", *ASK), "All rows are of the class 'a'"),
    "sums": (HEAD + ".5,.3,.2,a\n.9,.5,.3,b\n", FIT, "must sum to 1, but 1 row does not"),
    "logits": (HEAD + "5,.3,.2,a\n-.9,.5,.3,b\n", FIT, "from -0.9 to 5.*is 5 in data row 1.*--from-logits"),
    "a cell": (HEAD + ".5,.3,.2,a\n.9,high,.3,b\n", FIT, "'p_b' of 'in.csv' holds 'high' in data row 2"),
    "method for two": (GOOD, (*FIT, "--method", "isotonic"), "is for two classes; .* one-versus-rest:isotonic"),
    "unknown method": (GOOD, (*FIT, "--method", "magic"), "'magic' is none of those for many classes: auto, temp"),
    "half a method": (GOOD, (*FIT, "--method", "one-versus-rest"), "needs the name .* it has none: .*isotonic"),
    "half a wrong method": (GOOD, (*FIT, "--method", "one-versus-rest:sms"), "'sms' is not one of them"),
    "each and logits": (GOOD, (*FIT, "--method", "one-versus-rest:beta", "--from-logits"), "--from-logits is for"),
    "no map": (GOOD, ("apply", "no.json", "in.csv", "--scores", "p_*", "-o", "out.csv"), "There is no map file"),
    "the output exists": (GOOD, (*FIT, "-o", "in.csv"), "'in.csv' (exists and was left as it is|is also the input)"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_is_one_sentence(case: str) -> None:
    content, words, message = WRONG[case]
    Path("in.csv").write_text(content)
    before = sorted(os.listdir())
    done = run(*words)
    assert (done.code, done.out) == (2, "")
    assert re.fullmatch(r"Error: [^\n]+\n", done.err)
    assert re.search(message, done.err), done.err
    assert sorted(os.listdir()) == before
    assert Path("in.csv").read_text() == content


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--scores", "p_*", "--classes", "a,b,z"), "The map: 'a', 'b', 'c'. The columns of --scores: 'a', 'b', 'z'"),
        (("--scores", "p_a,p_b,label"), "The columns of --scores: 'p_a', 'p_b', 'label'"),
        (("--scores", "p_*", "--as", "p"), "already has a column 'p_a'"),
        (("--scores", "p_*", "--prevalence", ".1", "--fitted-prevalence", ".2"), "for maps of two classes"),
        (("--score", "p_a"), "two classes"),
    ],
)
def test_what_apply_refuses(words: tuple[str, ...], message: str) -> None:
    Path("in.csv").write_text(GOOD)
    assert run(*FIT, "--method", "temperature").code == 0
    done = run(*APPLY, *words)
    assert (done.code, done.out) == (2, "")
    assert re.search(message, done.err), done.err
    assert not Path("out.csv").exists()


def test_a_map_of_two_classes_is_refused() -> None:
    write("two.csv", {"p": [0.1, 0.6, 0.3, 0.8], "y": [0, 1, 1, 0]})
    run("fit", "two.csv", "--score", "p", "--label", "y")
    Path("in.csv").write_text(GOOD)
    for words in (APPLY, ("evaluate", "in.csv", "--map", "map.json", "--label", "label")):
        done = run(*words, "--scores", "p_*")
        assert done.code == 2
        assert "is a map of two classes" in done.err
