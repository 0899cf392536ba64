"""``ti.init`` inside a text: the first takes effect, later ones must not destroy everybody's fields."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from rekernel.languages.taichi.package import Package

_SAFE_TO_ASK = frozenset({"cuda", "metal", "vulkan", "amdgpu", "x64", "arm64"})
#: Settings that decide what a text means, compared even where the text leaves them at their defaults.
_MEANING = {"default_fp": "f32", "default_ip": "i32"}


class InitError(RuntimeError):
    """A text asks for another program than the one that runs."""


class _Recorded:
    program: Any = None
    settings: Mapping[str, str] = {}


_recorded: dict[str, _Recorded] = {}


@contextmanager
def guarded(package: Package, notes: list[str], *, again: bool = False) -> Iterator[None]:
    """While a text runs on this thread, let ``init`` take effect only when no program runs.

    With `again`, the text runs once more because the user has started another program: that one counts.
    Swaps the package's public ``init`` for the duration; other threads pass through to the original.
    """
    original = package.module.init
    thread = threading.get_ident()
    active = True

    @functools.wraps(original)
    def init(*args: Any, **kwargs: Any) -> Any:
        if not active or threading.get_ident() != thread:
            return original(*args, **kwargs)
        settings = _settings(args, kwargs)
        if package.program is not None:
            if not again:
                _compare(package, settings, args[0] if args else kwargs.get("arch"))
            notes.append(f"{package.name}.init({_call(args, kwargs)}) skipped: the program runs already")
            return None
        result = original(*args, **kwargs)
        record = _recorded.setdefault(package.name, _Recorded())
        record.program, record.settings = package.program, settings
        return result

    holders: list[Any] = [
        h for h in (package.module, package.module.lang, package.module.lang.misc) if hasattr(h, "init")
    ]
    holders = [h for h in holders if h.init is original]
    try:
        for holder in holders:
            holder.init = init
        yield
    finally:
        active = False
        for holder in holders:
            if holder.init is init:
                holder.init = original


def _settings(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, str]:
    named = dict(zip(("arch", "default_fp", "default_ip"), args, strict=False)) | dict(kwargs)
    return {key: _text(value) for key, value in named.items() if value is not None}


def _text(value: Any) -> str:
    if isinstance(value, list | tuple):  # ``ti.gpu`` is a list of candidates
        return f"[{', '.join(map(_text, value))}]"
    return str(value.to_string()) if hasattr(value, "to_string") else str(value)


def _call(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    parts = [_text(a) for a in args] + [f"{k}={_text(v)}" for k, v in kwargs.items()]
    return ", ".join(part.replace("Arch.", "") for part in parts)


def _compare(package: Package, settings: Mapping[str, str], arch: Any) -> None:
    """Raise `InitError` when the running program is not the one that these settings would make."""
    record = _recorded.get(package.name)
    known = record.settings if record is not None and record.program is package.program else None
    if known == settings:
        return
    config, runtime = package.impl.current_cfg(), package.runtime
    differing = []
    for key in [*settings, *(k for k in [*_MEANING, *(known or ())] if k not in settings)]:
        wanted = settings.get(key, _MEANING.get(key))
        if key == "arch":
            running = _text(config.arch)
            wanted = None if wanted is None else _arch(package, arch)
        elif key in _MEANING:
            running = _text(getattr(runtime, key))
        else:
            running = str(getattr(config, key)) if hasattr(config, key) else str((known or {}).get(key, wanted))
        if wanted is None and known is not None and key in known:
            wanted = "its default"
        if wanted is not None and not _equal(wanted, running):
            differing.append(f"{key}={wanted.replace('Arch.', '')} (running: {running.replace('Arch.', '')})")
    if differing:
        raise InitError(
            f"the text asks for another {package.name}.init than the running program has: "
            f"{', '.join(differing)}. A new init would destroy all fields; to allow that, call "
            "loader.cleanup_all(reset_taichi=True) first, or take the init out of the text"
        )


def _arch(package: Package, wanted: Any) -> str:
    """Return the architecture that ``init`` would choose on this machine: the first supported one, or the CPU.

    Asking for OpenGL while a program runs is a segmentation fault where there is no display, so only the
    others are asked for.
    """
    misc = package.module.lang.misc
    for candidate in wanted if isinstance(wanted, list | tuple) else [wanted]:
        safe = candidate is not None and _text(candidate).replace("Arch.", "") in _SAFE_TO_ASK
        if safe and misc.is_arch_supported(candidate):
            return _text(candidate)
    return _text(misc.cpu)


def _equal(wanted: str, running: str) -> bool:
    try:
        return float(wanted) == float(running)
    except ValueError:
        return wanted == running or {wanted, running} in ({"True", "1"}, {"False", "0"})
