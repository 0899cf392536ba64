"""A loader in a readable JSON file: texts and options, no values, never a pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rekernel.errors import KernelNotFoundError
from rekernel.files import write_whole
from rekernel.publishing import dependents
from rekernel.records import load_record, record_of

if TYPE_CHECKING:
    from rekernel.loader import KernelLoader

FORMAT = 1


def save(loader: KernelLoader, path: Path) -> None:
    """Write all ids of a loader; the file appears whole or not at all."""
    lives = {live.kernel_id: live for live in loader._lives.values() if live.current is not None}
    # Helpers before what uses them, otherwise the order of loading.
    order = sorted(lives.values(), key=lambda live: -len(dependents(live)))
    records = []
    for live in order:
        edition = live.current
        if edition is not None:
            records.append(record_of(live, edition, values=False)[0])
    text = json.dumps({"rekernel": FORMAT, "ids": records}, indent=1, ensure_ascii=False) + "\n"
    write_whole(path, text.encode("utf-8"), 0o600)


def load_saved(cls: type[KernelLoader], path: Path, namespace: Mapping[str, Any] | None) -> KernelLoader:
    """Make a loader from a saved file; names that are missing in `namespace` are listed in one error."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["rekernel"] != FORMAT:
            raise ValueError(f"{path} has format {content['rekernel']}; this version reads format {FORMAT}")
        records = content["ids"]
        asked = {name for record in records for name in record["asks_for"]}
    except (KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"{path} is no file that KernelLoader.save has written ({error})") from None
    missing = sorted(name for name in asked if namespace is None or name not in namespace)
    if missing:
        raise KernelNotFoundError(
            f"{path}: the texts take {', '.join(missing)} from a namespace; pass namespace= with them"
        )
    loader = cls()
    for record in records:
        load_record(loader, record, namespace)
        loader._touch(record["id"])
    return loader
