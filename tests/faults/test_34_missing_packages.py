"""Row 34: what is not installed is not needed to import rekernel; who needs it is told what to install.

Here: Taichi and its relatives. Compilers and CuPy have their own tests.
"""

from __future__ import annotations

import pytest

from support import run_python

BLOCK = """
import sys
class Blocker:
    '''As if a package were not installed: for whoever asks.'''
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
BLOCKED = set(sys.argv[1].split(","))
sys.meta_path.insert(0, Blocker())
import rekernel
loader = rekernel.KernelLoader()
"""


@pytest.mark.parametrize(
    ("package", "text", "install"),
    [
        ("taichi", "@ti.kernel\\ndef f(): pass\\n", 'pip install "rekernel[taichi]"'),
        ("taichi", "import taichi as ti\\n@ti.kernel\\ndef f(): pass\\n", 'pip install "rekernel[taichi]"'),
        ("quadrants", "import quadrants as qd\\n@qd.kernel\\ndef f(): pass\\n", 'pip install "quadrants"'),
        ("taichi_forge", "import taichi_forge as ti\\n@ti.kernel\\ndef f(): pass\\n", 'pip install "taichi-forge"'),
    ],
)
def test_a_load_says_what_to_install(package, text, install):
    program = (
        BLOCK
        + f"""
for attempt in range(2):
    try:
        loader.load("{text}", "k")
        print("loaded")
    except rekernel.ToolchainError as error:
        print(type(error).__name__, {package!r} in str(error), {install!r} in str(error), "doctor" in str(error))
print(list(loader), len([m for m in sys.modules if m.startswith("_rekernel_live.")]))
"""
    )
    printed = run_python(program, package).stdout.splitlines()
    assert printed == ["ToolchainError True True True"] * 2 + ["[] 0"]


def test_everything_that_needs_no_package_works_without_it():
    program = (
        BLOCK
        + """
print([str(k) for k in rekernel.parse("@ti.kernel\\ndef f(x: ti.f32) -> ti.f32:\\n    return x\\n")])
print(repr(loader), len(loader), loader.stats().ids)
try:
    loader.load("@ti.kernel\\ndef f(:\\n", "k")
except rekernel.KernelSourceError as error:
    print(error.line)
loader.cleanup_all(reset_taichi=True)
loader.save("/dev/stdout") if False else None
from toy import Toy
from rekernel.languages import register
register(Toy())
print(loader.load("f() = 3", "t", language="toy").f())
"""
    )
    printed = run_python(program, "taichi,quadrants,taichi_forge,torch,cupy,pystencils,IPython,rich,PIL").stdout
    assert printed.splitlines() == ["['f(x: ti.f32) -> ti.f32']", "<KernelLoader: 0 ids> 0 0", "2", "3"]


def test_a_package_that_breaks_while_it_is_imported_is_reported(tmp_path):
    (tmp_path / "taichi").mkdir()
    (tmp_path / "taichi" / "__init__.py").write_text("raise ImportError('libGL.so.1: cannot open')\n")
    program = """
import sys
sys.path.insert(0, sys.argv[1])
import rekernel
try:
    rekernel.KernelLoader().load("@ti.kernel\\ndef f(): pass\\n")
except rekernel.ToolchainError as error:
    print("libGL.so.1" in str(error), isinstance(error.__cause__, ImportError))
"""
    assert run_python(program, str(tmp_path)).stdout.split() == ["True", "True"]


def test_the_python_m_rekernel_that_messages_name_exists():
    process = run_python("import sys; sys.argv = ['rekernel', '--help']; import rekernel.__main__ as m; m.main()")
    assert "rekernel" in process.stdout
