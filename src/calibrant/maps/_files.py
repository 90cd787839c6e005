"""Maps as JSON files: versioned, validated, the same bytes for the same map.

Written beside the target and then renamed, so a full disk or an interruption loses nothing.
May import the standard library, `calibrant.maps._base`, `calibrant.data._output` and `calibrant.errors`.
"""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path

from calibrant.data._output import written_beside
from calibrant.errors import MapFileError
from calibrant.maps._base import Map


def map_to_json(record: Map) -> str:
    """The JSON text of a map; equal maps give equal bytes."""
    return json.dumps(record.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def save_map(record: Map, path: str | PathLike[str], *, force: bool = False) -> None:
    """Write a map; a file that exists is kept unless `force` is true."""
    with written_beside(path, force=force) as beside:
        Path(beside).write_text(map_to_json(record), encoding="utf-8")


def load_map(path: str | PathLike[str]) -> Map:
    """Read a map that `map.save` wrote.

    Parameters
    ----------
    path : path
        A JSON file.

    Returns
    -------
    Map
        Ready to be called on scores.

    Raises
    ------
    MapFileError
        No such file, not JSON, another version, unknown or damaged fields.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from calibrant import PlattScaling, load_map
    >>> fitted = PlattScaling().fit([-2.0, -1.0, 1.0, 2.0], [0, 0, 1, 1])
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "map.json"
    >>> fitted.map_.save(path)
    >>> load_map(path) == fitted.map_
    True
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise MapFileError(
            f"There is no map file {str(path)!r}. Write one with `calibrant fit` or map.save()."
        ) from None
    except (UnicodeDecodeError, IsADirectoryError):
        raise MapFileError(f"{str(path)!r} is not a map file: it is not UTF-8 text.") from None
    try:
        content = json.loads(text)
    except ValueError as error:
        raise MapFileError(f"{str(path)!r} is not a map file: it is not JSON ({error}).") from None
    try:
        return Map.from_dict(content)
    except MapFileError as error:
        raise MapFileError(f"{str(path)!r}: {error}") from None
