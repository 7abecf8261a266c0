"""The tools of a run with `--peers`: how each is started. Those that do not start are left out, and it is said why."""

import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def commands(gradus):
    """The command of each tool, as a list of words; `gradus` is the binary to measure."""
    programs = ["--dir", str(ROOT / "examples" / "gradbench")]
    python = lambda name: [sys.executable, str(HERE / "peers" / f"{name}_tool.py")]
    manifest = str(HERE / "peers" / "dual" / "Cargo.toml")
    native = 'build.rustflags=["-Ctarget-cpu=native"]'
    return {
        "gradus-c": [gradus, "gradbench", "--backend", "c", *programs],
        "gradus-native": [gradus, "gradbench", "--backend", "native", *programs],
        "hand": python("hand"),
        "jax": python("jax"),
        "torch": python("torch"),
        "casadi": python("casadi"),
        "adolc": python("adolc"),
        "dual": ["cargo", "run", "--release", "--quiet", "--config", native, "--manifest-path", manifest],
    }


def refusal(command):
    """Why a tool does not start; None if it does. The first start may compile it."""
    try:
        started = subprocess.run(command, input='{"id": 0, "kind": "start"}\n', capture_output=True, text=True, timeout=900)
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if started.stdout.startswith("{"):
        return None
    return (started.stderr.strip().splitlines() or ["it says nothing"])[-1]
