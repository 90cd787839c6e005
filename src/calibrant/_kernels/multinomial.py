"""Penalised multinomial likelihoods of K classes, brought to their optimum by Newton steps.

Minimises, over the rows i of log-probabilities L_i with weights w_i and N = sum of w,

    F(theta) = 1/N sum_i w_i [log sum_k exp(eta_ik) - eta_iy] + sum(penalty * (theta - centre)^2)

with `eta_k = theta_k0 L_k + theta_k1` (`PerClass`, theta of shape (K, 2)) or `eta_k = sum_j theta_kj L_j + theta_kK`
(`AllPairs`, theta of shape (K, K + 1)). The part of F that holds the labels is linear in theta, so their sums are
taken once. Few parameters: the whole curvature and its Cholesky factor. Many: conjugate gradients on products with the
curvature, preconditioned by its K diagonal blocks. F is convex, and strictly so with a penalty above zero.
May import NumPy, SciPy's linear algebra and the kernels beside this file.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from calibrant._kernels._one_thread import one_blas_thread
from calibrant._kernels.class_blocks import HELD, ClassBlocks, Rows
from calibrant._kernels.softmax import Floats

MOST_DENSE = 600
"""Most parameters with a curvature of their own; more take conjugate gradients."""
WIDEST_BLOCK = 200
"""Above this many classes the preconditioner of a matrix is its diagonal."""
COSTLY = 64
"""From this many parameters on, a curvature of many rows costs more than the products that a sample's leaves to do."""
MAX_STEPS = 100
MAX_PRODUCTS = 400
THIN = 8
"""Many rows start from the fit to every so-manieth; its curvature, where it is whole, preconditions theirs."""
SAMPLE_ROWS, SAMPLE_CELLS = 1_000, 2**20
"""A sample has as many rows at least; without a curvature of its own, as many cells."""
FINISHED = 1e-21
"""Twice the distance of F to its least value, by the quadratic model, at which the search ends."""
FLAT = 1e-8
"""Relative gradient at which the search ends when a pass over the rows is long."""


Division = Callable[[Floats], Floats]
"""What takes a gradient to nearly a step."""


class Shape(Protocol):
    """How parameters make logits out of log-probabilities."""

    def logits(self, theta: Floats, logs: Floats) -> Floats:
        """Eta (K, m) of a block."""

    def gather(self, values: Floats, logs: Floats) -> Floats:
        """The gradient in theta of `sum(values * eta)`."""

    def outer(self, values: Floats, logs: Floats) -> Floats:
        """`sum f f'` with `f_k = values_k d eta_k / d theta`, shape (parameters, parameters)."""

    def diagonal_blocks(self, values: Floats, logs: Floats) -> Floats:
        """`sum values_k (d eta_k)(d eta_k)'`, shape (K, p, p)."""


class PerClass:
    """`eta_k = theta_k0 L_k + theta_k1`."""

    def logits(self, theta: Floats, logs: Floats) -> Floats:
        return theta[:, :1] * logs + theta[:, 1:]

    def gather(self, values: Floats, logs: Floats) -> Floats:
        return np.stack([np.einsum("km,km->k", values, logs), values.sum(axis=1)], axis=1)

    def outer(self, values: Floats, logs: Floats) -> Floats:
        # Not from one array of both: it is twice as large, and its pages may be fresh in every block.
        scaled, out = values * logs, np.empty((len(logs), 2, len(logs), 2))
        out[:, 0, :, 0], out[:, 1, :, 1] = scaled @ scaled.T, values @ values.T
        out[:, 0, :, 1] = scaled @ values.T
        out[:, 1, :, 0] = out[:, 0, :, 1].T
        return out.reshape(2 * len(logs), -1)

    def diagonal_blocks(self, values: Floats, logs: Floats) -> Floats:
        scaled = values * logs
        one, zero = np.einsum("km,km->k", scaled, logs), values.sum(axis=1)
        cross = scaled.sum(axis=1)
        return np.stack([one, cross, cross, zero], axis=1).reshape(-1, 2, 2)


class AllPairs:
    """`eta_k = sum_j theta_kj L_j + theta_kK`."""

    def logits(self, theta: Floats, logs: Floats) -> Floats:
        eta = theta[:, :-1] @ logs
        eta += theta[:, -1:]
        return eta

    def gather(self, values: Floats, logs: Floats) -> Floats:
        return np.concatenate([values @ logs.T, values.sum(axis=1, keepdims=True)], axis=1)

    def outer(self, values: Floats, logs: Floats) -> Floats:
        k, m = logs.shape
        out = np.empty((k, k + 1, m))
        np.multiply(values[:, None], logs, out=out[:, :k])
        out[:, k] = values
        factors = out.reshape(-1, m)
        return np.asarray(factors @ factors.T)

    def diagonal_blocks(self, values: Floats, logs: Floats) -> Floats:
        with_one = np.concatenate([logs, np.ones((1, logs.shape[1]))])
        return np.stack([(line * with_one) @ with_one.T for line in values])


