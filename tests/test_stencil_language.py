"""The stencil language: texts that build assignments, through the loader."""

from __future__ import annotations

import contextlib
import gc
import linecache
import logging
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import rekernel
from rekernel import ArgumentTypeError, KernelLoader, KernelRemovedError, KernelSourceError, ToolchainError
from rekernel.jit import CpuJit
from rekernel.languages import detect

ps = pytest.importorskip("pystencils", minversion="2.0", reason="pystencils 2 is not installed (rekernel[stencils])")

FIELDS = 'u, v = ps.fields("u, v: double[1D]")\nk = sp.Symbol("k")\n'
SCALE = FIELDS + "scale = ps.Assignment(v.center, k * u.center)\n"
UNKNOWN = "sp.Function('foo')(u.center)"  # nothing that pystencils can make C of


@pytest.fixture
def loader() -> Iterator[KernelLoader]:
    with KernelLoader() as made:
        yield made


@pytest.fixture
def generated(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the kernels for which pystencils makes code, in order."""
    names: list[str] = []
    original = ps.create_kernel

    def create_kernel(assignments: Any, config: Any = None, **more: Any) -> Any:
        made = original(assignments, config, **more)
        names.append(made.name.removesuffix("_kernel"))
        return made

    monkeypatch.setattr(ps, "create_kernel", create_kernel)
    return names


def called(kernel: Any, **scalars: float) -> list[float]:
    """The result of a kernel that makes v of u = [1, 2]."""
    u, v = np.array([1.0, 2.0]), np.zeros(2)
    kernel(u=u, v=v, **scalars)
    return v.tolist()


def error_of(load: Any, *arguments: Any, **named: Any) -> KernelSourceError:
    with pytest.raises(KernelSourceError) as caught:
        load(*arguments, **named)
    return caught.value


# --- what a text may hold ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "expression",
    [
        "ps.Assignment(v.center, 2 * u.center)",
        "[ps.Assignment(k, 2 * u.center), ps.Assignment(v.center, k)]",
        "(ps.Assignment(v.center, 2 * u.center),)",
        "[ps.Assignment(v.center, 2 * u.center) for _ in range(1)]",
        "ps.AssignmentCollection([ps.Assignment(v.center, k)], [ps.Assignment(k, 2 * u.center)])",
        "ps.create_kernel(ps.Assignment(v.center, 2 * u.center))",
        "ps.create_kernel([ps.Assignment(v.center, 2 * u.center)], function_name='other')",
        "{'assignments': [ps.Assignment(v.center, 2 * u.center)], 'config': ps.CreateKernelConfig()}",
        "ps.AddAugmentedAssignment(v.center, 2 * u.center)",
    ],
)
def test_every_form_of_a_kernel_becomes_one_of_the_name_it_is_bound_to(loader: KernelLoader, expression: str) -> None:
    module = loader.load(f"{FIELDS}double = {expression}\n")
    assert module.__name__ == "double"
    assert called(module.double) == [2.0, 4.0]
    assert rekernel.info(module).kernels[0].name == "double"


def test_a_decorated_function_is_a_kernel(loader: KernelLoader) -> None:
    text = f'{FIELDS}@ps.kernel\ndef double():\n    """Twice."""\n    v[0] @= 2 * u[0]\n'
    module = loader.load(text)
    assert called(module.double) == [2.0, 4.0]
    assert module.double.__doc__ == "Twice."


def test_a_kernel_that_the_text_compiles_itself_is_taken_and_noted(loader: KernelLoader) -> None:
    text = f"from rekernel.jit import CpuJit\n{FIELDS}double = ps.create_kernel(ps.Assignment(v.center, 2 * u.center), "
    module = loader.load(f"{text}jit=CpuJit()).compile()\n", "own")
    assert called(module.double) == [2.0, 4.0]
    assert "leave .compile() out" in rekernel.info(module).notes[0]


def test_names_that_are_no_kernels_are_visible_as_they_are(loader: KernelLoader) -> None:
    module = loader.load(f'"""Scales."""\n{SCALE}width = 3\ndef area(x):\n    return x * width\n')
    assert module.__doc__ == "Scales."
    assert module.width == 3
    assert module.area(2) == 6
    assert module.u.name == "u"
    assert sorted(name for name in dir(module) if "__" not in name) == ["area", "k", "scale", "u", "v", "width"]


def test_names_that_begin_with_an_underscore_are_private(loader: KernelLoader) -> None:
    module = loader.load(f"{SCALE}_half = ps.Assignment(v.center, u.center / 2)\n_width = 3\n")
    assert list(rekernel.info(module).kernels) == [module.scale._value]
    for name in ("_half", "_width"):
        with pytest.raises(AttributeError, match=f"has no '{name}'"):
            getattr(module, name)


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("[ps.Assignment(v.center, 1), 3]", "item 1 of the list is a int, not an assignment"),
        ("[[ps.Assignment(v.center, 1)]]", "it is a list of kernels, not of assignments; give each of them a name"),
    ],
)
def test_what_looks_like_a_kernel_and_is_none_has_its_reason(
    loader: KernelLoader, expression: str, reason: str
) -> None:
    module = loader.load(f"{SCALE}odd = {expression}\nempty = []\n", "heat")
    assert rekernel.info(module).skipped == {"odd": f"odd is no kernel: {reason}"}
    assert list(rekernel.info(module).history[-1].kernels) == ["scale"]


def test_the_config_of_a_text_applies_to_its_kernels(loader: KernelLoader) -> None:
    text = 'u, v = ps.fields("u, v: [1D]")\ncopy = ps.Assignment(v.center, u.center + sp.Rational(1, 3))\n'
    text += "config = ps.CreateKernelConfig(ghost_layers=1)\n"
    module = loader.load(text)
    u, v = np.ones(4), np.zeros(4)
    module.copy(u=u, v=v)
    assert v.tolist() == [0.0, 4 / 3, 4 / 3, 0.0]
    assert module.config.ghost_layers == 1
    assert module.config.function_name is None


def test_a_config_that_is_none_is_noted_and_applies_to_nothing(loader: KernelLoader) -> None:
    module = loader.load(f"{SCALE}config = dict(ghost_layers=1)\n", "heat")
    assert rekernel.info(module).notes == ("config is a dict, not a ps.CreateKernelConfig: it applies to no kernel",)
    assert called(module.scale, k=3.0) == [3.0, 6.0]


def test_a_kernel_keeps_the_contract_of_pystencils(loader: KernelLoader) -> None:
    module = loader.load(SCALE)
    u, v = np.ones(2), np.zeros(2)
    with pytest.raises(TypeError, match=r"scale\(\) takes keyword arguments only .* call it as scale\("):
        module.scale(u, v, 1.0)
    with pytest.raises(KeyError, match="k"):
        module.scale(u=u, v=v)
    with pytest.raises(ArgumentTypeError):
        module.scale(u=np.ones(2, np.float32), v=v, k=1.0)
    module.scale(u=u, v=v, k=2.0, unknown=3)
    assert v.tolist() == [2.0, 2.0]
    assert module.scale.stats == {"calls": 4, "failures": 3}


def test_a_handle_tells_of_its_kernel(loader: KernelLoader) -> None:
    text = f'{SCALE}"""Multiplies by k."""\nother = ps.Assignment(v.center, u.center)\n'
    module = loader.load(text, "heat")
    scale = module.scale
    told = {(p.name, p.kind, p.dtype, p.written) for p in scale.parameters}
    assert told == {
        ("u", "array", "float64", False),
        ("v", "array", "float64", True),
        ("k", "scalar", "float64", False),
    }
    assert "void scale_kernel (" in scale.code
    assert scale.__doc__ == "Multiplies by k."
    assert module.other.__doc__ == str(ps.Assignment(module.v.center, module.u.center))
    assert repr(scale).startswith("<kernel heat.scale v1 (stencil): scale(")
    assert all(p.kind is p.KEYWORD_ONLY for p in scale.__signature__.parameters.values())
    assert scale.rhs == module.k * module.u.center  # the assignment itself
    assert rekernel.info(module).kernels[0].line == 3
    assert "void scale_kernel (" in rekernel.info(module).code
    assert "void other_kernel (" not in rekernel.info(module).code


def test_parse_tells_the_kernels_of_a_text_and_runs_nothing() -> None:
    text = f"{SCALE}_p = scale\ndouble: object = [ps.Assignment(v.center, 2 * u.center)]\nassert False\n"
    assert [(kernel.name, kernel.line) for kernel in rekernel.parse(text)] == [("scale", 3), ("double", 5)]


# --- which language ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (SCALE, "stencil"),
        ("from pystencils import fields", "stencil"),
        ("x = Assignment(a, b)", "stencil"),
        ("x = AddReductionAssignment(a, b)", "stencil"),
        ("x = create_kernel(rule)", "stencil"),
        ("@ps.kernel\ndef f():\n    u[0] @= 1\n", "stencil"),
        ("@ti.kernel\ndef f():\n    pass\n", "taichi"),
        ("import pystencils as ps\nimport taichi as ti\n@ti.kernel\ndef f():\n    ps.x()\n", "taichi"),
        ("struct S { double x; };\nvoid f(S *ps) {\n    ps->x = 1;\n}\n", "cpp"),
        ("void f(S &ps) { ps.x = 1; }\n", "cpp"),
        ("#include <pystencils.h>\nvoid f(double *x) {\n}\n", "cpp"),
    ],
)
def test_the_language_is_told_by_marks(text: str, language: str) -> None:
    assert detect(text).name == language


@pytest.mark.parametrize("text", ["x = 'ps.fields'", "# ps.fields\nx = 1", '"""\ncreate_kernel\n"""\nx = 1'])
def test_marks_in_comments_and_texts_do_not_count(text: str) -> None:
    with pytest.raises(ValueError, match="cannot tell the language"):
        detect(text)


@pytest.mark.parametrize("text", ["", " \n\t\n", "\ufeff"])
def test_a_text_with_nothing_in_it_is_told_to_be_empty(text: str) -> None:
    with pytest.raises(ValueError, match="nothing is in it; pass language="):
        detect(text)


@pytest.mark.parametrize(
    ("text", "kernel_id"),
    [
        (SCALE, "scale"),
        (f"{FIELDS}_a = ps.Assignment(v.center, 1)\nb = [_a]\nc = ps.Assignment(v.center, 2)\n", "c"),
        ("_u = ps.fields('u: [1D]')\nrule = list(map(lambda a: ps.Assignment(_u.center, a), [1]))\n", "rule"),
        (f"{FIELDS}if True:\n    rule = [ps.Assignment(v.center, 1)]\n", "u"),
    ],
)
def test_the_id_is_derived_from_what_looks_like_a_kernel(loader: KernelLoader, text: str, kernel_id: str) -> None:
    assert loader.load(text, language="stencil").__name__ == kernel_id


def test_a_file_is_loaded_by_its_content(loader: KernelLoader, tmp_path: Any) -> None:
    path = tmp_path / "diffusion.py"
    path.write_text(SCALE, encoding="utf-8")
    assert called(loader.load_file(path).scale, k=2.0) == [2.0, 4.0]
    path.write_text(SCALE.replace("k *", "kk *"), encoding="utf-8")
    assert str(error_of(loader.load_file, path)).startswith(
        f"diffusion v2 (stencil), {path}:3: name 'kk' is not defined"
    )


# --- when kernels are built ----------------------------------------------------------------------------------------


def test_only_what_is_called_is_built(loader: KernelLoader, generated: list[str]) -> None:
    module = loader.load(f"{SCALE}broken = ps.Assignment(v.center, {UNKNOWN})\n", "heat")
    assert generated == []
    assert called(module.scale, k=2.0) == [2.0, 4.0]
    assert called(module.scale, k=3.0) == [3.0, 6.0]
    assert generated == ["scale"]


@pytest.mark.parametrize("how", [{"eager": True}, {"check": {"other": ()}}, {"check": ()}])
def test_a_load_builds_ahead_what_it_is_asked_to(loader: KernelLoader, generated: list[str], how: Any) -> None:
    text = f"{SCALE}other = ps.Assignment(v.center, u.center)\n"
    loader.load(text, "heat", **how)
    assert (
        generated == {"eager": ["scale", "other"], "check": ["other" if how.get("check") else "scale"]}[next(iter(how))]
    )


@pytest.mark.parametrize(
    ("check", "error", "said"),
    [
        ({"nothing": ()}, ValueError, "check= names no kernel of the text: nothing; it has scale"),
        (3, TypeError, "check= takes True, False, a tuple of arguments or a dict of them, not 3"),
    ],
)
def test_a_wrong_check_is_refused(loader: KernelLoader, check: Any, error: Any, said: str) -> None:
    with pytest.raises(error) as caught:
        loader.load(SCALE, check=check)
    assert str(caught.value) == said


def test_a_build_in_the_background_builds_every_kernel(loader: KernelLoader, generated: list[str]) -> None:
    module = loader.load(f"{SCALE}other = ps.Assignment(v.center, u.center)\n", "heat", background=True)
    loader.wait("heat")
    assert generated == ["scale", "other"]
    assert called(module.other) == [1.0, 2.0]
    assert generated == ["scale", "other"]
    loader.load(f"{SCALE}other = ps.Assignment(v.center, {UNKNOWN})\n", "heat", background=True)
    assert error_of(loader.wait, "heat").line == 4
    assert called(module.other) == [1.0, 2.0]


def test_many_threads_that_call_first_build_once(loader: KernelLoader, generated: list[str]) -> None:
    module = loader.load(SCALE)
    barrier, results = threading.Barrier(8), []

    def work() -> None:
        barrier.wait()
        results.append(called(module.scale, k=2.0))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == 8 * [[2.0, 4.0]]
    assert generated == ["scale"]


def test_an_edit_generates_code_only_for_what_it_changes(loader: KernelLoader, generated: list[str]) -> None:
    text = f"{SCALE}other = [ps.Assignment(v.center, u.center + 1)]\n"
    module = loader.load(text, "heat", eager=True)
    generated.clear()
    loader.load(f"# moved down\n{text}".replace("center + 1", "center + 2"), "heat")
    assert generated == ["other"]
    assert called(module.other) == [3.0, 4.0]
    assert rekernel.info(module).kernels[0].line == 4
    assert module.scale._value.parameters
    assert generated == ["other"]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("center + 1", "center + 1.5", [2.5, 3.5]),
        ("double[1D]", "double[1D]", [2.0, 3.0]),
        ("sp.Integer(2)", "sp.Float(2)", [2.0, 3.0]),
    ],
)
def test_what_an_edit_leaves_equal_is_equal_in_its_results(
    loader: KernelLoader, old: str, new: str, expected: list[float]
) -> None:
    text = f"{FIELDS}plus = ps.Assignment(v.center, (u.center + 1) * sp.Integer(2) / 2)\n"
    module = loader.load(text)
    assert called(module.plus) == [2.0, 3.0]
    loader.load(text.replace(old, new))
    assert called(module.plus) == expected


def test_equal_assignments_with_another_config_are_built_again(loader: KernelLoader) -> None:
    module = loader.load(SCALE)
    assert called(module.scale, k=2.0) == [2.0, 4.0]
    loader.load(f"config = ps.CreateKernelConfig(ghost_layers=[(1, 0)])\n{SCALE}")
    assert called(module.scale, k=2.0) == [0.0, 4.0]


def test_equal_assignments_over_other_fields_are_built_again(loader: KernelLoader) -> None:
    module = loader.load(SCALE)
    assert called(module.scale, k=2.0) == [2.0, 4.0]
    loader.load(SCALE.replace("double", "float").replace("k = sp", 'k = ps.TypedSymbol("k", "float32") or sp'))
    u, v = np.ones(2, np.float32), np.zeros(2, np.float32)
    module.scale(u=u, v=v, k=2.0)
    assert v.tolist() == [2.0, 2.0]


# --- hot reload ----------------------------------------------------------------------------------------------------


def test_a_handle_runs_the_new_text(loader: KernelLoader) -> None:
    scale = loader.load(SCALE).scale
    assert called(scale, k=2.0) == [2.0, 4.0]
    loader.load(SCALE.replace("k * u", "10 * k * u"))
    assert scale.version == 2
    assert called(scale, k=2.0) == [20.0, 40.0]


def test_the_same_text_is_no_load(loader: KernelLoader, generated: list[str]) -> None:
    module = loader.load(SCALE, eager=True)
    assert loader.load(SCALE) is module
    assert (loader.stats().unchanged, generated, module.scale.version) == (1, ["scale"], 1)


@pytest.mark.parametrize(
    "broken",
    [
        SCALE.replace("k *", "kk *"),
        SCALE.replace("k * u.center", UNKNOWN),
        SCALE + "(",
        SCALE + "raise SystemExit(3)\n",
    ],
)
def test_a_broken_edit_leaves_the_kernel_in_use_as_it_is(loader: KernelLoader, broken: str) -> None:
    scale = loader.load(SCALE, "heat").scale
    assert called(scale, k=2.0) == [2.0, 4.0]
    error = error_of(loader.load, broken, "heat")
    assert str(error).endswith("heat v1 keeps running.")
    assert str(loader.info("heat").error) == str(error)
    assert called(scale, k=2.0) == [2.0, 4.0]
    assert scale.version == 1
    loader.load(SCALE, "heat")
    assert loader.info("heat").error is None


def test_a_kernel_that_nobody_called_may_be_broken_by_an_edit_until_it_is_called(loader: KernelLoader) -> None:
    module = loader.load(SCALE, "heat")
    loader.load(SCALE.replace("k * u.center", UNKNOWN), "heat")
    error = error_of(module.scale, u=np.ones(2), v=np.ones(2))
    assert (error.line, error.version, error.kernel_id) == (3, 2, "heat")
    assert error.__cause__ is not None
    assert error_of(module.scale).line == 3
    loader.rollback("heat")
    assert called(module.scale, k=2.0) == [2.0, 4.0]


def test_auto_rollback_answers_a_first_call_that_cannot_be_built() -> None:
    with KernelLoader(auto_rollback=True) as loader:
        scale = loader.load(SCALE, "heat").scale
        loader.load(SCALE.replace("k * u.center", UNKNOWN), "heat")
        with pytest.warns(rekernel.RekernelWarning, match="went back to the version before"):
            assert called(scale, k=2.0) == [2.0, 4.0]
        assert scale.version == 3


def test_check_false_swaps_and_builds_at_the_call(loader: KernelLoader) -> None:
    scale = loader.load(SCALE, "heat").scale
    called(scale, k=1.0)
    loader.load(SCALE.replace("k * u.center", UNKNOWN), "heat", check=False)
    assert error_of(scale).line == 3


def test_going_back_builds_nothing(loader: KernelLoader, generated: list[str]) -> None:
    scale = loader.load(SCALE, "heat").scale
    called(scale, k=1.0)
    loader.load(SCALE.replace("k *", "2 * k *"), "heat")
    generated.clear()
    loader.rollback("heat")
    assert (called(scale, k=2.0), scale.version) == ([2.0, 4.0], 3)
    loader.load(SCALE.replace("k *", "2 * k *"), "heat")
    assert (called(scale, k=2.0), scale.version) == ([4.0, 8.0], 4)
    assert generated == []


def test_a_version_that_comes_back_has_what_was_in_use_meanwhile(loader: KernelLoader, generated: list[str]) -> None:
    both = f"{SCALE}other = ps.Assignment(v.center, u.center)\n"
    module = loader.load(both, "heat")
    loader.load(both.replace("k *", "2 * k *"), "heat")
    called(module.scale, k=1.0)
    generated.clear()
    loader.load(both, "heat")
    assert generated == ["scale"]
    assert called(module.scale, k=2.0) == [2.0, 4.0]


def test_a_pinned_handle_stays_even_if_it_is_built_later(loader: KernelLoader) -> None:
    scale = loader.load(SCALE).scale
    pinned = scale.pinned()
    loader.load(SCALE.replace("k *", "2 * k *"))
    assert (called(pinned, k=2.0), called(scale, k=2.0)) == ([2.0, 4.0], [4.0, 8.0])


def test_a_hold_keeps_a_step_whole_over_first_calls(loader: KernelLoader) -> None:
    scale = loader.load(SCALE).scale
    with loader.hold():
        worker = threading.Thread(target=loader.load, args=(SCALE.replace("k *", "2 * k *"),))
        worker.start()
        worker.join()
        assert called(scale, k=2.0) == [2.0, 4.0]
    assert called(scale, k=2.0) == [4.0, 8.0]


def test_a_handle_revives_after_its_id_was_unloaded(loader: KernelLoader) -> None:
    scale = loader.load(SCALE, "heat").scale
    called(scale, k=1.0)
    loader.unload("heat")
    with pytest.raises(KernelRemovedError):
        called(scale, k=1.0)
    loader.load(SCALE, "heat")
    assert called(scale, k=2.0) == [2.0, 4.0]


def test_two_ids_are_independent(loader: KernelLoader) -> None:
    one, other = loader.load(SCALE, "one"), loader.load(SCALE.replace("k *", "2 * k *"), "other")
    assert (called(one.scale, k=1.0), called(other.scale, k=1.0)) == ([1.0, 2.0], [2.0, 4.0])
    loader.unload("one")
    assert called(other.scale, k=1.0) == [2.0, 4.0]


def test_options_belong_to_the_id_and_are_checked(loader: KernelLoader) -> None:
    module = loader.load(SCALE, "heat", optlevel="1", flags="-DX=1", openmp=True, eager=True)
    assert "#pragma omp" in module.scale.code
    loader.load(SCALE.replace("k *", "2 * k *"), "heat")
    assert rekernel.info(module).options == {"optlevel": "1", "flags": "-DX=1", "openmp": True, "eager": True}
    wrapper = loader._lives["heat"].current.built.private.entries["scale"].wrapper
    assert wrapper.value.openmp
    for options, said in [
        ({"optlevel": 9}, "optlevel= is one of"),
        ({"openmp": "yes"}, "openmp= takes True, False or None"),
        ({"target": 3}, "target= takes a ps.Target"),
        ({"flags": 3}, "flags= takes a list of texts"),
        ({"nothing": 1}, "options for stencil: target"),
    ]:
        with pytest.raises((TypeError, ValueError), match=said):
            loader.load(SCALE, "heat", **options)


def test_fields_may_overlap_where_the_load_says_so(loader: KernelLoader) -> None:
    text = FIELDS + "shift = ps.Assignment(v[0], u[1])\n"
    u = np.arange(4.0)
    with pytest.raises(ValueError, match="overlap"):
        loader.load(text, "shift").shift(u=u, v=u)
    loader.load(text, "shift", allow_alias=True).shift(u=u, v=u)
    assert u.tolist() == [1.0, 2.0, 2.0, 3.0] or u.tolist() == [0.0, 2.0, 3.0, 3.0]


# --- names from outside --------------------------------------------------------------------------------------------


def test_numbers_of_the_namespace_are_constants_of_the_kernels(loader: KernelLoader) -> None:
    text = FIELDS + "scale = ps.Assignment(v.center, factor * u.center)\n"
    module = loader.load(text, namespace={"factor": 3.0, "ps": None, "unused": 1})
    assert called(module.scale) == [3.0, 6.0]
    loader.load(text, namespace={"factor": 4.0})
    assert (called(module.scale), module.scale.version) == ([4.0, 8.0], 2)
    loader.load(text, namespace={"factor": 4.0})
    assert module.scale.version == 2


factor = 3.0


def test_a_name_of_the_callers_is_pointed_to(loader: KernelLoader) -> None:
    text = FIELDS + "scale = ps.Assignment(v.center, factor * u.center)\n"
    error = error_of(loader.load, text, "heat")
    assert error.message == "name 'factor' is not defined; it is one of your own globals: pass namespace=globals()"


def test_a_text_that_uses_another_ids_symbols_follows_it(loader: KernelLoader) -> None:
    base = loader.load(f"{SCALE}def twice(x):\n    return 2 * x\n", "base")
    names = {"base": base, "twice": base.twice, "scale": base.scale}
    text = "v = base.v\nstep = ps.Assignment(v.center, twice(scale.rhs) + 1)\n"
    module = loader.load(text, "user", namespace=names)
    assert called(module.step, k=1.0) == [3.0, 5.0]
    loader.load(f"{SCALE}def twice(x):\n    return 20 * x\n", "base")
    assert called(module.step, k=1.0) == [21.0, 41.0]
    assert rekernel.info(module).depends_on == ("base",)
    error = error_of(loader.load, SCALE.replace("k * u", "u") + f"def twice(x):\n    return {UNKNOWN}\n", "base")
    assert error.kernel_id == "user"
    assert called(module.step, k=1.0) == [21.0, 41.0]


def test_handles_travel_to_another_process(loader: KernelLoader) -> None:
    text = FIELDS + "scale = ps.Assignment(v.center, factor * k * u.center)\n"
    scale = loader.load(text, namespace={"factor": 3}).scale
    code = (
        "import pickle, sys, numpy as np; scale = pickle.load(sys.stdin.buffer); u, v = np.ones(2), np.zeros(2)\n"
        "scale(u=u, v=v, k=2.0); print(v.tolist(), scale.kernel_id, scale.version)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=pickle.dumps(scale), capture_output=True, timeout=120, check=False
    )
    assert done.stdout.decode() == "[6.0, 6.0] scale 1\n", done.stderr.decode()
    assert pickle.loads(pickle.dumps(scale)) is scale


def test_a_kernels_value_travels_as_a_plain_one(loader: KernelLoader) -> None:
    value = rekernel.info(loader.load(SCALE)).kernels[0]
    copy = pickle.loads(pickle.dumps(value))
    assert type(copy) is rekernel.Kernel
    assert (copy.code, copy.parameters, copy.line) == (value.code, value.parameters, 3)


# --- errors --------------------------------------------------------------------------------------------------------

WRONG = {
    "a name": ("k * u", "kk * u", 3, "name 'kk' is not defined; did you mean 'k'?"),
    "syntax": ("* u.center", "* u.center +", 3, "invalid syntax"),
    "pystencils, running": ("u.center)", "u[0, 0, 0])", 3, "Wrong number of spatial indices"),
    "sympy, running": ("\n", "\nif sp.Symbol('a') > 1:\n    pass\n", 2, "cannot determine truth value of Relational"),
    "a function of the text": ("k = ", "def f():\n    return 1 / 0\nk = f() or ", 3, "ZeroDivisionError"),
    "the end of the program": ("k = ", "import sys\nsys.exit(3)\nk = ", 3, "the text ends the program"),
    "pystencils, generating": ("k * u.center", UNKNOWN, 3, "Unsupported function: foo"),
    "an undefined write": ("ps.Assignment(v.center", "2 * [ps.Assignment(v.center", 3, "Field v is written twice"),
    "a config": ("k = ", "config = ps.CreateKernelConfig(traget=1)\nk = ", 2, "unexpected keyword argument 'traget'"),
    "a decorated function": ("k = ", "@ps.kernel\ndef f():\n\n    v[0] @= nothing\nk = ", 5, "name 'nothing' is not"),
}


@pytest.mark.parametrize("what", WRONG)
def test_an_error_names_the_users_line(loader: KernelLoader, what: str) -> None:
    old, new, line, said = WRONG[what]
    text = SCALE.replace(old, new, 1) + (("]" + "\n") if new.startswith("2 * [") else "")
    text = text.replace("u.center)\n]", "u.center)]")
    loader.load(SCALE, "heat", eager=True)
    error = error_of(loader.load, text, "heat", filename="heat.py", first_line=11)
    assert error.line == line + 10
    assert said in error.message
    assert (error.kernel_id, error.version, error.language, error.filename) == ("heat", 2, "stencil", "heat.py")
    assert f"> {line + 10} | " in str(error)
    assert error.__cause__ is not None
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_what_the_compiler_refuses_is_shown_with_the_code(loader: KernelLoader) -> None:
    module = loader.load(SCALE, "heat", flags="-Dscale_kernel=1+")
    error = error_of(module.scale, u=np.ones(2), v=np.ones(2), k=1.0)
    assert error.line == 3
    assert error.message.startswith("the compiler refuses the code of scale: ")
    assert "void scale_kernel (" in (error.output or "")
    assert error.command
    assert error.diagnostics


def test_a_gpu_target_without_a_device_says_so_and_takes_nothing_away(
    loader: KernelLoader, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rekernel.cuda import devices, missing

    def no_device(*_: object) -> None:
        raise missing.driver(OSError("libcuda.so.1: no such file"))

    monkeypatch.setattr(devices, "devices", no_device)
    text = f"{SCALE}config = ps.CreateKernelConfig(target=ps.Target.CUDA)\n"
    module = loader.load(text, "heat")
    with pytest.raises(ToolchainError, match="no CUDA device"):
        module.scale(u=np.ones(2), v=np.ones(2), k=1.0)
    called(loader.load(SCALE, "heat").scale, k=1.0)
    for again in (lambda: loader.load(text, "heat"), lambda: loader.load(SCALE, "heat", target=ps.Target.CUDA)):
        with pytest.raises(ToolchainError, match="no CUDA device"):
            again()
    assert called(module.scale, k=2.0) == [2.0, 4.0]


def test_without_pystencils_the_error_says_how_to_get_it() -> None:
    code = (
        "import sys; sys.modules['pystencils'] = None\nimport rekernel\n"
        f"try: rekernel.KernelLoader().load({SCALE!r})\nexcept rekernel.ToolchainError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert "pip install 'rekernel[stencils]'" in done.stdout, done.stderr
    assert done.stdout.endswith("python -m rekernel doctor\n")


def test_the_jit_of_the_loader_compiles(tmp_path: Any) -> None:
    with KernelLoader(jit=CpuJit(objcache=tmp_path)) as loader:
        assert called(loader.load(SCALE, optlevel="2").scale, k=2.0) == [2.0, 4.0]
    assert any(tmp_path.rglob("*"))


def test_a_text_of_another_language_with_the_same_name_keeps_its_lines(ti: Any) -> None:
    ti.init(arch=ti.cpu, log_level=ti.ERROR)

    def own() -> set[str]:
        return {name for name in sys.modules if name.startswith("_rekernel_live.")}

    before = own()
    stencils, kernels = KernelLoader(), KernelLoader()
    taken = []
    for number in range(3):
        stencils.load(f"{SCALE}shift = {number}\n", "heat")
        text = f"@ti.kernel\ndef f(x: ti.types.ndarray()) -> ti.i32:\n    return ti.cast(x[0], ti.i32) + {number}\n"
        taken.append(kernels.load(text, "heat").f.pinned())
    assert len(own() - before) == 6
    stencils.cleanup_all()
    del stencils
    gc.collect()
    for dtype in (np.float32, np.int32):  # Taichi reads the text again for each new type
        assert [f(np.full(1, 5, dtype)) for f in taken] == [5, 6, 7]


def test_nothing_of_a_text_is_left_when_it_is_gone(loader: KernelLoader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger("rekernel"), "disabled", True)  # pytest keeps what is logged

    def traces() -> tuple[int, int]:
        gc.collect()
        return (
            sum(name.startswith("_rekernel_live.") for name in sys.modules),
            sum("#v" in str(name) for name in linecache.cache),
        )

    before = traces()
    module = loader.load(f"{SCALE}def f():\n    return ps\n", "heat")
    for number in range(4):
        called(module.scale, k=1.0)
        loader.load(f"{SCALE}def f():\n    return {number}\n", "heat")
    with contextlib.suppress(KernelSourceError):  # pytest.raises would keep frames
        loader.load("ps.nothing\n", "heat")
    loader.unload("heat")
    del module
    assert traces() == before


def test_an_id_is_exported_as_a_module(loader: KernelLoader, tmp_path: Any) -> None:
    text = f'{SCALE}"""Multiplies by k."""\nplus = [ps.Assignment(v.center, u.center + 1)]\n'
    loader.load(text, "heat")
    path = loader.export("heat", tmp_path)
    assert path.name.startswith("heat.")
    assert "Multiplies by k." in (tmp_path / "heat.pyi").read_text(encoding="utf-8")
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import numpy as np, heat; u, v = np.ones(2), np.zeros(2)\n"
        "heat.scale(u=u, v=v, k=3.0); heat.plus(u=v, v=u); print(u.tolist(), v.tolist(), 'rekernel' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "[4.0, 4.0] [3.0, 3.0] False\n", done.stderr
    loader.load("x = 1\n", "empty", language="stencil")
    with pytest.raises(rekernel.JitError, match="nothing to export"):
        loader.export("empty", tmp_path)
