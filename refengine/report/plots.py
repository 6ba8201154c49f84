"""Plots as inline SVG, drawn from a finding's tables.

Drawn by hand rather than by a plotting library: the same table gives the same bytes on every machine, colours come from
the page (light and dark), text stays text. `Markup.format` escapes whatever comes from a finding.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from markupsafe import Markup

Columns = dict[str, list[Any]]
WIDTH = 360
LAW_ROWS = 16  # outcomes shown one by one; the others are added up in a last row
EVIDENCE_POINTS = 300
DECADES = 8  # of the bars of magnitudes
QUARTERS = (0, 0.25, 0.5, 0.75, 1)
Z = 1.96
SWEPT = ("drafts a round", "tokens a round", "positions a token")


@dataclass(frozen=True)
class Frame:
    """The data window of a plot and where it lies on the paper."""

    x: tuple[float, float]
    y: tuple[float, float]
    left: float = 40
    right: float = WIDTH - 18
    top: float = 24
    bottom: float = 172
    height: int = 206

    def px(self, x: float) -> float:
        return round(self.left + (x - self.x[0]) / (self.x[1] - self.x[0]) * (self.right - self.left), 2)

    def py(self, y: float) -> float:
        return round(self.bottom - (y - self.y[0]) / (self.y[1] - self.y[0]) * (self.bottom - self.top), 2)


def number(value: Any) -> float:
    """A cell as a float: a count, a float, an exact fraction as text, or a stored Quantity."""
    if isinstance(value, dict):
        return float(value["value"])
    return float(Fraction(value)) if isinstance(value, str) else float(value)


def short(value: float) -> str:
    """A few significant digits, without a ragged exponent."""
    if value == 0:
        return "0"
    if value < 0:
        return f"−{short(-value)}"
    if value >= 1e5 or value < 1e-3:
        mantissa, exponent = f"{value:.2e}".split("e")
        return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
    return f"{value:.0f}" if value >= 1e4 else f"{value:.4g}"


def _svg(height: float, label: str, parts: Sequence[Markup]) -> Markup:
    return Markup('<svg class="plot" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        WIDTH, height, label, Markup("").join(parts)
    )


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> Markup:
    return Markup('<text x="{}" y="{}" class="{}" text-anchor="{}">{}</text>').format(
        round(x, 2), round(y, 2), kind, anchor, text
    )


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    return Markup('<line x1="{}" y1="{}" x2="{}" y2="{}" class="{}"/>').format(
        round(x1, 2), round(y1, 2), round(x2, 2), round(y2, 2), kind
    )


def _rect(x: float, y: float, width: float, height: float, kind: str) -> Markup:
    return Markup('<rect x="{}" y="{}" width="{}" height="{}" class="{}"/>').format(
        round(x, 2), round(y, 2), round(width, 2), round(height, 2), kind
    )


def _diamond(x: float, y: float) -> Markup:
    return Markup('<path d="M{} {}l5 5l-5 5l-5 -5z" class="hollow"/>').format(x, round(y - 5, 2))


def ticks(low: float, high: float, about: int = 4) -> list[float]:
    """Round values between low and high, about that many."""
    raw = (high - low) / about
    scale = 10.0 ** math.floor(math.log10(raw))
    step = next(m * scale for m in (1, 2, 5, 10) if m * scale >= raw * (1 - 1e-9))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [k * step for k in range(first, last + 1)]


def _axes(frame: Frame, x_ticks: Sequence[float], y_ticks: Sequence[float], x_name: str, y_name: str) -> list[Markup]:
    parts = []
    for y in y_ticks:
        parts.append(_line(frame.left, frame.py(y), frame.right, frame.py(y), "grid"))
        parts.append(_text(frame.left - 6, frame.py(y) + 3.5, short(y), "tick", "end"))
    for x in x_ticks:
        parts.append(_text(frame.px(x), frame.bottom + 15, short(x), "tick", "middle"))
    parts.append(_line(frame.left, frame.bottom, frame.right, frame.bottom, "axis"))
    parts.append(_text(frame.right, frame.height - 4, x_name, "name", "end"))
    parts.append(_text(0, 11, y_name, "name"))
    return parts


def law(columns: Columns) -> Markup:
    """Target (tick) against observed (bar), one row per outcome; either may be counts, so both are normalised."""
    rows = list(zip(columns["outcome"], _shares(columns["target"]), _shares(columns["observed"]), strict=True))
    if len(rows) > LAW_ROWS + 1:
        kept = set(sorted(range(len(rows)), key=lambda i: -max(rows[i][1:]))[:LAW_ROWS])
        rest = [row for i, row in enumerate(rows) if i not in kept]
        others = (f"{len(rest)} others", sum(row[1] for row in rest), sum(row[2] for row in rest))
        rows = [row for i, row in enumerate(rows) if i in kept] + [others]
    most = max((max(p, seen) for _, p, seen in rows), default=0) or 1
    left, right, pitch = 92, WIDTH - 62, 20
    parts = [_text(WIDTH, 12, "observed − target", "name", "end"), _text(0, 12, "outcome", "name")]
    for i, (outcome, p, seen) in enumerate(rows):
        y = 20 + i * pitch
        parts.append(_text(0, y + 13, _label(outcome), "label"))
        parts.append(_rect(left, y + 4, seen / most * (right - left), 11, "observed"))
        parts.append(_line(left + p / most * (right - left), y + 1, left + p / most * (right - left), y + 18, "target"))
        parts.append(_text(WIDTH, y + 13, _signed(seen - p), "value", "end"))
    parts.append(_line(left, 20, left, 22 + len(rows) * pitch, "axis"))
    foot = 22 + len(rows) * pitch + 16
    parts += [_rect(left, foot - 9, 14, 9, "observed"), _text(left + 20, foot, "observed", "name")]
    parts += [_line(left + 90, foot - 12, left + 90, foot + 2, "target"), _text(left + 97, foot, "target", "name")]
    distance = sum(abs(p - seen) for _, p, seen in rows) / 2
    return _svg(foot + 8, f"law of {len(rows)} outcomes against the target, distance {short(distance)}", parts)


def _label(outcome: Any) -> str:
    """Tokens separated by blanks, cut to what the margin holds."""
    text = " ".join(map(str, outcome)) or "(empty)" if isinstance(outcome, list) else str(outcome)
    return text if len(text) <= 13 else f"{text[:12]}…"


def _signed(gap: float) -> str:
    """Two significant digits and a sign; 0 below what normalising in floats can leave over."""
    if abs(gap) < 5e-13:
        return "0"
    return ("+" if gap > 0 else "") + short(float(f"{gap:.1e}"))


def _shares(column: Sequence[Any]) -> list[float]:
    values = [number(cell) for cell in column]
    total = sum(values)
    return [value / total for value in values] if total > 0 else values


def evidence(columns: Columns) -> Markup:
    """log10 of the wealth of the bets against the null, by draws; above the threshold the null is given up."""
    points = list(zip(map(number, columns["draws"]), map(number, columns["log10_wealth"]), strict=True))
    stride = max(1, len(points) // EVIDENCE_POINTS)
    points = points[::stride] + (points[-1:] if (len(points) - 1) % stride else [])
    threshold = number(columns["log10_threshold"][-1]) if columns.get("log10_threshold") else None
    heights = [y for _, y in points] + [0.0] + ([threshold] if threshold is not None else [])
    low, high = min(heights), max(heights)
    pad = 0.08 * (high - low or 1)
    frame = Frame((0, max(points[-1][0], 1)), (low - pad, high + pad))
    parts = _axes(frame, ticks(*frame.x), ticks(*frame.y), "draws", "log₁₀ evidence against the null")
    if threshold is not None:
        parts.append(_line(frame.left, frame.py(threshold), frame.right, frame.py(threshold), "threshold"))
        parts.append(_text(frame.left + 4, frame.py(threshold) - 4, "violated above", "alarm"))
    path = "".join(f"{'L' if i else 'M'}{frame.px(x)} {frame.py(y)}" for i, (x, y) in enumerate(points))
    parts.append(Markup('<path d="{}" class="curve"/>').format(path))
    x, y = points[-1]
    parts.append(_dot(frame.px(x), frame.py(y)))
    parts.append(_text(frame.px(x) - 7, frame.py(y) - 7, short(y), "value", "end"))
    return _svg(frame.height, f"evidence after {short(x)} draws: 10 to the {short(y)}", parts)


def acceptance(columns: Columns) -> Markup:
    """The share accepted at each position of the block (dots) against that of the rows there (diamonds)."""
    frame, every = _positions(columns), max(1, math.ceil(len(columns["position"]) / 10))
    parts = _axes(
        frame, columns["position"][::every], QUARTERS, "position in the block", "share accepted, where reached"
    )
    for before, after in itertools.pairwise(zip(columns["position"], columns["expected"], strict=True)):
        (x, y), (x2, y2) = ([number(v) for v in point] for point in (before, after))
        parts.append(_line(frame.px(x), frame.py(y), frame.px(x2), frame.py(y2), "dashed"))
    parts += _accepted(frame, columns, "position", "expected")
    return _svg(frame.height, f"acceptance at {len(columns['position'])} positions against what is expected", parts)


def reliability(columns: Columns) -> Markup:
    """By stated confidence: the accepted share (dots) and the mean of 1 - TV (diamonds), which a right one equals."""
    frame = Frame((0, 1), (0, 1))
    parts = _axes(frame, QUARTERS, QUARTERS, "confidence, as stated", "share accepted")
    parts.append(_line(frame.px(0), frame.py(0), frame.px(1), frame.py(1), "dashed"))
    parts += _accepted(frame, columns, "confidence", "1 − TV")
    return _svg(frame.height, f"acceptance in {len(columns['confidence'])} bins of the stated confidence", parts)


def survival(columns: Columns) -> Markup:
    """The share of rounds whose first drafts were all accepted (dots) beside the product of the confidences."""
    frame = _positions(columns)
    parts = _axes(frame, columns["position"], QUARTERS, "position in the block", "share of rounds")
    parts += _accepted(frame, columns, "position", "product")
    return _svg(frame.height, f"survival along {len(columns['position'])} positions", parts)


def _positions(columns: Columns) -> Frame:
    return Frame((min(columns["position"]) - 0.5, max(columns["position"]) + 0.5), (0, 1))


def _accepted(frame: Frame, columns: Columns, across: str, diamonds: str) -> list[Markup]:
    """What is expected (diamonds) and accepted (dots), with a bar where it is known of how many; and the key."""
    parts = [_diamond(frame.right - 148, 7.5), _text(frame.right - 139, 11, diamonds, "name")]
    parts += [_dot(frame.right - 74, 7.5), _text(frame.right - 66, 11, "accepted", "name")]
    counts = columns.get("count", [None] * len(columns[across]))
    for x, expected, seen, n in zip(columns[across], columns["expected"], columns["observed"], counts, strict=True):
        at, share = frame.px(number(x)), number(seen)
        if n is not None:
            low, high = wilson(share, number(n))
            parts.append(_line(at, frame.py(low), at, frame.py(high), "curve"))
        parts += [_diamond(at, frame.py(number(expected))), _dot(at, frame.py(share))]
    return parts


def wilson(share: float, n: float) -> tuple[float, float]:
    """Wilson's interval (1927) of a share of n independent draws: it holds the probability 95 times of 100."""
    middle, half = share + Z**2 / (2 * n), Z * math.sqrt(share * (1 - share) / n + Z**2 / (4 * n**2))
    return (middle - half) / (1 + Z**2 / n), (middle + half) / (1 + Z**2 / n)


