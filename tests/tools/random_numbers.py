"""The generator of library/random.gr on numpy's unsigned integers: prints expectations for tests/programs/library/random_numbers.gr, and tests of
uniformity and independence on a million numbers each (p-values; they should look uniform).

Usage: python tests/tools/random_numbers.py (needs numpy and scipy)."""

import numpy as np
from scipy import stats

np.seterr(over="ignore")
U = np.uint64


def turn(x):
    return (x >> U(32)) | (x << U(32))


def bits(stream, counter):
    counter = np.asarray(counter, dtype=np.int64).astype(U)
    y = counter * stream
    z = y + stream
    x = turn(y * y + y)
    x = turn(x * x + z)
    x = turn(x * x + y)
    x = turn(x * x + z)
    return x * x + y


def child(stream, i):
    return bits(stream, -1 - np.asarray(i)) | U(1)


def seed(n):
    return child(child(U(7046029254386353131), n), 0)


def uniform(stream, i):
    b = bits(stream, np.asarray(i) + 1).astype(np.int64)
    quotient = np.where(b >= 0, b // 2048, -((-b) // 2048))
    return (quotient.astype(float) + 2.0**52) / 2.0**53


def normal(stream, i):
    i = np.asarray(i)
    return np.sqrt(-2 * np.log(1 - uniform(stream, 2 * i))) * np.cos(2 * np.pi * uniform(stream, 2 * i + 1))


def chi(u, classes):
    h = np.bincount((u * classes).astype(int), minlength=classes)
    e = len(u) / classes
    return stats.chi2.sf(((h - e) ** 2 / e).sum(), classes - 1)


if __name__ == "__main__":
    key = seed(42)
    left, right = child(key, 0), child(key, 1)
    signed = lambda k: int(np.asarray(k).astype(np.int64))
    show = lambda e, v: print(f"show {e}\n(* = {v} *)")
    real = lambda x: repr(float(x))
    show("key.stream", signed(key))
    show("Random.bits key 1", signed(bits(key, 1)))
    show("Random.uniform key", real(uniform(key, 0)))
    show("Random.uniform_array key 3", "[| " + "; ".join(real(uniform(key, i)) for i in range(3)) + " |]")
    show("Random.normal_array key 3", "[| " + "; ".join(real(normal(key, i)) for i in range(3)) + " |]")
    show("(let (a, b) = Random.split key in (a.stream, b.stream))", (signed(left), signed(right)))
    show("(Random.fold_in key 5).stream", signed(child(key, 7)))
    show("Random.integer key 0 100", int(uniform(key, 0) * 100))
    n = 10**6
    for s in range(8):
        u = uniform(seed(s), np.arange(n))
        low = (bits(seed(s), np.arange(n) + 1) & U(1023)).astype(float) / 1024
        pairs = np.floor(u[::2] * 30) / 30 + u[1::2] / 30
        lag = stats.norm.sf(abs(np.corrcoef(u[:-1], u[1:])[0, 1]) * np.sqrt(n)) * 2
        print(f"(* seed {s}: classes {chi(u, 1000):.3f}, low bits {chi(low, 1024):.3f}, pairs {chi(pairs, 900):.3f}, neighbours {lag:.3f} *)")
    firsts = uniform(seed(np.arange(n)), 0)
    children = uniform(child(seed(1), np.arange(n)), 0)
    print(f"(* first numbers of seeds {chi(firsts, 1000):.3f}, of children {chi(children, 1000):.3f} *)")
