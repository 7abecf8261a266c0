"""Writes tests/programs/scalars/*.gr: values and derivatives of every scalar primitive, computed by mpmath with 40 digits.

Usage: python tests/tools/scalars.py (needs mpmath)."""

import os
import mpmath as mp

mp.mp.dps = 40
HERE = os.path.join(os.path.dirname(__file__), "..", "programs", "scalars")

# name: (Gradus function of x, the same in mpmath, points)
UNARY = {
    "exp": ("exp x", mp.exp, [0, 1, -2.5, 10]),
    "log": ("log x", mp.log, [1, 0.5, 20, 1e-3]),
    "sqrt": ("sqrt x", mp.sqrt, [1, 2, 0.25, 100]),
    "sin": ("sin x", mp.sin, [0, 1, -2.5, 10]),
    "cos": ("cos x", mp.cos, [0, 1, -2.5, 10]),
    "tan": ("tan x", mp.tan, [0, 1, -1.2, 3]),
    "asin": ("asin x", mp.asin, [0, 0.5, -0.9, 0.99]),
    "acos": ("acos x", mp.acos, [0, 0.5, -0.9, 0.99]),
    "atan": ("atan x", mp.atan, [0, 1, -3, 100]),
    "sinh": ("sinh x", mp.sinh, [0, 1, -2, 5]),
    "cosh": ("cosh x", mp.cosh, [0, 1, -2, 5]),
    "tanh": ("tanh x", mp.tanh, [0, 1, -0.5, 3]),
    "log1p": ("log1p x", mp.log1p, [0, 1e-10, -0.5, 9]),
    "expm1": ("expm1 x", mp.expm1, [0, 1e-10, -0.5, 3]),
    "erf": ("erf x", mp.erf, [0, 0.5, -1, 2.5]),
    "lgamma": ("lgamma x", lambda x: mp.log(abs(mp.gamma(x))), [0.5, 2.5, 10, 100]),
    "digamma": ("polygamma 0 x", mp.digamma, [0.5, 2.5, 10, 100]),
    "trigamma": ("polygamma 1 x", lambda x: mp.polygamma(1, x), [0.5, 2.5, 10, 100]),
    "power_int": ("x ^ 5", lambda x: x ** 5, [0, 1, -1.5, 3]),
    "power_negative": ("x ^ (-2)", lambda x: x ** -2, [1, -0.5, 3]),
    "power_base": ("x ** 2.5", lambda x: x ** mp.mpf(2.5), [1, 0.5, 3]),
    "power_exponent": ("2.5 ** x", lambda x: mp.mpf(2.5) ** x, [0, 1, -1.5]),
    "power_both": ("x ** x", lambda x: x ** x, [1, 0.5, 2.5]),
    "arithmetic": ("(x * x - 3.0 * x + 2.0) / (1.0 + x * x) + -x", lambda x: (x * x - 3 * x + 2) / (1 + x * x) - x, [0, 1, -2.5]),
    "sigmoid": ("sigmoid x", lambda x: 1 / (1 + mp.exp(-x)), [0.25, -3, 8]),
    "softplus": ("softplus x", lambda x: mp.log(1 + mp.exp(x)), [0.25, -3, 8]),
}

# Functions of two variables.
BINARY = {
    "multiply_divide": ("x * y / (x + y)", lambda x, y: x * y / (x + y), [(1, 2), (-0.5, 3)]),
    "power": ("x ** y", lambda x, y: x ** y, [(1.5, 2.5), (0.3, -1.2)]),
    "atan2": ("atan2 x y", lambda x, y: mp.atan2(x, y), [(1, 2), (-1, -0.5), (2, -1)]),
    "mixed": ("sin (x * y) * exp (x - y)", lambda x, y: mp.sin(x * y) * mp.exp(x - y), [(0.5, 1.5), (-1, 2)]),
}


def lit(x):
    """A Gradus literal of a number."""
    x = mp.mpf(x)
    s = mp.nstr(x, 17, min_fixed=-5, max_fixed=16)
    if "." not in s and "e" not in s:
        s += ".0"
    return s


def arg(x):
    s = lit(x)
    return f"({s})" if s.startswith("-") else s


def write(name, text):
    os.makedirs(HERE, exist_ok=True)
    with open(os.path.join(HERE, name + ".gr"), "w") as f:
        f.write(text)


for name, (code, f, points) in UNARY.items():
    lines = ["(* Expected values by tests/tools/scalars.py, with mpmath. *)", f"let f x = {code}", "let df x = diff f x"]
    for p in points:
        p = mp.mpf(p)
        c = mp.taylor(f, p, 4)
        c = [mp.chop(t, mp.mpf(10) ** -25) for t in c]
        a = arg(p)
        lines.append(f"(* value: f {a} = {lit(c[0])} *)")
        lines.append(f"(* grad: f {a} = {lit(c[1])} *)")
        lines.append(f"(* jvp: f {a} 2.0 = {lit(2 * c[1])} *)")
        lines.append(f"(* diff: df {a} = {lit(2 * c[2])} *)")
        lines.append(f"(* grad: (grad f) {a} = {lit(2 * c[2])} *)")
    lines.append(f"(* taylor: 4 f {arg(points[1])} = [| {'; '.join(lit(mp.chop(t, mp.mpf(10) ** -25)) for t in mp.taylor(f, mp.mpf(points[1]), 4))} |] *)")
    write(name, "\n".join(lines) + "\n")

for name, (code, f, points) in BINARY.items():
    lines = ["(* Expected values by tests/tools/scalars.py, with mpmath. *)", f"let f (x, y) = {code}"]
    for p in points:
        p = tuple(map(mp.mpf, p))
        a = f"({lit(p[0])}, {lit(p[1])})"
        d = {k: mp.diff(f, p, k) for k in [(1, 0), (0, 1), (2, 0), (1, 1), (0, 2)]}
        lines.append(f"(* value: f {a} = {lit(f(*p))} *)")
        lines.append(f"(* grad: f {a} = ({lit(d[1, 0])}, {lit(d[0, 1])}) *)")
        lines.append(f"(* jvp: f {a} (1.0, -2.0) = {lit(d[1, 0] - 2 * d[0, 1])} *)")
        lines.append(f"(* vjp: f {a} 3.0 = ({lit(3 * d[1, 0])}, {lit(3 * d[0, 1])}) *)")
        lines.append(f"(* hessian: f {a} = [| [| {lit(d[2, 0])}; {lit(d[1, 1])} |]; [| {lit(d[1, 1])}; {lit(d[0, 2])} |] |] *)")
    write("two_" + name, "\n".join(lines) + "\n")
