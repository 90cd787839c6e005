"""A map file with numbers changed is refused by name, or is a map still: finite scores have probabilities."""

from __future__ import annotations

import copy
import json
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from calibrant.errors import MapFileError
from calibrant.maps import Map, VennAbersMap
from test_maps_classes import handmade
from test_maps_exports import EVERY

LARGEST = float(np.finfo(np.float64).max)
VALUES = [0.0, -1.0, 0.5, 2.0, 5e-324, 1e-300, 1e153, -1e153, 1e308, -1e308, LARGEST, -LARGEST]
SCORES = np.array([0.0, 1e-300, 0.1, 0.5, 0.9, 1.0, -1e-3, 3.0, -40.0, 88.0, 1e10, -1e153, 1e308, LARGEST, -LARGEST])
MOST_NUMBERS = 40
VENN_ABERS = VennAbersMap((0, 1), [0.2, 0.7], [0.0, 0.2, 0.6], [0.3, 0.4, 1.0])


def one_of_each() -> list[Map]:
    """The first small map of every kind, of what it reads and whether it is of two classes."""
    found: dict[Any, Map] = {}
    for record in [*EVERY, *handmade(), VENN_ABERS]:
        size = len(list(places(record.to_dict()["parameters"])))
        if size <= MOST_NUMBERS:
            found.setdefault((record.kind, record.reads, len(record.classes) == 2, size), record)
    return list(found.values())


def places(content: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every number of a map's parameters, those of its parts too."""
    if isinstance(content, dict):
        for name, value in content.items():
            if name not in ("kind", "classes"):
                yield from places(value, (*path, name))
    elif isinstance(content, list):
        for place, value in enumerate(content):
            yield from places(value, (*path, place))
    elif isinstance(content, float):
        yield path


def parent(content: Any, path: tuple[Any, ...]) -> Any:
    for step in path[:-1]:
        content = content[step]
    return content


def damaged(record: Map) -> Iterator[dict[str, Any]]:
    """The map with one number changed, with two neighbours swapped, and with neighbours of the same great size."""
    whole = record.to_dict()
    every = list(places(whole["parameters"]))
    for order, path in enumerate(every):
        for value in VALUES:
            made = copy.deepcopy(whole)
            parent(made["parameters"], path)[path[-1]] = value
            yield made
        after = every[(order + 1) % len(every)]
        for here, there in (
            (None, None),
            (1e308, 1e308),
            (1e308, -1e308),
            (-1e308, 1e308),
            (1e153, 1e153),
            (0.0, 1e308),
        ):
            made = copy.deepcopy(whole)
            left, right = parent(made["parameters"], path), parent(made["parameters"], after)
            swapped = right[after[-1]], left[path[-1]]
            left[path[-1]], right[after[-1]] = swapped if here is None else (here, there)
            yield made


def scores_of(record: Map) -> np.ndarray:
    fine = SCORES[(SCORES >= 0) & (SCORES <= 1)] if record.reads == "probability" else SCORES
    if len(record.classes) == 2:
        return fine
    rows = np.array([[a, b, c] for a in fine for b in fine[::2] for c in (0.0, 0.5, fine[-1])])
    if record.reads == "probability":
        rows = rows[rows.sum(axis=1) > 0]
        return rows / rows.sum(axis=1, keepdims=True)
    return rows[rows.max(axis=1) / 2 - rows.min(axis=1) / 2 < LARGEST / 2] if record.reads == "logit" else rows


def fields_of(content: Any) -> set[str]:
    if isinstance(content, dict):
        return set(content).union(*map(fields_of, content.values()))
    return set().union(*map(fields_of, content)) if isinstance(content, list) else set()


def loaded(content: dict[str, Any]) -> tuple[Map | None, str]:
    """The map, or why it is none."""
    try:
        return Map.from_dict(json.loads(json.dumps(content))), ""
    except MapFileError as error:
        return None, str(error)


RECORDS = one_of_each()


def test_every_kind_of_map_is_damaged() -> None:
    assert {record.kind for record in RECORDS} == set(Map.kinds)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: f"{record.kind}, {record.reads}")
def test_a_damaged_map_is_refused_by_name_or_gives_probabilities(record: Map) -> None:
    scores = scores_of(record)
    for content in damaged(record):
        made, reason = loaded(content)
        if made is None:
            assert any(name.rstrip("s") in reason for name in fields_of(content["parameters"])), reason
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            p = made(scores)
        assert np.isfinite(p).all(), (
            content["parameters"],
            scores[~np.isfinite(p).reshape(len(p), -1).all(axis=1)][:3],
        )
        assert p.min() >= 0, content["parameters"]
        assert p.max() <= 1, content["parameters"]
        if p.ndim == 2:
            assert np.allclose(p.sum(axis=1), 1), content["parameters"]


@pytest.mark.parametrize(("low", "high"), [("low", "high"), ("lowest", "highest")])
@pytest.mark.parametrize("record", RECORDS, ids=lambda record: f"{record.kind}, {record.reads}")
def test_reversed_ends_are_refused_by_name(record: Map, low: str, high: str) -> None:
    content = record.to_dict()
    given = content["parameters"]
    if high not in given:
        return
    given[low], given[high] = given[high], given[low]
    with pytest.raises(MapFileError, match=f"{low} must not exceed {high}"):
        Map.from_dict(content)
