"""The headline of the report for K classes in plain words: a title, what was found, what to do, what stays open.

Every sentence carries a short code, so that a program can read it too.
May import the standard library, and `_words`, `_curves`, `_class_measured` beside this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

from calibrant.view._class_measured import ClassGain, ClassLine, ClassSide, Decisions
from calibrant.view._curves import Bin
from calibrant.view._words import Sentence, count, counted, fixed_pair, joined, percent, percent_pair, points

ClassVerdict = Literal[
    "not-cross-fitted", "no-signal", "cannot-tell", "map-not-enough", "leave-alone", "small-gain", "use-map"
]
CLEAR = 2.0
FEW, FEW_PER_CLASS = 50, 10
SMALL_GAIN = 0.01
LEAST_GAP = 0.0005
EXAMPLE_ROWS = 10
NAMED = 3


@dataclass(frozen=True)
class ClassData:
    """The rows: how many, of which classes, and what the scores were read as.

    `base_log_loss` and `base_brier` are those of predicting the shares of the classes for every row.
    """

    rows: int
    weighted: bool
    total_weight: float
    classes: int
    without_rows: tuple[str, ...]
    largest: str
    largest_share: float
    smallest: str
    smallest_share: float
    scale: Literal["probability", "logits"]
    base_log_loss: float
    base_brier: float


@dataclass(frozen=True)
class ClassEvidence:
    """All that the sentences lean on; `lines` are the classes, the worst first.

    `cells` is how many of them the tables have at most; None where these are exact.
    """

    data: ClassData
    calibrator: str
    before: ClassSide
    after: ClassSide | None
    gain: ClassGain | None
    decisions: Decisions
    lines: tuple[ClassLine, ...]
    cells: int | None = None

    @property
    def direction(self) -> str | None:
        """Whether the top label's probability is too high or too low on the whole."""
        off = self.before.mean_confidence - self.before.accuracy
        if abs(off) <= CLEAR * self.before.mean_error:
            return None
        return "over-confident" if off > 0 else "under-confident"

    @property
    def top_is_off(self) -> bool:
        """Whether the top label is off beyond chance, in whatever direction."""
        return (self.before.top_error.low or 0.0) > 0

    @property
    def clear_lines(self) -> list[ClassLine]:
        """The classes that are off beyond chance."""
        return [line for line in self.lines if line.weight > 0 and line.before.clear]

    @property
    def certain_and_wrong(self) -> bool:
        """Whether something happened that had probability 0, and no longer after the map."""
        return self.before.log_loss.value is None and self.after is not None and self.after.log_loss.value is not None

    @property
    def few_rows(self) -> bool:
        """Whether rows are few for so many classes."""
        return self.data.rows < max(FEW, FEW_PER_CLASS * self.data.classes)

    @property
    def useless_after(self) -> bool:
        """Whether even the map's probabilities do no better than the shares of the classes."""
        if self.after is None:
            return False
        if self.after.log_loss.high is not None:
            return self.after.log_loss.high >= self.data.base_log_loss
        return (self.after.brier.high or 0.0) >= self.data.base_brier


@dataclass(frozen=True)
class ClassHeadline:
    """The verdict, its title, and the sentences."""

    verdict: ClassVerdict
    title: str
    found: tuple[Sentence, ...]
    advice: tuple[Sentence, ...]
    limits: tuple[Sentence, ...]


def class_headline(evidence: ClassEvidence) -> ClassHeadline:
    """The headline of the evidence."""
    said = _verdict(evidence)
    return ClassHeadline(
        said, _title(said, evidence), tuple(_found(evidence)), tuple(_advice(said, evidence)), tuple(_limits(evidence))
    )


def _verdict(evidence: ClassEvidence) -> ClassVerdict:
    gain = evidence.gain
    if evidence.after is None or gain is None:
        return "not-cross-fitted"
    if evidence.useless_after:
        return "cannot-tell" if evidence.few_rows else "no-signal"
    if evidence.certain_and_wrong and gain.high > 0:
        return "use-map"
    if gain.clear:
        return "use-map" if gain.gain >= SMALL_GAIN * gain.baseline else "small-gain"
    if _is_off(evidence):
        return "cannot-tell" if evidence.few_rows else "map-not-enough"
    return "cannot-tell" if evidence.few_rows else "leave-alone"


