"""The monitor's state as a JSON file, the entries of its history, and the reference of a repaired map.

May import NumPy, `calibrant.data._output`, `calibrant.maps` and `_sums`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.data._output import written_beside
from calibrant.errors import InputError
from calibrant.maps import Map
from calibrant.monitoring._sums import Reference, Sums

if TYPE_CHECKING:
    from calibrant.monitoring._record import MonitorRecord

HEAD = {"format": "calibrant monitor", "version": 1}
MOST_ENTRIES = 500


def entry(record: MonitorRecord) -> dict[str, Any]:
    """The numbers of a batch that are kept for good."""
    evidence = record.evidence
    return {
        "batch": record.batch,
        "name": record.name,
        "rows": record.rows,
        "labelled_rows": record.labelled_rows,
        "expected_prevalence": round(record.expected.prevalence, 9),
        "observed_prevalence": record.observed_prevalence,
        "evidence_labels": float(f"{evidence.labels:.6g}"),
        "evidence_scores": float(f"{evidence.scores:.6g}"),
        "alarm": record.alarm,
        "cause": record.cause,
        "repair_confirmed": None if record.repair is None else record.repair.confirmed,
    }


def save(content: Mapping[str, Any], path: str | PathLike[str]) -> None:
    """Write a state in the place of the old one."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    with written_beside(path, force=True) as beside:
        Path(beside).write_text(text + "\n", encoding="utf-8")


def load(path: str | PathLike[str]) -> Any:
    """The content of a state file."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(
            f"There is no monitor state {str(path)!r}. CalibrationMonitor(...).save() writes one."
        ) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{str(path)!r} is not a monitor state: it is not JSON ({error}).") from None


def check_head(content: Any) -> None:
    """Refuse what is not a state, or one of another version."""
    if not isinstance(content, Mapping) or content.get("format") != HEAD["format"]:
        raise InputError(f'This is not a monitor state: the field "format" must be "{HEAD["format"]}".')
    if content.get("version") != HEAD["version"]:
        raise InputError(
            f"The monitor state has version {content.get('version')!r}, but this calibrant reads version "
            f"{HEAD['version']}. Update calibrant, or start a new monitor."
        )


def repaired_reference(old: Reference, sums: Sums, record: Map) -> Reference:
    """The labelled rows since a change as a reference of repaired probabilities; bins without rows join a neighbour."""
    weight = sums.positives + sums.negatives
    kept = np.flatnonzero(weight > 0)
    mean_p = np.asarray(record(sums.sum_p[kept] / weight[kept]))
    cuts = np.asarray(record(old.cuts[kept[:-1]]))
    order = np.argsort(mean_p, kind="stable")
    return Reference(
        cuts=np.sort(cuts),
        positives=sums.positives[kept][order],
        negatives=sums.negatives[kept][order],
        sum_p=(mean_p * weight[kept])[order],
        rows=float(weight.sum()) / max(sums.largest, 1.0),
        classes=old.classes,
    )
