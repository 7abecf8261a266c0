"""The twelve problems: sizes, inputs from a seed, and checks by independent means.

A check is a function of the evaluated answers {function: output}. Derivatives are compared with complex steps through a
numpy version of the function (exact to rounding), along a random direction; small Jacobians column by column.
"""

import numpy as np

import data
import models

SEED = 31337


class Case:
    """One size of a problem: its label, the protocol's input, and the functions to evaluate."""

    def __init__(self, label, input, functions, check):
        self.label, self.input, self.functions, self.check = label, input, functions, check


def relative(found, expected):
    """The difference in relation to the largest component."""
    found, expected = np.asarray(found, float), np.asarray(expected, float)
    if found.shape != expected.shape:
        return float("inf")
    scale = max(float(np.max(np.abs(expected), initial=0.0)), 1e-300)
    return float(np.max(np.abs(found - expected), initial=0.0)) / scale


def along(f, x, rng, reverse):
    """How far the gradient `reverse` is from the derivative of f along a random direction, relative to what the direction could give."""
    direction = rng.standard_normal(x.shape)
    step = 1e-30
    forward = f(x + 1j * step * direction).imag / step
    reverse = np.asarray(reverse, float).reshape(x.shape)
    scale = float(np.sqrt(np.sum(reverse**2) * np.sum(direction**2))) + 1e-300
    return abs(float(np.sum(reverse * direction)) - forward) / max(scale, abs(forward))


def flat(rows):
    return np.concatenate([np.asarray(row, float).ravel() for row in rows])


def hello(_data):
    x = 3.5
    check = lambda out: [("square", abs(out["square"] - x * x)), ("double", abs(out["double"] - 2 * x))]
    yield Case("3.5", x, ["square", "double"], check)


