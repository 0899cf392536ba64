"""Handles and modules that travel to another process: they carry their texts and are built there."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import replace
from types import ModuleType
from typing import Any

from rekernel.handle import KernelHandle
from rekernel.live import Edition, Live
from rekernel.records import chain, load_record, namespace_of, record_of


def _payload(live: Live, edition: Edition) -> dict[str, Any]:
    records = []
    for one, version in chain(edition, live):
        record, open_names = record_of(one, version, values=True)
        if open_names:
            raise pickle.PicklingError(
                f"{one.kernel_id} v{version.number} uses {', '.join(open_names)} of the namespace it was loaded with; "
                "only plain constants, modules and kernels of loaded ids can travel: pass the others as arguments"
            )
        records.append(record)
    return {"token": live.token, "records": records, "id": live.kernel_id, "version": edition.number}


def reduce_handle(handle: KernelHandle) -> tuple[Any, ...]:
    """Return how to make this handle again: loader token, id, name, follow or pinned, version, all texts."""
    payload = _payload(handle._live, handle._edition)
    payload |= {"name": handle._name, "pinned": handle._pin is not None}
    return restore_handle, (payload,)


def reduce_module(live: Live) -> tuple[Any, ...]:
    """Return how to make this module again."""
    return restore_module, (_payload(live, live.must_see()),)


def restore_module(payload: Mapping[str, Any]) -> ModuleType:
    """Find or load a pickled module. A version that is newer here stays."""
    from rekernel.loader import loader_of

    loader = loader_of(payload["token"])
    for record in payload["records"]:
        load_record(loader_of(record["token"]), record, None)
    return loader[payload["id"]]


def restore_handle(payload: Mapping[str, Any]) -> KernelHandle:
    """Find or load a pickled handle. An older pickle never replaces a newer version."""
    from rekernel import building, jobs
    from rekernel.loader import loader_of

    loader = loader_of(payload["token"])
    module = restore_module(payload)
    live = loader._lives[payload["id"]]
    if not payload["pinned"]:
        # A newer version may have lost the kernel; then the handle says so when it is called.
        return (
            live.handle(payload["name"]) if not hasattr(module, payload["name"]) else getattr(module, payload["name"])
        )
    record = payload["records"][-1]
    for edition in live.kept.values():
        if edition.number == payload["version"] and edition.source.text == record["text"]:
            return KernelHandle.fixed(live, edition, payload["name"])
    job = jobs.Job(
        record["text"], record["id"], record["language"], namespace_of(loader, record, None), record["filename"],
        record["first_line"], False, True, dict(record["options"]),
    )  # fmt: skip
    jobs.prepare(loader, job)
    with building.locked(live, job.language):
        edition = building.build(live, job, {})
    version = replace(edition.version, number=record["number"])
    return KernelHandle.fixed(live, replace(edition, version=version), payload["name"])