def sweep(columns: Columns) -> Markup:
    """By threshold: drafts proposed a round (dashed), tokens a round (line), positions computed a token (dots)."""
    rows = list(zip(*(map(number, columns[name]) for name in ("threshold", "proposed", "tau", "cost")), strict=True))
    most = max(max(row[1:]) for row in rows)
    frame = Frame((0, rows[-1][0] or 1), (0, most * 1.1), right=WIDTH - 96)  # names beside the lines
    parts = _axes(frame, [row[0] for row in rows], ticks(*frame.y), "confidence threshold", "mean number")
    for column, kind in ((1, "dashed"), (2, "curve"), (3, "target")):
        for a, b in itertools.pairwise(rows):
            parts.append(_line(frame.px(a[0]), frame.py(a[column]), frame.px(b[0]), frame.py(b[column]), kind))
    parts += [_dot(frame.px(row[0]), frame.py(row[3])) for row in rows]
    parts += _names(
        frame.px(rows[-1][0]) + 6, [(frame.py(y), name) for y, name in zip(rows[-1][1:], SWEPT, strict=True)]
    )
    return _svg(frame.height, f"{len(rows)} thresholds: {', '.join(SWEPT)}", parts)


def _names(x: float, ends: Sequence[tuple[float, str]]) -> list[Markup]:
    """The names of lines beside their ends, none upon another, and none under the lowest end."""
    feet = list[float]()
    for y, _ in sorted(ends, reverse=True):
        feet.append(min(y + 3.5, feet[-1] - 12 if feet else math.inf))
    return [_text(x, foot, name, "name") for foot, (_, name) in zip(feet, sorted(ends, reverse=True), strict=True)]


