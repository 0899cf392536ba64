"""``rekernel cache``: look into the object cache, check it, make it smaller."""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import TYPE_CHECKING

from rekernel.commands import CommandError, UsageError, console, dump, existing, size, subcommand, table, texts

if TYPE_CHECKING:
    from rekernel.commands import Subparsers
    from rekernel.objcache import ObjectCache

__all__ = ["add"]

_MOST = 40
"""Entries that are listed, unless all are asked for."""


def add(subparsers: Subparsers) -> None:
    """Add the subcommand with its own subcommands."""
    parser = subcommand(
        subparsers, "cache", lambda _: parser.error("choose one of info, list, verify, prune, clear, why"), json=False,
        help="look into the object cache, check it, make it smaller",
        description="Compiled code is kept in one directory for all processes of a user, which may delete it any time.",
    )  # fmt: skip
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    subcommand(
        actions, "info", _info, help="where it is, how large",
        description="Place, size, limit, entries and their use.",
    )  # fmt: skip
    listing = subcommand(
        actions, "list", _list, help="its entries, the last used first",
        description="One line for each entry. Age and last use are before now; times of use are kept to about an hour.",
    )  # fmt: skip
    listing.add_argument("--all", action="store_true", help=f"all of them, not only the last {_MOST}")
    listing.add_argument("name", nargs="?", default="", help="only entries with a kernel whose name has this in it")
    subcommand(
        actions, "verify", _verify, help="read every entry, take damaged ones out",
        description="Reads and checks every entry, and takes out the damaged ones: they are built again when needed.\n"
        "Exit status 1 if there were any.",
    )  # fmt: skip
    pruning = subcommand(
        actions, "prune", _prune, help="take out what was not used for longest",
        description="Takes out what was not used for longest, until 80 % of SIZE are left. Programs that run go on.",
    )  # fmt: skip
    pruning.add_argument("size", type=size, help="bytes, or such as 500M or 2G", metavar="SIZE")
    clearing = subcommand(
        actions, "clear", _clear, help="empty it",
        description="Takes out all entries, precompiled headers and what is known of compilers.\n"
        "Programs that run go on.",
    )  # fmt: skip
    clearing.add_argument("--yes", "-y", action="store_true", help="do not ask")
    why = subcommand(
        actions, "why", _why, help="why a file would be compiled again",
        description="Says whether a load of the file finds it in the cache, and if not, what differs from what is\n"
        "there. Nothing is compiled.",
    )  # fmt: skip
    why.add_argument("files", nargs="+", type=existing, metavar="FILE", help="texts with kernels")
    texts.add_load_arguments(why)


def _opened() -> tuple[ObjectCache, str]:
    """Return the cache and its directory."""
    from rekernel.objcache import ObjectCache

    cache = ObjectCache()
    if cache.directory is None:
        raise CommandError("there is no cache directory: kernels are in memory only", "to see why: rekernel doctor")
    return cache, cache.directory


