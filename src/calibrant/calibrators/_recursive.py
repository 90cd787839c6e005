"""Recursive partitioning: isotonic regression of two classes, and its counterpart for any number of them.

Score space is split greedily, every split a threshold rule of the ROC surface, as long as the frequencies in the leaves
keep the order of the classes on both sides of every split.
May import NumPy, `calibrant.maps`, `calibrant.data` and this folder.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from calibrant import _checks
from calibrant._checks import Floats
from calibrant._kernels.partition import MOST_CLASSES, Path
from calibrant._parameters import Choice, Either, Number, Rule, Seed, Sequenced, generator, optional
from calibrant.calibrators._base import BinaryCalibrator, forget
from calibrant.calibrators._recursive_cells import (
    Cells,
    blocks_of_rows,
    cells_of_rows,
    cells_of_table,
    partition,
    split_points,
)
from calibrant.calibrators._recursive_trees import (
    SHARES,
    Grown,
    PartitionChoice,
    PartitionCurve,
    Recipe,
    Trials,
    cross_validated,
    curve_of,
    grown,
    joined,
    sizes_to_try,
    splits_within,
    target_map,
    tree_map,
    trees_of,
)
from calibrant.data import ScoreTable
from calibrant.data._arrays import array_of, read_class_rows
from calibrant.errors import InputError
from calibrant.maps import Map, TreeMap


class RecursivePartitioning(BinaryCalibrator):
    """A tree of splits of score space that keeps the order of the classes; for two classes, isotonic regression.

    A split point gamma sends a row p to the class k with the largest `p_k - gamma_k`; for two classes that is a
    threshold. The split that moves most rows farthest is taken first, if it and all earlier ones remain sound: on
    either side of every split, nobody who was sent to class i leans less to i against j than somebody who was sent to
    j. Growth stops by itself.

    On its own the tree is coarse, and a smooth map usually has the lower log loss; `toward` and `n_trees` repair that.
    See the documentation page on recursive partitioning for what each option bought on data.

    Parameters
    ----------
    criterion : {"pair", "cycle"}, default="pair"
        "pair" compares the classes two by two, as in the source's experiments; "cycle" is the exact condition that
        every split of the tree also exists on the calibrated probabilities, and accepts a few splits less. The same
        for two classes.
    smoothing : float, optional
        By default leaf means are mixed with the uniform distribution, `(1 - e) mean + e / K` with `e = 1 / (N + 1)`
        for all leaves, which keeps their order. A number s gives `(c_k + s) / (n + K s)`; small leaves move more, and
        0 leaves the means as they are.
    candidates : {"auto", "points"} or array-like of shape (m, K), default="auto"
        Split points to try. "points": the distinct rows. "auto": these, and a grid on the simplex (K = 3: multiples of
        1/50, K = 4: of 1/20) or, from five classes on, 2,000 mixtures of rows; where there are many rows they are
        thinned, with a warning that says to how many. For two classes both are every cut.
    max_leaves : int or "cv", optional
        Stop before the split that would give more leaves; "cv" chooses the number by cross-validation.
    toward : {"identity", "temperature", "structured"}, optional
        Shrink the leaf values towards a smooth map q: the uncalibrated probabilities, temperature scaling, or
        structured matrix scaling (two classes: an affine function of the log-odds). In every leaf q is multiplied by
        `f^(1 - shrinkage)` and divided by its sum; f_k compares the rows of class k in the leaf with those that q
        expects there, each with 10 rows as q expects them added. The result varies inside a leaf as q does.
    shrinkage : float, "cv" or "cv-1se", default="cv"
        How far, in [0, 1]; 1 is q itself. "cv" chooses out of 0, 0.05, ..., 1 by cross-validation; "cv-1se" takes the
        largest within one standard error of the least loss, and so leaves q alone without clear evidence. Without
        `toward` it does nothing.
    n_trees : int, default=1
        Above 1: average that many trees, each of a bootstrap sample of the rows (with `toward`, their factors f in the
        logarithm).
    cv : int, default=5
        Folds of the cross-validation; up to 5,000 distinct rows they are drawn three times.
    random_state : int, generator or None, default=0
        Draws folds and bootstrap samples.
    classes : sequence, optional
        The labels of the columns, in order: (negative, positive) for two; needed for three or more that are not
        0..K-1.

    Attributes
    ----------
    splits_ : ndarray of shape (S, K)
        Split points in the order in which they were made, of the tree on all rows.
    n_leaves_ : int
        Leaves of that tree.
    leaf_values_ : ndarray of shape (n_leaves_, K)
        Their probabilities, from left to right; without `toward` and `n_trees` the values of the map.
    curve_ : PartitionCurve
        Number of leaves, calibration loss and objective after every split.
    choice_ : PartitionChoice or None
        Out-of-fold losses, where something was chosen by cross-validation.
    shrinkage_ : float
        The shrinkage used; 0 without `toward`.
    n_candidates_ : int
        Split points that were tried.
    path_ : Path
        The splits and the class counts of all nodes.
    map_ : TreeMap, AverageMap or CorrectedMap
        The frozen map.
    classes_ : ndarray of shape (K,)
        The labels of the columns.

    Raises
    ------
    InputError
        More than 62 columns.

    Warns
    -----
    FitWarning
        When "auto" thins the candidates.

    See Also
    --------
    IsotonicCalibration : the same values for two classes, with other places of the steps.
    StructuredMatrixScaling : a smooth map of many classes.

    Notes
    -----
    Objective `M = sum over the parts B of a leaf R of n_B |mean_B - mean_R|_1`; for two classes it is 4 times that of
    isotonic recursive partitioning. Ties of a row go to the first class. Leaf means equal mean labels, so grouping by
    the fitted values has no calibration error on the calibration rows; nothing is promised about new rows. The volume
    under the ROC surface can rise for K >= 3.

    Cost for m candidates: each is applied to the rows of its leaf, O(m n K) per level of the tree, and to the other
    rows once it is examined; the check after that is O(m S K^2) for S splits. Memory O(m (K^2 + leaves) + n S). Two
    classes: O(n log n). For K >= 4 the criterion grows so strict with n that few leaves are found.

    Source: Berta, Bach, Jordan (2024), "Classifier calibration with ROC-regularized isotonic regression", section 4;
    two classes: Luss and Rosset (2014). Leaf values are normalised here, and the criterion is the one of their
    experiments, not of their text.

    Examples
    --------
    >>> import numpy as np
    >>> from calibrant import RecursivePartitioning
    >>> p = [[0.7, 0.2, 0.1], [0.6, 0.3, 0.1], [0.1, 0.6, 0.3], [0.3, 0.5, 0.2], [0.2, 0.2, 0.6], [0.1, 0.3, 0.6]]
    >>> fitted = RecursivePartitioning(smoothing=0).fit(p, [0, 1, 1, 1, 2, 2])
    >>> fitted.n_leaves_
    3
    >>> fitted.predict_proba([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])
    array([[1., 0., 0.],
           [0., 0., 1.]])
    """

    _rules: ClassVar[Mapping[str, Rule]] = {
        "criterion": Choice(("pair", "cycle")),
        "smoothing": optional(Number(0, 1e12)),
        "candidates": Either((Choice(("auto", "points")), Sequenced("an array of split points of shape (m, K)"))),
        "max_leaves": optional(Either((Number(1, whole=True), Choice(("cv",))))),
        "toward": optional(Choice(("identity", "temperature", "structured"))),
        "shrinkage": Either((Number(0, 1), Choice(("cv", "cv-1se")))),
        "n_trees": Number(1, 10_000, whole=True),
        "cv": Number(2, 1000, whole=True),
        "random_state": Seed(),
        "classes": optional(Sequenced("a list of the labels of the columns")),
    }

    splits_: Floats
    n_leaves_: int
    leaf_values_: Floats
    curve_: PartitionCurve
    choice_: PartitionChoice | None
    shrinkage_: float
    n_candidates_: int
    path_: Path

    def __init__(
        self,
        criterion: str = "pair",
        smoothing: float | None = None,
        candidates: Any = "auto",
        max_leaves: int | str | None = None,
        toward: str | None = None,
        shrinkage: float | str = "cv",
        n_trees: int = 1,
        cv: int = 5,
        random_state: Any = 0,
        classes: Sequence[Any] | None = None,
    ) -> None:
        self.criterion = criterion
        self.smoothing = smoothing
        self.candidates = candidates
        self.max_leaves = max_leaves
        self.toward = toward
        self.shrinkage = shrinkage
        self.n_trees = n_trees
        self.cv = cv
        self.random_state = random_state
        self.classes = classes

    @property
    def _reads(self) -> str:
        return "probability"

    def _coding(self, labels: NDArray[Any]) -> Any:
        return super()._coding(labels) if self.classes is None else _checks.class_names(self.classes, 2)

    def fit(self, scores: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the tree.

        Parameters
        ----------
        scores : array-like of shape (n,), (n, 1), (n, 2) or (n, K)
            Probabilities.
        y : array-like of shape (n,)
            Labels; with K columns those of `classes`, or 0..K-1. A class without rows keeps its column.
        sample_weight : array-like of shape (n,), optional
            Frequencies: a row of weight 2 counts as two rows.

        Returns
        -------
        self
        """
        shape = np.shape(array_of(scores, "scores"))
        if len(shape) != 2 or shape[1] < 3:
            return super().fit(scores, y, sample_weight)
        self._check_parameters()
        if shape[1] > MOST_CLASSES:
            raise InputError(
                f"scores has {shape[1]} columns, but RecursivePartitioning takes {MOST_CLASSES} at most: where classes "
                f"are many, use StructuredVectorScaling."
            )
        rows = read_class_rows(scores, y, sample_weight, self.classes, reads=self._reads)
        forget(self)
        self.map_ = self._learn_cells(cells_of_rows(rows), rows.classes)
        self.classes_ = np.array(rows.classes)
        self.n_features_in_ = shape[1]
        return self

    def _learn(self, table: ScoreTable) -> Map:  # type: ignore[override]
        distinct = table.distinct
        bare = self.toward is None and self.n_trees == 1 and self.max_leaves != "cv"
        if bare and isinstance(self.candidates, str) and distinct._labels is not None:
            learned = self._learn_cells(blocks_of_rows(distinct), table.classes)
            self.n_candidates_ = len(distinct)
            return learned
        return self._learn_cells(cells_of_table(distinct), table.classes)

    def _learn_cells(self, cells: Cells, classes: tuple[Any, ...]) -> Map:
        points = split_points(cells, self.candidates)
        recipe = Recipe(classes, points, self.criterion == "cycle", self.smoothing, self.toward, int(self.n_trees))
        most = None if self.max_leaves in (None, "cv") else int(self.max_leaves)
        rng = generator(self.random_state)
        path = partition(cells, points, recipe.cycles, most)
        most = self._choose(cells, path, recipe, rng)
        self._describe(path, recipe, most, len(cells.scores) if points is None else len(points))
        found = [Grown(cells, path)] if recipe.n_trees == 1 else grown(cells, recipe, most, rng)
        target = None if self.toward is None else target_map(cells, recipe)
        return joined(trees_of(found, most, recipe, target), target, self.shrinkage_)

    def _choose(self, cells: Cells, path: Path, recipe: Recipe, rng: np.random.Generator) -> int:
        """The number of leaves; `shrinkage_` and `choice_` are set."""
        sizes = sizes_to_try(path) if self.max_leaves == "cv" else curve_of(path).n_leaves[-1:]
        fixed = 0.0 if self.toward is None else self.shrinkage
        shares = SHARES if isinstance(fixed, str) else np.array([float(fixed)])
        self.choice_ = None
        if len(sizes) * len(shares) > 1:
            # Trees of fewer rows may find more leaves than the tree of all rows; only a chosen number binds them.
            tried = sizes if self.max_leaves == "cv" else np.array([self._most(cells)])
            trials = Trials(tried, shares, int(self.cv), fixed == "cv-1se")
            self.choice_ = found = cross_validated(cells, recipe, trials, rng)
            most, self.shrinkage_ = found.best
            return most
        self.shrinkage_ = float(shares[0])
        return self._most(cells)

    def _most(self, cells: Cells) -> int:
        """The most leaves that any tree may have."""
        return len(cells.scores) if self.max_leaves in (None, "cv") else int(self.max_leaves)

    def _describe(self, path: Path, recipe: Recipe, most_leaves: int, n_candidates: int) -> None:
        n_splits = splits_within(path, most_leaves)
        tree: TreeMap = tree_map(path, n_splits, recipe)
        self.path_ = path
        self.curve_ = curve_of(path)
        self.splits_ = tree.split_points.copy()
        self.leaf_values_ = tree.leaves.copy()
        self.n_leaves_ = len(tree.leaves)
        self.n_candidates_ = n_candidates

    def staged_maps(self) -> Iterator[TreeMap]:
        """The trees after no split, one split, and so on; without averages and shrinkage.

        Yields
        ------
        TreeMap
            One per entry of `curve_`.
        """
        self._fitted_map()
        recipe = Recipe(self.map_.classes, None, self.criterion == "cycle", self.smoothing, None, 1)
        for n_splits in range(len(self.path_.splits) + 1):
            yield tree_map(self.path_, n_splits, recipe)

    def predict_proba(self, scores: Any) -> Floats:
        """Calibrated probabilities, shape (n, K), columns in `classes_` order; rows sum to 1."""
        p = self._fitted_map()(scores)
        return p if p.ndim == 2 else np.column_stack([1 - p, p])
