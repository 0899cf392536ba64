"""Loading: what is a no-op, what is refused, whose options count, which language, what a namespace gives."""

from __future__ import annotations

import gc
import types
import weakref
from pathlib import Path

import pytest

import rekernel
import toy as toys
from rekernel import KernelLoader, KernelNotFoundError, KernelSourceError
from toy import Toy

toy = pytest.fixture(toys.fresh_toy)
loader = pytest.fixture(toys.fresh_loader)

STEP = "step(x) = 2 * x"
STEP_AGAIN = "step(x) = 3 * x"
BROKEN = "step(x) = 2 *"


# --- the two ways to load --------------------------------------------------------------------------------------


def test_load_returns_the_module_with_its_kernels(loader: KernelLoader) -> None:
    assert loader.load(STEP).step(4) == 8


def test_compile_and_load_returns_none_and_loads(loader: KernelLoader) -> None:
    assert loader.compile_and_load(STEP, "heat") is None
    assert loader["heat"].step(4) == 8


def test_meta_kernel_loader_is_the_same_class() -> None:
    assert rekernel.MetaKernelLoader is rekernel.KernelLoader


def test_a_successful_load_prints_nothing(loader: KernelLoader, capfd: pytest.CaptureFixture[str]) -> None:
    loader.load(STEP)
    loader.load(STEP_AGAIN)
    assert capfd.readouterr() == ("", "")


def test_a_text_with_only_skipped_functions_loads_under_an_id(loader: KernelLoader) -> None:
    module = loader.load("skip big: it takes a struct", "odd", language="toy")
    with pytest.raises(AttributeError, match="it takes a struct"):
        _ = module.big


# --- when nothing is built -------------------------------------------------------------------------------------


def test_the_text_of_the_live_version_is_not_even_read_again(toy: Toy, loader: KernelLoader) -> None:
    first = loader.load(STEP, "heat")
    toy.log.clear()
    assert loader.load(STEP, "heat") is first
    assert toy.log == []


def test_without_an_id_the_text_of_the_live_version_is_not_read_again_either(toy: Toy, loader: KernelLoader) -> None:
    loader.load(STEP)
    toy.log.clear()
    loader.load(STEP)
    assert toy.log == []


def test_the_same_text_under_another_id_leaves_the_first_id_quick(toy: Toy, loader: KernelLoader) -> None:
    loader.load(STEP)
    loader.load(STEP, "other")
    loader.load(STEP_AGAIN, "other")
    toy.log.clear()
    loader.load(STEP)
    assert toy.log == []


def test_unchanged_loads_are_counted_apart(loader: KernelLoader) -> None:
    for _ in range(3):
        loader.load(STEP)
    assert (loader.stats().loads, loader.stats().unchanged) == (1, 2)


def test_another_option_value_builds(loader: KernelLoader) -> None:
    loader.load(STEP, scale=1)
    assert loader.load(STEP, scale=10).step(1) == 20


def test_another_value_of_a_used_name_builds(loader: KernelLoader) -> None:
    text = "step(x) = k * x"
    names = {"k": 2, "unused": 1}
    loader.load(text, namespace=names)
    names["k"] = 5
    assert loader.load(text).step(1) == 5


def test_another_value_of_an_unused_name_does_not_build(toy: Toy, loader: KernelLoader) -> None:
    names = {"k": 2, "unused": 1}
    loader.load("step(x) = k * x", namespace=names)
    names["unused"] = 7
    loader.load("step(x) = k * x", namespace=names)
    assert len(toy.done("build")) == 1


def test_a_change_outside_the_text_builds(toy: Toy, loader: KernelLoader) -> None:
    loader.load(STEP)
    toy.outside += 1
    loader.load(STEP)
    assert loader.info().version == 2


def test_keep_state_false_builds_the_same_text_anew(toy: Toy, loader: KernelLoader) -> None:
    loader.load(STEP)
    loader.load(STEP, keep_state=False)
    assert len(toy.done("build")) == 2


def test_argument_types_to_check_build_the_same_text_anew(toy: Toy, loader: KernelLoader) -> None:
    loader.load(STEP)
    loader.load(STEP, check=(1.0,))
    assert len(toy.done("build")) == 2


