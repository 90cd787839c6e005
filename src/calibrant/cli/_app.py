"""The commands, their options and their help texts; what they do is in the modules named after them.

May import Typer and the modules of this folder; each command imports its own work when it runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from calibrant.cli import _export, _operating
from calibrant.cli import _options as options
from calibrant.cli._methods import named

COMMANDS, FIRST = "Commands", "Start here"


def _examples(*lines: str) -> str:
    """An epilog that keeps one example to a line."""
    return "\n\n".join(["Examples:", *(f"  {line}" for line in lines)])


app = typer.Typer(
    name="calibrant",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog=_examples(
        "calibrant report scores.csv --score p --label y",
        "calibrant fit scores.csv --score p --label y -o map.json",
        "calibrant apply map.json today.csv --score p -o calibrated.csv",
    ),
)


def _version(asked: bool) -> None:
    if asked:
        import calibrant

        typer.echo(f"calibrant {calibrant.__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def calibrant(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error; may stand anywhere on the line.")
    ] = False,
) -> None:
    """From classifier scores to honest probabilities.

    Judge how honest the scores in a file are, learn a map that makes probabilities of them, and apply it.

    Results go to standard output; progress, notes and errors to standard error.
    Exit codes: 0 done, 2 the input is wrong, 3 an alarm of the monitor, 1 a fault of calibrant.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command(
    rich_help_panel=FIRST,
    epilog=_examples("calibrant demo", "calibrant demo -o page.html"),
)
def demo(
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", rich_help_panel=options.OUTPUT, help="The page to write."),
    ] = Path("calibrant-demo.html"),
    force: options.Force = False,
) -> None:
    """Show it all on a real example: an over-confident classifier, calibrated.

    Trains naive Bayes on handwritten digits ("is it an 8?"), takes its scores on digits it was not trained on,
    calibrates them, prints what was found and writes the report. A page that an earlier demo wrote is replaced;
    another file of that name is kept, unless --force is given.
    """
    from calibrant.cli._report import run_demo

    run_demo(output, force=force)


ReportPage = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        rich_help_panel=options.OUTPUT,
        help="The page to write. [default: report.html; with --json none]",
        show_default=False,
    ),
]


@app.command(
    rich_help_panel=COMMANDS,
    epilog=_examples(
        "calibrant report scores.csv --score p --label y",
        "calibrant report loans.parquet --score margin --label defaulted --pos-label yes -o loans.html",
        "calibrant report digits.csv --scores 'p_*' --label digit",
    ),
)
def report(
    scores: options.ScoresFile,
    score: options.Score = None,
    columns: options.ScoreColumns = None,
    classes: options.ClassNames = None,
    label: options.Label = None,
    weight: options.Weight = None,
    group: options.Group = None,
    pos_label: options.PosLabel = None,
    method: options.MethodName = None,
    from_logits: options.FromLogits = False,
    false_positive: _operating.FalsePositive = None,
    false_negative: _operating.FalseNegative = None,
    prevalence: _operating.Prevalence = None,
    output: ReportPage = None,
    margin: options.Margin = None,
    json: options.Json = False,
    force: options.Force = False,
    missing: options.MissingCells = options.Missing.ERROR,
    normalize: options.Normalize = False,
    separator: options.Separator = None,
    decimal: options.Decimal = None,
    no_header: options.NoHeader = False,
) -> None:
    """Judge the scores before and after calibration, on one self-contained page.

    The page shows how honest the scores are, what a map would make of them on rows it has not seen, and says in plain
    words what was found and what to do. It loads nothing from the network.
    """
    from calibrant.cli._reading import Request
    from calibrant.cli._report import run_report

    request = Request(
        scores, score, label, weight, pos_label, missing.value, separator, decimal, not no_header, from_logits, group
    )
    if columns or classes or normalize:
        from calibrant.cli._class_reading import class_request
        from calibrant.cli._class_report import run_class_report

        costs = {"false_positive": false_positive, "false_negative": false_negative}
        many = class_request(request, columns, classes, normalize, margin=margin, prevalence=prevalence, **costs)
        return run_class_report(many, method=method, output=output, as_json=json, force=force)
    acting = {"false_positive": false_positive, "false_negative": false_negative, "new_prevalence": prevalence}
    return run_report(
        request, acting=acting, method=named(method), output=output, margin=margin, as_json=json, force=force
    )


