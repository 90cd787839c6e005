"""The command line from the inside: what each command prints and writes, and one sentence for each wrong input."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from calibrant import AffineLogit, IsotonicCalibration, PlattScaling, ScoreTable, load_map
from calibrant.calibrators._cross_fit import cross_fitted_table
from calibrant.cli import _methods, main
from calibrant.cli._words import for_command_line, number, percent
from calibrant.metrics import brier_score, log_loss


class Done(NamedTuple):
    code: int
    out: str
    err: str


Run = Callable[..., Done]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def runner(*words: str) -> Done:
        capsys.readouterr()
        code = main(words)
        return Done(code, *capsys.readouterr())

    return runner


def scores(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Over-confident probabilities and what happened."""
    rng = np.random.default_rng(seed)
    z = rng.normal(-1, 1.5, n)
    return 1 / (1 + np.exp(-2 * z)), (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)


def write(path: str, columns: dict[str, Sequence[object]], separator: str = ",") -> None:
    lines = [separator.join(columns), *(separator.join(map(str, row)) for row in zip(*columns.values()))]
    Path(path).write_text("\n".join(lines) + "\n", encoding="utf-8")


def write_scores(path: str = "scores.csv") -> ScoreTable:
    p, y = scores()
    write(path, {"p": p.tolist(), "y": y.tolist()})
    return ScoreTable.from_arrays(p, y)


ASK = ("--score", "p", "--label", "y")


# ---------------------------------------------------------------- fit


def test_fit_writes_the_map_and_tells_the_truth_about_it(run: Run) -> None:
    table = write_scores()
    done = run("fit", "scores.csv", *ASK)
    assert (done.code, done.err) == (0, "")
    assert load_map("map.json") == AffineLogit().fit_table(table).map_
    assert "400 rows of scores.csv" in done.out
    assert "because all scores lie in [0, 1]" in done.out
    assert "over-confident" in done.out
    after = cross_fitted_table(AffineLogit(), table)
    for measure in (log_loss, brier_score):
        assert f"{measure(table):.5f}" in done.out
        assert f"{measure(after):.5f}" in done.out
    assert "calibrant apply map.json new.csv --score p -o calibrated.csv" in done.out


def test_fit_as_json_holds_the_same(run: Run) -> None:
    table = write_scores()
    done = run("fit", "scores.csv", *ASK, "--json", "-o", "other.json")
    said = json.loads(done.out)
    assert said["rows"] == 400
    assert said["prevalence"] == table.prevalence
    assert said["map"] == json.loads(Path("other.json").read_text())
    assert said["cross_fitted"]["before"]["log_loss"] == pytest.approx(log_loss(table))
    assert said["cross_fitted"]["after"]["brier_score"] < said["cross_fitted"]["before"]["brier_score"]


def test_scores_of_another_kind_get_platt_scaling(run: Run) -> None:
    p, y = scores()
    write("scores.csv", {"p": (np.log(p) - np.log1p(-p)).tolist(), "y": y.tolist()})
    done = run("fit", "scores.csv", *ASK)
    assert "Method: platt, because the scores" in done.out
    assert load_map("map.json").kind == "platt"
    assert "before" in done.out
    assert run("fit", "scores.csv", *ASK, "--from-logits", "--force").code == 0
    assert load_map("map.json").to_dict()["parameters"]["from_logits"] is True


@pytest.mark.parametrize("method", list(_methods.Method))
def test_every_method_of_the_table_fits(run: Run, method: _methods.Method) -> None:
    table = write_scores()
    assert run("fit", "scores.csv", *ASK, "--method", method.value).code == 0
    assert load_map("map.json") == _methods.make(method, False).fit_table(table).map_
    assert method.value in run("fit", "--help").out


def test_the_table_names_classes_that_exist() -> None:
    assert isinstance(_methods.make(_methods.Method.PLATT, False), PlattScaling)
    assert isinstance(_methods.make(_methods.Method.ISOTONIC, False), IsotonicCalibration)


