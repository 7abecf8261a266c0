#!/usr/bin/env python3
"""Writes table.txt: elementary functions at seeded points to twice the precision of a double, from mpmath (pip install mpmath).

Each line: the function, its arguments, and two doubles whose sum is the value, all as bits in hexadecimal.
"""

import pathlib
import random
import struct

import mpmath

mpmath.mp.prec = 300
POINTS = 40


def bits(x):
    return struct.pack(">d", x).hex()


def spread(low, high):
    """Sizes between two powers of ten."""
    return lambda r: 10 ** r.uniform(low, high)


def signed(size):
    return lambda r: r.choice([-1, 1]) * size(r)


def between(low, high):
    return lambda r: r.uniform(low, high)


FUNCTIONS = {
    "exp": (mpmath.exp, [between(-700, 700)]),
    "log": (mpmath.log, [spread(-300, 300)]),
    "sin": (mpmath.sin, [signed(spread(-3, 6))]),
    "cos": (mpmath.cos, [signed(spread(-3, 6))]),
    "tan": (mpmath.tan, [signed(spread(-3, 6))]),
    "asin": (mpmath.asin, [between(-1, 1)]),
    "acos": (mpmath.acos, [between(-1, 1)]),
    "atan": (mpmath.atan, [signed(spread(-6, 6))]),
    "sinh": (mpmath.sinh, [signed(spread(-4, 2.8))]),
    "cosh": (mpmath.cosh, [signed(spread(-4, 2.8))]),
    "tanh": (mpmath.tanh, [signed(spread(-4, 1.5))]),
    "log1p": (mpmath.log1p, [spread(-9, 9)]),
    "expm1": (mpmath.expm1, [signed(spread(-9, 1.5))]),
    "erf": (mpmath.erf, [signed(spread(-4, 0.7))]),
    "pow": (mpmath.power, [spread(-3, 3), between(-50, 50)]),
    "atan2": (mpmath.atan2, [signed(spread(-3, 3)), signed(spread(-3, 3))]),
}

random_numbers = random.Random(31337)
lines = []
for name, (function, arguments) in FUNCTIONS.items():
    for _ in range(POINTS):
        at = [argument(random_numbers) for argument in arguments]
        value = function(*map(mpmath.mpf, at))
        near = float(value)
        lines.append(" ".join([name, *map(bits, at), bits(near), bits(float(value - mpmath.mpf(near)))]))
pathlib.Path(__file__).with_name("table.txt").write_text("\n".join(lines) + "\n")
