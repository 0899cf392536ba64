"""Local Python modules that a text imports."""

from __future__ import annotations

import os
import sys

import pytest

from rekernel import KernelSourceError, info

TEXT = "import rk_local_helper as h\n@ti.kernel\ndef f() -> ti.f32:\n    return h.twice(3.0)\n"
HELPER = "import taichi as ti\nVALUE = 2.0\n@ti.func\ndef twice(a):\n    return VALUE * a\n"


@pytest.fixture
def helper(tmp_path, monkeypatch):
    file = tmp_path / "rk_local_helper.py"
    file.write_text(HELPER)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield file
    sys.modules.pop("rk_local_helper", None)


def test_an_unchanged_helper_file_makes_an_unchanged_load(loader, helper):
    m = loader.load(TEXT)
    os.utime(helper, ns=(1, 1))
    assert loader.load(TEXT) is m
    assert info(m).version == 1


def test_a_changed_helper_file_makes_a_new_version(loader, helper):
    m = loader.load(TEXT)
    assert m.f() == 6
    helper.write_text(HELPER.replace("2.0", "5.0"))
    loader.load(TEXT)
    assert (m.f(), info(m).version) == (15, 2)
    assert info(m).notes == ("imported anew: rk_local_helper",)


def test_a_broken_helper_file_leaves_everything_as_it_was(loader, helper):
    m = loader.load(TEXT)
    module = sys.modules["rk_local_helper"]
    content = dict(module.__dict__)
    helper.write_text(HELPER.replace("VALUE * a", "VALUE *"))
    with pytest.raises(KernelSourceError):
        loader.load(TEXT)
    helper.write_text(HELPER.replace("VALUE = 2.0", "VALUE = 1 / 0"))
    with pytest.raises(KernelSourceError, match="division by zero"):
        loader.load(TEXT)
    assert (m.f(), module.__dict__) == (6, content)
    helper.write_text(HELPER.replace("2.0", "4.0"))
    loader.load(TEXT)
    assert m.f() == 12
