"""How long the commands take, beside an empty Python and beside importing what they need.

    python benchmarks/bench_compile.py

Each command runs as a process of its own, several times in turn with the floor, and the fastest run of each counts:
on a shared machine the others measure the neighbours. Ratios are to the floor of the same run.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"
ROUNDS = 7


def fastest(commands: dict[str, list[str]]) -> dict[str, float]:
    """Seconds of the fastest run of each command, all taken in turn."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    best: dict[str, float] = {}
    for _ in range(ROUNDS):
        for name, command in commands.items():
            begin = time.perf_counter()
            done = subprocess.run(command, capture_output=True, env=environment, check=False)
            seconds = time.perf_counter() - begin
            assert done.returncode == name.startswith("refuse"), done.stderr.decode()
            best[name] = min(best.get(name, seconds), seconds)
    return best


def main() -> None:
    opusc = [str(Path(sys.executable).parent / "opusc")]
    photonic = EXAMPLES / "photonic-rails" / "photonic-rails.opus"
    with tempfile.TemporaryDirectory() as folder:
        large = Path(folder) / "large.opus"
        text = photonic.read_text(encoding="utf-8")
        large.write_text(text.replace("switches.polatis_6000n_192 {", "switches.polatis_6000n_192 { radix = 1024,"))
        write = ["-t", "plan", "-o", str(Path(folder) / "build")]
        commands = {
            "empty Python": [sys.executable, "-c", "pass"],
            "import numpy, z3, lark": [sys.executable, "-c", "import numpy, z3, lark"],
            "opusc --version": [*opusc, "--version"],
            "check quickstart (8 GPUs)": [*opusc, "check", str(EXAMPLES / "quickstart" / "quickstart.opus")],
            "compile photonic-rails (128 GPUs)": [*opusc, "compile", str(photonic), *write],
            "compile it with dp = 128 (4,096 GPUs)": [*opusc, "compile", str(large), "-D", "dp=128", *write],
            "refuse it with dp = 25": [*opusc, "check", str(photonic), "-D", "dp=25"],
        }
        times = fastest(commands)
    floor, imports = times["empty Python"], times["import numpy, z3, lark"]
    print(f"{'':<40}{'ms':>8}{'/ empty':>10}{'/ imports':>11}")
    for name, seconds in times.items():
        print(f"{name:<40}{seconds * 1000:>8.0f}{seconds / floor:>10.2f}{seconds / imports:>11.2f}")


if __name__ == "__main__":
    main()