@app.command(
    rich_help_panel=COMMANDS,
    epilog=_examples(
        "calibrant fit scores.csv --score p --label y",
        "calibrant fit scores.csv --score p --label y --method isotonic -o steps.json",
        "calibrant fit umsatz.csv --score p --label y --separator ';' --decimal ','",
        "calibrant fit digits.csv --scores 'p_*' --label digit --method sms",
    ),
)
def fit(
    scores: options.ScoresFile,
    score: options.Score = None,
    columns: options.ScoreColumns = None,
    classes: options.ClassNames = None,
    label: options.Label = None,
    weight: options.Weight = None,
    pos_label: options.PosLabel = None,
    method: options.MethodName = None,
    from_logits: options.FromLogits = False,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE", rich_help_panel=options.OUTPUT, help="The map to write."),
    ] = Path("map.json"),
    json: options.Json = False,
    force: options.Force = False,
    missing: options.MissingCells = options.Missing.ERROR,
    normalize: options.Normalize = False,
    separator: options.Separator = None,
    decimal: options.Decimal = None,
    no_header: options.NoHeader = False,
) -> None:
    """Learn a map from scores to honest probabilities, and write it as JSON.

    The scores must come from rows that the model was not trained on. The map is judged by cross-fitting: each row by
    a map that was fitted without it.
    """
    from calibrant.cli._fit import run_fit
    from calibrant.cli._reading import Request

    request = Request(
        scores, score, label, weight, pos_label, missing.value, separator, decimal, not no_header, from_logits
    )
    if columns or classes or normalize:
        from calibrant.cli._class_fit import run_class_fit
        from calibrant.cli._class_reading import class_request

        many = class_request(request, columns, classes, normalize)
        return run_class_fit(many, method=method, output=output, as_json=json, force=force)
    return run_fit(request, method=named(method), output=output, as_json=json, force=force)


RowsFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="File with a score in each row: csv, tsv or txt (also .gz), Parquet, JSON lines; of any size.",
        show_default=False,
    ),
]
CalibratedFile = Annotated[
    Path,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        rich_help_panel=options.OUTPUT,
        help="The file to write; its ending says its format.",
        show_default=False,
    ),
]
NewColumn = Annotated[
    str,
    typer.Option(
        "--as",
        callback=options.not_empty,
        metavar="NAME",
        rich_help_panel=options.COLUMNS,
        help="Name of the new column; with --scores what the names of the new ones start with.",
    ),
]
FittedPrevalence = Annotated[
    float | None,
    typer.Option(
        "--fitted-prevalence",
        metavar="SHARE",
        help="With --prevalence: the share of events where the map was fitted.",
        show_default=False,
    ),
]
RowsWithoutScore = Annotated[
    options.MissingScore,
    typer.Option(
        "--missing",
        rich_help_panel=options.READING,
        help="Rows without a score: an error, or kept with an empty new cell.",
    ),
]


@app.command(
    rich_help_panel=COMMANDS,
    epilog=_examples(
        "calibrant apply map.json today.csv --score p -o calibrated.csv",
        "calibrant apply map.json today.parquet --score p --as probability -o calibrated.parquet",
        "calibrant apply map.json today.csv --scores 'p_*' -o calibrated.csv",
    ),
)
def apply(
    map: options.MapFile,
    scores: RowsFile,
    output: CalibratedFile,
    score: options.Score = None,
    columns: options.ScoreColumns = None,
    classes: options.ClassNames = None,
    column: NewColumn = "calibrated",
    prevalence: _operating.Prevalence = None,
    fitted_prevalence: FittedPrevalence = None,
    force: options.Force = False,
    missing: RowsWithoutScore = options.MissingScore.ERROR,
    normalize: options.Normalize = False,
    separator: options.Separator = None,
    decimal: options.Decimal = None,
    no_header: options.NoHeader = False,
) -> None:
    """Add a column of calibrated probabilities to a file.

    For three or more classes a column is added for each, --as and the class being its name (calibrated_cat).
    Rows keep their order and all other cells stay as they are. Works through the file piece by piece, so it may be
    larger than memory.
    """
    from calibrant.cli._apply import run_apply
    from calibrant.cli._reading import Request

    request = Request(scores, score, None, None, None, missing.value, separator, decimal, not no_header)
    moved = (fitted_prevalence, prevalence)
    if columns or classes or normalize:
        from calibrant.cli._class_apply import run_class_apply
        from calibrant.cli._class_reading import class_request

        many = class_request(request, columns, classes, normalize)
        return run_class_apply(map, many, output=output, prefix=column, force=force, moved=moved)
    return run_apply(map, request, output=output, column=column, force=force, moved=moved)


