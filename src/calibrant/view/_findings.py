"""The headline in plain words: a title and what was found; what to do and what not to conclude come from `_advice`.

Every sentence carries a short code, so that a program can read it too. The words are chosen by `_evidence`; here they
are only written.
May import the standard library, and `_words`, `_measured`, `_proof`, `_evidence` and `_advice` beside this file.
"""

from __future__ import annotations

from dataclasses import dataclass

from calibrant.view._advice import advice, limits
from calibrant.view._curves import Bin
from calibrant.view._evidence import (
    FEW,
    Data,
    Evidence,
    Verdict,
    certain_and_wrong,
    misses,
    shapes,
    verdict,
    worse_than_base_rate,
)
from calibrant.view._measured import CLEAR, Gain, Side
from calibrant.view._proof import judgement
from calibrant.view._words import (
    Sentence,
    counted,
    decimals_for,
    fixed,
    fixed_pair,
    general,
    joined,
    percent,
    percent_pair,
    points,
)


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
        tuple(advice(said, evidence)),
        tuple(limits(evidence)),
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
        found.append(judgement(evidence.before, after=False))
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
    if not data.saturated:
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
    if evidence.before is not None and certain_and_wrong(evidence.before):
        reason = evidence.before.log_loss.score.reason
        said.append(Sentence("infinite-log-loss", f"The log loss before the map is {reason}."))
    said.append(_gain_sentence(evidence, after, gain))
    if certain_and_wrong(after):
        text = f"The log loss after the map is {after.log_loss.score.reason}: it is more certain than it may be."
        said.append(Sentence("infinite-log-loss-after", text))
    if misses(after, evidence.data):
        gap = points(after.misfit.typical_gap)
        text = f"After the map the probabilities still miss by {gap} in a typical bin, more than chance explains."
        said.append(Sentence("map-misses", text))
    if worse_than_base_rate(after):
        base = percent(evidence.data.prevalence)
        text = f"Even after the map, predicting {base} for every row would have scored better."
        said.append(Sentence("worse-than-base-rate", text))
    said.append(judgement(after, after=True))
    return said


def _gain_sentence(evidence: Evidence, after: Side, gain: Gain) -> Sentence:
    subject = f"Judged on rows it was not fitted on, the map ({evidence.calibrator})"
    if gain.over != "before":
        return _against_base_rate(subject, gain)
    change = "from {} to {}".format(*fixed_pair(gain.baseline, gain.after))
    if gain.gain <= 0:
        return Sentence("no-gain", f"{subject} does not lower the expected {gain.measure} ({change}).")
    if not gain.clear:
        chance = f"chance alone can make that difference (standard error {_error(gain)})"
        return Sentence("gain-unclear", f"{subject} moves the expected {gain.measure} {change}; {chance}.")
    share = percent(gain.gain / gain.baseline)
    more = _brier_too(evidence.before, after) if gain.measure == "log loss" and evidence.before else ""
    return Sentence("gain", f"{subject} lowers the expected {gain.measure} {change}, by {share}{more}.")


def _against_base_rate(subject: str, gain: Gain) -> Sentence:
    base, after = fixed_pair(gain.baseline, gain.after)
    text = f"{subject} has an expected {gain.measure} of {after}; predicting the base rate for every row gives {base}."
    if gain.clear:
        return Sentence("gain", text)
    chance = f" Chance alone can make that difference (standard error {_error(gain)})."
    return Sentence("no-gain", text) if gain.gain <= 0 else Sentence("gain-unclear", text + chance)


def _error(gain: Gain) -> str:
    return fixed(gain.error, decimals_for([gain.error], 2))


def _brier_too(before: Side, after: Side) -> str:
    pair = fixed_pair(before.brier.score.value or 0.0, after.brier.score.value or 0.0)
    return ", and moves the Brier score from {} to {}".format(*pair)