class Fit(NamedTuple):
    """Parameters, F there, norm of its gradient relative to that of the sums of the labels, steps, whether it ended."""

    theta: Floats
    objective: float
    gradient: float
    steps: int
    converged: bool


class Point(NamedTuple):
    """F and its gradient at one theta."""

    theta: Floats
    objective: float
    gradient: Floats


class Multinomial:
    """One penalised problem: rows, the shape of its logits, its penalty and the centre of that."""

    def __init__(self, rows: Rows, shape: Shape, penalty: Floats, centre: Floats) -> None:
        self.rows, self.shape, self.penalty, self.centre = rows, shape, penalty, centre
        with one_blas_thread():
            self.observed = rows.sums(self._observe)[0] / rows.total
        self.scale = float(np.linalg.norm(self.observed)) or 1.0

    def _observe(self, part: ClassBlocks, first: int, last: int) -> tuple[Floats]:
        return (self.shape.gather(part.members(first, last), part.block(first, last)),)

    # ------------------------------------------------------------ passes over the rows

    def _soft(self, theta: Floats, part: ClassBlocks, first: int, last: int) -> tuple[Floats, Floats, Floats]:
        """Log-probabilities of a block, probabilities at theta and the logs of their divisors."""
        logs = part.block(first, last)
        q = self.shape.logits(theta, logs)
        top = q.max(axis=0)
        q -= top
        np.exp(q, out=q)
        total = q.sum(axis=0)
        q /= total
        return logs, q, top + np.log(total)

    def at(self, theta: Floats) -> Point:
        """F and its gradient."""

        def work(part: ClassBlocks, first: int, last: int) -> tuple[float, Floats]:
            logs, q, divisor = self._soft(theta, part, first, last)
            weight = part.weight(first, last)
            loss = divisor.sum() if weight is None else weight @ divisor
            return float(loss), self.shape.gather(q if weight is None else q * weight, logs)

        loss, mean = self.rows.sums(work)
        away = theta - self.centre
        objective = (loss / self.rows.total - float(np.vdot(theta, self.observed))) + float(
            np.vdot(self.penalty, away**2)
        )
        return Point(theta, objective, mean / self.rows.total - self.observed + 2 * self.penalty * away)

    def curvature(self, theta: Floats) -> Floats:
        """The matrix of second derivatives, (P, P)."""

        def work(part: ClassBlocks, first: int, last: int) -> tuple[Floats, Floats]:
            logs, q, _ = self._soft(theta, part, first, last)
            weight = part.weight(first, last)
            outer = self.shape.outer(q if weight is None else q * np.sqrt(weight), logs)
            return self.shape.diagonal_blocks(q if weight is None else q * weight, logs), outer

        blocks, outer = self.rows.sums(work)
        p = blocks.shape[1]
        whole: Floats = -outer
        for k, block in enumerate(blocks):
            whole[k * p : (k + 1) * p, k * p : (k + 1) * p] += block
        whole /= self.rows.total
        whole.flat[:: len(whole) + 1] += 2 * self.penalty.ravel()
        return whole

    def product(self, theta: Floats) -> Callable[[Floats], Floats]:
        """The curvature at theta times a direction; probabilities are kept where the rows are."""
        kept: dict[int, Floats] = {}

        def soft(part: ClassBlocks, first: int, last: int) -> tuple[Floats, Floats]:
            if first in kept:
                return part.block(first, last), kept[first]
            logs, q, _ = self._soft(theta, part, first, last)
            if part.held:
                kept[first] = q
            return logs, q

        def apply(direction: Floats) -> Floats:
            def work(part: ClassBlocks, first: int, last: int) -> tuple[Floats]:
                logs, q = soft(part, first, last)
                change = self.shape.logits(direction, logs)
                change -= np.einsum("km,km->m", q, change)
                change *= q
                weight = part.weight(first, last)
                if weight is not None:
                    change *= weight
                return (self.shape.gather(change, logs),)

            return np.asarray(self.rows.sums(work)[0] / self.rows.total + 2 * self.penalty * direction)

        return apply

    def preconditioner(self, theta: Floats) -> Division:
        """Division by the diagonal blocks of the curvature (by its diagonal where those are too wide)."""
        wide = theta.shape[1] > WIDEST_BLOCK

        def work(part: ClassBlocks, first: int, last: int) -> tuple[Floats]:
            logs, q, _ = self._soft(theta, part, first, last)
            weight = part.weight(first, last)
            spread = q * (1 - q) if weight is None else q * (1 - q) * weight
            if wide:
                return (np.concatenate([spread @ (logs**2).T, spread.sum(axis=1, keepdims=True)], axis=1),)
            return (self.shape.diagonal_blocks(spread, logs),)

        found = self.rows.sums(work)[0] / self.rows.total
        if wide:
            diagonal = found + 2 * self.penalty
            return lambda vector: np.asarray(vector / diagonal)
        places = np.arange(theta.shape[1])
        found[:, places, places] += 2 * self.penalty
        inverse = np.linalg.inv(found)
        return lambda vector: np.einsum("kij,kj->ki", inverse, vector)


