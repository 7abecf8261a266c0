#!/usr/bin/env python3
"""Runs Gradus and its peers on the twelve problems of GradBench, checks every result, and writes a table.

    python3 bench/gradbench/run.py --peers --size ends --table table.md --chart chart.svg
    python3 bench/gradbench/run.py --tool gradus='gradus gradbench --backend c' --tool jax='python3 bench/gradbench/peers/jax_tool.py'

With `--peers` the tools are those of `catalogue.py` that are installed; any other command that speaks the tool side of the protocol is one, too. Every
tool gets the same inputs. Its results must agree with the independent check of the problem (complex steps through numpy, closed forms) at 1e-9 and,
where a tool works in other ways, at the suite's own 1e-4.
Times are the least CPU time of a run where the tool tells it, else the least time of a run.
"""

import argparse
import json
import select
import shlex
import subprocess
import sys
import time

import numpy as np

import catalogue
import chart
import problems

SUITE = 1e-4  # what the suite accepts
OURS = 1e-9


class Array(json.JSONEncoder):
    def default(self, value):
        return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else super().default(value)


class Tool:
    """A process that answers messages; started anew after it was too slow."""

    def __init__(self, name, command, limit):
        self.name, self.command, self.limit, self.process, self.id = name, command, limit, None, 0

    def start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.id = 0
        if self.ask({"kind": "start"}) is None:
            sys.exit(f"{self.name} does not start: {shlex.join(self.command)}")

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def ask(self, message):
        """The answer; None if it takes longer than the limit or the tool dies."""
        if self.process is None:
            self.start()
        line = json.dumps({"id": self.id, **message}, cls=Array).encode() + b"\n"
        try:
            self.process.stdin.write(line)
            self.process.stdin.flush()
        except BrokenPipeError:
            self.stop()
            return None
        parts, end = [], time.time() + self.limit
        while not parts or not parts[-1].endswith(b"\n"):
            if not select.select([self.process.stdout], [], [], max(0, end - time.time()))[0]:
                self.stop()
                return None
            part = self.process.stdout.read1(1 << 20)
            if not part:
                self.stop()
                return None
            parts.append(part)
        answer = json.loads(b"".join(parts))
        assert answer["id"] == self.id, f"{self.name} answers {answer['id']} to {self.id}"
        self.id += 1
        return answer


def least(answer):
    """Seconds of the best run: of the processor if known, else by the clock."""
    named = lambda name: [t["nanoseconds"] for t in answer["timings"] if t["name"] == name]
    return min(named("least_cpu") or named("evaluate")) / 1e9


def show(seconds):
    for unit, scale in (("s", 1), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"


def run_case(tool, name, case, seconds):
    """The cell of the table and whether the results hold."""
    outputs, times, problem = {}, {}, None
    for function in case.functions:
        input = case.input
        if isinstance(input, dict):
            input = {**input, "min_runs": 3, "min_seconds": seconds}
        answer = tool.ask({"kind": "evaluate", "module": name, "function": function, "input": input, "description": case.label})
        if answer is None:
            problem = f"{function}: no answer within {tool.limit} s"
            break
        if not answer["success"]:
            problem = f"{function}: {answer.get('error', 'failed').splitlines()[0]}"
            break
        outputs[function], times[function] = answer["output"], least(answer)
    record = {"tool": tool.name, "problem": name, "case": case.label, "times": times}
    if problem:
        record["error"] = problem
        return " / ".join(show(t) for t in times.values()) + (" / -" if times else "-"), record
    differences = case.check(outputs)
    record["differences"] = dict(differences)
    worst = max(difference for _, difference in differences)
    mark = "" if worst <= OURS else "~" if worst <= SUITE else "*"
    cell = " / ".join(show(t) for t in times.values())
    if len(times) == 2:
        first, second = times.values()
        cell += f" ({second / first:.2g}x)" if first else ""
    return cell + mark, record


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", action="store_true", help="Gradus and all the tools of catalogue.py that are installed")
    parser.add_argument("--gradus", default=str(catalogue.ROOT / "target/release/gradus"), help="the binary of Gradus for --peers")
    parser.add_argument("--tool", action="append", default=[], metavar="NAME=COMMAND", help="one more tool")
    parser.add_argument("--problem", action="append", choices=list(problems.ALL), help="only these")
    parser.add_argument("--size", choices=["all", "first", "last", "ends"], default="all", help="which of the default sizes")
    parser.add_argument("--data", help="a folder with the suite's files for ba, ht and lstm")
    parser.add_argument("--seconds", type=float, default=0.2, help="how long each function is run at least")
    parser.add_argument("--limit", type=float, default=120, help="seconds allowed for an answer")
    parser.add_argument("--json", help="a file for everything that was measured")
    parser.add_argument("--table", help="a file for the table, which is printed anyway")
    parser.add_argument("--chart", help="a file for a chart of the derivatives (SVG)")
    options = parser.parse_args()
    table = open(options.table, "w") if options.table else None

    def write(*lines):
        for file in filter(None, (sys.stdout, table)):
            print(*lines, sep="\n", file=file, flush=True)

    commands = {name: shlex.split(command) for name, command in (spec.split("=", 1) for spec in options.tool)}
    if options.peers:
        for name, command in catalogue.commands(options.gradus).items():
            reason = catalogue.refusal(command)
            if reason:
                write(f"Left out: `{name}` ({reason}).")
            else:
                commands[name] = command
    tools = [Tool(name, command, options.limit) for name, command in commands.items()]
    if not tools:
        parser.error("there is no tool: --peers or --tool NAME=COMMAND")
    write("", "| | " + " | ".join(tool.name for tool in tools) + " |", "|---" * (len(tools) + 1) + "|")
    records, failed = [], False
    for name in options.problem or problems.ALL:
        cases = list(problems.ALL[name](options.data))
        cases = {"all": cases, "first": cases[:1], "last": cases[-1:], "ends": cases[:1] + cases[1:][-1:]}[options.size]
        rows = {case.label: [] for case in cases}
        for tool in tools:
            answer = tool.ask({"kind": "define", "module": name})
            defined = answer is not None and answer["success"]
            given_up = False
            for case in cases:
                if not defined or given_up:
                    rows[case.label].append("")
                    continue
                cell, record = run_case(tool, name, case, options.seconds)
                rows[case.label].append(cell)
                records.append(record)
                # Larger sizes would take longer still.
                given_up = "no answer" in record.get("error", "")
                if "error" in record or "*" in cell or (tool.name.startswith("gradus") and "~" in cell):
                    print(f"{tool.name}, {name}, {case.label}: {record.get('error', record.get('differences'))}", file=sys.stderr)
                    failed |= tool.name.startswith("gradus")
            tool.stop()
        for label, cells in rows.items():
            write(f"| {name} {label} | " + " | ".join(cells) + " |")
    if options.json:
        with open(options.json, "w") as file:
            json.dump(records, file, indent=1)
    if options.chart:
        chart.write(records, options.chart)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
