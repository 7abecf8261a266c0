"""Functions and derivatives written by hand in C: `bench/native/hand`, compiled when the tool starts as the C backend compiles its own code."""

import ctypes
import os
import pathlib
import re
import subprocess
import tempfile

import protocol

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[3]
# One call with the clock around it: a call from Python takes longer than some of the functions.
CLOCK = """
#include <time.h>
static double now(clockid_t clock) { struct timespec t; clock_gettime(clock, &t); return t.tv_sec + 1e-9 * t.tv_nsec; }
void timed(void (*f)(const void *, double *), const void *in, double *out, double *took) {
  double wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_THREAD_CPUTIME_ID);
  f(in, out);
  took[1] = now(CLOCK_THREAD_CPUTIME_ID) - cpu;
  took[0] = now(CLOCK_MONOTONIC) - wall;
}
"""


class Slot(ctypes.Structure):
    """`gradus_slot`: how compiled functions take their inputs."""

    class Value(ctypes.Union):
        _fields_ = [("real", ctypes.c_double), ("integer", ctypes.c_int64), ("data", ctypes.c_void_p)]

    _fields_ = [("value", Value), ("owner", ctypes.c_void_p), ("dims", ctypes.c_int64 * 7)]

    def __init__(self, x):
        super().__init__()
        if isinstance(x, int):
            self.value.integer = x
        elif isinstance(x, float):
            self.value.real = x
        else:
            self.value.data = x.ctypes.data
            self.dims[: x.ndim] = x.shape


def library():
    """The compiled functions. The flags are read where the backend has them, so that they are the same."""
    compile = (ROOT / "crates/native/src/c/compile.rs").read_text()
    flags = re.search(r'"(-O3 [^"]*)"', compile).group(1).split()
    with tempfile.TemporaryDirectory() as folder:
        clock, target = pathlib.Path(folder, "clock.c"), pathlib.Path(folder, "hand.so")
        clock.write_text(CLOCK)
        files = [*sorted((ROOT / "bench/native/hand").glob("*.c")), clock]
        command = [os.environ.get("CC", "cc"), *flags, "-I", ROOT / "crates/runtime/src", *files, "-o", target, "-lm"]
        subprocess.run(command, check=True)
        return ctypes.CDLL(str(target))


# The fields of each problem's input, in the order of the parameters.
INPUTS = {
    "gmm": ["d", "k", "n", "x", "m", "gamma", "alpha", "mu", "q", "l"],
    "ba": ["n", "m", "p", "cam", "x", "w", "feat"],
    "lstm": ["main_params", "extra_params", "state", "sequence"],
    "kmeans": ["points", "centroids"],
    "llsq": ["x", "n"],
    "lse": ["x"],
    "ode": ["x", "s"],
    "det": ["A", "ell"],
}


def parts(out, i, names):
    """The numbers one after another as arrays of the same sizes as inputs."""
    ends = np.cumsum([np.size(i[name]) for name in names])
    return {name: part.reshape(np.shape(i[name])).tolist() for name, part in zip(names, np.split(out, ends[:-1]))}


def errors(out, _):
    return {
        "reproj_error": {"elements": out[:2].tolist(), "repeated": int(out[2])},
        "w_err": {"element": float(out[3]), "repeated": int(out[4])},
    }


def sparse(out, _):
    rows, cols, values = np.split(out, 3)
    return {"rows": rows.astype(int).tolist(), "cols": cols.astype(int).tolist(), "vals": values.tolist()}


def sizes(*names):
    return lambda i: sum(np.size(i[name]) for name in names)


def flat(*names):
    """As many numbers as these inputs have, one after another."""
    return sizes(*names), lambda out, i: out.tolist()


NUMBER = lambda i: 1, lambda out, i: float(out[0])
MIXTURE = ["alpha", "mu", "q", "l"]

# For each function how many numbers it writes, and what they become.
RESULTS = {
    "gmm": {"objective": NUMBER, "jacobian": (sizes(*MIXTURE), lambda out, i: parts(out, i, MIXTURE))},
    "ba": {"objective": (lambda i: 5, errors), "jacobian": (lambda i: 93, sparse)},
    "lstm": {"objective": NUMBER, "jacobian": flat("main_params", "extra_params")},
    "kmeans": {"cost": NUMBER, "dir": (sizes("centroids"), lambda out, i: parts(out, i, ["centroids"])["centroids"])},
    "llsq": {"primal": NUMBER, "gradient": flat("x")},
    "lse": {"primal": NUMBER, "gradient": flat("x")},
    "ode": {"primal": flat("x"), "gradient": flat("x")},
    "det": {"primal": NUMBER, "gradient": flat("A")},
}

LIBRARY = library()


def prepared(module, name):
    count, shown = RESULTS[module][name]
    function = getattr(LIBRARY, f"{module}_{name}")

    def prepare(i):
        arguments = [i[field] for field in INPUTS[module]]
        arguments = [np.array(x, float) if isinstance(x, list) else x for x in arguments]
        slots = (Slot * len(arguments))(*map(Slot, arguments))
        out, took = np.empty(count(i)), np.empty(2)
        pointers = [ctypes.c_void_p(a.ctypes.data) for a in (out, took)]

        def run():
            LIBRARY.timed(function, slots, *pointers)
            return *took.tolist(), lambda: shown(out, i)

        run.keeps = arguments  # the slots point into them
        return run

    return prepare


MODULES = {module: {name: prepared(module, name) for name in functions} for module, functions in RESULTS.items()}
protocol.serve("hand", MODULES, lambda prepared: prepared())
