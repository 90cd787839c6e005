"""Maps as JSON files: versioned, validated, the same bytes for the same map.

Written beside the target and then renamed, so a full disk or an interruption loses nothing.
May import the standard library, `calibrant.maps._base`, `calibrant.data._output` and `calibrant.errors`.
"""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path

from calibrant.data._output import written_beside
from calibrant.errors import InputError, InputTypeError, MapFileError
from calibrant.maps._base import Map


def map_to_json(record: Map) -> str:
    """The JSON text of a map; equal maps give equal bytes."""
    return json.dumps(record.to_dict(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def save_map(record: Map, path: str | PathLike[str], *, force: bool = False) -> None:
    """Write a map; a file that exists is kept unless `force` is true."""
    try:
        content = map_to_json(record).encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(f"The map cannot be written: its classes hold text that is not Unicode ({error}).") from None
    with written_beside(path, force=force) as beside:
        Path(beside).write_bytes(content)


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
        content = json.loads(_text(path))
    except (ValueError, RecursionError) as error:
        if isinstance(error, MapFileError):
            raise
        raise MapFileError(f"{str(path)!r} is not a map file: it is not JSON ({error}).") from None
    try:
        return Map.from_dict(content)
    except MapFileError as error:
        raise MapFileError(f"{str(path)!r}: {error}") from None


def _text(path: str | PathLike[str]) -> str:
    if not isinstance(path, str | PathLike):
        raise InputTypeError(f"load_map needs the path of a file, not {path!r:.60}. Map.from_dict reads a dict.")
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise MapFileError(
            f"There is no map file {str(path)!r}. Write one with `calibrant fit` or map.save()."
        ) from None
    except UnicodeDecodeError:
        raise MapFileError(f"{str(path)!r} is not a map file: it is not UTF-8 text.") from None
    except OSError as error:
        raise MapFileError(f"The map file {str(path)!r} cannot be read: {error.strerror or error}.") from None