def test_words_weights_and_missing_cells(run: Run) -> None:
    write("w.csv", {"p": [0.2, 0.4, "", 0.7, 0.9, 0.1], "y": list("nnyyyn"), "w": [1, 2, 1, 3, 1, 1]})
    done = run("fit", "w.csv", *ASK, "--weight", "w", "--pos-label", "y", "--missing", "drop")
    assert done.code == 0
    assert "5 rows of w.csv, total weight 8: the event 'y' in 4 (50 %). Left out: 1 with missing cells." in done.out
    assert load_map("map.json").classes == ("n", "y")


def test_a_warning_is_one_note_on_standard_error(run: Run) -> None:
    write("s.csv", {"p": [0.1, 0.2, 0.3, 0.7, 0.8, 0.9], "y": [0, 0, 0, 1, 1, 1]})
    done = run("fit", "s.csv", *ASK)
    assert done.code == 0
    assert re.fullmatch(r"Note: AffineLogit: the scores separate the classes.*\n", done.err)


def test_too_few_rows_to_judge_are_said(run: Run) -> None:
    write("s.csv", {"p": [0.1, 0.6, 0.3], "y": [0, 1, 0]})
    done = run("fit", "s.csv", *ASK, "--json")
    assert json.loads(done.out)["cross_fitted"] is None
    assert "Not judged: cross-fitting needs" in run("fit", "s.csv", *ASK, "--force").out


def test_a_map_that_does_not_help_is_called_so(run: Run) -> None:
    rng = np.random.default_rng(1)
    p = rng.random(3000)
    write("s.csv", {"p": p.tolist(), "y": (rng.random(3000) < p).astype(int).tolist()})
    assert "No clear gain" in run("fit", "s.csv", *ASK).out


def test_european_files_and_files_without_names(run: Run) -> None:
    Path("e.csv").write_text("p;y\n0,2;0\n0,8;1\n0,3;1\n0,25;0\n")
    done = run("fit", "e.csv", *ASK, "--separator", ";", "--decimal", ",")
    assert "calibrant apply map.json new.csv --score p -o calibrated.csv --separator ';' --decimal ," in done.out
    Path("t.txt").write_text("0.2\t0\n0.8\t1\n0.3\t1\n0.25\t0\n")
    names = ("--score", "column_1", "--label", "column_2", "--no-header", "--separator", "tab")
    assert run("evaluate", "t.txt", *names).code == 0


# ---------------------------------------------------------------- apply

KEPT = [
    'id,name,p,"a ""quoted"" name",last',
    '007,"Doe, Jane",0.5,"say ""hi""",',
    "1.50, padded ,0.25,größe,x\ty",
    "1e3,名前,0.999,'single',  ",
    "-0,,0,NA,null",
]


def test_apply_keeps_the_file_to_the_character(run: Run) -> None:
    write_scores()
    run("fit", "scores.csv", *ASK)
    Path("in.csv").write_text("\n".join(KEPT) + "\n", encoding="utf-8")
    done = run("apply", "map.json", "in.csv", "--score", "p", "-o", "out.csv", "--as", "honest p")
    assert (done.code, done.err) == (0, "")
    assert done.out == "4 rows written to out.csv, with the new column 'honest p'.\n"
    lines = Path("out.csv").read_text(encoding="utf-8").splitlines()
    assert [line.rsplit(",", 1)[0] for line in lines] == KEPT
    found = [float(line.rsplit(",", 1)[1]) for line in lines[1:]]
    assert np.allclose(found, load_map("map.json")([0.5, 0.25, 0.999, 0.0]), rtol=0, atol=1e-12)


