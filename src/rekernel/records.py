"""A version as plain data: enough to load it again in another process. Shared by pickles and saved files."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from rekernel.errors import KernelNotFoundError
from rekernel.handle import KernelHandle
from rekernel.live import Edition, Live, LiveModule, live_of
from rekernel.publishing import owner

if TYPE_CHECKING:
    from rekernel.loader import KernelLoader

_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def chain(edition: Edition, live: Live) -> list[tuple[Live, Edition]]:
    """Return the versions that one needs, helpers first, itself last."""
    found: dict[Live, Edition] = {}

    def visit(one: Live, version: Edition) -> None:
        if one not in found:
            for helper, used in version.helpers.items():
                visit(helper, used)
            found[one] = version

    visit(live, edition)
    return list(found.items())


def record_of(live: Live, edition: Edition, *, values: bool) -> tuple[dict[str, Any], list[str]]:
    """Return a version as plain data, and the namespace names whose values it cannot hold.

    With `values`, plain constants of the namespace are included, and helpers of other loaders, which a process
    finds by their tokens.
    """
    source = edition.source
    taken, open_names = {}, []
    for name, value in edition.borrowed.items():
        reference = _reference(value)
        foreign = reference is not None and reference[0] != "import" and reference[-1] != live.token
        if reference is not None and (values or not foreign):
            taken[name] = reference
        elif values and _is_plain(value):
            taken[name] = ["value", value]
        else:
            open_names.append(name)
    record = {
        "id": live.kernel_id,
        "token": live.token,
        "number": edition.number,
        "language": source.language,
        "text": source.text,
        "filename": source.filename,
        "first_line": source.first_line,
        "options": dict(source.options),
        "derived": edition.derived,
        "taken": taken,
        "asks_for": open_names,
    }
    return record, open_names


def _is_plain(value: Any) -> bool:
    return isinstance(value, _PLAIN) or (type(value) is tuple and all(map(_is_plain, value)))


def _reference(value: Any) -> list[Any] | None:
    """Return how to find a namespace value again in another process, or None."""
    if isinstance(value, LiveModule):
        live = live_of(value)
        assert live is not None
        return ["module", live.kernel_id, live.token]
    if isinstance(value, KernelHandle):
        return ["name", value.kernel_id, value._name, value._live.token]
    if type(value) is ModuleType:
        return ["import", value.__name__]
    found = owner(value)
    if found is not None and found[1]:
        return ["name", found[0].kernel_id, found[1], found[0].token]
    return None


def namespace_of(loader: KernelLoader, record: Mapping[str, Any], given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the namespace of a recorded version in this process."""
    import importlib

    from rekernel.loader import loader_of

    names: dict[str, Any] = {}
    for name, (kind, *rest) in record["taken"].items():
        if kind == "value":
            names[name] = rest[0]
        elif kind == "import":
            names[name] = importlib.import_module(rest[0])
        else:
            # A saved loader gets a new token: what was its own then is its own now.
            home = loader if rest[-1] == record["token"] else loader_of(rest[-1])
            if rest[0] not in home:
                raise KernelNotFoundError(
                    f"{record['id']!r} takes {name} from the id {rest[0]!r}, which is not loaded before it"
                )
            names[name] = home[rest[0]] if kind == "module" else getattr(home[rest[0]], rest[1])
    for name in record["asks_for"]:
        if given is not None and name in given:
            names[name] = given[name]
    return names


def load_record(loader: KernelLoader, record: Mapping[str, Any], given: Mapping[str, Any] | None) -> None:
    """Load a recorded version, unless this process has the same or a newer one."""
    live = loader._lives.get(record["id"])
    if live is not None and live.last_number >= record["number"]:
        return
    recent = list(loader._recent)
    loader._numbers[record["id"]] = max(loader._numbers.get(record["id"], 0), record["number"] - 1)
    loader.load(
        record["text"], record["id"], language=record["language"], namespace=namespace_of(loader, record, given),
        filename=record["filename"], first_line=record["first_line"], **record["options"],
    )  # fmt: skip
    loader._recent[:] = recent  # the user has loaded nothing: ``loader[None]`` stays what it was
    loaded = loader._lives[record["id"]].current
    assert loaded is not None
    loaded.derived = record["derived"]