def _dot(x: float, y: float) -> Markup:
    return Markup('<circle cx="{}" cy="{}" r="3.5" class="dot"/>').format(x, y)


def calibration(columns: Columns) -> Markup:
    """The share of correct samplers whose evidence ever reached a bar (dots), under Ville's bound (line)."""
    names = ("log10_bar", "reached", "allowed")
    rows = list(zip(*(map(number, columns[name]) for name in names), strict=True))
    frame = Frame((min(row[0] for row in rows), max(row[0] for row in rows)), (0, 1))
    name = "log₁₀ of the evidence that was reached"
    parts = _axes(frame, ticks(*frame.x), QUARTERS, name, "share of correct samplers")
    for before, after in itertools.pairwise(rows):
        parts.append(_line(frame.px(before[0]), frame.py(before[2]), frame.px(after[0]), frame.py(after[2]), "dashed"))
    for bar, seen, _ in rows:
        parts.append(_dot(frame.px(bar), frame.py(seen)))
    parts.append(_text(frame.right, 11, "dashed: what the bound allows", "name", "end"))
    return _svg(frame.height, f"evidence reached by correct samplers at {len(rows)} bars", parts)


def power(columns: Columns) -> Markup:
    """Calls to detection against nats a call, both on log scales; the line is the fewest that are possible."""
    rows = [
        (math.log10(max(number(nats), 1e-6)), math.log10(max(number(calls), 1.0)))
        for nats, calls in zip(columns["nats_a_call"], columns["calls"], strict=True)
    ]
    nats, fewest = (number(columns[name][0]) for name in ("nats_a_call", "fewest"))
    least = math.log10(nats * fewest)  # log(1/alpha) in nats, the same for every defect
    low, high = math.floor(min(x for x, _ in rows)), math.ceil(max(x for x, _ in rows) + 1e-9)
    frame = Frame((low, high), (0, math.ceil(max(max(y for _, y in rows), least - low))))
    whole = [list(range(int(a), int(b) + 1)) for a, b in (frame.x, frame.y)]
    parts = _axes(frame, whole[0], whole[1], "log₁₀ of nats a call", "log₁₀ of calls until found")
    end = min(float(high), least)
    parts.append(_line(frame.px(low), frame.py(least - low), frame.px(end), frame.py(least - end), "dashed"))
    for x, y in rows:
        parts.append(_dot(frame.px(x), frame.py(y)))
    parts.append(_text(frame.right, 11, "dashed: the fewest possible", "name", "end"))
    return _svg(frame.height, f"calls until {len(rows)} defects were found", parts)


