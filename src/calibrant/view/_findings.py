"""The headline in plain words: what was found, what to do, and what the numbers cannot say.

Every sentence carries a short code, so that a program can read it too. The words are chosen by `_evidence`; here they
are only written.
May import the standard library, `_words`, `_measured` and `_evidence` beside this file.
"""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.view._curves import Bin
from calibrant.view._evidence import (
    FEW,
    SATURATED,
    TINY,
    Data,
    Evidence,
    Verdict,
    misses,
    shapes,
    verdict,
    worse_than_base_rate,
)
from calibrant.view._measured import CLEAR, Gain, Side
from calibrant.view._words import count, counted, fixed, fixed_pair, general, joined, percent, percent_pair, points


@dataclass(frozen=True)
class Sentence:
    """One sentence or two, and the code of what they say."""

    code: str
    text: str


@dataclass(frozen=True)
class Headline:
    """The verdict, its title, and the sentences."""

    verdict: Verdict
    title: str
    found: tuple[Sentence, ...]
    advice: tuple[Sentence, ...]
    limits: tuple[Sentence, ...]


def headline(evidence: Evidence) -> Headline:
    """The headline of the evidence."""
    said = verdict(evidence)
    return Headline(
        said,
        _title(said, evidence),
        tuple(_found(evidence)),
        tuple(_advice(said, evidence)),
        tuple(_limits(evidence)),
    )


def _title(said: Verdict, evidence: Evidence) -> str:
    off = shapes(evidence.before, evidence.data) if evidence.before else ()
    kind = joined(off).capitalize() if off else "Miscalibrated"
    titles: dict[Verdict, str] = {
        "constant": "Every row has the same score: there is nothing to calibrate",
        "not-cross-fitted": "Too few rows to judge any map",
        "decisions": "The scores are decisions, not probabilities",
        "flipped": "The score falls as the event gets likelier: check the label first",
        "separable": "The scores separate the classes: check that before trusting it",
        "no-signal": "No sign that these scores tell the event from the rest"
        if evidence.ranking.within_chance
        else "These scores hardly tell the event from the rest",
        "cannot-tell": "Too few rows to tell",
        "map-not-enough": f"{kind}, and this map does not put it right",
        "leave-alone": "No clear miscalibration: leave the scores as they are",
        "small-gain": f"{kind}, but only a little",
        "use-map": f"{kind}: use the map" if evidence.before else "The map turns these scores into probabilities",
    }
    return titles[said]


# ---------------------------------------------------------------- what was found


def _found(evidence: Evidence) -> list[Sentence]:
    data = evidence.data
    if data.distinct_scores == 1:
        return [_constant(evidence)]
    found = []
    if data.scale == "score":
        found.append(_not_probabilities(data))
    found += _ranking(evidence)
    if evidence.before is not None and not evidence.ranking.falls:
        found += _calibration(evidence, evidence.before)
    found += _saturation(evidence)
    if evidence.after is None:
        found.append(_not_judged(data))
    elif evidence.gain is not None:
        found += _what_the_map_does(evidence, evidence.after, evidence.gain)
    return found


def _constant(evidence: Evidence) -> Sentence:
    data = evidence.data
    off = shapes(evidence.before, data) if evidence.before is not None else ()
    judged = f" As a probability the score is {off[0]}." if off else ""
    return Sentence(
        "constant",
        f"Every row has the same score, {general(data.lowest_score)}, so nothing tells one row from another. The event "
        f"happened in {percent(data.prevalence)} of the rows.{judged}",
    )


def _not_probabilities(data: Data) -> Sentence:
    return Sentence(
        "not-probabilities",
        f"These scores are not probabilities (they run from {general(data.lowest_score)} to "
        f"{general(data.highest_score)}), so there is no calibration before the map to judge, only their order.",
    )


def _ranking(evidence: Evidence) -> list[Sentence]:
    ranking, data = evidence.ranking, evidence.data
    auc = fixed(ranking.roc_auc, 3)
    reach = fixed(CLEAR * ranking.chance_error, 3)
    if ranking.separable:
        return [
            Sentence(
                "separable",
                "No event scored below any other row: on these rows the scores separate the classes, and no finite "
                "slope is best. The map was held back from certainty by Platt's targets.",
            )
        ]
    if ranking.falls:
        text = f"The score falls as the event gets likelier: AUC {auc}, where guessing gives 0.5."
        return [Sentence("falling", text + f" The label may be flipped (the event is taken to be {data.event}).")]
    if ranking.within_chance:
        text = f"The AUC is {auc}; a score that carries nothing gives 0.5 give or take {reach} on this many rows."
        return [Sentence("no-signal", "The scores do not rank better than chance can. " + text)]
    if ranking.barely:
        text = f"The scores hardly rank: AUC {auc}, where guessing gives 0.5."
        return [Sentence("no-signal", text)]
    return []


