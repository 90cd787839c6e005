"""The commands of the operating point, `threshold` and `monitor`: their options and help texts.

May import Typer and the modules of this folder; each command imports its own work when it runs.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from calibrant.cli import _options as options

COSTS, LIMITS = "What errors cost", "Limits"


class Objective(StrEnum):
    """What is made best."""

    COST = "cost"
    RECALL = "recall"
    PRECISION = "precision"
    F1 = "f1"
    ACCURACY = "accuracy"
    YOUDEN = "youden"


def _cost(name: str, help: str) -> typer.models.OptionInfo:
    option = typer.Option(name, metavar="COST", rich_help_panel=COSTS, help=help, show_default=False)
    assert isinstance(option, typer.models.OptionInfo)
    return option


FalsePositive = Annotated[float | None, _cost("--false-positive", "Of acting on a row without the event.")]
FalseNegative = Annotated[float | None, _cost("--false-negative", "Of leaving an event alone.")]
Prevalence = Annotated[
    float | None,
    typer.Option("--prevalence", metavar="SHARE", help="Move everything to this share of events.", show_default=False),
]
ChosenOn = Annotated[
    Path | None,
    typer.Option("--map", metavar="MAP", help="Choose on what this map makes of the scores.", show_default=False),
]
MadeBest = Annotated[
    Objective | None,
    typer.Option(
        "--objective",
        metavar="NAME",
        help="cost (the default with costs), recall (the default without), precision, f1, accuracy or youden.",
        show_default=False,
    ),
]
TruePositive = Annotated[float, _cost("--true-positive", "Of acting on an event; a gain is negative.")]
TrueNegative = Annotated[float, _cost("--true-negative", "Of leaving a row without the event alone.")]
AtLeast = Annotated[
    list[str] | None,
    typer.Option(
        "--at-least",
        metavar="NAME=NUMBER",
        rich_help_panel=LIMITS,
        help="For example precision=0.9 or recall=0.8; may be given more than once.",
        show_default=False,
    ),
]
AtMost = Annotated[
    list[str] | None,
    typer.Option(
        "--at-most",
        metavar="NAME=NUMBER",
        rich_help_panel=LIMITS,
        help="For example false-positive-rate=0.01, alert-rate=0.05 or alerts=500; may be given more than once.",
        show_default=False,
    ),
]
ExpectedRows = Annotated[
    float | None,
    typer.Option(
        "--expected-rows",
        metavar="COUNT",
        rich_help_panel=LIMITS,
        help="Rows that alerts are counted over, for example those of a day. By default the rows of the file.",
        show_default=False,
    ),
]
Guarantee = Annotated[
    float | None,
    typer.Option(
        "--guarantee",
        metavar="DELTA",
        rich_help_panel=LIMITS,
        help="Limits hold for all such rows, not only these, but for a chance of DELTA (for example 0.05).",
        show_default=False,
    ),
]


def threshold(
    scores: options.ScoresFile,
    score: options.Score = None,
    label: options.Label = None,
    weight: options.Weight = None,
    pos_label: options.PosLabel = None,
    map: ChosenOn = None,
    objective: MadeBest = None,
    false_positive: FalsePositive = None,
    false_negative: FalseNegative = None,
    true_positive: TruePositive = 0.0,
    true_negative: TrueNegative = 0.0,
    at_least: AtLeast = None,
    at_most: AtMost = None,
    expected_rows: ExpectedRows = None,
    guarantee: Guarantee = None,
    prevalence: Prevalence = None,
    json: options.Json = False,
    missing: options.MissingCells = options.Missing.ERROR,
    separator: options.Separator = None,
    decimal: options.Decimal = None,
    no_header: options.NoHeader = False,
) -> None:
    """Choose where to act, from costs or limits, and tell what that does.

    One acts where the probability is at least the threshold.

    Every threshold is tried on rows with known labels, which neither the model nor the map should have seen.
    """
    from calibrant.cli._limits import limits_of
    from calibrant.cli._reading import Request
    from calibrant.cli._threshold import Question, run_threshold

    request = Request(scores, score, label, weight, pos_label, missing.value, separator, decimal, not no_header)
    costs = {"false_positive": false_positive, "false_negative": false_negative}
    costs |= {"true_positive": true_positive, "true_negative": true_negative}
    best = objective or (Objective.RECALL if false_positive is false_negative is None else Objective.COST)
    limits = limits_of("--at-least", at_least or []), limits_of("--at-most", at_most or [])
    question = Question(best.value, costs, *limits, guarantee, expected_rows, prevalence)
    run_threshold(request, question, map_path=map, as_json=json)


StateFile = Annotated[Path, typer.Argument(metavar="STATE", help="The monitor's file.", show_default=False)]
Batches = Annotated[
    list[Path] | None,
    typer.Argument(metavar="BATCH...", help="Files of new rows, oldest first.", show_default=False),
]
Reference = Annotated[
    Path | None,
    typer.Option(
        "--reference",
        metavar="FILE",
        help="Begin: labelled rows with calibrated probabilities from before production.",
        show_default=False,
    ),
]
Alpha = Annotated[
    float, typer.Option("--alpha", metavar="SHARE", help="With --reference: chance of ever raising a false alarm.")
]
LabelsOnly = Annotated[
    bool, typer.Option("--labels-only", help="The scores of these rows came before; only their labels are new.")
]
AdoptedMap = Annotated[
    Path | None,
    typer.Option(
        "--adopt",
        metavar="FILE",
        rich_help_panel=options.OUTPUT,
        help="Write the repaired map, once confirmed, and start afresh with it.",
        show_default=False,
    ),
]
MonitorForce = Annotated[
    bool,
    typer.Option(
        "--force", rich_help_panel=options.OUTPUT, help="Overwrite the files; adopt a map that is not confirmed."
    ),
]


def monitor(
    state: StateFile,
    batches: Batches = None,
    reference: Reference = None,
    alpha: Alpha = 0.05,
    score: options.Score = None,
    label: options.Label = None,
    weight: options.Weight = None,
    pos_label: options.PosLabel = None,
    labels_only: LabelsOnly = False,
    adopt: AdoptedMap = None,
    json: options.Json = False,
    force: MonitorForce = False,
    missing: options.MissingCells = options.Missing.ERROR,
    separator: options.Separator = None,
    decimal: options.Decimal = None,
    no_header: options.NoHeader = False,
) -> int:
    """Watch calibrated probabilities in production: raise an alarm, name the cause, propose a repair.

    Batches have labels when --label names their column; labels may also come later, with --labels-only.

    However often one looks, the chance of ever raising a false alarm stays below alpha.

    Exit codes: 0 no alarm, 3 alarm, 2 the input is wrong.
    """
    from calibrant.cli._monitor import Watch, run_monitor
    from calibrant.cli._reading import Request

    request = Request(state, score, label, weight, pos_label, missing.value, separator, decimal, not no_header)
    watch = Watch(state, reference, batches or [], alpha, labels_only, adopt, force)
    return run_monitor(request, watch, as_json=json)
