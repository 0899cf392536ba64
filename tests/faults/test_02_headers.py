"""Row 2: headers count by what they say, wherever they come from, in this process and in the next."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from jitkernels import compilers, each_compiler, needs_compiler
from rekernel.jit import CpuJit
from rekernel.kernel import Kernel
from rekernel.modulebuilder import LibraryBuilder
from rekernel.objcache import ObjectCache
from support import run_python

CODE = "int answer() { return B; }\n"
LINES = {
    "quotes": '#include "a.h"\n',
    "brackets": "#include <a.h>\n",
    "a macro": "#define NAME <a.h>\n#include NAME\n",
    "a built name": '#define TEXT(x) #x\n#define BUILT(x) TEXT(x.h)\n#include BUILT(a)\n',
    "asked for": "#if __has_include(<a.h>)\n#include <a.h>\n#endif\n",
    "a folder": "#include <sub/a.h>\n",
}  # fmt: skip


@pytest.fixture
def place(tmp_path):
    """Two include directories; a.h of the second includes b.h, which says 1."""
    for name in ("first", "second/sub"):
        (tmp_path / name).mkdir(parents=True)
    for folder in ("second", "second/sub"):
        (tmp_path / folder / "a.h").write_text('#include "b.h"\n')
    for folder in ("second", "second/sub"):
        (tmp_path / folder / "b.h").write_text("#define B 1\n")
    return tmp_path


class Here:
    """A JIT of a new process as far as headers go, on one cache."""

    def __init__(self, place, info=None):
        class Builder(LibraryBuilder):
            @staticmethod
            def include_dirs():
                return [str(place / "first"), str(place / "second")]

        self.cache = ObjectCache(place / "cache")
        self.jit = CpuJit(info, self.cache, module_builder=Builder())

    def run(self, line='#include "a.h"\n', code=CODE):
        """Return the answer, and why it was built anew (None: it was not)."""
        wrapper = self.jit.compile(Kernel("answer", (), "cpp", code=line + code, returns="int32"))
        return wrapper(), wrapper.rebuilt_because


@each_compiler
@pytest.mark.parametrize("how", LINES)
def test_a_header_of_a_header_changes(place, info, how):
    here, line = Here(place, info), LINES[how]
    header = place / "second" / ("sub" if how == "a folder" else "") / "b.h"
    assert here.run(line) == (1, "not seen before")
    assert here.run(line) == (1, None)
    header.write_text("#define B 22\n")
    assert here.run(line) == (22, f"header changed: {header}")
    assert Here(place, info).run(line) == (22, None)
    header.write_text("#define B 33\n")  # the same size, within the same moment
    assert here.run(line)[0] == 33
    header.write_text("#define B 1\n")  # what was there once is still known
    assert here.run(line)[0] == 1


@needs_compiler
def test_the_same_text_with_another_time_is_the_same(place):
    here = Here(place)
    here.run()
    for path in (place / "second").rglob("*.h"):
        os.utime(path, (1, 1))
    assert here.run() == (1, None)
    shutil.copy(place / "second" / "b.h", place / "copy")
    os.replace(place / "copy", place / "second" / "b.h")
    assert Here(place).run() == (1, None)


@needs_compiler
def test_another_text_with_the_old_time_is_another(place):
    here, header = Here(place), place / "second" / "b.h"
    os.utime(header, (1, 1))
    here.run()
    header.write_text("#define B 2\n")
    os.utime(header, (1, 1))
    assert here.run()[0] == 2


@needs_compiler
def test_a_new_header_shadows_another(place):
    here, line = Here(place), "#include <a.h>\n"
    assert here.run(line) == (1, "not seen before")
    (place / "first" / "a.h").write_text("#define B 7\n")
    answer, why = here.run(line)
    assert (answer, why) == (7, f"header may be shadowed: {place / 'first' / 'a.h'}")
    (place / "first" / "a.h").unlink()
    assert here.run(line)[0] == 1


@needs_compiler
def test_a_new_folder_shadows_a_header(place):
    here, line = Here(place), "#include <sub/a.h>\n"
    assert here.run(line)[0] == 1
    (place / "first" / "sub").mkdir()
    (place / "first" / "sub" / "a.h").write_text("#define B 8\n")
    assert here.run(line)[0] == 8


@needs_compiler
def test_a_header_goes(place):
    here, line = Here(place), "#if __has_include(<extra.h>)\n#include <extra.h>\n#else\n#define B 4\n#endif\n"
    (place / "first" / "extra.h").write_text("#define B 5\n")
    assert here.run(line)[0] == 5
    (place / "first" / "extra.h").unlink()
    assert here.run(line) == (4, f"header gone: {place / 'first' / 'extra.h'}")


@needs_compiler
def test_a_header_that_was_asked_for_appears(place):
    here, line = Here(place), "#if __has_include(<extra.h>)\n#include <extra.h>\n#else\n#define B 4\n#endif\n"
    assert here.run(line)[0] == 4
    (place / "second" / "extra.h").write_text("#define B 6\n")
    assert here.run(line)[0] == 6


@needs_compiler
def test_other_files_beside_the_headers_do_not_matter(place):
    here = Here(place)
    here.run()
    for name in ("notes.md", "x.o", ".hidden", "data.py"):
        (place / "first" / name).write_text("")
    assert here.run() == (1, None)


@needs_compiler
def test_the_order_of_the_include_directories_counts(place):
    here = Here(place)
    (place / "first" / "a.h").write_text("#define B 7\n")
    assert here.run("#include <a.h>\n")[0] == 7
    first, second = here.jit.module_builder.include_dirs()
    type(here.jit.module_builder).include_dirs = staticmethod(lambda: [second, first])
    assert here.run("#include <a.h>\n") == (1, "flags changed: another order")


@pytest.mark.skipif(not compilers(), reason="there is no C++ compiler")
def test_a_new_process_sees_the_change(place):
    program = """
import json, sys
from pathlib import Path
from faults_headers import Here
print(json.dumps(Here(Path(sys.argv[1])).run()))
"""
    place.joinpath("faults_headers.py").write_text(__import__("pathlib").Path(__file__).read_text())
    env = {"PYTHONPATH": f"{place}{os.pathsep}{os.path.dirname(os.path.dirname(__file__))}"}
    said = [json.loads(run_python(program, str(place), **env).stdout) for _ in range(2)]
    place.joinpath("second", "b.h").write_text("#define B 9\n")
    said.append(json.loads(run_python(program, str(place), **env).stdout))
    assert said == [[1, "not seen before"], [1, None], [9, f"header changed: {place / 'second' / 'b.h'}"]]
