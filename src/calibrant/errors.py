"""Errors and warnings, each written for the person who has to act on it.

A message names the argument, the rule, the value (with its row or column) and the next step.

    CalibrantError
    ├── InputError (also ValueError)            a value that cannot be used
    │   ├── ColumnError                         a column that is not there or cannot be read as asked
    │   ├── MapFileError                        a map file of another version, damaged, or not a map
    │   └── OutputExistsError                   an output file that exists; nothing was overwritten
    ├── InputTypeError (also TypeError)         a value of the wrong type
    ├── NotFittedError (also ValueError, AttributeError)   used before `fit`
    └── MissingDependencyError (also ImportError)          an optional library that is not installed
    CalibrantWarning (UserWarning)
    ├── DataWarning                             the data are unusual; the answer stands, read the message
    └── FitWarning                              a fit reached a bound or fell back; the map is finite

Imports nothing.
"""


class CalibrantError(Exception):
    """Base of every error that calibrant raises on purpose."""


class InputError(CalibrantError, ValueError):
    """A value that cannot be used; the message says which, where, and what to do."""


class ColumnError(InputError):
    """A column that is not there, or that cannot be read as asked."""


class MapFileError(InputError):
    """A map file of another version, a damaged one, or a file that is not a map."""


class OutputExistsError(InputError):
    """The output file exists; nothing was overwritten."""


class InputTypeError(CalibrantError, TypeError):
    """A value of the wrong type."""


class NotFittedError(CalibrantError, ValueError, AttributeError):
    """An estimator that is used before `fit`."""


class MissingDependencyError(CalibrantError, ImportError):
    """An optional library that is not installed; the message gives the install command."""


class CalibrantWarning(UserWarning):
    """Base of every warning that calibrant gives."""


class DataWarning(CalibrantWarning):
    """The data are unusual: the answer stands, but the message should be read."""


class FitWarning(CalibrantWarning):
    """A fit reached a bound or fell back to a safer rule; the map is finite and rising."""