@app.command(
    rich_help_panel=COMMANDS,
    epilog=_examples(
        "calibrant evaluate scores.csv --score p --label y",
        "calibrant evaluate test.csv --score p --label y --map map.json",
        "calibrant evaluate digits.csv --scores zero,one,two --label digit",
        "calibrant evaluate scores.csv --score p --label y --json",
    ),
)
def evaluate(
    scores: options.ScoresFile,
    score: options.Score = None,
    columns: options.ScoreColumns = None,
    classes: options.ClassNames = None,
    label: options.Label = None,
    weight: options.Weight = None,
    group: options.Group = None,
    pos_label: options.PosLabel = None,
    map: Annotated[
        Path | None,
        typer.Option("--map", metavar="MAP", help="Judge what this map makes of the scores.", show_default=False),
    ] = None,
    fitted_on: options.FittedOn = None,
    bins: Annotated[
        int, typer.Option("--bins", metavar="COUNT", min=1, max=1000, help="Bins of the calibration error.")
    ] = 15,
    margin: options.Margin = None,
    json: options.Json = False,
    missing: options.MissingCells = options.Missing.ERROR,
    normalize: options.Normalize = False,
    separator: options.Separator = None,
    decimal: options.Decimal = None,
    no_header: options.NoHeader = False,
) -> None:
    """Measure how good and how honest the scores are, in numbers.

    Log loss and Brier score with its parts, calibration slope and intercept, calibration error with its bins, AUC and
    average precision, with intervals, and whether the rows show calibration within a margin. Scores outside [0, 1] are
    no probabilities: only their ranking is measured.
    """
    from calibrant.cli._evaluate import run_evaluate
    from calibrant.cli._reading import Request

    request = Request(
        scores, score, label, weight, pos_label, missing.value, separator, decimal, not no_header, group=group
    )
    if columns or classes or normalize:
        from calibrant.cli._class_evaluate import run_class_evaluate
        from calibrant.cli._class_reading import class_request

        many = class_request(request, columns, classes, normalize, margin=margin)
        return run_class_evaluate(many, map_path=map, fitted_on=fitted_on, n_bins=bins, as_json=json)
    return run_evaluate(request, map_path=map, fitted_on=fitted_on, n_bins=bins, margin=margin, as_json=json)


app.command(
    rich_help_panel=COMMANDS,
    epilog=_examples(
        "calibrant threshold scores.csv --score p --label y --false-positive 1 --false-negative 20",
        "calibrant threshold scores.csv --score p --label y --at-least precision=0.9 --guarantee 0.05",
        "calibrant threshold scores.csv --score p --label y --at-most alerts=50 --expected-rows 2000",
    ),
)(_operating.threshold)

app.command(
    rich_help_panel=COMMANDS,
    epilog=_examples(
        "calibrant monitor state.json --reference test.csv --score p --label y",
        "calibrant monitor state.json monday.csv --score p --label y",
        "calibrant monitor state.json tuesday.csv --score p",
        "calibrant monitor state.json --adopt repair.json",
    ),
)(_operating.monitor)

app.command(
    rich_help_panel=COMMANDS,
    epilog=_examples(
        "calibrant export map.json --to sql --score p --dialect postgres",
        "calibrant export map.json --to python -o calibrate.py",
        "calibrant export map.json --to onnx -o map.onnx",
    ),
)(_export.export)
