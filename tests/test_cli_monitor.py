"""`calibrant monitor`: a state file, batches with and without labels, exit codes, a repair."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import calibrant as ca
from calibrant.cli import main
from streams import batch


def write(name, table, labels=True):
    rows = zip(table.scores, table.positives)
    lines = [f"{p:.9f}" + (f",{int(y)}" if labels else "") for p, y in rows]
    with open(name, "w") as file:
        file.write(("p,y\n" if labels else "p\n") + "\n".join(lines) + "\n")


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    write("reference.csv", batch(rng, 8000))
    write("monday.csv", batch(rng, 1000))
    write("tuesday.csv", batch(rng, 1000), labels=False)
    for k in range(6):
        write(f"bad{k}.csv", batch(rng, 2000, "slope 0.8"))
    assert main(["monitor", "state.json", "--reference", "reference.csv", "--score", "p", "--label", "y"]) == 0


LABELLED = ("--score", "p", "--label", "y")
BAD = tuple(f"bad{k}.csv" for k in range(6))


def test_quiet_batches_exit_with_0(capsys):
    assert main(["monitor", "state.json", "monday.csv", *LABELLED]) == 0
    out = capsys.readouterr().out
    assert "No alarm after 1 batch." in out
    assert main(["monitor", "state.json", "tuesday.csv", "--score", "p"]) == 0
    assert "No alarm after 2 batches." in capsys.readouterr().out


def test_an_alarm_exits_with_3_and_is_named(capsys):
    assert main(["monitor", "state.json", *BAD, *LABELLED]) == 3
    out = capsys.readouterr().out
    assert "ALARM: the map no longer holds (slope)" in out
    assert "calibrant monitor state.json --adopt repair.json" in out
    assert main(["monitor", "state.json"]) == 3
    assert "ALARM, from an earlier batch" in capsys.readouterr().out


def test_the_state_is_that_of_the_library():
    assert main(["monitor", "state.json", "monday.csv", "tuesday.csv", "--score", "p"]) == 0
    tables = {name: ca.ScoreTable.from_file(name, score="p", label="y") for name in ("reference.csv", "monday.csv")}
    monitor = ca.CalibrationMonitor(tables["reference.csv"])
    monitor.update(tables["monday.csv"].scores, name="monday.csv")
    monitor.update(np.loadtxt("tuesday.csv", skiprows=1), name="tuesday.csv")
    assert json.loads(json.dumps(monitor.to_dict())) == json.loads(Path("state.json").read_text())


def test_json(capsys):
    capsys.readouterr()
    assert main(["monitor", "state.json", *BAD, *LABELLED, "--json"]) == 3
    said = json.loads(capsys.readouterr().out)
    assert said["alarm"]
    assert said["batches"][-1]["cause"] == "the map no longer holds (slope)"
    assert said["batches"][0]["expected"]["prevalence"] == pytest.approx(0.1, abs=0.02)
    assert said["repair"]["map"]["kind"] == "affine_logit"
    assert said["evidence"]["labels"] > 1e6


def test_a_repair_is_adopted(capsys):
    assert main(["monitor", "state.json", *BAD, *LABELLED]) == 3
    assert main(["monitor", "state.json", "--adopt", "repair.json"]) == 0
    assert "starts afresh" in capsys.readouterr().out
    table = batch(np.random.default_rng(5), 2000, "slope 0.8")
    write("fixed.csv", table.with_scores(ca.load_map("repair.json")(table.scores)))
    assert main(["monitor", "state.json", "fixed.csv", *LABELLED]) == 0


def test_labels_later(capsys):
    assert main(["monitor", "state.json", "monday.csv", "--score", "p"]) == 0
    capsys.readouterr()
    assert main(["monitor", "state.json", "monday.csv", *LABELLED, "--labels-only", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["batches"][0]
    assert (said["rows"], said["labelled_rows"]) == (0, 1000)


@pytest.mark.parametrize(
    "words, said",
    [
        (("none.json", "monday.csv", "--score", "p"), "--reference FILE"),
        (("state.json", "--reference", "reference.csv", *LABELLED), "--force"),
        (("state.json", "monday.csv", "--score", "q"), "q"),
        (("state.json", "monday.csv"), "--score"),
        (("state.json", "monday.csv", "--score", "p", "--labels-only"), "--label"),
        (("state.json", "--adopt", "repair.json"), "no repair"),
        (("reference.csv", "monday.csv", "--score", "p"), "not a monitor state"),
    ],
)
def test_what_is_wrong_is_one_sentence_and_loses_nothing(capsys, words, said):
    before = Path("state.json").read_text()
    capsys.readouterr()
    assert main(["monitor", *words]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.strip().splitlines()) == 1
    assert Path("state.json").read_text() == before


def test_missing_scores(capsys):
    with open("gaps.csv", "w") as file:
        file.write("p\n0.2\n\nNA\n0.4\n")
    assert main(["monitor", "state.json", "gaps.csv", "--score", "p"]) == 2
    assert "missing" in capsys.readouterr().err
    assert main(["monitor", "state.json", "gaps.csv", "--score", "p", "--missing", "drop", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["batches"][0]["rows"] == 2


def test_words_as_labels():
    table = batch(np.random.default_rng(3), 1000)
    for name in ("words.csv", "none.csv"):
        events = table.positives if name == "words.csv" else np.zeros(1000)
        lines = [f"{p:.6f},{'yes' if y else 'no'}" for p, y in zip(table.scores, events)]
        Path(name).write_text("p,y\n" + "\n".join(lines) + "\n")
    assert main(["monitor", "w.json", "--reference", "words.csv", *LABELLED, "--pos-label", "yes"]) == 0
    assert main(["monitor", "w.json", "words.csv", *LABELLED]) == 0
    assert main(["monitor", "w.json", "none.csv", *LABELLED]) == 3


@pytest.mark.parametrize("options", [("--score", "p"), LABELLED])
def test_margins_are_sent_to_a_map_first(options, capsys):
    Path("margins.csv").write_text("p,y\n-1.5,0\n2.5,1\n")
    assert main(["monitor", "state.json", "margins.csv", *options]) == 2
    error = capsys.readouterr().err
    assert "The scores run from -1.5 to 2.5" in error
    assert "--from-logits" not in error