@pytest.mark.parametrize("method", list(_methods.Method))
def test_apply_agrees_with_python(run: Run, method: _methods.Method) -> None:
    table = write_scores()
    run("fit", "scores.csv", *ASK, "--method", method.value)
    assert run("apply", "map.json", "scores.csv", "--score", "p", "-o", "out.csv").code == 0
    found = np.loadtxt("out.csv", delimiter=",", skiprows=1)
    assert np.array_equal(found[:, 0], table.scores)
    assert np.allclose(found[:, 2], load_map("map.json")(table.scores), rtol=0, atol=1e-12)


def test_apply_loses_nothing(run: Run) -> None:
    write_scores()
    run("fit", "scores.csv", *ASK)
    ask = ("apply", "map.json", "scores.csv", "--score", "p", "-o", "out.csv")
    Path("out.csv").write_text("precious")
    done = run(*ask)
    assert done.code == 2
    assert "The output 'out.csv' exists and was left as it is" in done.err
    assert Path("out.csv").read_text() == "precious"
    assert run(*ask, "--force").code == 0
    assert Path("out.csv").read_text().startswith("p,y,calibrated\n")
    assert sorted(os.listdir()) == ["map.json", "out.csv", "scores.csv"]


def test_apply_with_missing_scores(run: Run) -> None:
    write_scores()
    run("fit", "scores.csv", *ASK)
    Path("in.csv").write_text("id,p\na,0.5\nb,\n")
    ask = ("apply", "map.json", "in.csv", "--score", "p", "-o", "out.csv")
    done = run(*ask)
    assert done.code == 2
    assert "--missing keep" in done.err
    assert run(*ask, "--missing", "keep").code == 0
    assert Path("out.csv").read_text().splitlines()[2] == "b,,"


# ---------------------------------------------------------------- evaluate


def test_evaluate_as_json(run: Run) -> None:
    table = write_scores()
    said = json.loads(run("evaluate", "scores.csv", *ASK, "--json", "--bins", "7").out)
    assert said["log_loss"] == pytest.approx(log_loss(table))
    parts = said["brier_decomposition"]
    assert parts["miscalibration"] - parts["discrimination"] + parts["uncertainty"] == pytest.approx(
        said["brier_score"]
    )
    error = said["expected_calibration_error"]
    assert len(error["bins"]) == 7
    gaps = [row["weight"] / 400 * abs(row["mean_predicted"] - row["observed_rate"]) for row in error["bins"]]
    assert error["value"] == pytest.approx(sum(gaps))
    assert 0 < said["calibration_slope"] < 1
    assert said["reasons"] == {}


def test_evaluate_never_shows_the_binned_error_without_its_bins(run: Run) -> None:
    write_scores()
    done = run("evaluate", "scores.csv", *ASK)
    assert (done.code, done.err) == (0, "")
    assert "over these 15 bins of equal width" in done.out
    assert "0.933 to 1.000" in done.out


def test_evaluate_a_map(run: Run) -> None:
    table = write_scores()
    run("fit", "scores.csv", *ASK)
    said = json.loads(run("evaluate", "scores.csv", *ASK, "--map", "map.json", "--json").out)
    assert said["brier_score"] == pytest.approx(brier_score(table.with_scores(load_map("map.json")(table.scores))))
    assert (
        "judge a map on rows that it was not fitted on" in run("evaluate", "scores.csv", *ASK, "--map", "map.json").out
    )


def test_numbers_that_do_not_exist_say_why(run: Run) -> None:
    write("s.csv", {"p": [0.0, 0.2, 0.8, 1.0], "y": [0, 0, 1, 0]})
    said = json.loads(run("evaluate", "s.csv", *ASK, "--json").out)
    assert said["log_loss"] is None
    assert said["reasons"]["log_loss"].startswith("infinite: 1 of the rows had probability 0")
    write("t.csv", {"p": [0.1, 0.2, 0.8, 0.9], "y": [0, 0, 1, 1]})
    done = run("evaluate", "t.csv", *ASK)
    assert done.code == 0
    assert "Calibration slope and Calibration intercept: The probabilities separate the classes" in done.out
    write("u.csv", {"p": [0.1, 0.2], "y": [0, 0]})
    done = run("evaluate", "u.csv", *ASK)
    assert done.code == 0
    assert "Brier score" in done.out
    assert "only the negative class" in done.out


