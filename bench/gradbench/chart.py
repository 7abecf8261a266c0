"""Draws what `run.py` has measured: the time of each derivative, one row for each size of a problem, on a logarithmic axis. Plain SVG.

    python3 bench/gradbench/chart.py results.json chart.svg
"""

import json
import math
import sys
from html import escape

WIDTH, LEFT, RIGHT, TOP, ROW, APART = 1000, 222, 124, 96, 36, 11
FONT = "font-family: system-ui, 'DejaVu Sans', sans-serif"

# Marks differ in form as well as in colour; the colours keep their contrast on both backgrounds.
FORMS = {
    "circle": "M-5,0a5,5 0 1,0 10,0a5,5 0 1,0 -10,0z",
    "diamond": "M0,-6.2L6.2,0L0,6.2L-6.2,0z",
    "square": "M-4.4,-4.4h8.8v8.8h-8.8z",
    "up": "M0,-5.6L5.6,4.4H-5.6z",
    "down": "M0,5.6L5.6,-4.4H-5.6z",
    "cross": "M-5,-3L-3,-5L0,-2L3,-5L5,-3L2,0L5,3L3,5L0,2L-3,5L-5,3L-2,0z",
    "plus": "M-1.5,-5.5h3v4h4v3h-4v4h-3v-4h-4v-3h4z",
    "bar": "M-2,-6h4v12h-4z",
}
MARKS = {
    "gradus-c": ("circle", "#e0523d", "Gradus, C"),
    "gradus-native": ("circle", "#f0a03c", "Gradus, native"),
    "hand": ("diamond", "#7f8794", "C by hand"),
    "jax": ("square", "#3d8fe0", "JAX"),
    "torch": ("up", "#b06fd8", "PyTorch"),
    "casadi": ("down", "#2fa37c", "CasADi"),
    "adolc": ("plus", "#d0679d", "ADOL-C"),
    "dual": ("cross", "#a08a2e", "num-dual (Rust)"),
}
# For tools that are not among these.
OTHERS = [("bar", "#5f9ea0"), ("square", "#a0785a"), ("up", "#6f8f3d"), ("down", "#8a7fd0")]

# The background belongs to the picture, so that it can be read wherever it is shown.
STYLE = f"""
  text {{ {FONT}; font-size: 13px; fill: #24292f }}
  .title {{ font-size: 17px; font-weight: 600 }}
  .small {{ font-size: 12px; fill: #59636e }}
  .problem {{ font-weight: 600 }}
  .ground {{ fill: #ffffff }}
  .band {{ fill: #f4f6f8 }}
  .grid {{ stroke: #d5dae0; stroke-width: 1 }}
  .range {{ stroke: #c3cad2; stroke-width: 1 }}
  .mark {{ stroke: #ffffff; stroke-width: 0.8 }}
  @media (prefers-color-scheme: dark) {{
    text {{ fill: #e6edf3 }}
    .small {{ fill: #9aa5b1 }}
    .ground {{ fill: #11151a }}
    .band {{ fill: #181e25 }}
    .grid {{ stroke: #303843 }}
    .range {{ stroke: #46505c }}
    .mark {{ stroke: #11151a }}
  }}
"""


