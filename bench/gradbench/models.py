"""The functions of the problems in numpy, for complex numbers too, so that complex steps give their derivatives."""

import math

import numpy as np


def logsumexp(x, axis):
    shift = x.real.max(axis=axis, keepdims=True)
    return np.log(np.exp(x - shift).sum(axis=axis)) + np.squeeze(shift, axis)


def gmm(x, m, gamma, alpha, mu, q, l):
    (n, d), k = x.shape, len(alpha)
    matrix = np.zeros((k, d, d), q.dtype)
    # The strict lower triangle is stored column by column.
    rows, cols = np.tril_indices(d, -1)
    order = np.lexsort((rows, cols))
    matrix[:, rows[order], cols[order]] = l
    index = np.arange(d)
    matrix[:, index, index] = np.exp(q)
    inner = np.empty((n, k), q.dtype)
    for i in range(k):
        z = (x - mu[i]) @ matrix[i].T
        inner[:, i] = alpha[i] + q[i].sum() - 0.5 * (z * z).sum(axis=1)
    value = logsumexp(inner, 1).sum() - n * (0.5 * d * math.log(2 * math.pi) + logsumexp(alpha, 0))
    freedom = d + m + 1
    multigamma = 0.25 * d * (d - 1) * math.log(math.pi) + sum(math.lgamma(0.5 * freedom - 0.5 * j) for j in range(d))
    constant = freedom * d * math.log(gamma / math.sqrt(2)) - multigamma
    spread = np.exp(2 * q).sum() + (l * l).sum()
    return value + k * constant - 0.5 * gamma * gamma * spread + m * q.sum()


def cross(a, b):
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def reprojection(cam, point, w, feature):
    r, x = cam[:3], point - cam[3:6]
    angle = np.sqrt((r * r).sum())
    axis = r / angle
    seen = x * np.cos(angle) + cross(axis, x) * np.sin(angle) + axis * (axis * x).sum() * (1 - np.cos(angle))
    p = seen[:2] / seen[2]
    r2 = (p * p).sum()
    return w * (cam[6] * p * (1 + cam[9] * r2 + cam[10] * r2 * r2) + cam[7:9] - feature)


def hand(model, correspondences, points, us, theta):
    kind = np.result_type(theta, us)
    angles = np.zeros((len(model["parents"]), 2), kind)
    following = iter(theta[6:])
    for finger in range(5):
        for joint in range(3):
            bone = 2 + 4 * finger + joint
            if bone < len(angles):
                angles[bone, 0] = next(following)
                if joint == 0:
                    angles[bone, 1] = next(following)
    absolutes = []
    for bone, parent in enumerate(model["parents"]):
        (cx, cz), (sx, sz) = np.cos(angles[bone]), np.sin(angles[bone])
        turn = np.array([[cz, -sz * cx, sz * sx, 0], [sz, cz * cx, -cz * sx, 0], [0, sx, cx, 0], [0, 0, 0, 1]], kind)
        relative = np.asarray(model["base_relatives"][bone]) @ turn
        absolutes.append(relative if parent < 0 else absolutes[parent] @ relative)
    transforms = np.stack(absolutes) @ np.asarray(model["inverse_base_absolutes"])
    positions, weights = np.asarray(model["base_positions"]), np.asarray(model["weights"])
    skinned = np.zeros((len(positions), 3), kind)
    for bone, transform in enumerate(transforms):
        skinned += weights[:, bone, None] * (positions @ transform[:3].T)
    if model["is_mirrored"]:
        skinned[:, 0] *= -1
    r = theta[:3]
    angle = np.sqrt((r * r).sum())
    a = r / angle
    skew = np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])
    rotation = np.eye(3) * np.cos(angle) + skew * np.sin(angle) + np.outer(a, a) * (1 - np.cos(angle))
    vertices = skinned @ rotation.T + theta[3:6]
    corners = vertices[np.asarray(model["triangles"])[correspondences]]
    u = np.concatenate([us, (1 - us.sum(axis=1))[:, None]], axis=1)
    return (points - (u[:, :, None] * corners).sum(axis=1)).ravel()


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm(main, extra, state, sequence):
    bits = sequence.shape[1]
    state = state.astype(main.dtype)
    total = 0.0
    for x, target in zip(sequence[:-1], sequence[1:]):
        x = x * extra[0]
        for layer in range(len(state) // 2):
            weights, biases = main[2 * layer], main[2 * layer + 1]
            hidden, cell = state[2 * layer], state[2 * layer + 1]
            gate = lambda g, v: v * weights[g * bits : (g + 1) * bits] + biases[g * bits : (g + 1) * bits]
            cell = cell * sigmoid(gate(0, x)) + sigmoid(gate(1, hidden)) * np.tanh(gate(3, hidden))
            x = sigmoid(gate(2, x)) * np.tanh(cell)
            state[2 * layer], state[2 * layer + 1] = x, cell
        y = x * extra[1] + extra[2]
        total += (target * (y - np.log(2 + np.exp(y).sum()))).sum()
    return -total / ((len(sequence) - 1) * bits)


def ode(x, s):
    rate = lambda y: x * np.concatenate([[1.0], y[:-1]])
    y, h = np.zeros_like(x), 2 / s
    for _ in range(s):
        k1 = rate(y)
        k2 = rate(y + h / 2 * k1)
        k3 = rate(y + h / 2 * k2)
        k4 = rate(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y
