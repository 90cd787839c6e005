"""The parts of a mixture as they are written in SQL and in other languages.

May import `calibrant.maps._base`, `_records` and `_venn_abers`.
"""

from __future__ import annotations

from calibrant.maps._base import Map
from calibrant.maps._records import LineMap, StepMap
from calibrant.maps._venn_abers import VennAbersMap


def part_to_write(record: Map, part: Map) -> tuple[Map, bool]:
    """The part of a map as it may be written, and whether it takes the score as it is.

    Else it reads any score where the whole reads probabilities, and is given one that has been moved into [0, 1].
    """
    if record.reads != "probability" or part.reads == "probability":
        return part, True
    steps = part.as_steps if isinstance(part, VennAbersMap) else part
    if isinstance(steps, StepMap):
        return steps.of_probabilities, True
    return part, isinstance(part, LineMap) and bool(part.knots[0] >= 0 and part.knots[-1] <= 1)
