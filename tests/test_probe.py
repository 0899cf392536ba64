"""What a compiler is: asked once, kept, and asked again when something changed."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest

from rekernel import calling
from rekernel import probe as probing
from rekernel.compilers import CompilerInfo, GccInfo
from rekernel.probe import Toolchain, cpu_features, probe

COMPILER = shutil.which("g++") or shutil.which("clang++")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler is installed")


@pytest.fixture
def info() -> CompilerInfo:
    return CompilerInfo.get_default()


@pytest.fixture(autouse=True)
def forgetful() -> None:
    probing._known.clear()


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Count the calls of compilers."""
    calls: list[object] = []
    real = calling.call
    monkeypatch.setattr(calling, "call", lambda *a, **k: calls.append(a) or real(*a, **k))  # type: ignore[func-returns-value]
    return calls


def test_what_is_found(info: CompilerInfo) -> None:
    found = probe(info)
    assert os.path.isfile(found.compiler)
    assert os.path.isabs(found.resolved)
    assert found.number >= (5,)
    assert found.triple
    assert found.kind in ("gcc", "clang")
    assert found.native
    assert any(os.path.exists(os.path.join(directory, "cmath")) for directory in found.system_dirs)
    assert found.link is not None
    assert "--eh-frame-hdr" in found.link.before
    assert any("crtbeginS.o" in word for word in found.link.before)
    assert hash(found) == hash(probe(info))


def test_a_second_probe_asks_nobody(info: CompilerInfo, silent: list[object], tmp_path: Path) -> None:
    first = probe(info, tmp_path)
    assert silent
    silent.clear()
    assert probe(info, tmp_path) is first
    probing._known.clear()
    assert probe(info, tmp_path) == first  # as another process would
    assert silent == []


@pytest.mark.parametrize("damage", [b"", b"x" * 50, None, "half", "flip"])
def test_a_damaged_record_is_asked_anew(
    info: CompilerInfo, silent: list[object], tmp_path: Path, damage: bytes | str | None
) -> None:
    first = probe(info, tmp_path)
    (record,) = tmp_path.glob("*.json")
    data = record.read_bytes()
    if damage is None:
        record.unlink()
        record.mkdir()
    else:
        changed = {"half": data[: len(data) // 2], "flip": data[:-5] + bytes([data[-5] ^ 1]) + data[-4:]}
        record.write_bytes(changed[damage] if isinstance(damage, str) else damage)
    probing._known.clear()
    silent.clear()
    assert probe(info, tmp_path) == first
    assert silent


def test_a_directory_that_others_can_write_to_is_not_trusted(
    info: CompilerInfo, silent: list[object], tmp_path: Path
) -> None:
    probe(info, tmp_path)
    tmp_path.chmod(0o777)
    probing._known.clear()
    silent.clear()
    probe(info, tmp_path)
    assert silent


def test_the_record_is_private_and_nothing_else_stays(info: CompilerInfo, tmp_path: Path) -> None:
    probe(info, tmp_path / "new")
    (record,) = (tmp_path / "new").iterdir()
    assert stat.S_IMODE(record.stat().st_mode) == 0o600


def wrapper(path: Path, version: str) -> None:
    path.write_text(f'#!/bin/sh\n"{COMPILER}" "$@" 2>&1 | sed "s/version [0-9.]*/version {version}/" >&2\n')
    path.chmod(0o755)


def test_another_compiler_of_the_same_name_first_on_path_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = os.path.basename(COMPILER or "")
    info = GccInfo(command=name)
    found: list[Toolchain] = [probe(info, tmp_path)]
    wrapper(tmp_path / name, "99.1")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    found.append(probe(info, tmp_path))
    wrapper(tmp_path / name, "99.23")  # an upgrade in place, while this process runs
    found.append(probe(info, tmp_path))
    assert [tool.number[0] for tool in found[1:]] == [99, 99]
    assert len({tool.identity for tool in found}) == 3


def test_a_variable_that_changes_the_compiler_is_another_probe(
    info: CompilerInfo, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = probe(info)
    monkeypatch.setenv("CPLUS_INCLUDE_PATH", "/somewhere")
    assert probe(info).identity != first.identity


def test_another_cpu_is_another_probe(info: CompilerInfo, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first = probe(info, tmp_path)
    monkeypatch.setattr(probing, "cpu_features", lambda: "another")
    assert probe(info, tmp_path).cpu != first.cpu
    monkeypatch.setattr(probing, "cpu_features", lambda: first.cpu)
    assert probe(info, tmp_path) == first


def test_cpu_features_are_stable() -> None:
    assert cpu_features() == cpu_features()


def test_a_cache_directory_that_cannot_be_is_done_without(info: CompilerInfo, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert probe(info, tmp_path / "file") == probe(info)
