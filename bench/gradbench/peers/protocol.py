"""The tool side of the protocol for Python peers: a table of functions, timed with the processor's clock and the wall's."""

import json
import os
import sys
import time

# One core, like every other tool.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")


def serve(name, modules, convert, finish):
    """`modules[m][f]` takes what `convert` makes of an input; `finish` waits for a result and makes it plain data."""
    for line in sys.stdin:
        message = json.loads(line)
        answer = {"id": message["id"]}
        kind = message["kind"]
        if kind == "start":
            answer["tool"] = name
        elif kind == "define":
            answer["success"] = message["module"] in modules
        elif kind == "evaluate":
            try:
                answer |= evaluate(modules[message["module"]][message["function"]], message["input"], convert, finish)
            except Exception as error:  # The tool goes on.
                answer |= {"success": False, "error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


def evaluate(function, input, convert, finish):
    runs, seconds = (input.get("min_runs", 1), input.get("min_seconds", 0)) if isinstance(input, dict) else (1, 0)
    prepared = convert(function, input)
    finish(prepared())  # compilation is not counted
    walls, cpus = [], []
    while len(walls) < runs or sum(walls) < seconds:
        cpu, wall = time.process_time(), time.perf_counter()
        result = prepared()
        output = finish(result)
        walls.append(time.perf_counter() - wall)
        cpus.append(time.process_time() - cpu)
    timings = [{"name": "evaluate", "nanoseconds": int(t * 1e9)} for t in walls]
    timings.append({"name": "least_cpu", "nanoseconds": int(min(cpus) * 1e9)})
    return {"success": True, "output": output(), "timings": timings}