def unit(seconds):
    for name, scale in (("s", 1), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale * 0.999:
            return f"{seconds / scale:g} {name}"
    return f"{seconds / 1e-9:g} ns"


def derivative(record):
    """Its time: the second function of a problem, and the best where all are derivatives; None if there was no answer."""
    if "error" in record or max(record["differences"].values()) > 1e-4:
        return None
    times = list(record["times"].values())
    return times[1] if len(times) == 2 else min(times)


def marks_of(records):
    """The tools in the order of the legend, with form, colour and label of each."""
    tools = dict.fromkeys(r["tool"] for r in records)
    others = [tool for tool in tools if tool not in MARKS]
    return {t: m for t, m in MARKS.items() if t in tools} | {t: (*OTHERS[i % len(OTHERS)], t) for i, t in enumerate(others)}


def swarm(places):
    """Marks that would cover each other go beside the line; the first stay on it."""
    found = {}
    for tool, x in places.items():
        free = lambda y: all(math.hypot(x - other_x, y - other_y) >= APART for other_x, other_y in found.values())
        found[tool] = x, next((y for y in (0, -APART, APART) if free(y)), 0)
    return found


def mark(form, colour, x, y, faint=False):
    opacity = ' opacity="0.45"' if faint else ""
    return f'<path class="mark" d="{FORMS[form]}" fill="{colour}"{opacity} transform="translate({x:.1f},{y:.1f})"/>'


def svg(records):
    tools, rows = marks_of(records), {}
    for r in records:
        rows.setdefault((r["problem"], r["case"]), {})[r["tool"]] = derivative(r)
    known = [seconds for row in rows.values() for seconds in row.values() if seconds]
    if not known:
        raise ValueError("nothing was measured that could be drawn")
    low, high = math.floor(math.log10(min(known))), math.ceil(math.log10(max(known)))
    right, bottom = WIDTH - RIGHT, TOP + ROW * len(rows)
    height = bottom + 34
    at = lambda seconds: LEFT + (math.log10(seconds) - low) / max(high - low, 1) * (right - LEFT)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">',
        "<title>Time of each derivative by problem and tool</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="ground" width="{WIDTH}" height="{height}" rx="6"/>',
        '<text class="title" x="18" y="30">Time of a derivative</text>',
        f'<text class="small" text-anchor="end" x="{WIDTH - 18}" y="30">CPU time, one thread, logarithmic: further left is faster</text>',
    ]
    x = 24
    for form, colour, label in tools.values():
        out += [mark(form, colour, x, 56), f'<text x="{x + 11}" y="60.5">{escape(label)}</text>']
        x += 40 + 7.4 * len(label)
    problems = list(dict.fromkeys(problem for problem, _ in rows))
    for i, (problem, _) in enumerate(rows):
        if problems.index(problem) % 2 == 0:
            out.append(f'<rect class="band" y="{TOP + ROW * i}" width="{WIDTH}" height="{ROW}"/>')
    for power in range(low, high + 1):
        x = at(10.0**power)
        out.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{bottom}"/>')
        for y in (TOP - 8, bottom + 20):
            out.append(f'<text class="small" text-anchor="middle" x="{x:.1f}" y="{y}">{unit(10.0**power)}</text>')
    beside = (right + WIDTH) / 2 + 4
    if any(None in row.values() for row in rows.values()):
        for y in (TOP - 8, bottom + 20):
            out.append(f'<text class="small" text-anchor="middle" x="{beside}" y="{y}">no answer</text>')
    for i, ((problem, case), row) in enumerate(rows.items()):
        middle = TOP + ROW * i + ROW / 2
        if i == 0 or list(rows)[i - 1][0] != problem:
            out.append(f'<text class="problem" x="18" y="{middle + 4.5}">{escape(problem)}</text>')
        out.append(f'<text class="small" text-anchor="end" x="{LEFT - 14}" y="{middle + 4}">{escape(short(case))}</text>')
        places = swarm({tool: at(row[tool]) for tool in tools if row.get(tool)})
        if places:
            ends = [x for x, _ in places.values()]
            out.append(f'<line class="range" x1="{min(ends):.1f}" x2="{max(ends):.1f}" y1="{middle}" y2="{middle}"/>')
        out += [mark(*tools[tool][:2], x, middle + y) for tool, (x, y) in reversed(places.items())]
        absent = [tool for tool in tools if tool in row and row[tool] is None]
        for k, tool in enumerate(absent):
            out.append(mark(*tools[tool][:2], beside + 14 * (k - (len(absent) - 1) / 2), middle, faint=True))
    return "\n".join(out + ["</svg>", ""])


def short(case):
    """A label that fits: the files of `ba` and `ht` by their names."""
    return case.split("_n")[0].split("_t26")[0]


def write(records, path):
    with open(path, "w") as file:
        file.write(svg(records))


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        write(json.load(file), sys.argv[2])