def growth(columns: Columns) -> Markup:
    """How a cost grows: one line a series, both axes on log scales; bars are the smallest and the largest of the turns,
    where a row gives them."""
    names = ("series", "x", "y", "low", "high")
    rows = [(str(s), [number(v) for v in rest]) for s, *rest in zip(*(columns[name] for name in names), strict=True)]
    xs, ys = [math.log10(row[0]) for _, row in rows], [math.log10(v) for _, row in rows for v in row[1:]]
    frame = Frame(_padded(xs), _padded(ys), right=WIDTH - 74)
    parts = _axes(frame, [], [], columns["x name"][0], columns["y name"][0])
    for log in sorted(set(xs)):
        parts.append(_text(frame.px(log), frame.bottom + 15, short(round(10**log, 9)), "tick", "middle"))
    for log in range(math.ceil(frame.y[0]), math.floor(frame.y[1]) + 1):
        parts.append(_line(frame.left, frame.py(log), frame.right, frame.py(log), "grid"))
        parts.append(_text(frame.left - 6, frame.py(log) + 3.5, short(10.0**log), "tick", "end"))
    ends = []
    for name in dict.fromkeys(name for name, _ in rows):
        points = [[math.log10(v) for v in row] for of, row in sorted(rows) if of == name]
        points = [[frame.px(x), *map(frame.py, more)] for x, *more in points]
        for before, after in itertools.pairwise(points):
            parts.append(_line(before[0], before[1], after[0], after[1], "dashed"))
        for x, y, low, high in points:
            parts += [_line(x, low, x, high, "axis"), _dot(x, y)]
        ends.append((points[-1][1], _label(name)))
    parts += _names(frame.right + 8, ends)
    return _svg(frame.height, f"{columns['y name'][0]} by {columns['x name'][0]}, {len(rows)} points", parts)


