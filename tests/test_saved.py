"""A loader in a readable file: texts, options and numbers, no values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import rekernel
import toy as toys
from jitkernels import needs_compiler
from rekernel import KernelLoader, KernelNotFoundError, KernelSourceError
from rekernel.jit import CpuJit

toy = pytest.fixture(toys.fresh_toy)
loader = pytest.fixture(toys.fresh_loader)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "kernels.json"


def test_texts_options_and_numbers_come_back(loader: KernelLoader, file: Path) -> None:
    loader.load("step(x) = x", "heat", filename="heat.toy", first_line=7, scale=10)
    loader.load("step(x) = 2 * x", "heat")
    loader.load("shift := 1", "other", language="toy")
    loader.save(file)
    again = KernelLoader.load_saved(file)
    assert again["heat"].step(1) == 20
    assert again.info("heat").version == 2
    assert again["other"].shift == 1


def test_the_origin_comes_back(loader: KernelLoader, file: Path) -> None:
    loader.load("step(x) = x", "heat", filename="heat.toy", first_line=7)
    loader.save(file)
    again = KernelLoader.load_saved(file)
    with pytest.raises(KernelSourceError, match=r"heat\.toy:7:11"):
        again.load("step(x) = kk", "heat", filename="heat.toy", first_line=7)
    assert again.info("heat").filename == "heat.toy"


def test_numbers_go_on_where_they_were(loader: KernelLoader, file: Path) -> None:
    for factor in (1, 2, 3):
        loader.load(f"step(x) = {factor} * x", "heat")
    loader.save(file)
    again = KernelLoader.load_saved(file)
    again.load("step(x) = 9 * x", "heat")
    assert again.info("heat").version == 4


def test_a_derived_id_stays_derived(loader: KernelLoader, file: Path) -> None:
    loader.load("step(x) = x")
    loader.save(file)
    again = KernelLoader.load_saved(file)
    again.load("new(x) = x\nstep(x) = 2 * x")
    assert list(again) == ["step"]


def test_an_id_that_the_user_gave_stays_the_users(loader: KernelLoader, file: Path) -> None:
    loader.load("step(x) = x", "step")
    loader.save(file)
    again = KernelLoader.load_saved(file)
    again.load("step(x) = 2 * x")
    assert list(again) == ["step", "step_2"]


def test_helpers_come_back_before_what_uses_them_and_are_followed(loader: KernelLoader, file: Path) -> None:
    loader.load("base(x) = 0", "z_base")
    mid = loader.load("mid(x) = x", "mid")
    loader.load("top(x) = mid(x)", "a_top", namespace={"mid": mid.mid})
    loader.load("mid(x) = z.base(x)", "mid", namespace={"z": loader["z_base"]})
    loader.load("base(x) = 2 * x", "z_base")
    loader.save(file)
    again = KernelLoader.load_saved(file)
    assert again["a_top"].top(1) == 2
    again.load("base(x) = 3 * x", "z_base")
    assert again["a_top"].top(1) == 3
    assert again.info("a_top").depends_on == ("mid",)


def test_modules_of_the_namespace_are_imported_again(loader: KernelLoader, file: Path) -> None:
    import math

    loader.load("root(x) = m.sqrt(x)", "root", namespace={"m": math})
    loader.save(file)
    assert KernelLoader.load_saved(file)["root"].root(9) == 3


def test_values_are_not_saved_but_asked_for_all_at_once(loader: KernelLoader, file: Path) -> None:
    loader.load("step(x) = k * x", "a", namespace={"k": 2})
    loader.load("step(x) = j * x", "b", namespace={"j": 2})
    loader.save(file)
    with pytest.raises(
        KernelNotFoundError, match=r"from a namespace: 'a' takes k; 'b' takes j; pass namespace= with them"
    ):
        KernelLoader.load_saved(file, namespace={"other": 1})
    assert KernelLoader.load_saved(file, namespace={"k": 5, "j": 1})["a"].step(1) == 5


def test_the_file_is_readable_json_without_values(loader: KernelLoader, file: Path) -> None:
    loader.load("step(x) = secret + x   ## größe", "heat", namespace={"secret": 987654})
    loader.save(file)
    text = file.read_text(encoding="utf-8")
    assert "987654" not in text
    assert "größe" in text
    assert json.loads(text)["ids"][0]["text"] == "step(x) = secret + x   ## größe"


def test_unloaded_ids_are_not_saved(loader: KernelLoader, file: Path) -> None:
    loader.load("step(x) = x", "a")
    loader.load("step(x) = x", "b")
    loader.unload("a")
    loader.save(str(file))
    assert list(KernelLoader.load_saved(str(file))) == ["b"]


def test_saving_again_replaces_the_file_and_leaves_nothing_else(loader: KernelLoader, file: Path) -> None:
    loader.load("step(x) = x", "a")
    loader.save(file)
    loader.load("step(x) = x", "b")
    loader.save(file)
    assert list(KernelLoader.load_saved(file)) == ["a", "b"]
    assert [path.name for path in file.parent.iterdir()] == ["kernels.json"]


class Opaque:
    """Something that is no JSON."""

    def __repr__(self) -> str:
        return "<opaque " + "x" * 100 + ">"


def test_an_option_that_json_cannot_hold_leaves_the_old_file(loader: KernelLoader, file: Path) -> None:
    loader.load("step(x) = x", "a", scale=2)
    loader.save(file)
    before = file.read_bytes()
    loader.load("step(x) = x", "b", scale=Opaque())
    said = r"^'b' cannot be saved: its option scale is <opaque x+\.\.\., a (?:tests\.)?test_saved\.Opaque, which has no form in JSON$"
    with pytest.raises(TypeError, match=said):
        loader.save(file)
    assert file.read_bytes() == before
    assert [path.name for path in file.parent.iterdir()] == ["kernels.json"]


DAMAGED: dict[str, Any] = {
    "nothing": "",
    "no JSON": "{",
    "another file": '{"a": 1}',
    "a list": "[1, 2]",
    "a number": "3",
    "half a record": '{"rekernel": 1, "ids": [{"id": "a"}]}',
    "ids that are none": '{"rekernel": 1, "ids": 3}',
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED.keys())
def test_a_damaged_file_is_a_value_error_that_names_it(file: Path, content: str) -> None:
    file.write_text(content)
    with pytest.raises(ValueError, match=r"kernels\.json is no file that KernelLoader\.save has written"):
        KernelLoader.load_saved(file)


def test_a_newer_format_says_so(file: Path) -> None:
    file.write_text('{"rekernel": 99, "ids": []}')
    with pytest.raises(ValueError, match="has format 99; this version reads format 1"):
        KernelLoader.load_saved(file)


def test_a_missing_file_is_what_python_says(file: Path) -> None:
    with pytest.raises(FileNotFoundError):
        KernelLoader.load_saved(file)


def test_load_saved_of_a_subclass_makes_one(loader: KernelLoader, file: Path) -> None:
    loader.save(file)
    assert type(Mine.load_saved(file)) is Mine


class Mine(KernelLoader):
    """Somebody's own loader."""