def test_the_text_before_last_comes_back_without_a_build_as_a_new_version(toy: Toy, loader: KernelLoader) -> None:
    loader.load(STEP)
    loader.load(STEP_AGAIN)
    module = loader.load(STEP)
    assert module.step(1) == 2
    assert loader.info().version == 3
    assert len(toy.done("build")) == 2
    assert loader.stats().reused == 1


def test_a_version_that_comes_back_is_checked_for_the_arguments_of_the_live_one(toy: Toy, loader: KernelLoader) -> None:
    for text in (STEP, STEP_AGAIN, STEP):
        loader.load(text)
    assert toy.done("recheck") == [(1, 2)]


# --- broken texts ----------------------------------------------------------------------------------------------


def test_a_broken_text_leaves_the_old_kernel_running(loader: KernelLoader) -> None:
    step = loader.load(STEP).step
    with pytest.raises(KernelSourceError):
        loader.load(BROKEN, "step")
    assert step(4) == 8


def test_the_error_names_id_next_version_line_and_what_keeps_running(loader: KernelLoader) -> None:
    loader.load(STEP, "heat")
    with pytest.raises(KernelSourceError) as caught:
        loader.load("a(x) = x\nstep(x) = 2 * kk", "heat")
    error = caught.value
    assert (error.kernel_id, error.version, error.language, error.keeps) == ("heat", 2, "toy", 1)
    assert (error.line, error.column, error.text) == (2, 15, "step(x) = 2 * kk")


def test_the_original_exception_is_the_cause(loader: KernelLoader) -> None:
    with pytest.raises(KernelSourceError) as caught:
        loader.load("shift := 1 / 0", "heat", language="toy")
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_the_traceback_of_a_source_error_has_no_frames_of_the_build(loader: KernelLoader) -> None:
    with pytest.raises(KernelSourceError) as caught:
        loader.load(BROKEN, "heat")
    assert [entry.name for entry in caught.traceback][1:] == ["load"]


def test_a_first_load_that_fails_leaves_no_id(loader: KernelLoader) -> None:
    with pytest.raises(KernelSourceError):
        loader.load(BROKEN, "heat")
    assert "heat" not in loader
    assert len(loader) == 0


