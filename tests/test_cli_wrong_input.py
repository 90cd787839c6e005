"""Wrong input on the command line: exit code 2, one sentence, nothing lost; and how messages and numbers are worded."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from calibrant.cli import _apply
from calibrant.cli._words import for_command_line, number, percent
from calibrant.maps import ClassIdentityMap, PlattMap, StepMap
from cli_runs import ASK, run, write, write_scores


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


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
    "unknown method": ("p,y\n.1,0\n", (*FIT, "--method", "magic"), "--method: 'magic' is not one of 'auto'"),
    "method and logits": ("p,y\n.1,0\n.2,1\n", (*FIT, "--method", "platt", "--from-logits"), "affine, temperature"),
    "unknown option": (
        "p,y\n.1,0\n",
        (*FIT, "--metod", "platt"),
        "No such option: --metod.* Try 'calibrant fit --help'",
    ),
    **{
        f"empty {option}": ("p,y\n.1,0\n.2,1\n", ("report", "in.csv", *ASK, option, " "), f"{option} must be a name")
        for option in ("--score", "--label", "--weight", "--group", "--scores", "--classes")
    },
    "empty name in evaluate": ("p,y\n.1,0\n", ("evaluate", "in.csv", *ASK, "--weight", ""), "--weight must be a name"),
    "empty name in threshold": ("p,y\n.1,0\n", ("threshold", "in.csv", "--score", ""), "--score must be a name"),
    "empty name in monitor": ("p,y\n.1,0\n", ("monitor", "s.json", "in.csv", "--label", ""), "--label must be a name"),
    "empty name of a new column": (
        "p,y\n.1,0\n",
        ("apply", "map.json", "in.csv", "--score", "p", "--as", "", "-o", "out.csv"),
        "--as must be a name, but it is empty",
    ),
    **{
        f"empty {option} in export": (
            None,
            ("export", "map.json", "--to", "sql", option, ""),
            f"{option} must be a name",
        )
        for option in ("--score", "--scores", "--table", "--keep")
    },
    "no argument": (None, ("fit",), "Missing argument 'SCORES'"),
    "no command": (None, ("calibrate",), "No such command 'calibrate'"),
    "no group": (
        "p,y\n.1,0\n.2,1\n",
        (*EVALUATE, "--group", "nope"),
        "--group 'nope' is not a column. The columns are",
    ),
    "no bins": ("p,y\n.1,0\n.2,1\n", (*EVALUATE, "--bins", "0"), "--bins"),
    "decimal": ("p,y\n.1,0\n.2,1\n", (*FIT, "--decimal", "x"), "--decimal must be"),
    "folder": ("p,y\n.1,0\n.2,1\n", (*FIT, "-o", "no/such/map.json"), "The folder of the output .* does not exist"),
    "no map": ("p\n.1\n", ("apply", "no.json", "in.csv", "--score", "p", "-o", "out.csv"), "There is no map file"),
    "not a map": ("p\n.1\n", ("apply", "in.csv", "in.csv", "--score", "p", "-o", "out.csv"), "is not a map file"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_input_is_one_sentence(case: str) -> None:
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
def test_a_wrong_map_file(change: dict[str, object], message: str) -> None:
    write_scores()
    run("fit", "scores.csv", *ASK)
    Path("bad.json").write_text(json.dumps({**json.loads(Path("map.json").read_text()), **change}))
    done = run("apply", "bad.json", "scores.csv", "--score", "p", "-o", "out.csv")
    assert done.code == 2
    assert message in done.err
    assert not Path("out.csv").exists()


def test_what_a_map_of_probabilities_cannot_read() -> None:
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


def test_apply_refuses_a_name_that_is_taken() -> None:
    write_scores()
    run("fit", "scores.csv", *ASK)
    done = run("apply", "map.json", "scores.csv", "--score", "p", "-o", "out.csv", "--as", "y")
    assert done.code == 2
    assert "already has a column 'y'" in done.err


def test_a_map_of_many_classes() -> None:
    write_scores()
    part = {"kind": "identity", "classes": [0, 1], "parameters": {"mix": 0.0, "from_logits": False}}
    many = {"kind": "one_vs_rest", "classes": ["a", "b", "c"], "parameters": {"maps": [part] * 3}}
    Path("many.json").write_text(json.dumps({"format": "calibrant map", "version": 1, **many}))
    done = run("apply", "many.json", "scores.csv", "--score", "p", "-o", "out.csv")
    assert done.code == 2
    assert "maps of two classes, but this map 'one_vs_rest' has 3" in done.err
    assert run("evaluate", "scores.csv", *ASK, "--map", "many.json").code == 2


def test_our_own_fault_is_exit_code_1(monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_quiet_ends(monkeypatch: pytest.MonkeyPatch, failure: type[BaseException]) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr("calibrant.cli._run._invoke", stopped)
    monkeypatch.setattr("calibrant.cli._console.silence", lambda: None)
    done = run("demo")
    assert done.code == (130 if failure is KeyboardInterrupt else 141)
    assert (done.out, done.err) == ("", "")


# ---------------------------------------------------------------- words


def test_help_shows_examples_and_version() -> None:
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


@pytest.mark.parametrize(
    "words",
    [
        ("fit", "scores.csv", *ASK, "-o", "scores.csv", "--force"),
        ("report", "scores.csv", *ASK, "-o", "scores.csv", "--force"),
        ("apply", "map.json", "scores.csv", "--score", "p", "-o", "map.json", "--force"),
        ("export", "map.json", "--to", "sql", "-o", "map.json", "--force"),
    ],
    ids=lambda words: words[0],
)
def test_an_output_that_is_an_input_is_never_written(words: tuple[str, ...]) -> None:
    write_scores("scores.csv")
    run("fit", "scores.csv", *ASK)
    before = Path("scores.csv").read_bytes(), Path("map.json").read_bytes()
    done = run(*words)
    assert done.code == 2
    assert "is also the input, which would be lost" in done.err.replace("\n", " ")
    assert (Path("scores.csv").read_bytes(), Path("map.json").read_bytes()) == before


INPUTS = {
    "itself": ("in/a.csv", "in/a.csv"),
    "a roundabout name": ("in/a.csv", "in/../in/./a.csv"),
    "an absolute name": ("in/a.csv", "{here}/in/a.csv"),
    "a link to the input": ("in/a.csv", "link.csv"),
    "an input that is a link": ("link.csv", "in/a.csv"),
    "a linked folder": ("in/a.csv", "folder/a.csv"),
    "a part of a folder": ("in", "in/a.csv"),
    "a part of a linked folder": ("folder", "in/b.csv"),
    "a part of a pattern": ("in/*.csv", "in/b.csv"),
    "a part of a deep pattern": ("**/b.csv", "in/b.csv"),
}
WRITING = {
    "apply": ("apply", "map.json", "{}", "--score", "p", "--as", "q"),
    "apply by blocks": ("apply", "steps.json", "{}", "--score", "p", "--as", "q"),
    "apply of classes": ("apply", "classes.json", "{}", "--scores", "p,p2,p3", "--as", "q"),
    "fit": ("fit", "{}", *ASK),
    "fit of classes": ("fit", "{}", "--scores", "p,p2,p3", "--label", "y"),
    "report": ("report", "{}", *ASK),
}


@pytest.mark.parametrize("place", INPUTS)
@pytest.mark.parametrize("command", WRITING)
def test_a_file_that_is_read_is_never_written(command: str, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given, output = INPUTS[place]
    Path("in").mkdir()
    for name in ("in/a.csv", "in/b.csv"):
        write(name, {"p": [0.1, 0.7], "p2": [0.2, 0.1], "p3": [0.7, 0.2], "y": [0, 1]})
    Path("link.csv").symlink_to("in/a.csv")
    Path("folder").symlink_to("in")
    StepMap((0, 1), [0.5], [0.2, 0.6]).save("steps.json")
    PlattMap((0, 1), 1.0, 0.0).save("map.json")
    ClassIdentityMap(("p", "p2", "p3")).save("classes.json")
    monkeypatch.setattr(_apply, "LONG", 100)
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    words = [word.format(given) for word in WRITING[command]]
    done = run(*words, "-o", output.format(here=Path().absolute()), "--force")
    assert done.code == 2
    assert "is also the input, which would be lost: give another name" in done.err.replace("\n", " ")
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before
    if command.startswith("apply"):
        assert run(*words, "-o", "in/new.csv").code == 0
        assert run(*words, "-o", "in/new.csv", "--force").code == (0 if place in given_once() else 2)


def given_once() -> list[str]:
    """Inputs that are one file, to which a new file in the folder is nothing."""
    return [place for place, (given, _) in INPUTS.items() if given.endswith(".csv") and "*.csv" not in given]
