"""Row 33: ids, names and texts do not depend on hash seeds, places or the order of definition."""

from __future__ import annotations

import os
import subprocess
import sys

from support import run_python

PROGRAM = """
import rekernel
from rekernel import jobs, namespace
from rekernel.languages import languages
from rekernel.source import Source
taichi = languages()["taichi"]
text = '''
import taichi as ti
from somewhere import gamma, alpha
ZZ, YY = one + two, three
lookup = {a: b for a, b in pairs}
@ti.data_oriented
class Solver:
    @ti.kernel
    def inside(self):
        pass
@ti.func
def helper(x):
    return x * omega + beta + zeta + ZZ
@ti.kernel
def second(x: vec3, y: ti.template()):
    for i in range(theta):
        helper(eta)
@ti.kernel
def first(a: mat4):
    second_helper(kappa, lambda_, mu, nu, xi)
@ti.kernel
def _hidden():
    pass
'''
draft = taichi.read(Source(text, "taichi"), kernel_id="k", number=1)
print(draft.kernels, draft.titles, draft.wants)
print([str(k) for k in rekernel.parse(text)])
loader = rekernel.KernelLoader()
first, second = "@ti.kernel\\ndef a():\\n pass\\n", "@ti.kernel\\ndef b(:\\n"
for broken in ("@ti.kernel\\ndef zeta(x: ti.f32):\\n  return (\\n", first + second):
    try:
        loader.load(broken)
    except rekernel.KernelSourceError as error:
        print(error.kernel_id, error.line, error.column, str(error))
try:
    loader.load("nothing here")
except ValueError as error:
    print(error)
try:
    rekernel.languages.detect("@ti.kernel\\ndef f(): pass\\n", None, None)
    loader.load("@ti.kernel\\ndef f(): pass\\n", "k", colour=1, shape=2)
except TypeError as error:
    print(error)
"""


def outputs(tmp_path, **common):
    for seed in range(8):
        place = tmp_path / f"place {seed}"
        place.mkdir()
        yield run_python(PROGRAM, cwd=place, PYTHONHASHSEED=str(seed), TMPDIR=str(place)).stdout


def test_all_texts_are_the_same_in_eight_processes(tmp_path):
    found = set(outputs(tmp_path))
    assert len(found) == 1
    text = found.pop()
    assert "('second', 'first')" in text
    wants = text.split("\n")[0].split(") (")[-1]
    names = [n.strip(" ')") for n in wants.split(",")]
    assert names == sorted(names)
    assert {"beta", "omega", "theta", "pairs", "one"} <= set(names)


def test_names_that_a_user_sees_are_the_same_in_eight_processes():
    program = """
from support import START, times
exec(START)
first = loader.load(times(1, "b") + times(2, "a"))
again = loader.load(times(2, "a") + times(1, "b"))
other = loader.load(times(3, "c"))
named = loader.load(times(3, "c"), "mine")
third = loader.load(times(4, "mine"))
print(list(loader), repr(loader), dir(first), [loader.info(i).depends_on for i in loader])
print(first.a._primal.func.__code__.co_filename, first.a._primal.func.__module__)
"""
    processes = []
    for seed in range(4):
        env = {**os.environ, "PYTHONHASHSEED": str(seed), "PYTHONPATH": os.path.dirname(os.path.dirname(__file__))}
        processes.append(subprocess.Popen([sys.executable, "-c", program], env=env, stdout=subprocess.PIPE, text=True))
    found = {process.communicate(timeout=120)[0] for process in processes}
    assert all(process.returncode == 0 for process in processes)
    assert len(found) == 1
    assert "['b', 'c', 'mine', 'mine_2']" in found.pop()
