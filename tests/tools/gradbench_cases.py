"""Writes tests/gradbench/*.json: small inputs of the twelve GradBench problems with outputs computed by numpy, derivatives by complex
steps (exact to rounding). Each file is a list of { "function", "input", "output" }.

Usage: python tests/tools/gradbench_cases.py (needs numpy and scipy)."""

import json
import os

import numpy as np
from scipy.special import multigammaln

HERE = os.path.join(os.path.dirname(__file__), "..", "gradbench")
rng = np.random.default_rng(20240229)


def gradient(f, x):
    """The gradient of a real function of an array, by complex steps."""
    x = np.asarray(x, dtype=complex)
    g = np.zeros(x.shape)
    for i in np.ndindex(x.shape):
        y = x.copy()
        y[i] += 1e-40j
        g[i] = np.imag(f(y)) / 1e-40
    return g


def jacobian(f, x):
    """One row for each output."""
    x = np.asarray(x, dtype=complex)
    columns = []
    for i in np.ndindex(x.shape):
        y = x.copy()
        y[i] += 1e-40j
        columns.append(np.imag(f(y)).ravel() / 1e-40)
    return np.array(columns).T


def plain(v):
    if isinstance(v, dict):
        return {k: plain(w) for k, w in v.items()}
    if isinstance(v, (list, tuple)):
        return [plain(w) for w in v]
    if isinstance(v, np.ndarray):
        return plain(v.tolist())
    if isinstance(v, np.generic):
        return v.item()
    return v


def write(name, cases):
    os.makedirs(HERE, exist_ok=True)
    with open(os.path.join(HERE, name + ".json"), "w") as f:
        f.write("[\n")
        f.write(",\n".join(json.dumps(plain({"function": fn, "input": i, "output": o})) for fn, i, o in cases))
        f.write("\n]\n")


def length(v):
    return np.sqrt(np.sum(v * v))


# hello
write("hello", [("square", 3.0, 9.0), ("double", 3.0, 6.0), ("square", -1.5, 2.25), ("double", -1.5, -3.0)])


# lse
def lse(x):
    m = x[np.argmax(np.real(x))]
    return m + np.log(np.sum(np.exp(x - m)))


x = rng.random(7)
big = np.array([1000.0, 999.0, -5.0])
write(
    "lse",
    [("primal", {"x": v}, lse(v)) for v in (x, big)] + [("gradient", {"x": v}, gradient(lse, v)) for v in (x, big)],
)


# llsq
def llsq(n):
    t = -1 + 2 * np.arange(n) / (n - 1)
    return lambda x: 0.5 * np.sum((np.sign(t) - sum(c * t**j for j, c in enumerate(x))) ** 2)


cases = []
for m, n in ((4, 6), (3, 7)):
    x = rng.normal(size=m)
    cases += [("primal", {"x": x, "n": n}, llsq(n)(x)), ("gradient", {"x": x, "n": n}, gradient(llsq(n), x))]
write("llsq", cases)


# ode
def ode(s):
    def run(x):
        h = 2.0 / s
        f = lambda y: np.concatenate([x[:1], x[1:] * y[:-1]])
        y = np.zeros(len(x), dtype=x.dtype)
        for _ in range(s):
            k1 = f(y)
            k2 = f(y + h / 2 * k1)
            k3 = f(y + h / 2 * k2)
            k4 = f(y + h * k3)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return y

    return run


cases = []
for n, s in ((4, 1), (5, 3), (12, 3)):
    x = rng.random(n)
    cases += [("primal", {"x": x, "s": s}, ode(s)(x)), ("gradient", {"x": x, "s": s}, gradient(lambda x: ode(s)(x)[-1], x))]
write("ode", cases)

# det
cases = []
for ell in (1, 2, 3, 5):
    a = rng.random(ell * ell)
    m = a.reshape(ell, ell)
    cases += [
        ("primal", {"A": a, "ell": ell}, np.linalg.det(m)),
        ("gradient", {"A": a, "ell": ell}, (np.linalg.det(m) * np.linalg.inv(m).T).ravel()),
    ]
write("det", cases)


# kmeans: closed forms
points = rng.random((9, 3))
centroids = points[-3:]
distances = ((points[:, None, :] - centroids[None, :, :]) ** 2).sum(2)
nearest = distances.argmin(1)
g = np.array([2 * (centroids[k] - points[nearest == k]).sum(0) for k in range(3)])
h = np.array([[2.0 * (nearest == k).sum()] * 3 for k in range(3)])
i = {"points": points, "centroids": centroids}
write("kmeans", [("cost", i, distances.min(1).sum()), ("dir", i, g / h)])

