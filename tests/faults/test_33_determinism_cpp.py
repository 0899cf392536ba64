"""Row 33 for C++ texts: eight processes, each in other surroundings: one entry, one compile."""

from __future__ import annotations

from cppkit import START, Shim, load_with, needs_cpp
from support import run_python

pytestmark = needs_cpp

TEXT = """
#include <cstddef>
using rekernel::Array;
template <class T> static void fill(Array<T, 1> x, T v) { for (int64_t i = 0; i < x.size(); ++i) x[i] = v; }
void zero(Array<double, 1> x) { fill(x, 0.0); }
void one(Array<float, 1> x) { fill(x, 1.0f); }
int zero(int n) { return 0 * n; }
namespace inner { double half(double x) { return x / 2; } }
"""
PROGRAM = (
    START
    + """
from pathlib import Path
turn = int(sys.argv[2])
loader = load_with(sys.argv[1] + "/cache", GccInfo(command=sys.argv[1] + "/bin/g++"))
others = ["int before() { return 1; }", "int between() { return 2; }"]
m = loader.load(Path(sys.argv[1], "text").read_text(), ("k", "other")[turn % 2], filename=f"cell {turn}.cpp" if turn else None,
                first_line=1 + 10 * turn, language="cpp", optlevel="0")
print(m.zero(3), m.half(3.0), sorted(m.zero.parameters or ()) == [] , loader.info(None).from_cache)
"""
).replace("sorted(m.zero.parameters or ()) == [] , ", "")


def test_seeds_places_names_and_lines_do_not_matter(tmp_path):
    shim = Shim(tmp_path / "bin")
    (tmp_path / "text").write_text(TEXT)
    said = []
    for turn in range(8):
        place = tmp_path / f"place {turn}"
        place.mkdir()
        env = {
            "PYTHONHASHSEED": str(turn * 1000 + 1),
            "TMPDIR": str(place),
            "HOME": str(place),
            "LANG": ("C", "de_DE")[turn % 2],
        }
        said.append(run_python(PROGRAM, str(tmp_path), str(turn), cwd=place, **env).stdout)
    assert said == ["0 1.5 False\n", *["0 1.5 True\n"] * 7]
    assert len(shim.calls()) == 1
    assert len([p for p in (tmp_path / "cache" / "objects").rglob("*") if p.is_file()]) == 1


def test_a_file_in_another_place_is_the_same_text(tmp_path):
    loader = load_with(tmp_path / "cache")
    for name in ("a", "b b/c"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "heat.cpp").write_text("#include <cstddef>\n" + TEXT)
    said = []
    for name in ("a", "b b/c"):
        loader.load_file(tmp_path / name / "heat.cpp", f"id {name}", optlevel="0")
        said.append(loader.info(f"id {name}").from_cache)
    assert said == [False, True]


def test_the_counters_tell(tmp_path):
    loader = load_with(tmp_path / "cache")
    loader.load(TEXT, "k", optlevel="0")
    loader.load(TEXT, "k")
    loader.load(TEXT, "again", optlevel="0")
    stats = loader.jit.objcache.stats
    assert (stats.hits, stats.misses, dict(stats.reasons)) == (1, 1, {"new": 1})
    assert loader.stats().unchanged == 1