def _padded(logs: Sequence[float]) -> tuple[float, float]:
    """A window around values on a log scale."""
    low, high = min(logs), max(logs)
    return low - 0.05 * (high - low) - 0.1, high + 0.05 * (high - low) + 0.1


def magnitude(tv: float) -> Markup:
    """A total variation on a log scale of DECADES, so that 2^-24 does not look like 0.45."""
    share = 0.0 if tv <= 0 else min(1.0, max(0.02, 1 + math.log10(tv) / DECADES))
    return Markup('<svg class="gauge" viewBox="0 0 80 6" aria-hidden="true">{}{}</svg>').format(
        _rect(0, 1.5, 80, 3, "rail"), _rect(0, 0, 80 * share, 6, "amount")
    )


def scale() -> Markup:
    """The axis of the bars that `magnitude` draws, to stand above a column of them."""
    parts = [_line(0, 19, 80, 19, "axis")]
    for decade, anchor in ((-DECADES, "start"), (-DECADES // 2, "middle"), (0, "end")):
        x = 80 * (1 + decade / DECADES)
        parts.append(_line(min(max(x, 0.5), 79.5), 15, min(max(x, 0.5), 79.5), 19, "axis"))
        parts.append(_text(x, 11, f"1e{decade}" if decade else "1", "tick", anchor))
    return Markup('<svg class="scale" viewBox="0 0 80 20" role="img" aria-label="{}">{}</svg>').format(
        f"log scale from 1e-{DECADES} to 1", Markup("").join(parts)
    )


PLOTS: dict[str, Callable[[Columns], Markup]] = {
    "law": law,
    "evidence": evidence,
    "acceptance": acceptance,
    "reliability": reliability,
    "survival": survival,
    "sweep": sweep,
    "calibration": calibration,
    "power": power,
}


def plot(name: str, columns: Columns) -> Markup | None:
    """The plot of a table; None for a table that is not drawn or has no rows."""
    if name not in PLOTS or not next(iter(columns.values())):
        return None
    return PLOTS[name](columns)
