"""A watch on calibrated probabilities in production: alarms that may be looked at any time, a cause, a tested repair.

    _sums       what is kept of rows: sums over the bins of the reference
    _evidence   e-processes: how strongly the rows speak against "nothing has changed"
    _cause      what changed, and since when
    _repair     a repaired map, tested on later rows
    _expected   performance without labels
    _monitor    CalibrationMonitor; _record what it answers, _state its file, _words its sentences

May import `calibrant.decisions` and what is below it.
"""

from __future__ import annotations

from calibrant.monitoring._expected import ExpectedPerformance, expected_performance
from calibrant.monitoring._monitor import CalibrationMonitor
from calibrant.monitoring._record import Evidence, MonitorRecord
from calibrant.monitoring._repair import Repair

__all__ = [
    "CalibrationMonitor",
    "Evidence",
    "ExpectedPerformance",
    "MonitorRecord",
    "Repair",
    "expected_performance",
]
