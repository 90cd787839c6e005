"""Rows of K classes that come block by block, pass after pass: checked, counted once, and never held together.

Invariant: every pass gives the same number of rows as the first; rows of weight 0 are absent.
May import NumPy, the kernels, `calibrant.data`, `calibrant._checks`, `_misuse` and `calibrant.errors`.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant import _checks
from calibrant._checks import Label
from calibrant._kernels.class_blocks import ClassStream, Piece
from calibrant.calibrators._misuse import NO_LOGITS, are_probabilities, certain_errors, warn_of_certain_errors
from calibrant.data._arrays import aligned, array_of, named_in_order
from calibrant.errors import DataWarning, InputError, InputTypeError

Blocks: TypeAlias = Callable[[], Iterable[tuple[Any, ...]]] | Iterable[tuple[Any, ...]]
"""What gives (scores, y) or (scores, y, sample_weight), the same ones each time: a function, or a list."""


def open_stream(
    blocks: Blocks, classes: Sequence[Any] | None, from_logits: bool
) -> tuple[ClassStream, tuple[Label, ...]]:
    """The rows behind one face, and the labels of their columns; `classes` None are 0..K-1. One pass."""
    if not callable(blocks) and (not hasattr(blocks, "__iter__") or iter(blocks) is blocks):
        raise InputTypeError(
            "blocks must be a function that gives an iterator over (scores, y) blocks, or a list of them: it is gone "
            "through several times, and an iterator can be only once."
        )
    width, size, total, weighted, no_logits, errors = 0, 0, 0.0, 0, from_logits, 0
    for scores, labels, weights in _checked(blocks, classes, from_logits):
        width, size = scores.shape[1], size + len(labels)
        total += float(len(labels)) if weights is None else float(weights.sum())
        weighted += 0 if weights is None else len(labels)
        no_logits = no_logits and are_probabilities(scores)
        errors += 0 if from_logits else certain_errors(scores, labels)
    if size == 0:
        raise InputError("blocks gave no row of weight above 0: there is nothing to learn from.")
    if weighted:
        _checks.weight_total(total, size)
    if no_logits:
        warnings.warn(NO_LOGITS, DataWarning, stacklevel=3)
    warn_of_certain_errors(errors, size)

    def pieces() -> Iterator[Piece]:
        seen = 0
        for piece in _checked(blocks, classes, from_logits):
            seen += len(piece[1])
            yield piece
        if seen != size:
            raise InputError(
                f"blocks gave {size:,} rows of weight above 0 in the first pass and {seen:,} in a later one: they must "
                f"give the same rows in every pass."
            )

    names = tuple(range(width)) if classes is None else _checks.class_names(classes, width)
    return ClassStream(pieces, (size, width), total, from_logits), names


def _checked(blocks: Blocks, classes: Sequence[Any] | None, from_logits: bool) -> Iterator[Piece]:
    """The blocks that hold rows, each through the gate."""
    width = None if classes is None else len(classes)
    for number, block in enumerate(blocks() if callable(blocks) else blocks):
        if not isinstance(block, tuple | list) or len(block) not in (2, 3):
            raise InputTypeError(
                f"blocks must give tuples (scores, y) or (scores, y, sample_weight), but block {number} (counting from "
                f"0) is {type(block).__name__}."
            )
        try:
            piece = _piece(*block, classes=classes, width=width, reads="logit" if from_logits else "probability")
        except InputError as reason:
            raise type(reason)(f"In block {number} (counting from 0): {reason}") from reason
        width = piece[0].shape[1]
        if len(piece[1]):
            yield piece


def _piece(
    scores: Any, y: Any, sample_weight: Any = None, *, classes: Sequence[Any] | None, width: int | None, reads: str
) -> Piece:
    aligned(scores=scores, y=y, sample_weight=sample_weight)
    given = array_of(scores, "scores")
    if width is not None and given.ndim == 2 and given.shape[1] != width:
        raise InputError(f"scores has {given.shape[1]} columns, but there are {width} classes.")
    array = _checks.class_scores(given, "scores", reads=reads, keep_float32=True)
    labels = array_of(y, "y")
    _checks.same_length(scores=array, y=np.atleast_1d(labels))
    codes = _codes(labels, array.shape[1], classes)
    named_in_order(scores, range(array.shape[1]) if classes is None else classes, "scores")
    if sample_weight is None:
        return array, codes, None
    weights = _checks.vector(array_of(sample_weight, "sample_weight"), "sample_weight")
    _checks.same_length(scores=array, sample_weight=weights)
    if weights.min() < 0:
        raise InputError("sample_weight has a value below 0: weights count how often a row was seen.")
    kept = weights > 0
    return (array, codes, weights) if kept.all() else (array[kept], codes[kept], weights[kept])


def _codes(labels: NDArray[Any], width: int, classes: Sequence[Any] | None) -> NDArray[np.int64]:
    """Labels as indices of the columns; without names those are 0..K-1, whatever a block may hold."""
    if classes is None and labels.dtype.kind in "iu" and labels.ndim == 1 and 0 <= labels.min() <= labels.max() < width:
        return labels.astype(np.int64)
    return _checks.class_labels(labels, width, range(width) if classes is None else classes, "y")[0]
