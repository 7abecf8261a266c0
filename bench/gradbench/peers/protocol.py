"""The tool side of the protocol for Python peers: a table of functions, timed with the processor's clock and the wall's."""

import json
import os
import sys
import time

# One core, like every other tool, also for threads that a library starts without being asked.
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")


def timed(finish):
    """Runs what is prepared: wall time, CPU time, and what gives the result. `finish` waits for it and makes it plain data."""

    def run(prepared):
        cpu, wall = time.process_time(), time.perf_counter()
        output = finish(prepared())
        wall = time.perf_counter() - wall
        return wall, time.process_time() - cpu, output

    return run


def serve(name, modules, run):
    """`modules[m][f]` prepares what is timed from an input; `run` is `timed`, or a tool's own clock."""
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
                answer |= evaluate(modules[message["module"]][message["function"]], message["input"], run)
            except Exception as error:  # The tool goes on.
                answer |= {"success": False, "error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


def evaluate(function, input, run):
    runs, seconds = (input.get("min_runs", 1), input.get("min_seconds", 0)) if isinstance(input, dict) else (1, 0)
    prepared = function(input)
    run(prepared)  # compilation is not counted
    walls, cpus = [], []
    while len(walls) < runs or sum(walls) < seconds:
        wall, cpu, output = run(prepared)
        walls.append(wall)
        cpus += [cpu] if cpu > 0 else []  # the processor's clock has been seen to stand still
    timings = [{"name": "evaluate", "nanoseconds": int(t * 1e9)} for t in walls]
    timings.append({"name": "least_cpu", "nanoseconds": int(min(cpus, default=min(walls)) * 1e9)})
    return {"success": True, "output": output(), "timings": timings}