def minimise(problem: Multinomial, start: Floats | None = None) -> Fit:
    """Newton steps with halving from the centre of the penalty, to the optimum."""
    with one_blas_thread():
        return _minimise(problem, start)


def _minimise(problem: Multinomial, start: Floats | None) -> Fit:
    rows = problem.rows
    dense = problem.centre.size <= MOST_DENSE
    division: Division | None = None
    if start is None and _enough_for_a_sample(problem, dense):
        sample = Multinomial(rows.thinned(THIN), problem.shape, problem.penalty, problem.centre)
        start = _minimise(sample, None).theta
        division = _division(sample.curvature(start)) if dense else None
    point = problem.at(problem.centre.copy() if start is None else start)
    if division is None and not dense:
        division = problem.preconditioner(point.theta)
    for steps in range(MAX_STEPS):
        if rows.size * rows.n_classes > HELD and float(np.linalg.norm(point.gradient)) <= FLAT * problem.scale:
            return _fit(problem, point, steps, True)
        step = _exact_step(problem, point) if division is None else _inexact_step(problem, point, division)
        decrement = -float(np.vdot(point.gradient, step))
        new = _searched(problem, point, step, decrement)
        if new is None or decrement <= FINISHED:
            best = point if new is None else new
            return _fit(problem, best, steps + 1, decrement <= 1e-12)
        point = new
    return _fit(problem, point, MAX_STEPS, False)


def _enough_for_a_sample(problem: Multinomial, dense: bool) -> bool:
    """Whether a thinned problem is near enough to the whole to be worth its fit."""
    thinned, size = problem.rows.sample_size(THIN), problem.centre.size
    costly = size >= COSTLY if dense else thinned * problem.rows.n_classes >= SAMPLE_CELLS
    return bool(costly and thinned >= max(SAMPLE_ROWS, 8 * size))


def _division(curvature: Floats) -> Division:
    """Division by a whole matrix of second derivatives."""
    try:
        inverse = np.linalg.inv(curvature)
    except np.linalg.LinAlgError:
        inverse = np.linalg.pinv(curvature, hermitian=True)
    return lambda vector: (inverse @ vector.ravel()).reshape(vector.shape)


def _fit(problem: Multinomial, point: Point, steps: int, converged: bool) -> Fit:
    relative = float(np.linalg.norm(point.gradient)) / problem.scale
    return Fit(point.theta, point.objective, relative, steps, converged)


def _exact_step(problem: Multinomial, point: Point) -> Floats:
    curvature = problem.curvature(point.theta)
    units = np.sqrt(np.diag(curvature))
    units[units == 0] = 1.0
    scaled = curvature / units / units[:, None]
    gradient = point.gradient.ravel() / units
    try:
        step = np.linalg.solve(scaled, gradient)
    except np.linalg.LinAlgError:  # a penalty lost to rounding: nothing holds what moves no probability, so it stays
        step = np.linalg.lstsq(scaled, gradient, rcond=None)[0]
    return -step.reshape(point.theta.shape) / units.reshape(point.theta.shape)


def _inexact_step(problem: Multinomial, point: Point, division: Division) -> Floats:
    """Conjugate gradients until what is left of the gradient is small for where the search is."""
    apply = problem.product(point.theta)
    step = np.zeros_like(point.theta)
    left = -point.gradient
    turned = division(left)
    direction = turned
    now = float(np.vdot(left, turned))
    enough = now * min(0.1, np.sqrt(now)) ** 2
    for _ in range(MAX_PRODUCTS):
        if now <= enough or now == 0:
            break
        image = apply(direction)
        bend = float(np.vdot(direction, image))
        if bend <= 0:
            break
        step = step + (now / bend) * direction
        left = left - (now / bend) * image
        turned = division(left)
        new = float(np.vdot(left, turned))
        direction = turned + (new / now) * direction
        now = new
    return step


def _searched(problem: Multinomial, point: Point, step: Floats, decrement: float) -> Point | None:
    """The point a whole step ahead, or a half, a quarter, ... of it, where F is lower; None when there is none."""
    length = 1.0
    slack = 1e-13 * (1 + abs(point.objective))
    for _ in range(40):
        new = problem.at(point.theta + length * step)
        if new.objective <= point.objective - 1e-4 * length * decrement + slack:
            return new
        length /= 2
    return None