# gmm
d, k, n, m, gamma = 3, 2, 4, 1, 1.5
x = rng.normal(size=(n, d))
parameters = {
    "alpha": rng.normal(size=k),
    "mu": rng.normal(size=(k, d)),
    "q": 0.5 * rng.normal(size=(k, d)),
    "l": rng.normal(size=(k, d * (d - 1) // 2)),
}


def gmm(p):
    def lower(q, l):
        a = np.diag(np.exp(q).astype(complex))
        places = [(i, j) for j in range(d) for i in range(j + 1, d)]
        for (r, c), v in zip(places, l):
            a[r, c] = v
        return a

    mats = [lower(p["q"][j], p["l"][j]) for j in range(k)]
    logp = lambda v: lse(
        np.array([p["alpha"][j] + p["q"][j].sum() - 0.5 * np.sum((mats[j] @ (v - p["mu"][j])) ** 2) for j in range(k)])
    )
    total = -n * (d / 2 * np.log(2 * np.pi) + lse(p["alpha"])) + sum(logp(v) for v in x)
    nw = d + m + 1
    for j in range(k):
        total += nw * d * np.log(gamma / np.sqrt(2)) - multigammaln(nw / 2, d)
        total += -gamma**2 / 2 * (np.sum(np.exp(2 * p["q"][j])) + np.sum(p["l"][j] ** 2)) + m * p["q"][j].sum()
    return total


i = {"d": d, "k": k, "n": n, "x": x, "m": m, "gamma": gamma, **parameters}
write(
    "gmm",
    [
        ("objective", i, np.real(gmm(parameters))),
        ("jacobian", i, {key: gradient(lambda v: gmm({**parameters, key: v}), parameters[key]) for key in parameters}),
    ],
)

# lstm
layers, bits, characters = 2, 3, 5
main, extra = 0.5 * rng.normal(size=(2 * layers, 4 * bits)), rng.normal(size=(3, bits))
state, sequence = rng.normal(size=(2 * layers, bits)), rng.integers(0, 2, size=(characters, bits)).astype(float)
sigmoid = lambda v: 1 / (1 + np.exp(-v))


def lstm(main, extra):
    s = [row for row in state]
    total = 0
    for t in range(characters - 1):
        x = sequence[t] * extra[0]
        for layer in range(layers):
            w, b = main[2 * layer].reshape(4, bits), main[2 * layer + 1].reshape(4, bits)
            hidden, cell = s[2 * layer], s[2 * layer + 1]
            forget, ingate = sigmoid(x * w[0] + b[0]), sigmoid(hidden * w[1] + b[1])
            outgate, change = sigmoid(x * w[2] + b[2]), np.tanh(hidden * w[3] + b[3])
            cell = cell * forget + ingate * change
            hidden = outgate * np.tanh(cell)
            s[2 * layer], s[2 * layer + 1] = hidden, cell
            x = hidden
        y = x * extra[1] + extra[2]
        total += np.sum(sequence[t + 1] * (y - np.log(2 + np.sum(np.exp(y)))))
    return -total / ((characters - 1) * bits)


i = {"main_params": main, "extra_params": extra, "state": state, "sequence": sequence}
g = np.concatenate([gradient(lambda v: lstm(v, extra), main).ravel(), gradient(lambda v: lstm(main, v), extra).ravel()])
write("lstm", [("objective", i, lstm(main, extra)), ("jacobian", i, g)])


# ba
def reprojection(v, feat):
    r, centre, f, u, k, x, w = v[0:3], v[3:6], v[6], v[7:9], v[9:11], v[11:14], v[14]
    y = x - centre
    theta = length(r)
    if theta == 0:
        y = y + np.cross(r, y)
    else:
        a = r / theta
        y = y * np.cos(theta) + np.cross(a, y) * np.sin(theta) + a * np.dot(a, y) * (1 - np.cos(theta))
    p = y[:2] / y[2]
    r2 = np.dot(p, p)
    return w * (f * p * (1 + k[0] * r2 + k[1] * r2**2) + u - feat)


# Enough observations for more than 30 rows.
n, m, p = 2, 3, 10
cam = np.array([0.1, -0.2, 0.05, 0.3, 0.1, -4.0, 500.0, 10.0, -5.0, 0.01, -0.002])
point, w, feat = np.array([0.5, -0.3, 2.0]), 0.8, np.array([30.0, -40.0])
v = np.concatenate([cam, point, [w]])
block = jacobian(lambda v: reprojection(v, feat), v)
short = lambda a: a[:30] + a[-1:]
i = {"n": n, "m": m, "p": p, "cam": cam, "x": point, "w": w, "feat": feat}
rows, cols, vals = [0], [], []
for o in range(p):
    for r in range(2):
        cols += [11 * (o % n) + c for c in range(11)] + [11 * n + 3 * (o % m) + c for c in range(3)] + [11 * n + 3 * m + o]
        vals += list(block[r])
        rows.append(len(cols))
for o in range(p):
    cols.append(11 * n + 3 * m + o)
    vals.append(-2 * w)
    rows.append(len(cols))
write(
    "ba",
    [
        (
            "objective",
            i,
            {"reproj_error": {"elements": reprojection(v, feat), "repeated": p}, "w_err": {"element": 1 - w * w, "repeated": p}},
        ),
        ("jacobian", i, {"rows": short(rows), "cols": short(cols), "vals": short(vals)}),
    ],
)


# ht: a small made-up hand
def rotation(angles):
    tx, tz, ty = angles
    rx = np.array([[1, 0, 0], [0, np.cos(tx), -np.sin(tx)], [0, np.sin(tx), np.cos(tx)]])
    ry = np.array([[np.cos(ty), 0, np.sin(ty)], [0, 1, 0], [-np.sin(ty), 0, np.cos(ty)]])
    rz = np.array([[np.cos(tz), -np.sin(tz), 0], [np.sin(tz), np.cos(tz), 0], [0, 0, 1]])
    full = np.eye(4, dtype=complex)
    full[:3, :3] = rz @ ry @ rx
    return full


def hand(model, correspondences, measured, us, theta):
    bones = len(model["parents"])
    pose = np.zeros((bones + 3, 3), dtype=complex)
    pose[0], pose[1], pose[2] = theta[:3], 1, theta[3:6]
    at, row = 6, 5
    for _ in range(5):
        for joint in range(3):
            if row < len(pose):
                pose[row, 0] = theta[at]
            at += 1
            if joint == 0:
                if row < len(pose):
                    pose[row, 1] = theta[at]
                at += 1
            row += 1
        row += 1
    absolutes = []
    for b in range(bones):
        relative = model["base_relatives"][b] @ rotation(pose[b + 3])
        parent = model["parents"][b]
        absolutes.append(relative if parent == -1 else absolutes[parent] @ relative)
    transforms = [a @ i for a, i in zip(absolutes, model["inverse_base_absolutes"])]
    v = np.array(
        [sum(w * (t @ base)[:3] for w, t in zip(weights, transforms)) for base, weights in zip(model["base_positions"], model["weights"])]
    )
    if model["is_mirrored"]:
        v[:, 0] = -v[:, 0]
    norm = length(pose[0])
    if abs(norm) < 1e-4:
        turn = np.eye(3)
    else:
        a = pose[0] / norm
        across = np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])
        turn = np.eye(3) * np.cos(norm) + across * np.sin(norm) + np.outer(a, a) * (1 - np.cos(norm))
    v = (v @ turn.T) * pose[1] + pose[2]
    out = []
    for j, c in enumerate(correspondences):
        if len(us) == 0:
            out.append(measured[j] - v[c])
        else:
            a, b, t = model["triangles"][c]
            out.append(measured[j] - (us[j][0] * v[a] + us[j][1] * v[b] + (1 - us[j][0] - us[j][1]) * v[t]))
    return np.concatenate(out)