def test_an_error_that_a_language_did_not_foresee_changes_nothing(
    toy: Toy, loader: KernelLoader, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = loader.load(STEP).step

    def build(request: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(toy, "build", build)
    with pytest.raises(OSError, match="disk full"):
        loader.load(STEP_AGAIN)
    assert step(4) == 8
    assert loader.info().version == 1


# --- what load refuses -----------------------------------------------------------------------------------------


def test_a_path_object_points_to_load_file(loader: KernelLoader) -> None:
    with pytest.raises(TypeError, match=r"load_file\('heat.toy'\)"):
        loader.load(Path("heat.toy"))  # type: ignore[arg-type]


def test_a_text_that_names_an_existing_file_points_to_load_file(loader: KernelLoader, tmp_path: Path) -> None:
    file = tmp_path / "heat.toy"
    file.write_text(STEP)
    with pytest.raises(ValueError, match="load_file"):
        loader.load(str(file))


def test_a_function_is_refused_with_advice(loader: KernelLoader) -> None:
    with pytest.raises(TypeError, match="its source text"):
        loader.load(len)  # type: ignore[arg-type]


@pytest.mark.parametrize("kernel_id", ["", "  ", 3, ["a"]])
def test_an_id_must_be_a_name(loader: KernelLoader, kernel_id: object) -> None:
    with pytest.raises(TypeError, match="kernel_id="):
        loader.load(STEP, kernel_id)  # type: ignore[arg-type]


def test_a_namespace_must_be_a_mapping(loader: KernelLoader) -> None:
    with pytest.raises(TypeError, match=r"such as globals\(\), not module"):
        loader.load(STEP, namespace=types)  # type: ignore[arg-type]


def test_an_unknown_option_is_a_type_error_that_lists_the_known_ones(loader: KernelLoader) -> None:
    with pytest.raises(TypeError, match=r"'scal'.*scale, plus, language, namespace"):
        loader.load(STEP, scal=2)


def test_an_unknown_option_does_not_touch_the_live_version(loader: KernelLoader) -> None:
    loader.load(STEP, "heat")
    with pytest.raises(TypeError):
        loader.load(STEP, "heat", scal=2)
    assert loader.info("heat").error is None


# --- what belongs to the id ------------------------------------------------------------------------------------


def test_options_that_are_not_given_are_those_of_the_live_version(loader: KernelLoader) -> None:
    loader.load(STEP, scale=10, plus=1)
    assert loader.load(STEP_AGAIN, plus=2).step(1) == 32
    assert dict(loader.info().options) == {"scale": 10, "plus": 2}


def test_a_namespace_that_is_not_given_is_that_of_the_live_version(loader: KernelLoader) -> None:
    loader.load("step(x) = k * x", namespace={"k": 2})
    assert loader.load("step(x) = k + x").step(1) == 3


def test_a_language_that_is_not_given_is_that_of_the_live_version(loader: KernelLoader) -> None:
    loader.load("shift := 1", "heat", language="toy")
    assert loader.load("shift := 2", "heat").shift == 2


def test_an_unload_ends_what_belonged_to_the_id(loader: KernelLoader) -> None:
    loader.load(STEP, "heat", scale=10)
    loader.unload("heat")
    assert loader.load(STEP, "heat").step(1) == 2


# --- languages -------------------------------------------------------------------------------------------------


def test_a_new_language_is_recognised_by_the_marks_in_its_text(loader: KernelLoader) -> None:
    loader.load(STEP)
    assert loader.info().language == "toy"


def test_a_text_without_marks_asks_for_a_language_and_lists_them(loader: KernelLoader) -> None:
    with pytest.raises(ValueError, match=r"pass language= \(.*\bstencil, taichi, toy\)"):
        loader.load("shift := 1", "heat")


def test_a_text_with_marks_of_two_languages_says_what_was_seen(toy: Toy, loader: KernelLoader) -> None:
    with pytest.raises(ValueError, match=r"taichi: '@ti.kernel'; toy: 'step\(x\) = 2 \* x'"):
        loader.load(f"@ti.kernel\n{STEP}")


def test_an_unknown_language_lists_the_known_ones(loader: KernelLoader) -> None:
    with pytest.raises(ValueError, match=r"known are: .*\bstencil, taichi, toy"):
        loader.load(STEP, language="fortran")


def test_a_text_with_a_syntax_error_gets_its_own_languages_error(loader: KernelLoader) -> None:
    with pytest.raises(KernelSourceError) as caught:
        loader.load("step(x) = 2 * (x", "heat")
    assert caught.value.language == "toy"


def test_an_id_may_change_its_language_without_mixing_them(toy: Toy, loader: KernelLoader) -> None:
    other = Toy("play", mark="!")
    rekernel.languages.register(other)
    try:
        loader.load(STEP, "heat", language="toy", scale=10)
        assert loader.load(STEP, "heat", language="play").step(1) == 2
        assert loader.load(STEP, "heat", language="toy").step(1) == 2
    finally:
        loader.unload("heat")
        rekernel.languages.unregister("play")
    assert [previous for _, previous in other.done("previous")] == [None]
    assert [before for _, before in toy.done("commit")] == [None, None]


def test_a_text_that_comes_back_after_another_language_is_not_mixed_with_it(toy: Toy, loader: KernelLoader) -> None:
    rekernel.languages.register(Toy("play", mark="!"))
    try:
        loader.load(STEP, "heat", language="toy")
        loader.load(STEP, "heat", language="play")
        assert loader.load(STEP, "heat", language="toy").step(1) == 2
    finally:
        loader.unload("heat")
        rekernel.languages.unregister("play")


def test_parse_gives_the_values_and_builds_nothing(toy: Toy) -> None:
    (kernel,) = rekernel.parse("step(x, k: float32) = k * x", language="toy")
    assert str(kernel) == "step(x: float64, k: float32)"
    assert toy.done("build") == []


# --- namespaces ------------------------------------------------------------------------------------------------


def test_the_namespace_is_read_once_and_never_written(loader: KernelLoader) -> None:
    names = {"k": 2}
    step = loader.load("step(x) = k * x", namespace=names).step
    names["k"] = 5
    assert step(1) == 2
    assert names == {"k": 5}


def test_values_of_the_namespace_are_taken_by_reference(loader: KernelLoader) -> None:
    field = [1, 2]
    total = loader.load("total() = sum(field)", namespace={"field": field}).total
    field.append(3)
    assert total() == 6


def test_names_that_the_text_defines_itself_are_not_looked_up(loader: KernelLoader) -> None:
    assert loader.load("k := 3\nstep(x) = k * x", namespace={"k": 100}).step(1) == 3


kk = 7


def test_a_missing_name_of_the_callers_globals_says_how_to_pass_it(loader: KernelLoader) -> None:
    with pytest.raises(KernelSourceError, match=r"pass namespace=globals\(\)"):
        loader.load("step(x) = kk * x")


def test_the_callers_globals_are_never_used_as_values(loader: KernelLoader) -> None:
    with pytest.raises(KernelSourceError, match="'kk' is not defined"):
        loader.compile_and_load("step(x) = kk * x")


# --- files -----------------------------------------------------------------------------------------------------


def test_a_file_is_loaded_under_its_stem(loader: KernelLoader, tmp_path: Path) -> None:
    file = tmp_path / "heat.toy"
    file.write_text(STEP)
    assert loader.load_file(file) is loader["heat"]
    assert loader["heat"].__file__ == str(file)


def test_a_file_is_loaded_again_under_the_same_id(loader: KernelLoader, tmp_path: Path) -> None:
    file = tmp_path / "heat.toy"
    file.write_text(STEP)
    step = loader.load_file(file).step
    file.write_text(STEP_AGAIN)
    loader.load_file(str(file))
    assert step(1) == 3


def test_the_suffix_decides_the_language(loader: KernelLoader, tmp_path: Path) -> None:
    file = tmp_path / "heat.toy"
    file.write_text("shift := 1")
    assert loader.load_file(file).shift == 1


def test_a_second_file_of_that_stem_asks_for_an_id(loader: KernelLoader, tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "heat.toy").write_text(STEP)
    loader.load_file(tmp_path / "a" / "heat.toy")
    with pytest.raises(ValueError, match=r"kernel_id="):
        loader.load_file(tmp_path / "b" / "heat.toy")
    assert loader.load_file(tmp_path / "b" / "heat.toy", "heat_b").step(1) == 2


def test_an_error_in_a_file_names_file_line_and_column(loader: KernelLoader, tmp_path: Path) -> None:
    file = tmp_path / "heat.toy"
    file.write_text("\nstep(x) = kk")
    with pytest.raises(KernelSourceError) as caught:
        loader.load_file(file)
    assert str(caught.value).startswith(f"heat v1 (toy), {file}:2:11: name 'kk' is not defined")


def test_a_directory_is_refused(loader: KernelLoader, tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="one file"):
        loader.load_file(tmp_path)


def test_a_file_that_is_not_utf8_names_the_line(loader: KernelLoader, tmp_path: Path) -> None:
    file = tmp_path / "heat.toy"
    file.write_bytes(b"# fine\n# caf\xe9\n")
    with pytest.raises(ValueError, match=r"heat.toy:2: not UTF-8 text \(byte 0xe9\)"):
        loader.load_file(file)


def test_first_line_counts_from_the_cell_or_file_that_holds_the_text(loader: KernelLoader) -> None:
    with pytest.raises(KernelSourceError) as caught:
        loader.load("\nstep(x) = kk", "heat", filename="cell 7", first_line=40)
    assert (caught.value.line, caught.value.text) == (41, "step(x) = kk")


# --- the loader as a mapping -----------------------------------------------------------------------------------


def test_ids_come_oldest_first(loader: KernelLoader) -> None:
    for kernel_id in ("c", "a", "b"):
        loader.load(STEP, kernel_id)
    loader.load(STEP_AGAIN, "c")
    assert list(loader) == ["c", "a", "b"]
    assert len(loader) == 3


def test_get_gives_the_default_for_an_unknown_id(loader: KernelLoader) -> None:
    assert loader.get("heat") is None
    assert loader.get("heat", 5) == 5


def test_an_unknown_id_lists_the_loaded_ones(loader: KernelLoader) -> None:
    loader.load(STEP, "heat")
    with pytest.raises(KernelNotFoundError, match="no kernel id 'heta' is loaded; loaded: 'heat'; did you mean 'heat'"):
        loader["heta"]
    with pytest.raises(KernelNotFoundError, match=r"no kernel id 'wave' is loaded; loaded: 'heat'$"):
        loader["wave"]


@pytest.mark.parametrize("call", ["unload", "rollback", "history", "info", "__delitem__"])
def test_every_method_refuses_an_unknown_id_in_the_same_words(loader: KernelLoader, call: str) -> None:
    with pytest.raises(KernelNotFoundError, match="no kernel id 'heta' is loaded"):
        getattr(loader, call)("heta")


def test_leaving_the_loader_unloads_everything(toy: Toy) -> None:
    with KernelLoader() as loader:
        loader.load(STEP, "heat")
    assert list(loader) == []


def test_what_a_loader_lets_go_is_retired_once(toy: Toy, loader: KernelLoader) -> None:
    for text in (STEP, STEP_AGAIN, "step(x) = 4 * x"):
        loader.load(text)
    assert toy.done("retire") == [(1,)]
    loader.cleanup_all()
    assert sorted(toy.done("retire")) == [(1,), (2,), (3,)]


def test_what_a_failed_load_has_built_already_is_retired(toy: Toy, loader: KernelLoader) -> None:
    helper = loader.load("shift := 1", "helper", language="toy")
    loader.load("sum := helper.shift + 1\nstep(x) = sum * x", namespace={"helper": helper})
    toy.log.clear()
    with pytest.raises(KernelSourceError):
        loader.load("nothing := 1", "helper")
    assert len(toy.done("retire")) == len(toy.done("previous")) == 1


def test_calls_are_counted_over_the_life_of_the_loader(loader: KernelLoader) -> None:
    step = loader.load(STEP, "heat").step
    step(1)
    loader.unload("heat")
    assert loader.stats().calls == 1
    loader.load(STEP_AGAIN, "heat")
    step(1)
    assert loader.stats().calls == 2


def test_two_loaders_share_nothing(loader: KernelLoader) -> None:
    with KernelLoader() as other:
        loader.load(STEP, "heat")
        other.load(STEP_AGAIN, "heat")
        assert (loader["heat"].step(1), other["heat"].step(1)) == (2, 3)


def test_info_takes_modules_and_kernels_of_a_loader(loader: KernelLoader) -> None:
    module = loader.load(STEP)
    assert rekernel.info(module) == rekernel.info(module.step) == loader.info("step")


def test_info_refuses_anything_else() -> None:
    with pytest.raises(
        TypeError, match="a module or a kernel that a loader gave out, or a compiled kernel, not module"
    ):
        rekernel.info(types)


def test_a_list_of_the_namespace_that_was_changed_in_place_is_no_unchanged_load(toy: Toy, loader: KernelLoader) -> None:
    space = {"terms": [1, 2]}
    text = "step(x) = x + sum(terms)"
    step = loader.load(text, "heat", language="toy", namespace=space).step
    loader.load(text, "heat")
    assert (step(0), step.version) == (3, 1)
    space["terms"][0] = 10
    loader.load(text, "heat")
    assert (step(0), step.version) == (12, 2)


def test_history_holds_no_namespace(toy: Toy, loader: KernelLoader) -> None:
    class Big:
        """Stands for an array."""

    kept = []
    for number in range(5):
        big = Big()
        kept.append(weakref.ref(big))
        loader.load(f"step(x) = x + {number} + (0 if big else 1)", "heat", language="toy", namespace={"big": big})
        del big
    toy.log.clear()
    gc.collect()
    assert [one() is None for one in kept] == [True, True, True, False, False]
