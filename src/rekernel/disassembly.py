"""Compiled code as assembly text, by the tools that are made for it."""

from __future__ import annotations

import os
import re
import shutil
from typing import TYPE_CHECKING

from rekernel.compilers import toolchain_error
from rekernel.process import run, working

if TYPE_CHECKING:
    from rekernel.values import MachineCode

__all__ = ["disassemble"]

#: What a linker adds to every library.
_STARTUP = re.compile(r"[0-9a-f]+ <(?:(?:de)?register_tm_clones|__do_global_dtors_aux|frame_dummy|_init|_fini)>:")
_HEADING = re.compile(r"^(?:unit\.\w+: +file format .*|Disassembly of section .*)\n*", re.M)


def disassemble(code: MachineCode) -> str:
    """Return compiled code as text: x86 in Intel's notation, with the lines of its text where it knows them.

    ToolchainError where the tool is missing or fails.
    """
    if code.kind == "ptx":
        return code.data.rstrip(b"\0").decode("utf-8", "replace")
    return _of_gpu(code.data) if code.kind == "cubin" else _of_cpu(code.data)


def _of_cpu(data: bytes) -> str:
    tool = shutil.which("objdump")
    if tool is None:
        raise toolchain_error(
            "assembly is made by objdump, which is not installed (Debian, Ubuntu: apt install binutils)"
        )
    x86 = data[18:20] in (b"\x3e\0", b"\x03\0")
    lines = ["--source", "--line-numbers"] if b".debug_line" in data else []
    words = ["--disassemble", "--demangle", "--no-show-raw-insn", "--section=.text", *lines]
    text = _run([tool, *words, *(["--disassembler-options=intel"] if x86 else [])], data, "unit.so")
    return "\n\n".join(part for part in text.split("\n\n") if not _STARTUP.match(part))


def _of_gpu(data: bytes) -> str:
    tool = _cuda_tool("nvdisasm")
    if tool is not None:
        return _run([tool, "--print-code"], data, "unit.cubin")
    tool = _cuda_tool("cuobjdump")
    if tool is not None:
        return _run([tool, "-sass"], data, "unit.cubin")
    raise toolchain_error(
        "assembly of CUDA code is made by nvdisasm or cuobjdump of the CUDA toolkit; neither is in PATH nor in "
        "CUDA_HOME/bin"
    )


def _cuda_tool(name: str) -> str | None:
    places = [os.path.join(os.environ[home], "bin") for home in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(home)]
    places.append("/usr/local/cuda/bin")
    return shutil.which(name) or shutil.which(name, path=os.pathsep.join(places))


def _run(command: list[str], data: bytes, name: str) -> str:
    with working(None) as place:
        path = os.path.join(place, name)
        with open(path, "wb") as file:
            file.write(data)
        done = run([*command, path], place)
    if done.returncode:
        raise toolchain_error(f"{command[0]} fails with code {done.returncode}: {done.output.strip()[:500]}")
    return _HEADING.sub("", done.output.replace(path, name)).strip("\n") + "\n"
