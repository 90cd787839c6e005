"""Every constructor parameter has a rule, and every value that a rule refuses is refused by `fit`."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest

import calibrant as ca
from calibrant._parameters import Choice, Either, Flag, Instance, Nothing, Number, Seed, Sequenced, generator, optional
from calibrant.errors import InputError
from catalogue import CALIBRATOR_CLASSES, class_rows

INNER = {"calibrator": ca.AffineLogit()}


def made(kind, **given):
    needed = {name: INNER[name] for name in INNER if name in inspect.signature(kind).parameters}
    return kind(**(needed | given))


CASES = [
    pytest.param(kind, name, value, id=f"{kind.__name__}-{name}-{value!r:.20}")
    for kind in CALIBRATOR_CLASSES
    for name, rule in kind._rules.items()
    for value in rule.refused()
]


@pytest.mark.parametrize(("kind", "name", "value"), CASES)
def test_refused_values(kind, name, value):
    rows = class_rows(k=2)
    est = made(kind, **{name: value})
    with pytest.raises(InputError, match=rf"^{kind.__name__}: {name} must be .+, but it is {re.escape(repr(value))}"):
        est.fit(rows.scores, rows.y)
    if hasattr(est, "fit_table"):
        with pytest.raises(InputError, match=name):
            est.fit_table(ca.ScoreTable.from_arrays(rows.scores, rows.y))


@pytest.mark.parametrize("kind", CALIBRATOR_CLASSES)
def test_every_parameter_is_declared_and_only_stored(kind):
    parameters = inspect.signature(kind).parameters
    assert set(kind._rules) == set(parameters)
    for name, parameter in parameters.items():
        if parameter.default is not inspect.Parameter.empty:
            assert kind._rules[name].accepts(parameter.default), name
    marker = {name: object() for name in parameters}
    est = kind(**marker)
    assert vars(est) == marker


@pytest.mark.parametrize(
    "rule",
    [
        Choice(("a", "b")),
        Flag(),
        Number(),
        Number(0, 1),
        Number(2, whole=True),
        Number(0, above=True),
        Instance(("fit",), "an estimator"),
        Sequenced(),
        Seed(),
        Nothing(),
        optional(Number(0)),
        Either((Flag(), Choice(("auto",)))),
    ],
    ids=repr,
)
def test_a_rule_refuses_what_it_says(rule):
    assert not any(rule.accepts(value) for value in rule.refused())
    assert rule.describe()


def test_rules_take_what_numpy_gives():
    assert Number(2, whole=True).accepts(np.int64(3))
    assert Number(0, 1).accepts(np.float32(0.5))
    assert Flag().accepts(np.True_)
    assert Sequenced().accepts(np.array(["a", "b"]))
    assert not Number(0).accepts(np.True_)
    assert not Number(0).accepts(np.array([1.0]))


def test_seeds():
    for seed in (0, np.int64(3), None, np.random.default_rng(1), np.random.RandomState(1)):
        assert Seed().accepts(seed)
        assert 0 <= generator(seed).uniform() < 1
    assert generator(5).uniform() == generator(5).uniform()
    state = np.random.RandomState(1)
    assert generator(state).uniform() != generator(state).uniform()