def bytes_said(number: float) -> str:
    """Return a number of bytes for people.

    >>> bytes_said(2048), bytes_said(5_000_000), bytes_said(12)
    ('2.0 KiB', '4.8 MiB', '12 B')
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024:
            break
        number, unit = number / 1024, "TiB"
    return f"{number:.0f} B" if unit == "B" else f"{number:.1f} {unit}"


def ago(seconds: float) -> str:
    """Return how long ago something was.

    >>> ago(5), ago(600), ago(7300), ago(300000)
    ('5 s', '10 min', '2 h', '3 d')
    """
    for unit, length, most in (("s", 1, 60), ("min", 60, 3600), ("h", 3600, 86400)):
        if seconds < most:
            return f"{max(0, seconds) // length:.0f} {unit}"
    return f"{seconds // 86400:.0f} d"


def _info(arguments: argparse.Namespace) -> int:
    from rekernel.cachelist import BESIDE, beside, listed

    cache, directory = _opened()
    entries, others = listed(directory), beside(directory)
    again = sum(one.used > one.created + 1 for one in entries)
    total, oldest = sum(one.size for one in entries), min((one.used for one in entries), default=None)
    unreadable = sum(bool(one.trouble) for one in entries)
    if arguments.json:
        dump(
            {"directory": directory, "entries": len(entries), "size": total, "limit": cache.size, "used_again": again,
             "unreadable": unreadable, "oldest_use": oldest, "beside": others}
        )  # fmt: skip
        return 0
    rows = table("", "")
    rows.show_header = False
    share = f" ({total / cache.size:.0%} of it used)" if cache.size else ""
    rows.add_row("place", directory)
    rows.add_row("entries", f"{len(entries)}, {again} of them used after the process that built them")
    rows.add_row("size", bytes_said(total))
    rows.add_row("limit", f"{bytes_said(cache.size)}{share}; REKERNEL_CACHE_SIZE changes it")
    if oldest is not None:
        rows.add_row("oldest use", f"{ago(time.time() - oldest)} ago")
    for name, amount in others.items():
        rows.add_row("beside", f"{bytes_said(amount)} {BESIDE.get(name, '')} ({name})")
    if unreadable:
        rows.add_row("unreadable", f"{unreadable}; rekernel cache verify takes them out", style="yellow")
    console().print(rows)
    return 0


def _list(arguments: argparse.Namespace) -> int:
    from rekernel.cachelist import listed

    _cache, directory = _opened()
    found = [one for one in listed(directory) if not arguments.name or any(arguments.name in k for k in one.kernels)]
    if arguments.json:
        dump({"directory": directory, "entries": [vars(one) for one in found]})
        return 0
    if not found:
        print(f"no entry has a kernel with {arguments.name!r} in its name" if arguments.name else "the cache is empty")
        return 0
    now, rows = time.time(), table("kernels", "language", "compiler", ">size", ">age", ">used", "key")
    for one in found if arguments.all else found[:_MOST]:
        names = ", ".join(one.kernels) if not one.trouble else f"unreadable: {one.trouble}"
        created = ago(now - one.created) if one.created else "?"
        rows.add_row(names or "?", one.language, one.compiler, bytes_said(one.size), created, ago(now - one.used),
                     one.key[:8], style="yellow" if one.trouble else "")  # fmt: skip
    console().print(rows)
    if len(found) > _MOST and not arguments.all:
        print(f"and {len(found) - _MOST} more: --all, or a part of a kernel's name")
    return 0


def _verify(arguments: argparse.Namespace) -> int:
    cache, directory = _opened()
    checked = cache.verify()
    if arguments.json:
        dump({"directory": directory, **vars(checked)})
    else:
        for line in checked.damaged:
            console(stderr=True).print(f"taken out: {line}", style="yellow", soft_wrap=True)
        damaged = f", {len(checked.damaged)} damaged ones are taken out" if checked.damaged else ""
        print(f"{checked.entries} entries are good ({bytes_said(checked.size)}){damaged}")
    return int(bool(checked.damaged))


def _prune(arguments: argparse.Namespace) -> int:
    from rekernel.cachelist import listed

    cache, directory = _opened()
    removed = cache.prune(arguments.size)
    left = listed(directory)
    kept = sum(one.size for one in left)
    if arguments.json:
        dump({"directory": directory, "removed": removed, "entries": len(left), "size": kept})
    else:
        print(f"{removed} entries are taken out; {len(left)} are left ({bytes_said(kept)})")
    return 0


def _clear(arguments: argparse.Namespace) -> int:
    import shutil

    from rekernel.cachelist import beside, listed

    cache, directory = _opened()
    entries, others = listed(directory), beside(directory)
    total = sum(one.size for one in entries) + sum(others.values())
    what = f"{len(entries)} entries and what lies beside them, {bytes_said(total)} in {directory}"
    if not arguments.yes:
        if arguments.json or not sys.stdin.isatty():
            raise UsageError(f"this takes out {what}; nothing is done without --yes")
        if input(f"Take out {what}? [y/N] ").strip().lower() not in ("y", "yes"):
            print("Nothing is taken out.")
            return 1
    removed = cache.prune(0)
    for name in others:
        if name != "tmp":  # builds that run
            shutil.rmtree(os.path.join(directory, name), ignore_errors=True)
    if arguments.json:
        dump({"directory": directory, "removed": removed, "bytes": total})
    else:
        print(f"{removed} entries are taken out, {bytes_said(total)} in all")
    return 0


def _why(arguments: argparse.Namespace) -> int:
    from rekernel.commands.why import show, why

    rows = []
    for text in texts.read(arguments.files, arguments):
        if not isinstance(text, texts.Text):
            raise texts.unreadable(*text)
        texts.started(text)
        rows += why([text.path], language=text.language.name, options=text.options)
    if arguments.json:
        dump({"rows": rows})
    else:
        show(rows)
    return int(any(row["error"] is not None for row in rows))