bones, verts = 11, 6
affine = lambda: np.vstack([np.hstack([np.linalg.qr(rng.normal(size=(3, 3)))[0], rng.normal(size=(3, 1))]), [[0, 0, 0, 1]]])
weights = rng.random((verts, bones)) * (rng.random((verts, bones)) < 0.5)
weights[:, 0] += 0.1
weights /= weights.sum(1, keepdims=True)
model = {
    "bone_count": bones,
    "bone_names": [f"bone{b}" for b in range(bones)],
    "parents": [-1, 0, 1, 2, 3, 4, 1, 6, 7, 8, 9],
    "base_relatives": np.array([affine() for _ in range(bones)]),
    "inverse_base_absolutes": np.array([affine() for _ in range(bones)]),
    "base_positions": np.hstack([rng.normal(size=(verts, 3)), np.ones((verts, 1))]),
    "weights": weights,
    "triangles": [[0, 1, 2], [2, 3, 4], [5, 0, 3]],
    "is_mirrored": True,
}
theta = 0.5 * rng.normal(size=26)
cases = []
for correspondences, us, th in (
    ([3, 0, 5, 3], np.zeros((0, 2)), theta),
    ([2, 0, 1], rng.random((3, 2)) / 2, theta),
    ([1], np.zeros((0, 2)), np.concatenate([[0, 0, 0], theta[3:]])),
):
    measured = rng.normal(size=(len(correspondences), 3))
    i = {"theta": th, "data": {"model": model, "correspondences": correspondences, "points": measured}, "us": us}
    f = lambda t, u: hand(model, correspondences, measured, u, t)
    rows = jacobian(lambda t: f(t, us), th)
    if len(us):
        left = jacobian(lambda u: f(th, u), us)
        own = np.array([[left[r, 2 * (r // 3)], left[r, 2 * (r // 3) + 1]] for r in range(len(rows))])
        rows = np.hstack([own, rows])
    cases += [("objective", i, f(th, us).real), ("jacobian", i, rows)]
write("ht", cases)

# particle and saddle: the suite's own constants
write("particle", [(f, {"w": 0.0}, 0.20719187464861197) for f in ("ff", "fr", "rf", "rr")])
write("saddle", [(f, {"start": [1.0, 1.0]}, [8.246324826140356e-06] * 4) for f in ("ff", "fr", "rf", "rr")])