# --- options ---------------------------------------------------------------------------------------------------


VALUES: dict[str, Any] = {
    "text": "-O2", "a number": 3, "a truth": False, "nothing": None, "a float": 0.1, "a list": ["-O2", "-g"],
    "a tuple": ("-O2", ("-g", 1)), "a path": Path("include") / "größe", "a list of paths": [Path("/a"), "b"],
    "a table": {"N": 8, "path": Path("x")}, "a table that looks like ours": {"tuple": [1]}, "infinity": float("inf"),
    "large": 1 << 80, "empty": (), "many kinds": {"a": [(1, None), {"dict": {}}]},
}  # fmt: skip


@pytest.mark.parametrize("what", VALUES)
def test_an_option_comes_back_as_it_was(loader: KernelLoader, file: Path, what: str) -> None:
    value = VALUES[what]
    loader.load("step(x) = 0", "heat", scale=value)
    loader.save(file)
    text = file.read_text(encoding="utf-8")
    assert "pickle" not in text
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    again = KernelLoader.load_saved(file).info("heat").options["scale"]
    assert (again, type(again)) == (value, type(value))


@pytest.mark.parametrize(
    "value", [{1, 2}, b"bytes", {1: 2}, len, 1j, [Opaque()], ({"a": {3}},)], ids=lambda v: type(v).__name__
)
def test_an_option_without_a_form_is_refused_by_name(loader: KernelLoader, file: Path, value: Any) -> None:
    loader.load("step(x) = 0", "heat", scale=value)
    with pytest.raises(TypeError, match=r"^'heat' cannot be saved: its option scale is .* which has no form in JSON$"):
        loader.save(file)
    assert not file.exists()


def test_texts_and_names_of_any_characters_come_back(loader: KernelLoader, file: Path) -> None:
    text = 'step(x) = x   ## "größe" \\ \u2028 \x0c'
    loader.load(text, "größe \n\u2028", filename="caf\udce9.toy")
    loader.save(file)
    again = KernelLoader.load_saved(file)
    assert list(again) == list(loader)
    info = again.info("größe \n\u2028")
    assert (info.source, info.filename) == (text, "caf\udce9.toy")


def test_the_last_load_is_the_last_again(loader: KernelLoader, file: Path) -> None:
    loader.load("step(x) = x", "a")
    loader.load("step(x) = 2 * x", "b")
    loader.load("step(x) = x", "a")
    loader.save(file)
    assert KernelLoader.load_saved(file)[None].step(1) == 1


def test_a_second_saved_file_is_the_same(loader: KernelLoader, file: Path, tmp_path: Path) -> None:
    base = loader.load("base(x) = x", "base", scale=(1,)[0])
    loader.load("top(x) = b.base(x) + k", "top", namespace={"b": base, "k": 1})
    loader.save(file)
    other = tmp_path / "again.json"
    again = KernelLoader.load_saved(file, namespace={"k": 5})
    again.save(other)
    first, second = (json.loads(path.read_text()) for path in (file, other))
    for content in (first, second):
        for record in content["ids"]:
            del record["token"]
            record["taken"] = {name: row[:-1] for name, row in record["taken"].items()}
    assert first == second
    assert again["top"].top(1) == 6


