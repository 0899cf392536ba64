"""What C++ text costs: from a text that nobody has seen to its first result, and every load after that.

    python benchmarks/cpp_text.py [--quick] [--json FILE] [--only WORD]

Peers are measured in the same run, samples taking turns: the compiler alone, and numba, cppyy and PyTorch's load_inline
where they are installed (a line says which are not). Texts change by a constant that reaches the result, which is
compared with NumPy every time. The exit status is 1 when g++ is missing or something computed a wrong result. It never
says anything about speed: that is what ``ok`` and ``MISSED`` are for.
"""

from __future__ import annotations

import shutil
import sys
from dataclasses import dataclass

from jitrun import arguments, run
from samples import machine


@dataclass(frozen=True)
class Plan:
    """How much is measured."""

    samples: int = 20
    sweeps: int = 200

    @classmethod
    def quick(cls) -> Plan:
        return cls(samples=8, sweeps=60)


def main() -> int:
    options = arguments(__doc__, "fewer samples")
    if shutil.which("g++") is None:
        print("g++ is missing; install it (Debian, Ubuntu: apt install g++)", file=sys.stderr)
        return 1
    import cppfigures

    return run(options, Plan.quick() if options.quick else Plan(), machine(), cppfigures.ALL)


if __name__ == "__main__":
    sys.exit(main())