def test_scores_that_are_no_probabilities_are_only_ranked(run: Run) -> None:
    write("s.csv", {"p": [-2, 3, 1, -0.5], "y": [0, 1, 0, 1]})
    done = run("evaluate", "s.csv", *ASK)
    assert done.code == 0
    assert "3 of 4 scores lie outside [0, 1], so they are not probabilities" in done.out
    assert "ROC AUC" in done.out
    assert "Brier" not in done.out
    said = json.loads(run("evaluate", "s.csv", *ASK, "--json").out)
    assert said["brier_score"] is None
    assert said["roc_auc"] == 0.75


# ---------------------------------------------------------------- report


def test_report_writes_a_page_and_tells_its_findings(run: Run) -> None:
    write_scores()
    done = run("report", "scores.csv", *ASK)
    assert (done.code, done.err) == (0, "")
    assert "ver-confident" in done.out
    assert "Page written to report.html" in done.out
    assert "calibrant fit scores.csv --score p --label y" in done.out
    assert Path("report.html").read_text(encoding="utf-8").lstrip().lower().startswith("<!doctype html>")
    assert run("report", "scores.csv", *ASK).code == 2


def test_report_as_json_writes_no_page_unless_asked(run: Run) -> None:
    write_scores()
    said = json.loads(run("report", "scores.csv", *ASK, "--json", "--method", "isotonic").out)
    assert said["data"]["rows"] == 400
    assert os.listdir() == ["scores.csv"]
    assert run("report", "scores.csv", *ASK, "--json", "-o", "page.html").code == 0
    assert Path("page.html").exists()


# ---------------------------------------------------------------- wrong input

