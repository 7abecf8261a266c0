"""What gradients cost on the programs of this folder: `gradus bench` of `f` at `point` with both backends, as a table in Markdown."""

import argparse
import json
import pathlib
import subprocess

HERE = pathlib.Path(__file__).parent
BACKENDS = ("c", "native")


def bench(gradus, program, backend):
    command = [gradus, "bench", program, "f", "--at", "=point", "--backend", backend, "--format", "json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def least(gradus, program, runs):
    """For each backend the least times of several runs, which other work on the machine can only make longer."""
    found = {}
    for backend in BACKENDS:
        results = [bench(gradus, program, backend) for _ in range(runs)]
        found[backend] = {key: min(r[key] for r in results) for key in ("primal_ns", "gradient_ns", "first_result_ms")}
    return found


def row(program, found):
    cells = [program.stem]
    for backend in BACKENDS:
        primal, gradient = found[backend]["primal_ns"], found[backend]["gradient_ns"]
        cells += [f"{primal / 1e3:.1f}", f"{gradient / 1e3:.1f}", f"{gradient / primal:.2f}"]
    cells += [f"{found['native'][key] / found['c'][key]:.2f}" for key in ("primal_ns", "gradient_ns")]
    cells.append(f"{found['native']['first_result_ms']:.0f}")
    return "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("programs", nargs="*", help="names of some programs [default: all]")
    parser.add_argument("--gradus", default="target/release/gradus", help="the binary")
    parser.add_argument("--runs", type=int, default=3, help="how often each is measured")
    options = parser.parse_args()
    for folder in ("numbers", "cells"):
        programs = sorted((HERE / folder).glob("*.gr"))
        programs = [p for p in programs if not options.programs or p.stem in options.programs]
        if programs:
            print(f"\n{folder}\n")
            print("| | C f | C grad | ratio | Cranelift f | Cranelift grad | ratio | f over C | grad over C | first result |")
            print("|" + "---|" * 10, flush=True)
        for program in programs:
            print(row(program, least(options.gradus, program, options.runs)), flush=True)


if __name__ == "__main__":
    main()
