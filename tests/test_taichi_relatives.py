"""quadrants and taichi_forge share Taichi's kernel API and go through the same code. Run where they are installed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest

PROGRAM = """
import numpy as np
import {package} as {alias}
{alias}.init(arch={alias}.cpu, offline_cache=False, log_level={alias}.ERROR)
import rekernel

TEXT = '''
import {package} as {alias}
x = {alias}.field({alias}.f32, shape=3)

@{alias}.func
def twice(a):
    return 2 * a

@{alias}.kernel
def up(k: {alias}.f32):
    for i in x:
        x[i] += twice(k)

@{alias}.kernel
def fill(a: {alias}.types.ndarray(dtype={alias}.f32, ndim=1), n: {alias}.i32):
    for i in a:
        a[i] = n
'''
loader = rekernel.KernelLoader()
m = loader.load(TEXT)
up, fill, x = m.up, m.fill, m.x
up(1.0)
a = np.zeros(2, np.float32)
fill(a, 4)
assert a.tolist() == [4, 4], a
loader.load(TEXT.replace('2 * a', '10 * a'))
up(1.0)
assert m.x is x and x.to_numpy().tolist() == [12, 12, 12], x.to_numpy()
try:
    loader.load(TEXT.replace('2 * a', '2 * b'), check={{'up': (1.0,)}})
except rekernel.KernelSourceError as error:
    assert (error.line, error.keeps) == (7, 2), str(error)
else:
    raise AssertionError('the broken text was loaded')
up(1.0)
for wrong, kind in (((a, 2**40), rekernel.ArgumentValueError), ((None, 1), rekernel.ArgumentTypeError), ((a,), TypeError)):
    try:
        fill(*wrong)
    except kind:
        pass
    else:
        raise AssertionError(wrong)
read_only = a.copy()
read_only.flags.writeable = False
try:
    fill(read_only, 1)
except rekernel.ArgumentValueError:
    pass
else:
    raise AssertionError('wrote into a read-only array')
loader.rollback()
up(1.0)
assert x.to_numpy().tolist() == [24, 24, 24], x.to_numpy()
{alias}.init(arch={alias}.cpu, offline_cache=False, log_level={alias}.ERROR)
up(1.0)
assert m.x.to_numpy().tolist() == [2, 2, 2], m.x.to_numpy()
print('good')
"""


@pytest.mark.parametrize(("package", "alias"), [("taichi", "ti"), ("quadrants", "qd"), ("taichi_forge", "ti")])
def test_load_swap_check_and_renew(package, alias):
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(package=package, alias=alias)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONFAULTHANDLER": "1"},
    )
    assert (done.returncode, done.stdout.split()[-1:]) == (0, ["good"]), done.stderr