FIT = ("fit", "in.csv", *ASK)
EVALUATE = ("evaluate", "in.csv", *ASK)
WRONG = {
    "no such file": (None, FIT, "'in.csv' does not exist"),
    "empty file": ("", FIT, "'in.csv' is empty"),
    "no rows": ("p,y\n", FIT, "has a header but no rows"),
    "no score named": ("p,y\n.1,0\n", ("fit", "in.csv", "--label", "y"), "--score NAME. The columns .* are: 'p', 'y'"),
    "no label named": ("p,y\n.1,0\n", ("evaluate", "in.csv", "--score", "p"), "--label NAME. The columns .*'p', 'y'"),
    "unknown column": ("P1,y\n.1,0\n", FIT, "--score 'p' is not a column. The columns are: 'P1', 'y'. Did you mean"),
    "missing cells": (
        "p,y\n.1,0\n,1\n",
        FIT,
        r"1 row of 'in.csv' has a missing cell, the first in data row 2 \(line 3\)",
    ),
    "missing cells, what to do": ("p,y\n.1,0\n,1\n", FIT, "leave those rows out with --missing drop"),
    "infinity": ("p,y\n.1,0\ninf,1\n", FIT, "'inf' in data row 2 .* must be finite"),
    "no number": ("p,y\n.1,0\nhigh,1\n", FIT, "'high' in data row 2 .* not a number"),
    "decimal comma": ("p;y\n0,1;0\n0,2;1\n", FIT, "--separator ';' --decimal ','"),
    "one class": ("p,y\n.1,0\n.2,0\n", FIT, "only the negative class"),
    "three labels": ("p,y\n.1,0\n.2,1\n.3,2\n", FIT, "The label column must hold two classes, but it holds 3"),
    "words": ("p,y\n.1,no\n.2,yes\n", FIT, "holds text .* --pos-label 'yes'"),
    "another word": ("p,y\n.1,no\n.2,yes\n", (*FIT, "--pos-label", "ja"), "--pos-label is 'ja', but .* 'no', 'yes'"),
    "not probabilities": ("p,y\n-1,0\n2,1\n", (*FIT, "--method", "affine"), "2 of 2 scores .* add --from-logits"),
    "a code for missing": (
        "p,y\n" + ".1,0\n.2,1\n" * 50 + "-999,0\n",
        FIT,
        "1 score of 101 lie outside .* -999.* code for a missing value",
    ),
    "negative weight": ("p,y,w\n.1,0,1\n.2,1,-1\n", (*FIT, "--weight", "w"), "a weight cannot be negative"),
    "no weight": ("p,y,w\n.1,0,0\n.2,1,0\n", (*FIT, "--weight", "w"), "zero"),
    "unknown method": ("p,y\n.1,0\n", (*FIT, "--method", "magic"), "--method: 'magic' is not one of 'affine'"),
    "method and logits": ("p,y\n.1,0\n.2,1\n", (*FIT, "--method", "platt", "--from-logits"), "affine, temperature"),
    "unknown option": (
        "p,y\n.1,0\n",
        (*FIT, "--metod", "platt"),
        "No such option: --metod.* Try 'calibrant fit --help'",
    ),
    "no argument": (None, ("fit",), "Missing argument 'SCORES'"),
    "no command": (None, ("calibrate",), "No such command 'calibrate'"),
    "no bins": ("p,y\n.1,0\n.2,1\n", (*EVALUATE, "--bins", "0"), "--bins"),
    "decimal": ("p,y\n.1,0\n.2,1\n", (*FIT, "--decimal", "x"), "--decimal must be"),
    "folder": ("p,y\n.1,0\n.2,1\n", (*FIT, "-o", "no/such/map.json"), "The folder of the output .* does not exist"),
    "no map": ("p\n.1\n", ("apply", "no.json", "in.csv", "--score", "p", "-o", "out.csv"), "There is no map file"),
    "not a map": ("p\n.1\n", ("apply", "in.csv", "in.csv", "--score", "p", "-o", "out.csv"), "is not a map file"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_is_one_sentence(run: Run, case: str) -> None:
    content, words, message = WRONG[case]
    if content is not None:
        Path("in.csv").write_text(content)
    before = sorted(os.listdir())
    done = run(*words)
    assert done.code == 2
    assert done.out == ""
    assert re.fullmatch(r"Error: [^\n]+\n", done.err)
    assert re.search(message, done.err), done.err
    assert sorted(os.listdir()) == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"version": 99}, "version 99, but this calibrant reads version 1"),
        ({"more": 1}, "unknown fields: more"),
        ({"kind": "magic"}, "kind of map 'magic' is unknown"),
        ({"parameters": {"slope": 1.0}}, "lacks the fields"),
    ],
)
def test_a_wrong_map_file(run: Run, change: dict[str, object], message: str) -> None:
    write_scores()
    run("fit", "scores.csv", *ASK)
    Path("bad.json").write_text(json.dumps({**json.loads(Path("map.json").read_text()), **change}))
    done = run("apply", "bad.json", "scores.csv", "--score", "p", "-o", "out.csv")
    assert done.code == 2
    assert message in done.err
    assert not Path("out.csv").exists()


def test_what_a_map_of_probabilities_cannot_read(run: Run) -> None:
    write_scores()
    run("fit", "scores.csv", *ASK)
    write("in.csv", {"p": [0.5, 1.0000001, 7, 8], "y": [0, 1, 0, 1]})
    done = run("apply", "map.json", "in.csv", "--score", "p", "-o", "out.csv")
    assert done.code == 2
    assert "'7' in data row 3 (line 4), but the map reads numbers in [0, 1] (2 cells in all)" in done.err
    done = run("evaluate", "in.csv", *ASK, "--map", "map.json")
    assert done.code == 2
    assert "The map reads probabilities, but 2 of 4 scores lie outside" in done.err
    write("in.csv", {"p": [0.5, 1.0000001, -1e-8], "y": [0, 1, 0]})
    assert run("apply", "map.json", "in.csv", "--score", "p", "-o", "out.csv").code == 0


