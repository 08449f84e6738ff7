"""Results of the time model as files: a table (CSV), overhead against delay and a timeline (SVG)."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from html import escape

from opusc.schedule.estimate import Estimate
from opusc.schedule.simulation import Result
from opusc.schedule.timeline import Activity, Interval

__all__ = ["fixed", "overhead_csv", "overhead_svg", "timeline_svg"]

_MS = 10**9
_COLOURS = {
    Activity.COMPUTE: "#4477aa",
    Activity.TP: "#ccbb44",
    Activity.DP: "#228833",
    Activity.PP: "#aa3377",
    Activity.CP: "#66ccee",
    Activity.EP: "#ee8866",
    Activity.SWITCHING: "#cc3311",
}
_MEANING = {
    Activity.COMPUTE: "compute",
    Activity.TP: "tp, inside the domain",
    Activity.DP: "dp rings",
    Activity.PP: "pp sends",
    Activity.CP: "cp rings",
    Activity.EP: "ep all-to-all",
    Activity.SWITCHING: "its circuits change",
}
_LINES = ("#0077bb", "#ee7733", "#009988", "#cc3311")


def fixed(value: Fraction | int, digits: int) -> str:
    """A decimal with so many digits behind the point, rounded half to even."""
    scaled = round(Fraction(value) * 10**digits)
    whole, rest = divmod(abs(scaled), 10**digits)
    return ("-" if scaled < 0 else "") + f"{whole:,}" + (f".{rest:0{digits}}" if digits else "")


def overhead_csv(estimate: Estimate) -> str:
    """One row for each policy and delay. Times in picoseconds, overheads as ratios; `exposed`: time in which a stage
    does not compute."""
    stages = range(len(estimate.all_links.exposed))
    head = ["policy", "delay_ps", "iteration_ps", "overhead", "overhead_at_zero_delay", "overhead_added"]
    head += ["changes", "changes_on_critical_path", *(f"exposed_stage_{s}_ps" for s in stages)]
    links = estimate.all_links
    rows: list[list[str | int]] = [["all_links", 0, links.iteration, *[fixed(0, 9)] * 3, 0, 0, *links.exposed]]
    for row in estimate.rows:
        ratios = [fixed(ratio, 9) for ratio in (row.overhead, row.at_zero, row.added)]
        rows.append([row.policy, row.delay, row.iteration, *ratios, row.changes, row.visible, *row.exposed])
    lines = [",".join(head), *(",".join(str(cell) for cell in line) for line in rows)]
    return "\n".join(lines) + "\n"


def overhead_svg(estimate: Estimate, title: str) -> str:
    """Overhead (%) against the delay of a change (ms): a line for each policy, a dot for each simulation."""
    width, height, left, top, right, bottom = 760, 440, 70, 50, 150, 60
    plot_w, plot_h = width - left - right, height - top - bottom
    last = max(row.delay for row in estimate.rows) or _MS
    low = min(Fraction(0), *(row.overhead for row in estimate.rows))
    high = max(Fraction(1, 1000), *(row.overhead for row in estimate.rows))
    marks = _ticks(low * 100, high * 100)
    low, high = min(low, marks[0] / 100), max(high, marks[-1] / 100)

    def x(delay: Fraction | int) -> str:
        return fixed(left + Fraction(delay) * plot_w / last, 1).replace(",", "")

    def y(ratio: Fraction) -> str:
        return fixed(top + (high - ratio) * plot_h / (high - low), 1).replace(",", "")

    out = [_text(left, 26, title, "start", 15)]
    for mark in marks:
        out.append(_line(left, y(mark / 100), width - right, y(mark / 100), "#dddddd"))
        out.append(_text(left - 8, y(mark / 100), f"{_short(mark)} %", "end", dy="0.35em"))
    for mark in _ticks(Fraction(0), Fraction(last, _MS)):
        if mark * _MS <= last:
            out.append(_line(x(mark * _MS), height - bottom, x(mark * _MS), height - bottom + 5, "#444444"))
            out.append(_text(x(mark * _MS), height - bottom + 20, _short(mark), "middle"))
    out.append(_line(left, height - bottom, width - right, height - bottom, "#444444"))
    out.append(_text(left + plot_w // 2, height - 16, "delay of a change, ms", "middle"))
    names = list(dict.fromkeys(row.policy for row in estimate.rows))
    taken: list[Fraction] = []
    for at, name in enumerate(names):
        rows = [row for row in estimate.rows if row.policy == name]
        colour = _LINES[at % len(_LINES)]
        points = " ".join(f"{x(row.delay)},{y(row.overhead)}" for row in rows)
        out.append(f'<polyline class="policy" fill="none" stroke="{colour}" stroke-width="2" points="{points}"/>')
        out += [f'<circle fill="{colour}" r="3.5" cx="{x(r.delay)}" cy="{y(r.overhead)}"/>' for r in rows]
        place = Fraction(y(rows[-1].overhead))
        while any(abs(place - other) < 16 for other in taken):
            place -= 16
        taken.append(place)
        out.append(_text(x(last), fixed(place, 1), name, "start", dx=10, dy="0.35em", colour=colour))
    return _document(width, height, title, out)


def timeline_svg(result: Result, title: str) -> str:
    """What each stage does when: a row for compute, for each kind of traffic, and for changes of its circuits.
    Where a stage has no bar at all it waits. Bars closer than a quarter of a pixel are joined."""
    width, left, top, row_h, gap = 1200, 100, 70, 13, 16
    found = {interval.activity for lane in result.timelines for interval in lane}
    shown = {a: c for a, c in _COLOURS.items() if a in found or a not in (Activity.CP, Activity.EP)}
    lane_h = row_h * len(shown) + gap
    height = top + lane_h * len(result.timelines) + 50
    plot_w = width - left - 20
    end = max(result.iteration, 1)

    def x(time: int) -> Fraction:
        return left + Fraction(time * plot_w, end)

    out = [_text(left, 26, title, "start", 15)]
    across = left
    for activity, colour in shown.items():
        out.append(f'<rect x="{across}" y="40" width="12" height="12" fill="{colour}"/>')
        out.append(_text(across + 17, 50, _MEANING[activity], "start"))
        across += 45 + 7 * len(_MEANING[activity])
    for mark in _ticks(Fraction(0), Fraction(end, _MS), 8):
        if mark * _MS <= end:
            at = fixed(x(int(mark * _MS)), 1).replace(",", "")
            out.append(_line(at, top - 6, at, height - 40, "#e4e4e4"))
            out.append(_text(at, height - 24, _short(mark), "middle"))
    out.append(_text(left + plot_w // 2, height - 6, "ms since the iteration began", "middle"))
    for stage, lane in enumerate(result.timelines):
        base = top + stage * lane_h
        out.append(_text(left - 10, base + lane_h // 2 - gap // 2, f"stage {stage}", "end", 13, dy="0.35em"))
        for row, (activity, colour) in enumerate(shown.items()):
            y = base + row * row_h
            out.append(f'<rect x="{left}" y="{y}" width="{plot_w}" height="{row_h - 2}" fill="#f6f6f6"/>')
            bars = [i for i in lane if i.activity is activity]
            for start, stop in _joined(bars, Fraction(end, 4 * plot_w)):
                wide = max(x(stop) - x(start), Fraction(1, 2))
                out.append(
                    f'<rect class="{activity}" x="{_plain(x(start))}" y="{y}" width="{_plain(wide)}" '
                    f'height="{row_h - 2}" fill="{colour}"/>'
                )
    return _document(width, height, title, out)


def _joined(intervals: Iterable[Interval], apart: Fraction) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for interval in intervals:
        if interval.end == interval.start:
            continue
        if found and interval.start - found[-1][1] <= apart:
            found[-1] = (found[-1][0], max(found[-1][1], interval.end))
        else:
            found.append((interval.start, interval.end))
    return found


def _ticks(low: Fraction, high: Fraction, count: int = 5) -> list[Fraction]:
    """Round numbers from at most `low` to at least `high`, about `count` of them."""
    step = Fraction(1, 10**9)
    rounds = (1, 2, 5)
    at = 0
    while (high - low) / step > count:
        at += 1
        step = Fraction(rounds[at % 3] * 10 ** (at // 3), 10**9)
    first = low // step
    marks = [first * step]
    while marks[-1] < high:
        marks.append(marks[-1] + step)
    return marks


def _short(value: Fraction) -> str:
    text = fixed(value, 6)
    return text.rstrip("0").rstrip(".")


def _plain(value: Fraction) -> str:
    return fixed(value, 2).replace(",", "")


def _line(x1: object, y1: object, x2: object, y2: object, colour: str) -> str:
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{colour}"/>'


def _text(
    x: object, y: object, text: str, anchor: str, size: int = 12, dx: int = 0, dy: str = "0", colour: str = "#222222"
) -> str:
    return (
        f'<text x="{x}" y="{y}" dx="{dx}" dy="{dy}" text-anchor="{anchor}" font-size="{size}" fill="{colour}">'
        f"{escape(text)}</text>"
    )


def _document(width: int, height: int, title: str, items: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif">\n<title>{escape(title)}</title>\n'
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n'
    )
    return head + "\n".join(items) + "\n</svg>\n"
