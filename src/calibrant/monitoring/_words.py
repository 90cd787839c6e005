"""A record of the monitor as a person at a terminal would read it.

May import nothing heavy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from calibrant.monitoring._record import MonitorRecord
    from calibrant.monitoring._repair import Repair


def record_in_words(record: MonitorRecord) -> str:
    """One line on the batch, one on the evidence, and what there is to say about an alarm."""
    name = f" {record.name!r}" if record.name else ""
    rows = f"{record.rows:,.0f} rows" if record.rows else "labels of earlier rows"
    head = f"Batch {record.batch}{name}: {rows}, {record.labelled_rows:,.0f} with labels."
    said = [head, shares_in_words(record), evidence_in_words(record)]
    if record.alarm:
        said.append(alarm_in_words(record))
    if record.repair is not None:
        said.append(repair_in_words(record.repair))
    return "\n".join(line for line in said if line)


def shares_in_words(record: MonitorRecord) -> str:
    """Events promised and seen."""
    promised = f"The probabilities promise {100 * record.expected.prevalence:.3g} % events"
    if record.observed_prevalence is None:
        return f"{promised}; no labels yet."
    return f"{promised}; {100 * record.observed_prevalence:.3g} % of the labelled rows had one."


def evidence_in_words(record: MonitorRecord) -> str:
    """Both e-values beside their limits."""
    e = record.evidence
    return (
        f"Evidence of a change: labels {e.labels:.3g} (alarm at {e.labels_limit:.3g}), "
        f"scores {e.scores:.3g} (alarm at {e.scores_limit:.3g})."
    )


def alarm_in_words(record: MonitorRecord) -> str:
    """The cause, since when, and how sure that is."""
    share = record.causes.get(record.cause or "", 0.0)
    since = f" since batch {record.since}" if record.since else ""
    return f"ALARM: {record.cause}{since} (weight {100 * share:.0f} % among the causes)."


def repair_in_words(repair: Repair) -> str:
    """What is proposed, and how it does."""
    text = f"Repaired map ({repair.map.kind}) fitted on {repair.fitted_rows:,.0f} rows"
    if repair.tested_rows == 0:
        return f"{text}; it waits for later labelled rows to be tested on."
    per_row = repair.gain / repair.tested_rows
    rows = "1 later row" if repair.tested_rows == 1 else f"{repair.tested_rows:,.0f} later rows"
    does = f"takes {per_row:.4f} off" if per_row >= 0 else f"adds {-per_row:.4f} to"
    sure = (
        f" ({repair.low:.4f} to {repair.high:.4f})" if per_row >= 0 else f" ({-repair.high:.4f} to {-repair.low:.4f})"
    )
    tested = f"{text}, tested on {rows}: it {does} the log loss of a row{sure if repair.tested_rows > 1 else ''}"
    return f"{tested}. {'Confirmed: adopt it.' if repair.confirmed else 'Not confirmed yet.'}"
