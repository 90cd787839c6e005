"""Where a function of one number crosses zero.

May import: SciPy's root search, inside the function, so that it loads where it is used.
"""

from collections.abc import Callable


def falling_root(falling: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function crosses 0, to the last digits (Brent 1973); an end of the range when it does not."""
    from scipy.optimize import brentq

    if not falling(high) < 0:
        return high
    if not falling(low) > 0:
        return low
    return float(brentq(falling, low, high, xtol=1e-18, rtol=1e-15, maxiter=1000))
