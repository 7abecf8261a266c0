"""JAX on the problems that its array style suits. Doubles, one core, results awaited."""

import math
from functools import partial

import protocol

import jax

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")
# Work on another thread would be missing in the time of the processor, as long as that thread has not been stopped.
jax.config.update("jax_cpu_enable_async_dispatch", False)
import jax.numpy as jnp
from jax.scipy.special import logsumexp


def gmm_value(p, x, m, gamma):
    (n, d), k = x.shape, p["alpha"].shape[0]
    rows, cols = jnp.tril_indices(d, -1)
    order = jnp.lexsort((rows, cols))
    matrix = jnp.zeros((k, d, d)).at[:, rows[order], cols[order]].set(p["l"])
    matrix = matrix + jax.vmap(jnp.diag)(jnp.exp(p["q"]))
    z = jnp.einsum("kij,nkj->nki", matrix, x[:, None, :] - p["mu"][None])
    inner = p["alpha"] + p["q"].sum(axis=1) - 0.5 * (z * z).sum(axis=2)
    value = logsumexp(inner, axis=1).sum() - n * (0.5 * d * math.log(2 * math.pi) + logsumexp(p["alpha"]))
    freedom = d + m + 1
    multigamma = 0.25 * d * (d - 1) * math.log(math.pi) + sum(math.lgamma(0.5 * freedom - 0.5 * j) for j in range(d))
    constant = freedom * d * math.log(gamma / math.sqrt(2)) - multigamma
    spread = jnp.exp(2 * p["q"]).sum() + (p["l"] ** 2).sum()
    return value + k * constant - 0.5 * gamma * gamma * spread + m * p["q"].sum()


def gmm(wrap):
    def prepare(i):
        p = {name: jnp.array(i[name]) for name in ("alpha", "mu", "q", "l")}
        return partial(jax.jit(wrap(partial(gmm_value, x=jnp.array(i["x"]), m=i["m"], gamma=i["gamma"]))), p)

    return prepare


def cost(centroids, points):
    distances = ((points[:, None, :] - centroids[None, :, :]) ** 2).sum(axis=2)
    return distances.min(axis=1).sum()


def direction(centroids, points):
    slope = jax.grad(cost)
    gradient, diagonal = jax.jvp(lambda c: slope(c, points), (centroids,), (jnp.ones_like(centroids),))
    return gradient / diagonal


def misfit(x, n):
    t = jnp.linspace(-1, 1, n)
    powers = jnp.cumprod(jnp.concatenate([jnp.ones((n, 1)), jnp.broadcast_to(t[:, None], (n, x.shape[0] - 1))], axis=1), axis=1)
    return 0.5 * ((jnp.sign(t) - powers @ x) ** 2).sum()


def lse(x):
    largest = x.max()
    return largest + jnp.log(jnp.exp(x - largest).sum())


def ode(x, s):
    h = 2 / s

    def rate(y):
        return x * jnp.concatenate([jnp.ones(1), y[:-1]])

    def step(y, _):
        k1 = rate(y)
        k2 = rate(y + h / 2 * k1)
        k3 = rate(y + h / 2 * k2)
        k4 = rate(y + h * k3)
        return y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4), None

    return jax.lax.scan(step, jnp.zeros_like(x), None, length=s)[0]


def lstm(p, state, sequence):
    main, extra = p
    bits = sequence.shape[1]
    layers = main.shape[0] // 2
    gates = main.reshape(layers, 2, 4, bits)

    def step(state, pair):
        x, target = pair
        x, rows = x * extra[0], []
        for layer in range(layers):
            hidden, cell = state[2 * layer], state[2 * layer + 1]
            gate = lambda g, v: v * gates[layer, 0, g] + gates[layer, 1, g]
            cell = cell * jax.nn.sigmoid(gate(0, x)) + jax.nn.sigmoid(gate(1, hidden)) * jnp.tanh(gate(3, hidden))
            x = jax.nn.sigmoid(gate(2, x)) * jnp.tanh(cell)
            rows += [x, cell]
        y = x * extra[1] + extra[2]
        return jnp.stack(rows), (target * (y - jnp.log(2 + jnp.exp(y).sum()))).sum()

    _, terms = jax.lax.scan(step, state, (sequence[:-1], sequence[1:]))
    return -terms.sum() / terms.shape[0] / bits


def lstm_gradient(p, state, sequence):
    main, extra = jax.grad(lstm)(p, state, sequence)
    return jnp.concatenate([main.ravel(), extra.ravel()])


def on(function, *arguments):
    """A function of arrays that are fields of the input."""
    return lambda i: partial(jax.jit(function), *(jnp.array(i[name]) for name in arguments))


def lstm_on(function):
    arrays = lambda i: [jnp.array(i[name]) for name in ("main_params", "extra_params", "state", "sequence")]
    return lambda i: (lambda a: partial(jax.jit(function), (a[0], a[1]), a[2], a[3]))(arrays(i))


square = lambda x: x * x
MODULES = {
    "hello": {"square": lambda x: partial(jax.jit(square), x), "double": lambda x: partial(jax.jit(jax.grad(square)), x)},
    "gmm": {"objective": gmm(lambda f: f), "jacobian": gmm(jax.grad)},
    "kmeans": {"cost": on(cost, "centroids", "points"), "dir": on(direction, "centroids", "points")},
    "llsq": {
        "primal": lambda i: partial(jax.jit(partial(misfit, n=i["n"])), jnp.array(i["x"])),
        "gradient": lambda i: partial(jax.jit(jax.grad(partial(misfit, n=i["n"]))), jnp.array(i["x"])),
    },
    "lse": {"primal": on(lse, "x"), "gradient": on(jax.grad(lse), "x")},
    "ode": {
        "primal": lambda i: partial(jax.jit(partial(ode, s=i["s"])), jnp.array(i["x"])),
        "gradient": lambda i: partial(jax.jit(jax.grad(lambda x: ode(x, i["s"])[-1])), jnp.array(i["x"])),
    },
    "lstm": {"objective": lstm_on(lstm), "jacobian": lstm_on(lstm_gradient)},
}


def finish(result):
    result = jax.block_until_ready(result)
    return lambda: jax.tree.map(lambda leaf: leaf.tolist(), result)


protocol.serve("jax", MODULES, protocol.timed(finish))
