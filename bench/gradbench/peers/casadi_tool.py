"""CasADi on the problems that fit a graph of scalars: expressions are built once for each size and run by its virtual machine."""

import protocol

import casadi as ca


def misfit(x, n):
    total = 0
    for i in range(n):
        t = -1 + 2 * i / (n - 1)
        value = 0
        for j in reversed(range(x.shape[0])):
            value = value * t + x[j]
        total += ((t > 0) - (t < 0) - value) ** 2
    return total / 2


def det(a, ell):
    def minor(row, columns):
        if not columns:
            return 1
        return sum((-1) ** i * a[row * ell + c] * minor(row + 1, columns[:i] + columns[i + 1 :]) for i, c in enumerate(columns))

    return minor(0, list(range(ell)))


def lse(x, _):
    # The largest element is a constant of the graph for derivatives, as in the problem's formula.
    largest = ca.mmax(x)
    return largest + ca.log(ca.sum1(ca.exp(x - largest)))


def gradient_of(f, name, size, differentiate):
    def prepare(i):
        point = i[name]
        x = ca.SX.sym("x", len(point))
        value = f(x, i[size] if size else None)
        graph = ca.Function("f", [x], [ca.gradient(value, x) if differentiate else value])
        point = ca.DM(point)
        return lambda: graph(point)

    return prepare


def both(names, f, name, size):
    return {names[0]: gradient_of(f, name, size, False), names[1]: gradient_of(f, name, size, True)}


def square(differentiate):
    x = ca.SX.sym("x")
    graph = ca.Function("f", [x], [ca.gradient(x * x, x) if differentiate else x * x])
    return lambda i: (lambda: graph(i))


MODULES = {
    "hello": {"square": square(False), "double": square(True)},
    "llsq": both(("primal", "gradient"), misfit, "x", "n"),
    "det": both(("primal", "gradient"), det, "A", "ell"),
    "lse": both(("primal", "gradient"), lse, "x", None),
}


def finish(result):
    return lambda: float(result) if result.numel() == 1 else result.full().ravel().tolist()


protocol.serve("casadi", MODULES, protocol.timed(finish))
