"""PyTorch, eager, one thread, doubles."""

import math

import protocol

import torch

torch.set_num_threads(1)
torch.set_default_dtype(torch.float64)


def gmm_value(p, x, m, gamma):
    (n, d), k = x.shape, p["alpha"].shape[0]
    rows, cols = torch.tril_indices(d, d, -1)
    order = torch.argsort(cols * d + rows)
    matrix = torch.zeros(k, d, d).index_put((torch.arange(k)[:, None], rows[order][None], cols[order][None]), p["l"])
    matrix = matrix + torch.diag_embed(torch.exp(p["q"]))
    z = torch.einsum("kij,nkj->nki", matrix, x[:, None, :] - p["mu"][None])
    inner = p["alpha"] + p["q"].sum(1) - 0.5 * (z * z).sum(2)
    value = torch.logsumexp(inner, 1).sum() - n * (0.5 * d * math.log(2 * math.pi) + torch.logsumexp(p["alpha"], 0))
    freedom = d + m + 1
    multigamma = 0.25 * d * (d - 1) * math.log(math.pi) + sum(math.lgamma(0.5 * freedom - 0.5 * j) for j in range(d))
    constant = freedom * d * math.log(gamma / math.sqrt(2)) - multigamma
    spread = torch.exp(2 * p["q"]).sum() + (p["l"] ** 2).sum()
    return value + k * constant - 0.5 * gamma * gamma * spread + m * p["q"].sum()


def gmm(differentiate):
    def prepare(i):
        x, names = torch.tensor(i["x"]), ("alpha", "mu", "q", "l")
        p = {name: torch.tensor(i[name]).requires_grad_(differentiate) for name in names}

        def run():
            value = gmm_value(p, x, i["m"], i["gamma"])
            return dict(zip(names, torch.autograd.grad(value, [p[name] for name in names]))) if differentiate else value

        return run

    return prepare


def squared_cost(centroids, points):
    return ((points[:, None, :] - centroids[None]) ** 2).sum(2).min(1).values.sum()


def kmeans_direction(i):
    points, centroids = torch.tensor(i["points"]), torch.tensor(i["centroids"]).requires_grad_()

    def run():
        gradient = torch.autograd.grad(squared_cost(centroids, points), centroids, create_graph=True)[0]
        diagonal = torch.autograd.grad(gradient.sum(), centroids)[0]
        return gradient.detach() / diagonal

    return run


def lse(x):
    largest = x.max()
    return largest + torch.log(torch.exp(x - largest).sum())


def of_x(f, differentiate):
    def prepare(i):
        x = torch.tensor(i["x"]).requires_grad_(differentiate)
        return (lambda: torch.autograd.grad(f(x, i), x)[0]) if differentiate else (lambda: f(x, i))

    return prepare


def square(differentiate):
    def prepare(i):
        x = torch.tensor(float(i)).requires_grad_(differentiate)
        return (lambda: torch.autograd.grad(x * x, x)[0]) if differentiate else (lambda: x * x)

    return prepare


def kmeans_cost(i):
    points, centroids = torch.tensor(i["points"]), torch.tensor(i["centroids"])
    return lambda: squared_cost(centroids, points)


MODULES = {
    "hello": {"square": square(False), "double": square(True)},
    "gmm": {"objective": gmm(False), "jacobian": gmm(True)},
    "kmeans": {"cost": kmeans_cost, "dir": kmeans_direction},
    "lse": {"primal": of_x(lambda x, i: lse(x), False), "gradient": of_x(lambda x, i: lse(x), True)},
}


def finish(result):
    plain = lambda r: {k: plain(v) for k, v in r.items()} if isinstance(r, dict) else r.tolist()
    return lambda: plain(result)


protocol.serve("torch", MODULES, protocol.timed(finish))