def _calibration(evidence: Evidence, before: Side) -> list[Sentence]:
    data = evidence.data
    found = shapes(before, data)
    if found:
        return [Sentence(_code(found), _shape_text(before, data, found)), *_example(before)]
    if misses(before, data):
        gap = points(before.misfit.typical_gap)
        text = f"The probabilities are off by {gap} in a typical bin, beyond chance, but in no single direction:"
        return [Sentence("curved", text + " too high in some places and too low in others."), *_example(before)]
    if data.smaller_class < FEW:
        return [Sentence("miscalibration-unclear", "On so few rows no miscalibration is clear, in either direction.")]
    said, happened = percent_pair(before.mean_predicted, data.prevalence)
    text = f"No clear miscalibration was found: the mean prediction is {said}, the event rate {happened}"
    if before.slope.value is not None and (before.slope_error or 1.0) < 0.25:
        text += f", and the calibration slope {fixed(before.slope.value, 2)} (1 is honest)"
    honest = [Sentence("no-clear-miscalibration", text + ".")]
    if evidence.ranking.barely:
        text = "That is no merit here: any score that stays near the base rate is calibrated and says nothing."
        honest.append(Sentence("calibrated-but-useless", text))
    return honest


def _code(found: tuple[str, ...]) -> str:
    return "+".join(word.replace(" ", "-") for word in found)


def _shape_text(before: Side, data: Data, found: tuple[str, ...]) -> str:
    texts = []
    for word in found:
        if word.endswith("confident"):
            slope = before.slope.value or 0.0
            slightly = "slightly " if abs(slope - 1) < 0.1 else ""
            texts.append(f"{slightly}{word} (calibration slope {fixed(slope, 2)}, where 1 is honest)")
        else:
            off = abs(before.mean_predicted - data.prevalence)
            slightly = "slightly " if off < 0.05 * data.rarer_share else ""
            said, happened = percent_pair(before.mean_predicted, data.prevalence)
            texts.append(f"{slightly}{word} on the whole (mean prediction {said}, event rate {happened})")
    return f"These scores are {joined(texts)}."


def _example(before: Side) -> list[Sentence]:
    """The bin that says most about the gap."""
    shown = [b for b in before.reliability.bins if b.gap is not None and b.rows >= 10]
    if not before.misfit.clear or not shown:
        return []
    worst = max(shown, key=lambda b: b.weight * abs(b.gap or 0.0))
    return [Sentence("example", _example_text(worst))]


def _example_text(worst: Bin) -> str:
    mean, rate = worst.mean_predicted or 0.0, worst.observed_rate or 0.0
    said, happened = percent(mean), percent(rate)
    if said == happened or abs(mean - rate) < 0.02:
        said, happened = percent_pair(mean, rate)
    return f"Where the model says {said} ({counted(worst.rows, 'row')}), the event happened {happened} of the time."


def _saturation(evidence: Evidence) -> list[Sentence]:
    data = evidence.data
    if data.scale != "probability":
        return []
    share = data.share_at_zero + data.share_at_one
    if data.hard_labels:
        return [Sentence("hard-labels", "The scores are only 0 and 1: decisions, not probabilities.")]
    if share < SATURATED:
        return []
    return [
        Sentence(
            "saturated",
            f"{percent(share)} of the rows have a score of exactly 0 or 1: the digits ran out, their order is lost, "
            f"and a map of the log-odds has little to hold on to there.",
        )
    ]


def _not_judged(data: Data) -> Sentence:
    return Sentence(
        "not-cross-fitted",
        f"The smaller class has {counted(data.smaller_class, 'row')}, so no map can be judged on rows that it was not "
        f"fitted on: there is no “after” on this page.",
    )


