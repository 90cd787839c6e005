"""A map as an ONNX graph in float64: scores in, probabilities out; NaN where the map would refuse the score.

Two classes: `score` (n,) to `probability` (n,). K classes: `scores` (n, K) to `probabilities` (n, K).
A search among m cuts is unrolled to log2(m) look-ups. May import NumPy, onnx, `calibrant.maps._formula`,
`calibrant.data._output` and `calibrant.errors`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from calibrant._checks import PROBABILITY_TOLERANCE, ROW_SUM_TOLERANCE, shown
from calibrant.data._output import written_beside
from calibrant.errors import InputError, MissingDependencyError
from calibrant.maps._base import ClassMap, Map
from calibrant.maps._class_records import ClassIdentityMap, LogMixtureMap, MatrixScalingMap, VectorScalingMap
from calibrant.maps._formula import Operand, Value, calibrated, formula, reach
from calibrant.maps._prior_shift import ClassPriorShiftMap
from calibrant.maps._records import OneVsRestMap, TemperatureMap
from calibrant.maps._sql import LARGEST, LEAST_PROBABILITY

OPSET = 17
IR_VERSION = 8
NEAR_ONE = 1e-6
OPERATIONS = {"+": "Add", "-": "Sub", "*": "Mul", "/": "Div"}


class _Node(Operand):
    """A named result of the graph."""

    def __init__(self, graph: _Graph, name: str) -> None:
        self.graph, self.name = graph, name

    def join(self, operation: str, left: Value, right: Value) -> Value:
        factor, other = (left, right) if isinstance(left, float) else (right, left)
        if operation == "*" and isinstance(factor, float) and 0 < abs(factor - 1.0) < NEAR_ONE:
            # ONNX Runtime takes out a multiplication by a constant within some 5e-8 of 1.
            return other + self.graph.node("Mul", factor - 1.0, other)
        return self.graph.node(OPERATIONS[operation], left, right)


class _Graph:
    """The writer of ONNX: nodes and constants, in the order they are needed."""

    language: ClassVar[str] = "ONNX"

    def __init__(self) -> None:
        self.helper, self.numbers = _onnx().helper, _onnx().numpy_helper
        self.nodes: list[Any] = []
        self.constants: dict[tuple[bytes, str, tuple[int, ...]], tuple[str, Any]] = {}

    def node(self, kind: str, *given: Value, **options: Any) -> _Node:
        """A node; floats and arrays among its inputs become constants."""
        name = f"v{len(self.nodes)}"
        names = [one.name if isinstance(one, _Node) else self.constant(one).name for one in given]
        self.nodes.append(self.helper.make_node(kind, names, [name], **options))
        return _Node(self, name)

    def constant(self, value: Any) -> _Node:
        """A constant, once for equal ones."""
        array = np.asarray(value, dtype=np.float64) if isinstance(value, float) else np.asarray(value)
        key = (array.tobytes(), array.dtype.str, array.shape)
        if key not in self.constants:
            name = f"c{len(self.constants)}"
            self.constants[key] = (name, self.numbers.from_array(array, name))
        return _Node(self, self.constants[key][0])

    def exp(self, x: Value) -> Value:
        return self.node("Exp", x)

    def log(self, x: Value) -> Value:
        return self.node("Log", x)

    def clip(self, low: float, x: Value, high: float) -> Value:
        return self.node("Clip", x, float(low), float(high))

    def below(self, x: Value, cut: float, yes: Value, no: Value) -> Value:
        return self.node("Where", self.node("Less", x, cut), yes, no)

    def keep(self, x: Value, name: str) -> Value:
        return x

    def pick(self, x: Value, cuts: Sequence[float], columns: Sequence[Sequence[float]]) -> list[Value]:
        """A binary search: k grows by the powers of two, from the largest, wherever the cut there is at most x."""
        levels = len(cuts).bit_length()
        padded = np.full(2**levels, np.inf)
        padded[1 : len(cuts) + 1] = cuts
        k: Value = self.node("Cast", self.node("Mul", x, 0.0), to=_onnx().TensorProto.INT64)
        for level in reversed(range(levels)):
            further = self.node("Add", k, np.int64(2**level))
            k = self.node("Where", self.node("LessOrEqual", self.node("Gather", padded, further), x), further, k)
        return [self.node("Gather", np.array(column, dtype=np.float64), k) for column in columns]

    def softmax(self, logits: Value) -> Value:
        """Softmax of every row."""
        return self.node("Softmax", logits, axis=1)

    def total(self, rows: Value) -> Value:
        """The sum of every row, (n, 1)."""
        return self.node("ReduceSum", rows, np.array([1]), keepdims=1)

    def most(self, rows: Value, kind: str = "ReduceMax") -> Value:
        """The largest of every row, (n, 1)."""
        return self.node(kind, rows, axes=[1], keepdims=1)


def _onnx() -> Any:
    try:
        import onnx
        import onnx.helper
        import onnx.numpy_helper
    except ImportError as error:
        raise MissingDependencyError("to_onnx needs onnx: pip install 'calibrant[onnx]'.") from error
    return onnx


def save_onnx(record: Map, path: str | PathLike[str], *, force: bool = False) -> None:
    """Write the map as an ONNX file; a file that exists is kept unless `force` is true."""
    content = onnx_model(record).SerializeToString(deterministic=True)
    with written_beside(path, force=force) as beside:
        Path(beside).write_bytes(content)


def onnx_model(record: Map) -> Any:
    """The map as an ONNX model."""
    graph = _Graph()
    binary = len(record.classes) == 2
    given, made = ("score", "probability") if binary else ("scores", "probabilities")
    x = _Node(graph, given)
    found = _gated(record, x, graph) if binary else _gated_rows(record, x, graph)
    graph.nodes.append(graph.helper.make_node("Identity", [found.name], [made]))
    double, shape = _onnx().TensorProto.DOUBLE, ["n"] if binary else ["n", len(record.classes)]
    ends = [graph.helper.make_tensor_value_info(name, double, shape) for name in (given, made)]
    constants = [constant for _, constant in graph.constants.values()]
    body = graph.helper.make_graph(graph.nodes, f"calibrant {record.kind}", ends[:1], ends[1:], constants)
    opset = [graph.helper.make_opsetid("", OPSET)]
    model = graph.helper.make_model(body, opset_imports=opset, ir_version=IR_VERSION, producer_name="calibrant")
    graph.helper.set_model_props(model, {"kind": record.kind, "classes": shown(record.classes, len(record.classes))})
    _onnx().checker.check_model(model, full_check=True)
    return model


def _accepted(x: Value, limits: tuple[float, float], g: _Graph) -> Value:
    """Whether each score lies within the limits; NaN does not."""
    return g.node("And", g.node("GreaterOrEqual", x, limits[0]), g.node("LessOrEqual", x, limits[1]))


def _gated(record: Map, x: Value, g: _Graph) -> Value:
    fine = _accepted(x, reach(record), g)
    return g.node("Where", fine, calibrated(record, g.node("Where", fine, x, 0.0), g), float("nan"))


# ---------------------------------------------------------------- K classes


def _gated_rows(record: Map, x: Value, g: _Graph) -> Value:
    """The probabilities of rows that the map accepts, NaN elsewhere."""
    fine = _accepted(x, reach(record), g)
    worst = g.most(g.node("Cast", fine, to=_onnx().TensorProto.DOUBLE), "ReduceMin")
    whole = g.node("Greater", worst, 0.5)
    rows = g.node("Where", fine, x, 0.0)
    if record.reads == "probability":
        rows = g.clip(0.0, rows, 1.0)
        sums = g.total(rows)
        whole = g.node("And", whole, _accepted(sums, (1 - ROW_SUM_TOLERANCE, 1 + ROW_SUM_TOLERANCE), g))
        rows = rows / g.node("Where", whole, sums, 1.0)
    return g.node("Where", whole, _rows(record, rows, g), float("nan"))


@singledispatch
def _rows(record: Map, x: Value, g: _Graph) -> Value:
    """The map of K classes at rows that it accepts."""
    raise InputError(
        f"ONNX cannot be written for the map {record.kind!r} of {len(record.classes)} classes. Apply it in Python: "
        f"load_map(path)(scores)."
    )


@_rows.register
def _class_identity(record: ClassIdentityMap, x: Value, g: _Graph) -> Value:
    return _mixed_rows(g.softmax(x) if record.from_logits else x, record.mix, len(record.classes))


@_rows.register
def _class_temperature(record: TemperatureMap, x: Value, g: _Graph) -> Value:
    logits = x - g.most(x) if record.from_logits else _log_floored(x, g)
    return _mixed_rows(g.softmax(_bounded(record.beta * logits, g)), record.mix, len(record.classes))


@_rows.register
def _vector(record: VectorScalingMap, x: Value, g: _Graph) -> Value:
    return g.softmax(_logs(record, x, g) * record.weights + record.intercepts)


@_rows.register
def _matrix(record: MatrixScalingMap, x: Value, g: _Graph) -> Value:
    return g.softmax(g.node("MatMul", _logs(record, x, g), record.weights.T.copy()) + record.intercepts)


@_rows.register
def _log_mixture(record: LogMixtureMap, x: Value, g: _Graph) -> Value:
    p, k = g.softmax(x) if record.from_logits else x, len(record.classes)
    cells = zip(record.weights.tolist(), record.mixes.tolist(), record.maps)
    parts = [weight * _log_floored(_rows(part, _mixed_rows(p, mix, k), g), g) for weight, mix, part in cells]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return g.softmax(total)


@_rows.register
def _class_prior_shift(record: ClassPriorShiftMap, x: Value, g: _Graph) -> Value:
    moved = _rows(record.maps[0], x, g) * (record.new_prior / record.train_prior)
    return moved / g.total(moved)


@_rows.register
def _one_vs_rest(record: OneVsRestMap, x: Value, g: _Graph) -> Value:
    if record.reads == "logit":
        return _rows.dispatch(ClassMap)(record, x, g)
    columns = [formula(part, g.node("Gather", x, np.int64(k), axis=1), g) for k, part in enumerate(record.maps)]
    p = g.node("Concat", *(g.node("Unsqueeze", column, np.array([1])) for column in columns), axis=1)
    sums = g.total(p)
    some = g.node("Greater", sums, 0.0)
    return g.node("Where", some, p / g.node("Where", some, sums, 1.0), 1.0 / len(record.classes))


def _logs(record: VectorScalingMap | MatrixScalingMap, x: Value, g: _Graph) -> Value:
    """Log-probabilities after the temperature and the mixture."""
    logits = x if record.from_logits else _log_floored(x, g)
    scaled = record.beta * (logits - g.most(logits))
    if record.mix == 0:
        return scaled - g.log(g.total(g.exp(scaled)))
    return g.log(_mixed_rows(g.softmax(_bounded(scaled, g)), record.mix, len(record.classes)))


def _bounded(logits: Value, g: _Graph) -> Value:
    """Logits without minus infinity."""
    return g.clip(-LARGEST, logits, LARGEST)


def _log_floored(p: Value, g: _Graph) -> Value:
    return g.log(g.clip(LEAST_PROBABILITY, p, 1.0 + PROBABILITY_TOLERANCE))


def _mixed_rows(p: Value, mix: float, k: int) -> Value:
    return p if mix == 0 else (1 - mix) * p + mix / k
