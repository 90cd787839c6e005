"""The command line from the inside: what each command prints and writes."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

from calibrant import AffineLogit, IsotonicCalibration, PlattScaling, load_map
from calibrant.calibrators._cross_fit import cross_fitted_table
from calibrant.cli import _methods
from calibrant.metrics import brier_score, log_loss
from cli_runs import ASK, run, scores, write, write_scores


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


# ---------------------------------------------------------------- fit


def test_fit_writes_the_map_and_tells_the_truth_about_it() -> None:
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


def test_fit_as_json_holds_the_same() -> None:
    table = write_scores()
    done = run("fit", "scores.csv", *ASK, "--json", "-o", "other.json")
    said = json.loads(done.out)
    assert said["rows"] == 400
    assert said["prevalence"] == table.prevalence
    assert said["map"] == json.loads(Path("other.json").read_text())
    assert said["cross_fitted"]["before"]["log_loss"] == pytest.approx(log_loss(table))
    assert said["cross_fitted"]["after"]["brier_score"] < said["cross_fitted"]["before"]["brier_score"]


def test_scores_of_another_kind_get_platt_scaling() -> None:
    p, y = scores()
    write("scores.csv", {"p": (np.log(p) - np.log1p(-p)).tolist(), "y": y.tolist()})
    done = run("fit", "scores.csv", *ASK)
    assert "Method: platt, because the scores" in done.out
    assert load_map("map.json").kind == "platt"
    assert "before" in done.out
    assert run("fit", "scores.csv", *ASK, "--from-logits", "--force").code == 0
    assert load_map("map.json").to_dict()["parameters"]["from_logits"] is True


@pytest.mark.parametrize("method", list(_methods.Method))
def test_every_method_of_the_table_fits(method: _methods.Method) -> None:
    table = write_scores()
    assert run("fit", "scores.csv", *ASK, "--method", method.value).code == 0
    assert load_map("map.json") == _methods.make(method, False).fit_table(table).map_
    assert method.value in run("fit", "--help").out


def test_the_table_names_classes_that_exist() -> None:
    assert isinstance(_methods.make(_methods.Method.PLATT, False), PlattScaling)
    assert isinstance(_methods.make(_methods.Method.ISOTONIC, False), IsotonicCalibration)


def test_words_weights_and_missing_cells() -> None:
    write("w.csv", {"p": [0.2, 0.4, "", 0.7, 0.9, 0.1], "y": list("nnyyyn"), "w": [1, 2, 1, 3, 1, 1]})
    done = run("fit", "w.csv", *ASK, "--weight", "w", "--pos-label", "y", "--missing", "drop")
    assert done.code == 0
    assert "5 rows of w.csv, total weight 8: the event 'y' in 4 (50 %). Left out: 1 with missing cells." in done.out
    assert load_map("map.json").classes == ("n", "y")


def test_a_warning_is_one_note_on_standard_error() -> None:
    write("s.csv", {"p": [0.1, 0.2, 0.3, 0.7, 0.8, 0.9], "y": [0, 0, 0, 1, 1, 1]})
    done = run("fit", "s.csv", *ASK)
    assert done.code == 0
    assert re.fullmatch(r"Note: AffineLogit: the scores separate the classes.*\n", done.err)


def test_rounded_scores_and_few_rows_are_notes_of_a_fit() -> None:
    p, y = scores(800)
    write("s.csv", {"p": np.round(p, 1).tolist(), "y": y.tolist()})
    done = run("fit", "s.csv", *ASK, "--method", "isotonic", "-o", "m.json")
    assert done.code == 0
    assert "different values in 800 rows, all multiples of 1/10: they look rounded" in " ".join(done.err.split())
    assert "under about 1,000 it overfits. --method auto or affine is safer." in " ".join(done.err.split())


def test_too_few_rows_to_judge_are_said() -> None:
    write("s.csv", {"p": [0.1, 0.6, 0.3], "y": [0, 1, 0]})
    done = run("fit", "s.csv", *ASK, "--json")
    assert json.loads(done.out)["cross_fitted"] is None
    assert "Not judged: cross-fitting needs" in run("fit", "s.csv", *ASK, "--force").out


def test_a_map_that_does_not_help_is_called_so() -> None:
    rng = np.random.default_rng(1)
    p = rng.random(3000)
    write("s.csv", {"p": p.tolist(), "y": (rng.random(3000) < p).astype(int).tolist()})
    assert "No clear gain" in run("fit", "s.csv", *ASK).out


def test_european_files_and_files_without_names() -> None:
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


def test_apply_keeps_the_file_to_the_character() -> None:
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
def test_apply_agrees_with_python(method: _methods.Method) -> None:
    table = write_scores()
    run("fit", "scores.csv", *ASK, "--method", method.value)
    assert run("apply", "map.json", "scores.csv", "--score", "p", "-o", "out.csv").code == 0
    found = np.loadtxt("out.csv", delimiter=",", skiprows=1)
    assert np.array_equal(found[:, 0], table.scores)
    assert np.allclose(found[:, 2], load_map("map.json")(table.scores), rtol=0, atol=1e-12)


def test_apply_loses_nothing() -> None:
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


def test_apply_with_missing_scores() -> None:
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


def test_evaluate_as_json() -> None:
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


def test_evaluate_never_shows_the_binned_error_without_its_bins() -> None:
    write_scores()
    done = run("evaluate", "scores.csv", *ASK)
    assert (done.code, done.err) == (0, "")
    assert "over these 15 bins of equal width" in done.out
    assert "0.933 to 1.000" in done.out


def test_evaluate_a_map() -> None:
    table = write_scores()
    run("fit", "scores.csv", *ASK)
    said = json.loads(run("evaluate", "scores.csv", *ASK, "--map", "map.json", "--json").out)
    assert said["brier_score"] == pytest.approx(brier_score(table.with_scores(load_map("map.json")(table.scores))))
    assert (
        "judge a map on rows that it was not fitted on" in run("evaluate", "scores.csv", *ASK, "--map", "map.json").out
    )


def test_numbers_that_do_not_exist_say_why() -> None:
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


def test_scores_that_are_no_probabilities_are_only_ranked() -> None:
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


def test_report_writes_a_page_and_tells_its_findings() -> None:
    write_scores()
    done = run("report", "scores.csv", *ASK)
    assert (done.code, done.err) == (0, "")
    assert "ver-confident" in done.out
    assert "Page written to report.html" in done.out
    assert "calibrant fit scores.csv --score p --label y" in done.out
    assert Path("report.html").read_text(encoding="utf-8").lstrip().lower().startswith("<!doctype html>")
    assert run("report", "scores.csv", *ASK).code == 2


def test_report_as_json_writes_no_page_unless_asked() -> None:
    write_scores()
    said = json.loads(run("report", "scores.csv", *ASK, "--json", "--method", "isotonic").out)
    assert said["data"]["rows"] == 400
    assert os.listdir() == ["scores.csv"]
    assert run("report", "scores.csv", *ASK, "--json", "-o", "page.html").code == 0
    assert Path("page.html").exists()