def _what_the_map_does(evidence: Evidence, after: Side, gain: Gain) -> list[Sentence]:
    said = []
    if evidence.before is not None and evidence.before.log_loss.score.value is None:
        reason = evidence.before.log_loss.score.reason or ""
        said.append(Sentence("infinite-log-loss", f"The log loss before the map is {reason}."))
    said.append(_gain_sentence(evidence, after, gain))
    if misses(after, evidence.data):
        gap = points(after.misfit.typical_gap)
        text = f"After the map the probabilities still miss by {gap} in a typical bin, more than chance explains."
        said.append(Sentence("map-misses", text))
    if worse_than_base_rate(after):
        base = percent(evidence.data.prevalence)
        text = f"Even after the map, predicting {base} for every row would have scored better."
        said.append(Sentence("worse-than-base-rate", text))
    return said


def _gain_sentence(evidence: Evidence, after: Side, gain: Gain) -> Sentence:
    subject = f"Judged on rows it was not fitted on, the map ({evidence.calibrator})"
    if gain.over != "before":
        return _against_base_rate(subject, gain)
    change = "from {} to {}".format(*fixed_pair(gain.baseline, gain.after))
    if gain.gain <= 0:
        return Sentence("no-gain", f"{subject} does not lower the expected {gain.measure} ({change}).")
    if not gain.clear:
        chance = f"chance alone can make that difference (standard error {general(gain.error)})"
        return Sentence("gain-unclear", f"{subject} moves the expected {gain.measure} {change}; {chance}.")
    share = percent(gain.gain / gain.baseline)
    more = _brier_too(evidence.before, after) if gain.measure == "log loss" and evidence.before else ""
    return Sentence("gain", f"{subject} lowers the expected {gain.measure} {change}, by {share}{more}.")


def _against_base_rate(subject: str, gain: Gain) -> Sentence:
    base, after = fixed_pair(gain.baseline, gain.after)
    text = f"{subject} has an expected {gain.measure} of {after}; predicting the base rate for every row gives {base}."
    if gain.clear:
        return Sentence("gain", text)
    chance = f" Chance alone can make that difference (standard error {general(gain.error)})."
    return Sentence("no-gain", text) if gain.gain <= 0 else Sentence("gain-unclear", text + chance)


def _brier_too(before: Side, after: Side) -> str:
    pair = fixed_pair(before.brier.score.value or 0.0, after.brier.score.value or 0.0)
    return ", and moves the Brier score from {} to {}".format(*pair)


# ---------------------------------------------------------------- what to do


def _advice(said: Verdict, evidence: Evidence) -> list[Sentence]:
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
    return [Sentence(said, texts[said]), *_better_scores(evidence)]


def _turned(data: Data) -> str:
    return "1 − p" if data.scale == "probability" else "−score"


def _wait(evidence: Evidence) -> str:
    start = "Leave the scores alone for now" if evidence.before else "Do not rely on the probabilities of the map yet"
    return f"{start} and collect more rows of the rarer class (there are {count(evidence.data.smaller_class)})."


def _other_map(evidence: Evidence) -> str:
    if evidence.calibrator == "IsotonicCalibration":
        return "Its steps overfit or the rows are too few; try AffineLogit, or collect more rows."
    if evidence.data.smaller_class < 100:
        return "A more flexible map would need more rows than there are."
    return "The error is not of the shape that it can mend. Try IsotonicCalibration, which bends where the rows do."


def _better_scores(evidence: Evidence) -> list[Sentence]:
    if any(sentence.code == "saturated" for sentence in _saturation(evidence)):
        text = (
            "If the model can give log-odds (or log-probabilities), start from those: they keep the order that is lost."
        )
        return [Sentence("use-log-odds", text)]
    return []


# ---------------------------------------------------------------- what the numbers cannot say


def _limits(evidence: Evidence) -> list[Sentence]:
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
    """How far the event rate itself is known; the only bound given until intervals are."""
    data = evidence.data
    reach = CLEAR * (data.prevalence * (1 - data.prevalence) / data.total_weight) ** 0.5
    text = (
        f"Anything finer than chance allows: even the event rate is known only to about ± {points(reach)}, the rate in"
    )
    known = f"{text} one bin less well. The numbers below carry no intervals yet"
    if evidence.before is not None and not shapes(evidence.before, data):
        return Sentence("no-interval", f"{known}, and “not clear” is not proof that the scores are calibrated.")
    return Sentence("no-interval", f"{known}.")


def _reading(data: Data) -> list[Sentence]:
    said = []
    if data.scale == "probability":
        text = "Whether the scores are meant as probabilities: they lie in [0,\u00a01] and were read so."
        said.append(Sentence("read-as-probabilities", text))
    if data.weighted:
        text = "Whether the weights are frequencies: a row of weight 2 was counted as two rows of evidence."
        said.append(Sentence("weights", text))
    return said
