"""ADOL-C on the problems that are functions of one vector: `adolc.cpp`, compiled when the tool starts (Debian's libadolc-dev and g++)."""

import ctypes
import os
import pathlib
import subprocess
import tempfile

import protocol

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
HELLO, LLSQ, LSE, ODE, DET = range(5)
REALS = np.ctypeslib.ndpointer(np.float64)


def library():
    """The compiled functions. Tapes that do not fit into memory go to files in the folder that the tool runs in, so it gets one of its own."""
    folder = pathlib.Path(tempfile.mkdtemp())
    os.chdir(folder)
    target = folder / "adolc.so"
    flags = ["-O3", "-march=native", "-shared", "-fPIC"]
    subprocess.run(["g++", *flags, HERE / "adolc.cpp", "-o", target, "-ladolc"], check=True)
    loaded = ctypes.CDLL(str(target))
    for function in (loaded.primal, loaded.derivative):
        function.argtypes = [ctypes.c_int, REALS, ctypes.c_int, ctypes.c_int, REALS]
    return loaded


def prepared(function, problem, point, size, results):
    """`point` and `size` take the vector and the other number from an input, `results` the number of results from the vector's length; 0 for a number."""

    def prepare(i):
        x = np.ascontiguousarray(np.ravel(point(i)), dtype=np.float64)
        count = results(len(x))
        out = np.zeros(count or 1)

        def run():
            function(problem, x, len(x), size(i), out)
            return out.tolist() if count else float(out[0])

        return run

    return prepare


def both(names, problem, point, size, vector_valued=False):
    first = (lambda m: m) if vector_valued else (lambda m: 0)
    return {
        names[0]: prepared(LIBRARY.primal, problem, point, size, first),
        names[1]: prepared(LIBRARY.derivative, problem, point, size, lambda m: m),
    }


def hello(function):
    def prepare(x):
        point, out = np.array([float(x)]), np.zeros(1)

        def run():
            function(HELLO, point, 1, 0, out)
            return float(out[0])

        return run

    return prepare


LIBRARY = library()
CALCULUS = ("primal", "gradient")
MODULES = {
    "hello": {"square": hello(LIBRARY.primal), "double": hello(LIBRARY.derivative)},
    "llsq": both(CALCULUS, LLSQ, lambda i: i["x"], lambda i: i["n"]),
    "lse": both(CALCULUS, LSE, lambda i: i["x"], lambda i: 0),
    "ode": both(CALCULUS, ODE, lambda i: i["x"], lambda i: i["s"], vector_valued=True),
    "det": both(CALCULUS, DET, lambda i: i["A"], lambda i: i["ell"]),
}

protocol.serve("adolc", MODULES, protocol.timed(lambda result: (lambda: result)))
