"""Turn classifier scores into honest probabilities, prove that they are honest, and find the operating point.

The names below stand in the order of a row's journey: rows in, calibrators, maps, measures. Each is loaded when it is
first used, so that importing the package stays light.
"""

import lazy_loader as _lazy

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
