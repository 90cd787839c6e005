"""The options that several commands share, with their help texts.

May import Typer, the tables of methods and `calibrant.errors`.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from calibrant.cli import _class_methods, _methods
from calibrant.errors import InputError

COLUMNS, READING, OUTPUT = "Columns", "Reading the file", "Output"


def not_empty(parameter: typer.CallbackParam, value: str | list[str] | None) -> str | list[str] | None:
    """The name or names that an option was given; an empty one is refused."""
    if any(not name.strip() for name in ([value] if isinstance(value, str) else value or [])):
        raise InputError(f"{parameter.opts[0]} must be a name, but it is empty: give a name, or leave the option out.")
    return value


class Missing(StrEnum):
    """What to do with a row that lacks a needed cell."""

    ERROR = "error"
    DROP = "drop"


class MissingScore(StrEnum):
    """What to do with a row that lacks its score."""

    ERROR = "error"
    KEEP = "keep"


MapFile = Annotated[Path, typer.Argument(metavar="MAP", help="The map that fit wrote.", show_default=False)]
ScoresFile = Annotated[
    Path,
    typer.Argument(
        metavar="SCORES",
        help="File with a score and a label in each row: csv, tsv or txt (also .gz), Parquet, JSON lines.",
        show_default=False,
    ),
]
Score = Annotated[
    str | None,
    typer.Option(
        "--score",
        callback=not_empty,
        metavar="NAME",
        rich_help_panel=COLUMNS,
        help="Column of the scores: probabilities, or any numbers.",
    ),
]
ScoreColumns = Annotated[
    list[str] | None,
    typer.Option(
        "--scores",
        callback=not_empty,
        metavar="NAMES",
        rich_help_panel=COLUMNS,
        help="For three or more classes: the columns of their scores, as 'p_*' (the star stands for the class), or "
        "names with commas between; may be given more than once.",
        show_default=False,
    ),
]
ClassNames = Annotated[
    str | None,
    typer.Option(
        "--classes",
        callback=not_empty,
        metavar="NAMES",
        rich_help_panel=COLUMNS,
        help="The classes of the columns of --scores, in their order, with commas between.",
        show_default=False,
    ),
]
Label = Annotated[
    str | None,
    typer.Option(
        "--label",
        callback=not_empty,
        metavar="NAME",
        rich_help_panel=COLUMNS,
        help="Column that says what happened: 0/1, true/false, or two other values.",
    ),
]
Group = Annotated[
    str | None,
    typer.Option(
        "--group",
        callback=not_empty,
        metavar="NAME",
        rich_help_panel=COLUMNS,
        help="Column of segments: judge each on its own too, the worst first.",
        show_default=False,
    ),
]
Margin = Annotated[
    float | None,
    typer.Option(
        "--margin",
        metavar="SHARE",
        help="Calibration error that would still be fine. By default 0.02, less for rare events.",
        show_default=False,
    ),
]
FittedOn = Annotated[
    Path | None,
    typer.Option(
        "--fitted-on",
        metavar="FILE",
        help="The rows that the map was fitted on, with the same columns: tells how many of them are judged here.",
        show_default=False,
    ),
]
Weight = Annotated[
    str | None,
    typer.Option(
        "--weight",
        callback=not_empty,
        metavar="NAME",
        rich_help_panel=COLUMNS,
        help="Column of weights; a row of weight 2 counts twice.",
    ),
]
PosLabel = Annotated[
    str | None,
    typer.Option(
        "--pos-label",
        metavar="VALUE",
        rich_help_panel=COLUMNS,
        help="The label of the event, where the labels are words. Of two numbers the greater is the event.",
    ),
]
MissingCells = Annotated[
    Missing,
    typer.Option("--missing", rich_help_panel=READING, help="Rows with a missing cell: an error, or left out."),
]
Normalize = Annotated[
    bool,
    typer.Option(
        "--normalize",
        rich_help_panel=READING,
        help="With --scores: divide each row by its sum; for probabilities that were rounded.",
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(
        "--separator",
        metavar="CHARACTER",
        rich_help_panel=READING,
        help="Between the cells of a text file, for example ';' or tab. Found out when not given.",
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option(
        "--decimal", metavar="CHARACTER", rich_help_panel=READING, help="Decimal mark of a text file: '.' or ','."
    ),
]
NoHeader = Annotated[
    bool,
    typer.Option(
        "--no-header",
        rich_help_panel=READING,
        help="The first line holds no names; columns are column_1, column_2, ...",
    ),
]
MethodName = Annotated[
    str | None,
    typer.Option(
        "--method",
        metavar="NAME",
        help=f"{_methods.HELP}. By default affine for scores in [0, 1], platt for others. {_class_methods.HELP}; by "
        f"default auto.",
        show_default=False,
    ),
]
FromLogits = Annotated[bool, typer.Option("--from-logits", help="The scores are log-odds (logits), not probabilities.")]
Force = Annotated[bool, typer.Option("--force", rich_help_panel=OUTPUT, help="Overwrite the output file if it exists.")]
Json = Annotated[bool, typer.Option("--json", rich_help_panel=OUTPUT, help="Print the result as JSON, for programs.")]
