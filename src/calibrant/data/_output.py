"""Output files: written beside their place, then renamed, so that a half-written file never has the final name.

Invariant: `path` either keeps what it held or holds the whole new content, also after an interruption or a full disk.
May import the standard library, `calibrant.errors` and, for inputs of several files, `_source`.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from calibrant.errors import InputError, InputTypeError, OutputExistsError


@contextmanager
def written_beside(path: str | os.PathLike[str], *, force: bool = False) -> Iterator[Path]:
    """Give a temporary path in the same folder; when the block ends well, it takes the place of `path`.

    Whatever ends the block otherwise (an error, an interruption), the temporary file is removed and `path` is as it
    was. An existing `path` is refused without `force`.
    """
    target = output_target(path, force=force)
    temporary = target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}.part")
    try:
        yield temporary
        _publish(temporary, target, path, force)
    except OSError as reason:
        raise InputError(
            f"{os.fspath(path)!r} could not be written: {reason.strerror or reason}. {_kept(target)}"
        ) from reason
    finally:
        with suppress(OSError):
            temporary.unlink()


def output_target(
    path: str | os.PathLike[str], *, force: bool = False, inputs: Iterable[str | os.PathLike[str] | None] = ()
) -> Path:
    """The file that will be written (links followed), once it is clear that it may be; none of the inputs, ever."""
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise InputTypeError(f"The output must be the name of a file, but it is of type {type(path).__name__}.")
    shown = repr(os.fspath(path))
    if not os.fspath(path) or "\0" in os.fspath(path):
        raise InputError(f"The output {shown} cannot be the name of a file: give another name.")
    target = Path(os.path.realpath(path))
    if any(_reads(given, target) for given in inputs if given is not None):
        raise InputError(f"The output {shown} is also the input, which would be lost: give another name.")
    try:
        kind = target.stat().st_mode
    except FileNotFoundError:
        kind = None
    except OSError as reason:
        raise InputError(f"The output {shown} cannot be used: {reason.strerror or reason}.") from reason
    if kind is not None and stat.S_ISDIR(kind):
        raise InputError(f"The output {shown} is a folder: give the name of a file in it.")
    if kind is not None and not stat.S_ISREG(kind):
        raise InputError(f"The output {shown} is not a regular file: give the name of a file.")
    if kind is not None and not force:
        raise OutputExistsError(
            f"The output {shown} exists and was left as it is: give another name, or allow overwriting with "
            f"force=True (--force)."
        )
    if not target.parent.is_dir():
        raise InputError(f"The folder of the output {shown} does not exist: create {str(target.parent)!r} first.")
    return target


def _reads(given: str | os.PathLike[str], target: Path) -> bool:
    """Whether an input is the file, or a folder or pattern that holds it."""
    if not isinstance(given, str | os.PathLike) or Path(os.path.realpath(given)) == target:
        return isinstance(given, str | os.PathLike)
    if os.path.isfile(given) or not target.is_file():
        return False
    from calibrant.data._source import files_of

    return any(Path(os.path.realpath(part)) == target for part in files_of(given))


def _publish(temporary: Path, target: Path, path: str | os.PathLike[str], force: bool) -> None:
    output_target(path, force=force)
    with suppress(FileNotFoundError):
        os.chmod(temporary, stat.S_IMODE(target.stat().st_mode))
    os.replace(temporary, target)


def _kept(target: Path) -> str:
    return "The file that was there is unchanged." if target.exists() else "No output was left behind."
