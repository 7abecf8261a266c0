"""Inputs that the suite keeps in files: read from a folder where there is one, otherwise made from a seed at the same sizes.

The folder has `ba/*.txt`, `lstm/*.txt`, `hand/model_big/*.txt` and `hand/complicated_big/*.txt` in the suite's formats.
"""

import pathlib
import re

import numpy as np

# Cameras, points and observations of the files ba1 to ba14.
BA = [
    (49, 7776, 31843), (21, 11315, 36455), (161, 48126, 182072), (372, 47423, 204472), (257, 65132, 225911),
    (539, 65220, 277273), (93, 61203, 287451), (88, 64298, 383937), (810, 88814, 393775), (1197, 126327, 563734),
    (1723, 156502, 678718), (253, 163691, 899155), (245, 198739, 1091386), (356, 226730, 1255268),
]
# Correspondences of the files hand1 to hand12.
HANDS = [100, 192, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 51200, 100000]
LSTM = [(layers, characters) for layers in (2, 4, 6) for characters in (1024, 4096, 8192)]
BITS = 14


def numbers(path):
    return [float(word) for word in path.read_text().split()]


def files(folder, name):
    """The files of a sub-folder by the number in their name."""
    found = {}
    for path in pathlib.Path(folder, name).glob("*.txt") if folder else []:
        number = re.match(r"[a-z]+(\d+)_", path.name)
        if number:
            found[int(number.group(1))] = path
    return found


def ba(folder, seed):
    known = files(folder, "ba")
    for i, (n, m, p) in enumerate(BA, start=1):
        if i in known:
            words = numbers(known[i])
            n, m, p = (int(word) for word in words[:3])
            rest = np.array(words[3:])
        else:
            rng = np.random.default_rng(seed)
            camera = [*rng.standard_normal(3), *(50 * rng.uniform(0.5, 1, 3)), 400 + 50 * rng.standard_normal(), *(10 * rng.standard_normal(2)), 0.08, 0.003]
            rest = np.array([*camera, *(5 * rng.uniform(0, 1, 3)), rng.uniform(), *(300 * rng.standard_normal(2))])
        yield f"ba{i}_n{n}_m{m}_p{p}", (n, m, p), rest[:11], rest[11:14], float(rest[14]), rest[15:17]


def hand_model(folder, seed):
    if folder:
        return read_hand_model(pathlib.Path(folder, "hand", "model_big"))
    rng = np.random.default_rng(seed)
    # 22 bones: a wrist, a palm, and five fingers of four bones each.
    parents = [-1, 0] + [1 if joint == 0 else 2 + 4 * finger + joint - 1 for finger in range(5) for joint in range(4)]
    relatives, inverses, absolutes = [], [], []
    for parent in parents:
        rotation, _ = np.linalg.qr(rng.standard_normal((3, 3)))
        relative = np.eye(4)
        relative[:3, :3], relative[:3, 3] = rotation, 0.1 * rng.standard_normal(3)
        absolutes.append(relative if parent < 0 else absolutes[parent] @ relative)
        relatives.append(relative)
        inverses.append(np.linalg.inv(absolutes[-1]))
    vertices = 10000
    positions = np.concatenate([0.1 * rng.standard_normal((vertices, 3)), np.ones((vertices, 1))], axis=1)
    weights = np.zeros((vertices, 22))
    for v in range(vertices):
        bones = rng.choice(22, 4, replace=False)
        weights[v, bones] = rng.dirichlet(np.ones(4))
    return {
        "bone_count": 22, "bone_names": [f"bone{i}" for i in range(22)], "parents": parents,
        "base_relatives": np.array(relatives), "inverse_base_absolutes": np.array(inverses),
        "base_positions": positions, "weights": weights, "triangles": rng.integers(0, vertices, (1000, 3)),
        "is_mirrored": False,
    }


def read_hand_model(folder):
    bones = [line.split(":") for line in (folder / "bones.txt").read_text().splitlines() if line]
    matrices = [np.array([float(word) for word in bone[2:34]]).reshape(2, 4, 4) for bone in bones]
    positions, weights = [], []
    for line in (folder / "vertices.txt").read_text().splitlines():
        words = line.split(":")
        if len(words) < 9:
            continue
        positions.append([*map(float, words[:3]), 1.0])
        row = np.zeros(len(bones))
        for i in range(int(words[8])):
            row[int(words[9 + 2 * i])] = float(words[10 + 2 * i])
        weights.append(row)
    triangles = [[int(word) for word in re.split(r"[:\s]+", line.strip())] for line in (folder / "triangles.txt").read_text().splitlines() if line.strip()]
    return {
        "bone_count": len(bones), "bone_names": [bone[0] for bone in bones], "parents": [int(bone[1]) for bone in bones],
        "base_relatives": np.array([m[0] for m in matrices]), "inverse_base_absolutes": np.array([m[1] for m in matrices]),
        "base_positions": np.array(positions), "weights": np.array(weights), "triangles": np.array(triangles),
        "is_mirrored": False,
    }


def hands(folder, model, seed):
    known = files(folder, "hand/complicated_big")
    for i, count in enumerate(HANDS, start=1):
        if i in known:
            words = numbers(known[i])
            count = int(words[0])
            table = np.array(words[2 : 2 + 4 * count]).reshape(count, 4)
            rest = words[2 + 4 * count :]
            correspondences, points = table[:, 0].astype(int), table[:, 1:]
            us, theta = np.array(rest[: 2 * count]).reshape(count, 2), np.array(rest[2 * count : 2 * count + 26])
        else:
            rng = np.random.default_rng(seed + i)
            correspondences = rng.integers(0, len(model["triangles"]), count)
            points, us = rng.standard_normal((count, 3)), rng.uniform(0, 0.5, (count, 2))
            theta = 0.5 * rng.standard_normal(26)
        yield f"hand{i}_t26_c{count}", theta, us, correspondences, points


def lstm(folder, seed):
    known = {}
    for path in pathlib.Path(folder, "lstm").glob("*.txt") if folder else []:
        layers, characters = map(int, re.findall(r"\d+", path.name))
        known[layers, characters] = path
    for layers, characters in LSTM:
        shapes = [(2 * layers, 4 * BITS), (3, BITS), (2 * layers, BITS), (characters, BITS)]
        if (layers, characters) in known:
            words = np.array(numbers(known[layers, characters])[3:])
        else:
            rng = np.random.default_rng(seed)
            sizes = [int(np.prod(shape)) for shape in shapes]
            words = np.concatenate([rng.uniform(-1, 1, sum(sizes[:3])), rng.integers(0, 2, sizes[3])])
        parts, start = [], 0
        for shape in shapes:
            size = int(np.prod(shape))
            parts.append(words[start : start + size].reshape(shape))
            start += size
        yield f"l={layers},c={characters}", (layers, BITS), *parts