def _is_off(evidence: ClassEvidence) -> bool:
    return bool(evidence.direction or evidence.top_is_off or evidence.clear_lines)


def _title(said: ClassVerdict, evidence: ClassEvidence) -> str:
    kind = _kind(evidence)
    titles: dict[ClassVerdict, str] = {
        "not-cross-fitted": "Too few rows to judge any map",
        "no-signal": "These scores hardly tell the classes apart",
        "cannot-tell": "Too few rows to tell",
        "map-not-enough": f"{kind}, and this map does not put it right",
        "leave-alone": "No clear miscalibration, but certain and wrong"
        if evidence.certain_and_wrong
        else "No clear miscalibration: leave the scores as they are",
        "small-gain": f"{kind}, but only a little",
        "use-map": f"{kind}: use the map",
    }
    return titles[said]


def _kind(evidence: ClassEvidence) -> str:
    if evidence.direction:
        return evidence.direction.capitalize()
    if evidence.top_is_off:
        return "Miscalibrated"
    if evidence.certain_and_wrong:
        return "Certain and wrong"
    return "Miscalibrated in single classes" if evidence.clear_lines else "Not clearly miscalibrated, yet improvable"


# ---------------------------------------------------------------- what was found


def _found(evidence: ClassEvidence) -> list[Sentence]:
    said = [*_infinite(evidence), _top_label(evidence), *_example(evidence), _classes(evidence), *_named(evidence)]
    said += _absent(evidence)
    if evidence.after is None or evidence.gain is None:
        text = "Fewer than two classes have two rows, so no map can be judged on rows that it was not fitted on."
        return [*said, Sentence("not-cross-fitted", text)]
    return [*said, *_what_the_map_does(evidence, evidence.after, evidence.gain)]


def _infinite(evidence: ClassEvidence) -> list[Sentence]:
    reason = evidence.before.log_loss.reason
    return [] if reason is None else [Sentence("infinite-log-loss", f"The log loss before the map is {reason}.")]


def _top_label(evidence: ClassEvidence) -> Sentence:
    before = evidence.before
    said, right = percent_pair(before.mean_confidence, before.accuracy)
    text = f"The likeliest class gets {said} on average and is right in {right} of the rows"
    direction = evidence.direction
    if direction:
        return Sentence(direction, f"{text}: the scores are {direction}.")
    if evidence.top_is_off:
        gap = points(before.top_error.value or 0.0)
        more = f"as it should be on the whole, but off by {gap} in a typical place: too high in some, too low in others"
        return Sentence("curved", f"{text}, {more}.")
    return Sentence("no-clear-miscalibration", f"{text}: no clear miscalibration of the top label.")


def _example(evidence: ClassEvidence) -> list[Sentence]:
    """The bin of the top label that says most about the gap."""
    if not (evidence.top_is_off or evidence.direction):
        return []
    sign = -1 if evidence.direction == "over-confident" else 1 if evidence.direction else 0
    shown = [b for b in evidence.before.reliability.bins if b.gap is not None and b.rows >= EXAMPLE_ROWS]
    shown = [b for b in shown if not sign or sign * (b.gap or 0.0) > 0]
    if not shown:
        return []
    worst: Bin = max(shown, key=lambda b: b.weight * abs(b.gap or 0.0))
    said, right = percent_pair(worst.mean_predicted or 0.0, worst.observed_rate or 0.0)
    text = f"Where it is given {said} ({counted(worst.rows, 'row')}), it is right {right} of the time."
    return [Sentence("example", text)]


def _classes(evidence: ClassEvidence) -> Sentence:
    clear, judged = evidence.clear_lines, evidence.data.classes - len(evidence.data.without_rows)
    if not clear:
        text = f"Judged one by one, none of the {count(judged)} classes is off beyond chance."
        return Sentence("no-class-off", text)
    worst = [f"“{line.name}” ({points(line.before.error.value or 0.0)})" for line in clear[:NAMED]]
    share = "all" if len(clear) == judged else count(len(clear))
    verb = "is" if len(clear) == 1 else "are"
    text = f"Judged one by one, {share} of the {count(judged)} classes {verb} off beyond chance"
    return Sentence("classes-off", f"{text}; in a typical place {joined(worst)}.")


