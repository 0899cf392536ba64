"""A loader in a readable file: texts, options and numbers, no values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import toy as toys
from rekernel import KernelLoader, KernelNotFoundError, KernelSourceError

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
    with pytest.raises(KernelNotFoundError, match=r"from a namespace: 'a' takes k; 'b' takes j; pass namespace= with them"):
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


def test_an_option_that_json_cannot_hold_leaves_the_old_file(loader: KernelLoader, file: Path) -> None:
    loader.load("step(x) = x", "a", scale=2)
    loader.save(file)
    before = file.read_bytes()
    loader.load("step(x) = x", "b", scale=Opaque())
    with pytest.raises(TypeError, match="JSON"):
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