def gmm(_data):
    sizes = sorted(((d, k) for d in (2, 10, 20, 32, 64) for k in (5, 10, 25, 50, 100)), key=lambda s: s[0] * s[1])
    for d, k in sizes:
        rng = np.random.default_rng(SEED)
        n, m, gamma = 1000, 0, 1.0
        point = {
            "alpha": rng.standard_normal(k),
            "mu": rng.uniform(0, 1, (k, d)),
            "q": rng.standard_normal((k, d)),
            "l": rng.standard_normal((k, d * (d - 1) // 2)),
        }
        x = rng.standard_normal((n, d))
        shapes = [(name, value.shape) for name, value in point.items()]
        at = flat(point.values())

        def f(v, shapes=shapes, x=x, d=d, k=k):
            parts, start = [], 0
            for _, shape in shapes:
                size = int(np.prod(shape))
                parts.append(v[start : start + size].reshape(shape))
                start += size
            return models.gmm(x, m, gamma, *parts)

        def check(out, f=f, at=at):
            found = flat([out["jacobian"][name] for name in ("alpha", "mu", "q", "l")])
            return [
                ("objective", relative(out["objective"], f(at).real)),
                ("jacobian", along(f, at, np.random.default_rng(1), found)),
            ]

        input = {"d": d, "k": k, "n": n, "x": x, "m": m, "gamma": gamma, **point}
        yield Case(f"{d}_{k}_{n}", input, ["objective", "jacobian"], check)


def ba(folder):
    for label, (n, m, p), cam, x, w, feat in data.ba(folder, SEED):
        def f(v, feat=feat):
            return models.reprojection(v[:11], v[11:14], v[14], feat)

        def check(out, n=n, m=m, p=p, cam=cam, x=x, w=w, f=f):
            v = np.concatenate([cam, x, [w]])
            error, jacobian = out["objective"], out["jacobian"]
            columns = []
            for i in range(15):
                unit = np.zeros(15)
                unit[i] = 1e-30
                columns.append(f(v + 1j * unit).imag / 1e-30)
            block = np.stack(columns, axis=1)
            cols = [*range(11), 11 * n, 11 * n + 1, 11 * n + 2, 11 * n + 3 * m]
            exact = error["reproj_error"]["repeated"] == p and error["w_err"]["repeated"] == p
            exact &= jacobian["rows"][:30] == [15 * i for i in range(30)] and jacobian["rows"][-1] == 31 * p
            exact &= jacobian["cols"] == cols + cols + [11 * n + 3 * m + p - 1]
            return [
                ("shape", 0.0 if exact else float("inf")),
                ("objective", relative(error["reproj_error"]["elements"], f(v).real)),
                ("weight", relative([error["w_err"]["element"]], [1 - w * w])),
                ("jacobian", relative(jacobian["vals"], [*block.ravel(), -2 * w])),
            ]

        input = {"n": n, "m": m, "p": p, "cam": cam, "x": x, "w": w, "feat": feat}
        yield Case(label, input, ["objective", "jacobian"], check)


def ht(folder):
    model = data.hand_model(folder, SEED)
    for label, theta, us, correspondences, points in data.hands(folder, model, SEED):
        def f(theta, us, model=model, correspondences=correspondences, points=points):
            return models.hand(model, correspondences, points, us, theta)

        def check(out, f=f, theta=theta, us=us):
            rng = np.random.default_rng(1)
            jacobian = np.asarray(out["jacobian"], float)
            directions = rng.standard_normal(26), rng.standard_normal(us.shape)
            forward = f(theta + 1e-30j * directions[0], us + 1e-30j * directions[1]).imag / 1e-30
            per_row = np.repeat(directions[1], 3, axis=0)
            found = np.sum(jacobian[:, :2] * per_row, axis=1) + jacobian[:, 2:] @ directions[0]
            return [("objective", relative(out["objective"], f(theta, us).real)), ("jacobian", relative(found, forward))]

        input = {
            "theta": theta,
            "data": {"model": model, "correspondences": correspondences, "points": points},
            "us": us,
        }
        yield Case(label, input, ["objective", "jacobian"], check)


def lstm(folder):
    for label, (layers, bits), main, extra, state, sequence in data.lstm(folder, SEED):
        at = flat([main, extra])

        def f(v, layers=layers, bits=bits, state=state, sequence=sequence):
            split = 2 * layers * 4 * bits
            return models.lstm(v[:split].reshape(2 * layers, 4 * bits), v[split:].reshape(3, bits), state, sequence)

        def check(out, f=f, at=at):
            return [
                ("objective", relative(out["objective"], f(at).real)),
                ("jacobian", along(f, at, np.random.default_rng(1), out["jacobian"])),
            ]

        input = {"main_params": main, "extra_params": extra, "state": state, "sequence": sequence}
        yield Case(label, input, ["objective", "jacobian"], check)


def kmeans(_data):
    for k, n, d in [(k, n, d) for k in (10, 100, 1000) for n in (1000, 10000) for d in (8, 16)]:
        rng = np.random.default_rng(SEED)
        points = rng.uniform(0, 1, (n, d))
        centroids = points[-k:]

        def check(out, points=points, centroids=centroids):
            # The gradient is 2 * sum (c - p), the diagonal 2 * count, over the points nearest to c.
            distances = ((points[:, None, :] - centroids[None, :, :]) ** 2).sum(axis=2)
            nearest = np.argmin(distances, axis=1)
            direction = np.stack([(c - points[nearest == i]).mean(axis=0) for i, c in enumerate(centroids)])
            return [("cost", relative(out["cost"], distances.min(axis=1).sum())), ("dir", relative(out["dir"], direction))]

        yield Case(f"k={k},n={n},d={d}", {"points": points, "centroids": centroids}, ["cost", "dir"], check)


def llsq(_data):
    for n in (16 * 2**i for i in range(11)):
        x = np.random.default_rng(SEED).standard_normal(128)

        def check(out, x=x, n=n):
            t = -1 + 2 * np.arange(n) / (n - 1)
            powers = t[:, None] ** np.arange(128)[None, :]
            misfit = np.sign(t) - powers @ x
            return [
                ("primal", relative(out["primal"], 0.5 * np.sum(misfit**2))),
                ("gradient", relative(out["gradient"], -powers.T @ misfit)),
            ]

        yield Case(f"n={n}", {"x": x, "n": n}, ["primal", "gradient"], check)


def lse(_data):
    for n in (2500 * 2**i for i in range(10)):
        x = np.random.default_rng(SEED).uniform(0, 1, n)

        def check(out, x=x):
            e = np.exp(x - x.max())
            found, expected, largest = np.asarray(out["gradient"]), e / e.sum(), np.argmax(x)
            # The largest element also gets 1 minus the sum of all components: nothing but its rounding, which is relative to 1.
            rounding = abs(found[largest] - expected[largest])
            found[largest] = expected[largest]
            return [
                ("primal", relative(out["primal"], x.max() + np.log(e.sum()))),
                ("gradient", relative(found, expected)),
                ("largest", rounding),
            ]

        yield Case(f"n={n}", {"x": x}, ["primal", "gradient"], check)


def ode(_data):
    sizes = [(n, s) for n in (1000, 10000, 100000) for s in (1, 10, 100)]
    # At these sizes nothing reaches the last component: its gradient is 0. Where 4 s >= n it is not.
    for n, s in [(8, 10), (100, 100)] + sizes:
        x = np.random.default_rng(SEED).uniform(0.5, 1.5, n)

        def check(out, x=x, s=s):
            gradient = np.asarray(out["gradient"])
            last = lambda v: models.ode(v, s)[-1]
            slope = along(last, x, np.random.default_rng(1), gradient)
            zero = float(np.max(np.abs(gradient))) if 4 * s < len(x) else 0.0
            return [("primal", relative(out["primal"], models.ode(x, s))), ("gradient", max(slope, zero))]

        yield Case(f"n={n},s={s}", {"x": x, "s": s}, ["primal", "gradient"], check)


def det(_data):
    for ell in range(5, 12):
        a = np.random.default_rng(SEED).uniform(-1, 1, (ell, ell))

        def check(out, a=a):
            cofactors = np.linalg.det(a) * np.linalg.inv(a).T
            return [
                ("primal", relative(out["primal"], np.linalg.det(a))),
                ("gradient", relative(out["gradient"], cofactors.ravel())),
            ]

        yield Case(f"l={ell}", {"A": a.ravel(), "ell": ell}, ["primal", "gradient"], check)


MODES = ["ff", "fr", "rf", "rr"]


def particle(_data):
    check = lambda out: [(mode, abs(value - 0.20719187464861197)) for mode, value in out.items()]
    yield Case("w=0", {"w": 0.0}, MODES, check)


def saddle(_data):
    check = lambda out: [(mode, float(np.max(np.abs(np.asarray(value) - 8.246324826140356e-06)))) for mode, value in out.items()]
    yield Case("(1,1)", {"start": [1.0, 1.0]}, MODES, check)


ALL = {f.__name__: f for f in (hello, gmm, ba, ht, lstm, kmeans, llsq, lse, ode, det, particle, saddle)}