def _named(evidence: ClassEvidence) -> list[Sentence]:
    """Classes whose mean probability is not their share, beyond chance with all classes taken together."""
    reach = NormalDist().inv_cdf(1 - 0.025 / evidence.data.classes)
    off = [
        line
        for line in evidence.lines
        if line.weight > 0 and abs(line.before.mean_predicted - line.share) > reach * line.before.mean_error
    ]
    off.sort(key=lambda line: -abs(line.before.mean_predicted - line.share))
    texts = []
    for line in off[:NAMED]:
        said, share = percent_pair(line.before.mean_predicted, line.share)
        way = "high" if line.before.mean_predicted > line.share else "low"
        texts.append(f"“{line.name}” is put too {way} on the whole ({said}, share {share})")
    return [Sentence("class-shares", joined(texts) + ".")] if texts else []


def _absent(evidence: ClassEvidence) -> list[Sentence]:
    absent = evidence.data.without_rows
    if not absent:
        return []
    listed = joined([f"“{name}”" for name in absent[:NAMED]]) if len(absent) <= NAMED else count(len(absent))
    text = f"Without a single row: {listed}{' classes' if len(absent) > NAMED else ''}. Nothing was learned about that."
    return [Sentence("classes-without-rows", text)]


def _what_the_map_does(evidence: ClassEvidence, after: ClassSide, gain: ClassGain) -> list[Sentence]:
    said = [_gain_sentence(evidence, gain)]
    if after.log_loss.reason:
        said.append(Sentence("infinite-log-loss-after", f"The log loss after the map is {after.log_loss.reason}."))
    said.append(_after_sentence(evidence, after))
    if evidence.useless_after:
        text = "Even after the map, predicting the shares of the classes for every row would do about as well."
        said.append(Sentence("worse-than-base-rate", text))
    changed = evidence.decisions.changed
    if changed:
        before, now = percent_pair(evidence.before.accuracy, after.accuracy)
        text = f"The map changes the likeliest class of {percent(changed)} of the rows; accuracy {before} before, {now}"
        said.append(Sentence("decisions-changed", text + " after."))
    return said


def _gain_sentence(evidence: ClassEvidence, gain: ClassGain) -> Sentence:
    subject = f"Judged on rows it was not fitted on, the map ({evidence.calibrator})"
    change = "from {} to {}".format(*fixed_pair(gain.baseline, gain.after))
    if gain.gain <= 0:
        return Sentence("no-gain", f"{subject} does not lower the expected {gain.measure} ({change}).")
    if not gain.clear:
        text = f"{subject} moves the expected {gain.measure} {change}; chance alone can make that difference."
        return Sentence("gain-unclear", text)
    share = percent(gain.gain / gain.baseline)
    return Sentence("gain", f"{subject} lowers the expected {gain.measure} {change}, by {share}.")


def _after_sentence(evidence: ClassEvidence, after: ClassSide) -> Sentence:
    value, high = _gap(after.top_error.value), points(after.top_error.high or 0.0)
    before = _gap(evidence.before.top_error.value)
    left = [line for line in evidence.lines if line.weight > 0 and line.after is not None and line.after.clear]
    classes = _still_off(len(left), bool(evidence.clear_lines))
    text = f"The typical gap of the top label goes from {before} to {value} (at most {high}), and {classes}."
    return Sentence("after-still-off" if (after.top_error.low or 0.0) > 0 or left else "after-calibrated", text)


def _still_off(left: int, any_before: bool) -> str:
    if left:
        return (
            "1 class is still off beyond chance" if left == 1 else f"{count(left)} classes are still off beyond chance"
        )
    return "no class is off beyond chance" + (" any more" if any_before else "")


