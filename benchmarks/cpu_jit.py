"""What the CPU JIT costs: building, starting, calling, running; and what it leaves behind.

    python benchmarks/cpu_jit.py [--quick] [--json FILE] [--only WORD]

Peers are measured in the same run, samples taking turns: the compiler alone, C by hand through ctypes, NumPy,
pystencils. Texts change by a constant that reaches the result, which is compared with NumPy every time. The exit
status is 1 when a peer is missing or did not run, or something computed a wrong result. It never says anything about
speed: that is what ``ok`` and ``MISSED`` are for.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata

from jitrun import arguments, run
from samples import machine


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    samples: int = 20
    loops: int = 20_000
    sweeps: int = 100
    races: int = 5
    prebuilt: int = 10_000
    compiles: int = 500
    kills: int = 100

    @classmethod
    def quick(cls) -> Plan:
        return cls(loops=5_000, sweeps=20, races=2, compiles=200, kills=30)


def main() -> int:
    options = arguments(__doc__, "fewer builds, processes and kills")
    if missing := _missing():
        for name, command in missing.items():
            print(f"{name} did not run: {command}", file=sys.stderr)
        return 1
    import jitcalls
    import jitcold
    import jitlasting

    figures = (*jitcold.ALL, *jitcalls.ALL, *jitlasting.ALL)
    return run(options, Plan.quick() if options.quick else Plan(), _facts(), figures)


def _missing() -> dict[str, str]:
    """Return the peers that are not here, with what to do about it."""
    needs = {"pystencils": "pystencils==2.0", "numpy": "numpy", "rekernel": "."}
    found = {}
    for name, requirement in needs.items():
        try:
            installed = metadata.version(name)
        except metadata.PackageNotFoundError:
            found[name] = f"pip install {requirement}"
            continue
        wanted = requirement.partition("==")[2]
        if wanted and installed != wanted:
            found[name] = f"pip install {requirement} (installed: {installed})"
    if shutil.which("g++") is None:
        found["g++"] = "install it (Debian, Ubuntu: apt install g++)"
    return found


def _facts() -> dict[str, str]:
    facts = {name: value for name, value in machine().items() if not name.startswith("taichi")}
    facts["pystencils"] = metadata.version("pystencils")
    version = subprocess.run(["g++", "--version"], capture_output=True, text=True, check=True).stdout
    facts["g++"] = version.split("\n")[0]
    return facts


if __name__ == "__main__":
    sys.exit(main())