# --- files that were changed by hand -----------------------------------------------------------------------------


CHANGED: dict[str, tuple[dict[str, Any], str]] = {
    "a number that is text": ({"number": "2"}, r'ids\[0\]\.number is "2", not a whole number'),
    "a number that is a truth": ({"number": True}, r"ids\[0\]\.number is true, not a whole number"),
    "version 0": ({"number": 0}, r"ids\[0\]\.number is 0; it counts from 1"),
    "line -1": ({"first_line": -1}, r"ids\[0\]\.first_line is -1; it counts from 1"),
    "no id": ({"id": " "}, r"ids\[0\]\.id is empty"),
    "an id that is none": ({"id": None}, r"ids\[0\]\.id is null, not text"),
    "text that is a list": ({"text": ["a"]}, r'ids\[0\]\.text is \["a"\], not text'),
    "another language": ({"language": "fortran"}, r"ids\[0\]\.language is 'fortran'; known are cpp, cuda, "),
    "options that are a list": ({"options": []}, r"ids\[0\]\.options is \[\], not a table"),
    "an option of another form": (
        {"options": {"scale": [1, {"set": [1]}]}}, r"ids\[0\]\.options\.scale\[1\] is a table, and none of",
    ),
    "a path that is a number": ({"options": {"scale": {"path": 3}}}, r"ids\[0\]\.options\.scale is a table, and none"),
    "a name that is a number": ({"asks_for": ["k", 3]}, r"ids\[0\]\.asks_for\[1\] is 3, not a name"),
    "a helper of no kind": ({"taken": {"h": ["pickle", "x"]}}, r"ids\[0\]\.taken\.h is .*, not a way to a helper"),
    "a helper that is text": ({"taken": {"h": "os"}}, r'ids\[0\]\.taken\.h is "os", not a way to a helper'),
}  # fmt: skip


@pytest.mark.parametrize("what", CHANGED)
def test_a_change_by_hand_is_told_with_its_place(loader: KernelLoader, file: Path, what: str) -> None:
    changes, said = CHANGED[what]
    loader.load("step(x) = x", "heat")
    loader.save(file)
    content = json.loads(file.read_text())
    content["ids"][0] |= changes
    file.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=rf"kernels\.json is no file that KernelLoader\.save has written: {said}"):
        KernelLoader.load_saved(file)


@pytest.mark.parametrize(
    "name", ["id", "token", "number", "language", "text", "filename", "options", "taken", "asks_for"]
)
def test_what_is_missing_is_named(loader: KernelLoader, file: Path, name: str) -> None:
    loader.load("step(x) = x", "heat")
    loader.save(file)
    content = json.loads(file.read_text())
    del content["ids"][0][name]
    file.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=rf"written: ids\[0\] has no '{name}'"):
        KernelLoader.load_saved(file)


def test_an_id_that_comes_twice_is_told(loader: KernelLoader, file: Path) -> None:
    loader.load("step(x) = x", "heat")
    loader.save(file)
    content = json.loads(file.read_text())
    content["ids"] *= 2
    file.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"ids\[1\]\.id is 'heat' a second time"):
        KernelLoader.load_saved(file)


def test_a_last_id_that_is_not_there_is_told(loader: KernelLoader, file: Path) -> None:
    loader.save(file)
    content = json.loads(file.read_text()) | {"last": "heat"}
    file.write_text(json.dumps(content))
    with pytest.raises(ValueError, match="\"last\" is 'heat', which is none of its ids"):
        KernelLoader.load_saved(file)


def test_a_helper_that_is_missing_is_told_with_who_wants_it(loader: KernelLoader, file: Path) -> None:
    base = loader.load("base(x) = x", "base")
    loader.load("top(x) = b.base(x)", "top", namespace={"b": base})
    loader.save(file)
    content = json.loads(file.read_text())
    del content["ids"][0]
    content["last"] = None
    file.write_text(json.dumps(content))
    with pytest.raises(KernelNotFoundError, match="'top' takes b from the id 'base', which is not loaded before it"):
        KernelLoader.load_saved(file)


# --- the compiled languages --------------------------------------------------------------------------------------


@needs_compiler
def test_nothing_is_compiled_that_is_in_the_cache(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REKERNEL_CACHE_DIR", str(tmp_path / "cache"))

    class Own(KernelLoader):
        def __init__(self) -> None:
            super().__init__(jit=CpuJit(objcache=tmp_path / "cache"))

    text = "void fill(rekernel::Array<double, 1> x) { for (long i = 0; i < x.shape(0); ++i) x(i) = ONE; }\n"
    made = Own()
    made.load(text, "heat", flags=("-DONE=1",), optlevel="2", include_dirs=[tmp_path])
    made.save(file)
    with rekernel.freeze():
        again = Own.load_saved(file)
    info = again.info("heat")
    assert (info.from_cache, info.language, info.options) == (True, "cpp", made.info("heat").options)
    assert [event.kind for event in again.log] == ["from cache", "swapped"]