def _gap(share: float | None) -> str:
    """A gap beyond chance, which may be none."""
    return points(share) if share and share >= LEAST_GAP else "nothing beyond chance"


# ---------------------------------------------------------------- what to do


def _advice(said: ClassVerdict, evidence: ClassEvidence) -> list[Sentence]:
    texts: dict[ClassVerdict, str] = {
        "not-cross-fitted": "Use no map yet: nothing here shows that it helps. Collect more rows of every class.",
        "no-signal": "Do not act on these scores, calibrated or not: the shares of the classes do about as well. "
        "Calibration cannot add what the scores do not know; check the labels and the order of the columns, then look "
        "for a better model.",
        "cannot-tell": f"Leave the scores alone for now and collect more rows: there are {count(evidence.data.rows)} "
        f"for {count(evidence.data.classes)} classes.",
        "map-not-enough": _other_map(evidence),
        "leave-alone": "Leave the scores alone. A map would add noise and mend nothing that these rows can show.",
        "small-gain": "Use the map if small differences matter to you; otherwise leave the scores alone.",
        "use-map": "Use the map below: fit it once on these rows and apply it to every new row of the same model, all "
        "columns together.",
    }
    more = []
    left = [line for line in evidence.lines if line.weight > 0 and line.after is not None and line.after.clear]
    if said == "use-map" and left:
        listed = joined([f"“{line.name}”" for line in left[:NAMED]])
        rest = f" and {count(len(left) - NAMED)} more" if len(left) > NAMED else ""
        text = f"Look at {listed}{rest} in the table of classes: the map does not put them right."
        more.append(Sentence("classes-left", text))
    if said in ("leave-alone", "cannot-tell", "map-not-enough") and evidence.before.log_loss.value is None:
        text = (
            "But let no probability be exactly 0: mix every row with a little of the uniform distribution, "
            "(1 − e) p + e / K with e = 1 / (N + 1), or ask the model for log-probabilities."
        )
        more.append(Sentence("no-zeros", text))
    return [Sentence(said, texts[said]), *more]


def _other_map(evidence: ClassEvidence) -> str:
    if evidence.calibrator == "AutoCalibrator":
        return (
            "The error is not of a shape that the usual maps mend on so many rows. Leave the scores alone, and look at "
            "the worst classes: what is taken for what says more than any map."
        )
    return f"Do not rely on {evidence.calibrator} here. Try AutoCalibrator, which weighs several maps."


# ---------------------------------------------------------------- what the numbers cannot say


def _limits(evidence: ClassEvidence) -> list[Sentence]:
    data = evidence.data
    said = []
    if evidence.few_rows:
        text = f"Much. There are {counted(data.rows, 'row')} for {count(data.classes)} classes: numbers are rough."
        said.append(Sentence("few-rows", text))
    said += [
        Sentence(
            "intervals",
            "Anything finer than the intervals. Those of the whole are of 95\u00a0% each; those of single classes hold "
            "for all classes together. “Not clear” is not proof that the scores are calibrated.",
        ),
        Sentence(
            "whole-rows",
            "Whether whole rows are honest. The top label and each class on its own can look right while the "
            "probabilities within a row do not fit together.",
        ),
        Sentence(
            "in-sample",
            "Whether the scores were made on rows that the model was trained on. If they were, they look better than "
            "they are, and a map learned from them is wrong for new rows. This page cannot see it.",
        ),
        Sentence(
            "population",
            f"Whether tomorrow’s rows are like these, where “{data.largest}” is {percent(data.largest_share)} of the "
            f"rows and “{data.smallest}” {percent(data.smallest_share)}. When the shares of the classes move, the "
            f"probabilities must move too.",
        ),
    ]
    if evidence.cells is not None:
        text = (
            f"Anything finer than cells. There are more different probabilities than can be kept, so those next to "
            f"each other were added up, with their mean: to {count(evidence.cells)} cells at most for the likeliest "
            f"class, and as many for all classes together."
        )
        said.append(Sentence("cells", text))
    if data.weighted:
        text = "Whether the weights are frequencies: a row of weight 2 was counted as two rows."
        said.append(Sentence("weights", text))
    return said
