"""Row 33: one kernel in many fresh processes has one key and is built once, and the counters show it."""

from __future__ import annotations

import json
import subprocess
import sys

from rekernel.objcache import ObjectCache

PROGRAM = """
import json, os, sys
from rekernel.key import digest
from rekernel.kernel import Kernel, Parameter
from rekernel.objcache import ObjectCache

names = ["dst", "src", "weights"]
order = ["CPATH", "LANG"] if os.environ["TURN"] < "4" else ["LANG", "CPATH"]
environment = {name: os.environ.get(name) for name in order}
features = {"avx2", "fma", "bmi2", "sse4_2"}
parameters = tuple(Parameter(name, "array", dtype="float64", ndim=2) for name in names)
kernel = Kernel("step", parameters, "cpp", code="void step();")
fields = [("kernel", kernel), ("features", features), ("environment", environment), ("flags", ["-O3"])]
if int(os.environ["TURN"]) % 2:
    fields.reverse()
key = digest(fields)
cache = ObjectCache()
if cache.lookup(key) is None:
    cache.publish(key, {}, b"code")
print(json.dumps([key, cache.stats.hits, cache.stats.misses, cache.why(key)]))
"""


def test_eight_processes_with_different_surroundings_make_one_entry(tmp_path):
    seen = []
    for turn in range(8):
        (tmp_path / f"{turn}" / "tmp").mkdir(parents=True)
        script = tmp_path / f"{turn}" / f"p{turn}.py"
        script.write_text("\n" * turn + PROGRAM)
        environment = {
            "PYTHONHASHSEED": str(turn),
            "TMPDIR": str(tmp_path / f"{turn}" / "tmp"),
            "TURN": str(turn),
            "REKERNEL_CACHE_DIR": str(tmp_path / "cache"),
        }
        done = subprocess.run(
            [sys.executable, str(script)],
            cwd=tmp_path / f"{turn}",
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        seen.append(json.loads(done.stdout))
    assert len({row[0] for row in seen}) == 1
    assert [row[1:] for row in seen] == [[0, 1, "new"]] + [[1, 0, None]] * 7
    assert ObjectCache(tmp_path / "cache").verify().entries == 1
