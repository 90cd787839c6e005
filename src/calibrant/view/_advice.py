"""What to do, and what the numbers cannot say: the advice that goes with a verdict, and its limits.

May import the standard library, `_words`, `_measured` and `_evidence` beside this file.
"""

from __future__ import annotations

from calibrant.view._evidence import FEW, TINY, Data, Evidence, Verdict, shapes
from calibrant.view._words import Sentence, count, counted, percent

STRAIGHT = ("AffineLogit", "PlattScaling", "TemperatureScaling")

# ---------------------------------------------------------------- what to do


def advice(said: Verdict, evidence: Evidence) -> list[Sentence]:
    data = evidence.data
    base = percent(data.prevalence)
    texts: dict[Verdict, str] = {
        "constant": f"Without a better score, the honest probability of every row is the base rate, {base}.",
        "not-cross-fitted": "Use no map yet: nothing here shows that it helps. Collect more rows of both classes.",
        "decisions": "Give the model's probabilities or decision values instead of its decisions: from these scores "
        "only two probabilities can be learned, the event rates of the two groups.",
        "flipped": f"Do nothing with these scores until this is settled. Check which label is the event (here "
        f"{data.event}) and whether the score is of the other class; if so, give {_turned(data)} instead. The map "
        f"below would turn the ranking round without asking.",
        "separable": "Check first that the scores were made on rows that the model was not trained on, and that no "
        "feature gives the label away. If both hold, more rows will show how sure the scores may be.",
        "no-signal": f"Do not act on these scores, calibrated or not: predicting the base rate, {base}, for every row "
        f"does about as well. Calibration cannot add what the score does not know; look for a better model.",
        "cannot-tell": _wait(evidence),
        "map-not-enough": f"Do not rely on {evidence.calibrator} here. {_other_map(evidence)}",
        "leave-alone": "Leave the scores alone. A map would add noise and mend nothing that these rows can show.",
        "small-gain": "Use the map if small differences matter to you; otherwise leave the scores alone.",
        "use-map": "Use the map below: fit it once on these rows and apply it to every new score of the same model.",
    }
    return [Sentence(said, texts[said]), *_bending_map(said, evidence), *_better_scores(evidence)]


def _bending_map(said: Verdict, evidence: Evidence) -> list[Sentence]:
    """Where a straight line gains, but leaves a bend that these rows show."""
    bends = evidence.distortion in ("bent", "S-shaped") and evidence.calibrator in STRAIGHT
    if said not in ("use-map", "small-gain") or not bends:
        return []
    text = (
        f"Or let the map follow what the straight line leaves, which is {evidence.distortion}: AutoCalibrator "
        f"(--method auto) weighs straight and bending maps by rows they have not seen."
    )
    return [Sentence("bending-map", text)]


def _turned(data: Data) -> str:
    return "1 − p" if data.scale == "probability" else "−score"


def _wait(evidence: Evidence) -> str:
    start = "Leave the scores alone for now" if evidence.before else "Do not rely on the probabilities of the map yet"
    return f"{start} and collect more rows of the rarer class (there are {count(evidence.data.smaller_class)})."


def _other_map(evidence: Evidence) -> str:
    if evidence.calibrator == "IsotonicCalibration":
        return "Its steps follow these rows too closely; try AffineLogit, or IsotonicCalibration with smoothing."
    if evidence.data.smaller_class < 100:
        return "A more flexible map would need more rows than there are."
    mismatch = "The error is not of the shape that it can mend."
    if evidence.calibrator == "AutoCalibrator":
        return f"{mismatch} Try IsotonicCalibration, which bends where the rows do."
    return (
        f"{mismatch} Try AutoCalibrator (--method auto), which weighs straight and bending maps by rows they have not "
        f"seen."
    )


def _better_scores(evidence: Evidence) -> list[Sentence]:
    if evidence.data.saturated and not evidence.data.hard_labels:
        text = (
            "If the model can give log-odds (or log-probabilities), start from those: they keep the order that is lost."
        )
        return [Sentence("use-log-odds", text)]
    return []


# ---------------------------------------------------------------- what the numbers cannot say


def limits(evidence: Evidence) -> list[Sentence]:
    return [
        *_few_rows(evidence.data),
        _chance(evidence),
        Sentence(
            "in-sample",
            "Whether the scores were made on rows that the model was trained on. If they were, they look better than "
            "they are, and a map learned from them is wrong for new rows. This page cannot see it.",
        ),
        Sentence(
            "population",
            f"Whether tomorrow's rows are like these. All numbers hold for one data set and for the population it came "
            f"from, where the event happens in {percent(evidence.data.prevalence)} of the rows.",
        ),
        *_reading(evidence.data),
    ]


def _few_rows(data: Data) -> list[Sentence]:
    if data.smaller_class >= FEW:
        return []
    size = counted(data.smaller_class, "row")
    rough = (
        "every number on this page is a hint, not a measurement" if data.smaller_class < TINY else "numbers are rough"
    )
    return [Sentence("few-rows", f"Much. With {size} in the smaller class, {rough}.")]


def _chance(evidence: Evidence) -> Sentence:
    """What intervals do not say."""
    text = "Anything finer than the intervals: they are of 95\u00a0%, so one in twenty misses the true value"
    if evidence.after is not None:
        text += ", and those “after” do not count that the maps of the folds were themselves learned"
    if evidence.before is not None and not shapes(evidence.before, evidence.data):
        return Sentence("intervals", f"{text}. “Not clear” is not proof that the scores are calibrated.")
    return Sentence("intervals", f"{text}.")


def _reading(data: Data) -> list[Sentence]:
    said = []
    if data.scale == "probability":
        text = "Whether the scores are meant as probabilities: they lie in [0,\u00a01] and were read so."
        said.append(Sentence("read-as-probabilities", text))
    if data.weighted:
        text = (
            "Whether the weights are frequencies: a row of weight 2 was counted as two rows. If they are not, less is "
        )
        text += "clear than this page says."
        said.append(Sentence("weights", text))
    return said