def test_apply_refuses_a_name_that_is_taken(run: Run) -> None:
    write_scores()
    run("fit", "scores.csv", *ASK)
    done = run("apply", "map.json", "scores.csv", "--score", "p", "-o", "out.csv", "--as", "y")
    assert done.code == 2
    assert "already has a column 'y'" in done.err


def test_a_map_of_many_classes(run: Run) -> None:
    write_scores()
    part = {"kind": "identity", "classes": [0, 1], "parameters": {"mix": 0.0, "from_logits": False}}
    many = {"kind": "one_vs_rest", "classes": ["a", "b", "c"], "parameters": {"maps": [part] * 3}}
    Path("many.json").write_text(json.dumps({"format": "calibrant map", "version": 1, **many}))
    done = run("apply", "many.json", "scores.csv", "--score", "p", "-o", "out.csv")
    assert done.code == 2
    assert "maps of two classes, but this map 'one_vs_rest' has 3" in done.err
    assert run("evaluate", "scores.csv", *ASK, "--map", "many.json").code == 2


def test_our_own_fault_is_exit_code_1(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    write_scores()

    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr("calibrant.cli._evaluate.evaluation", broken)
    done = run("evaluate", "scores.csv", *ASK)
    assert done.code == 1
    assert done.err == (
        "Error: This is a fault of calibrant, not of your input (RuntimeError: two lines). Run it again with --debug "
        "for details.\n"
    )
    assert "Traceback" in run("evaluate", "scores.csv", *ASK, "--debug").err


@pytest.mark.parametrize("failure", [KeyboardInterrupt, BrokenPipeError])
def test_quiet_ends(run: Run, monkeypatch: pytest.MonkeyPatch, failure: type[BaseException]) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr("calibrant.cli._run._invoke", stopped)
    monkeypatch.setattr("calibrant.cli._console.silence", lambda: None)
    done = run("demo")
    assert done.code == (130 if failure is KeyboardInterrupt else 141)
    assert (done.out, done.err) == ("", "")


# ---------------------------------------------------------------- words


def test_help_shows_examples_and_version(run: Run) -> None:
    for command in ("demo", "report", "fit", "apply", "evaluate"):
        done = run(command, "--help")
        assert done.code == 0
        assert f"calibrant {command}" in done.out
        assert "Examples:" in done.out
    assert run().out == run("--help").out
    assert re.fullmatch(r"calibrant \d+\.\d+\.\d+\n", run("--version").out)


@pytest.mark.parametrize(
    ("library", "shown"),
    [
        ('Fill them with missing="drop" (--missing drop).', "Fill them with --missing drop."),
        ("overwriting with\nforce=True (--force).", "overwriting with --force."),
        ("read with separator=';', decimal=',' (--separator ';' --decimal ',').",
         "read with --separator ';' --decimal ','."),
        ("read with header=False (--no-header).", "read with --no-header."),
        ("say it with pos_label, as pos_label='yes'.", "say it with --pos-label, as --pos-label 'yes'."),
        ("use from_logits=True, or PlattScaling, or", "use --from-logits, or --method platt, or"),
        ("label='q' is not a column.", "--label 'q' is not a column."),
    ],
)  # fmt: skip
def test_messages_name_options(library: str, shown: str) -> None:
    assert for_command_line(library) == shown


def test_numbers() -> None:
    assert [number(x) for x in (0.0, 1.5, -2e-17, 3e-5, 1e7, float("inf"))] == [
        "0.0000", "1.5000", "0.0000", "3.00e-05", "1e+07", "infinite",
    ]  # fmt: skip
    assert [percent(x) for x in (0, 0.1825, 1, 0.99999, 1e-7, 1e-5)] == [
        "0 %", "18.2 %", "100 %", ">99.9 %", "<0.0001 %", "0.001 %",
    ]  # fmt: skip
