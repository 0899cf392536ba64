"""What a Python text says about itself by its syntax tree: which names it needs from outside."""

from __future__ import annotations

import ast
import sys

import pytest

from rekernel.languages import pytext


def wanted(text: str) -> list[str]:
    return list(pytext.wanted(ast.parse(text)))


WANTED = {
    "a name": ("x", ["x"]),
    "a name that is set before": ("x = 1\nx", []),
    "a name that is set after": ("x\nx = 1", []),
    "a builtin": ("print(len([]))", []),
    "module dunders": ("__name__, __file__, __doc__", []),
    "an attribute": ("a.b.c", ["a"]),
    "an attribute that is set": ("a.b = 1", ["a"]),
    "an item that is set": ("a[i] = v", ["a", "i", "v"]),
    "an augmented assignment": ("x += y", ["y"]),
    "an augmented attribute": ("a.b += y", ["a", "y"]),
    "a deletion": ("x = 1\ndel x", []),
    "a tuple target": ("a, (b, *c) = d", ["d"]),
    "an annotation": ("x: T = v", ["T", "v"]),
    "an f-string": ("f'{a} {b!r:{c}}'", ["a", "b", "c"]),
    # functions
    "a function's name": ("def f(): pass\nf()", []),
    "a parameter": ("def f(a, /, b, *c, d, **e): return a, b, c, d, e", []),
    "a default": ("def f(a=x, *, b=y): pass", ["x", "y"]),
    "annotations of a function": ("def f(a: A, *b: B) -> C: pass", ["A", "B", "C"]),
    "a decorator": ("@d(x)\ndef f(): pass", ["d", "x"]),
    "a default with the name of a parameter": ("def f(a, b=a): return a", ["a"]),
    "a local": ("def f():\n    y = x\n    return y", ["x"]),
    "a local that is set after its use": ("def f():\n    for i in r:\n        y\n    y = 1", ["r"]),
    "a local elsewhere": ("def f():\n    y = 1\ndef g():\n    return y", ["y"]),
    "a nested function": ("def f(a):\n    def g(b): return a + b + c\n    return g", ["c"]),
    "a nested function's local": ("def f():\n    def g():\n        y = 1\n    return y", ["y"]),
    "an async function": ("async def f(a):\n    async for i in a: await b(i)", ["b"]),
    "a recursive function": ("def f(n): return f(n - 1)", []),
    "global read": ("def f():\n    global x\n    return x", []),
    "global written": ("def f():\n    global x\n    x = 1\ndef g(): return x", []),
    "nonlocal": ("def f():\n    x = 1\n    def g():\n        nonlocal x\n        x = 2\n    return x", []),
    "a lambda": ("lambda a, b=x, *c, **d: a + b + y", ["x", "y"]),
    # comprehensions
    "a list comprehension": ("[a * b for a in c if a > d]", ["b", "c", "d"]),
    "a nested comprehension": ("[a for b in c for a in b]", ["c"]),
    "a comprehension in a comprehension": ("[[a + b for a in b] for b in c]", ["c"]),
    "the target does not leak": ("[a for a in b]\na", ["a", "b"]),
    "the iterable has the name of the target": ("[a for a in a]", ["a"]),
    "a dict comprehension": ("{k: v for k, v in d.items()}", ["d"]),
    "a set comprehension": ("{a for a in b}", ["b"]),
    "a generator": ("sum(a for a in b)", ["b"]),
    "a comprehension in a function": ("def f(x): return [i + x + k for i in x]", ["k"]),
    # walrus
    "a walrus": ("(y := x)\ny", ["x"]),
    "a walrus in a comprehension": ("[(last := a) for a in b]\nlast", ["b"]),
    "a walrus in a function": ("def f(b):\n    while (c := b()): pass\n    return c", []),
    "a walrus in a comprehension in a function": ("def f(b):\n    [(last := a) for a in b]\n    return last", []),
    "a walrus in a lambda": ("f = lambda: (y := 1)\ny", ["y"]),
    # classes
    "a class": ("class A(B, metaclass=M):\n    x = y", ["B", "M", "y"]),
    "a method": ("class A:\n    def f(self): return self.x + y", ["y"]),
    "a name of the class body": ("class A:\n    x = 1\n    y = x", []),
    "a name of the class body in a method": ("class A:\n    x = 1\n    def f(self): return x", ["x"]),
    "a name of the class body as a default": ("class A:\n    x = 1\n    def f(self, a=x): pass", []),
    "a method called from the class body": ("class A:\n    def f(): pass\n    f()", []),
    "the class itself in a method": ("class A:\n    def f(self): return A", []),
    "a nested class": ("class A:\n    class B:\n        x = y", ["y"]),
    "a decorated class": ("@d\nclass A: pass", ["d"]),
    "super and __class__": ("class A:\n    def f(self): return super().f(), __class__", []),
    # statements
    "an import": ("import a.b\nfrom c import d as e\na, e", []),
    "an import under another name": ("import a as b\na", ["a"]),
    "a for loop": ("for i, j in x:\n    i + j\ni", ["x"]),
    "with": ("with a() as (b, c):\n    b, c", ["a"]),
    "except": ("try:\n    pass\nexcept E as e:\n    e", ["E"]),
    "a match": ("match x:\n    case [a, *b]: a, b\n    case {'k': c, **d}: c, d\n    case P(e) as f: e, f", ["P", "x"]),
    "a match against a value": ("match x:\n    case A.b: pass", ["A", "x"]),
    "a match in a function": ("def f(x):\n    match x:\n        case [a, *b]: return a, b", []),
    "a conditional definition": ("if c:\n    x = 1\nx", ["c"]),
}


@pytest.mark.parametrize(("text", "names"), WANTED.values(), ids=WANTED.keys())
def test_wanted_names(text: str, names: list[str]) -> None:
    assert wanted(text) == names


@pytest.mark.parametrize(("text", "names"), WANTED.values(), ids=WANTED.keys())
def test_python_agrees_that_no_other_name_is_looked_up_in_the_module(text: str, names: list[str]) -> None:
    """Every global that the compiled code reads is defined, a builtin, or wanted: nothing is overlooked."""
    tree = ast.parse(text)
    looked_up = _globals_read(compile(tree, "t", "exec"))
    defined = pytext.bound(tree.body) | pytext.declared_global(tree) | pytext.BUILTINS | {"__class__", "super"}
    inside_classes = {n for c in ast.walk(tree) if isinstance(c, ast.ClassDef) for n in pytext.bound(c.body)}
    annotations = {"__annotations__", "__module__", "__qualname__", "__classcell__", "__conditional_annotations__"}
    assert looked_up - defined - inside_classes - annotations <= set(names)


def _globals_read(code: object) -> set[str]:
    import dis
    import types

    assert isinstance(code, types.CodeType)
    reads = {"LOAD_NAME", "LOAD_GLOBAL", "LOAD_FROM_DICT_OR_GLOBALS"}
    found = {i.argval for i in dis.get_instructions(code) if i.opname in reads}
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= _globals_read(constant)
    return found


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type parameters are new in Python 3.12")
def test_type_parameters_are_not_wanted() -> None:
    assert wanted("def f[T](a: T) -> T: return a\nclass A[U](B[U]): pass\ntype L[V] = list[V]") == ["B"]


def test_a_star_import_wants_nothing_by_itself() -> None:
    assert wanted("from m import *\nfrom m import a\na + b") == ["b"]


def test_wanted_names_are_sorted_and_unique() -> None:
    assert wanted("b + a + b") == ["a", "b"]


def test_a_very_long_sum_is_read() -> None:
    assert wanted(" + ".join(["x"] * 150)) == ["x"]


# --- strings and comments --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a # @ti.kernel", "a "),
        ("'@ti.kernel'", ""),
        ('"a\\"b" c', " c"),
        ("'''a\nb''' c", "\n c"),
        ('"""a\n\nb"""', "\n\n"),
        ("'#' b # '", " b "),
    ],
)
def test_strings_and_comments_are_blanked_and_lines_kept(text: str, left: str) -> None:
    assert pytext.without_strings(text) == left


# --- decorated definitions and imports -------------------------------------------------------------------------

MARKS = frozenset({"kernel", "func"})


@pytest.mark.parametrize("decorator", ["@kernel", "@ti.kernel", "@ti.kernel()", "@a.b.kernel(x=1)", "@ti . kernel"])
def test_a_decorator_marks_by_its_last_name(decorator: str) -> None:
    (found,) = pytext.decorated(ast.parse(f"{decorator}\ndef f(): pass"), MARKS)
    assert (found.name, found.mark) == ("f", "kernel")


def test_decorated_definitions_come_in_the_order_of_the_text() -> None:
    text = "@func\ndef b(): pass\n@x\n@kernel\ndef a(): pass\n@x\ndef c(): pass\ndef d(): pass"
    assert [(d.name, d.mark) for d in pytext.decorated(ast.parse(text), MARKS)] == [("b", "func"), ("a", "kernel")]


def test_a_decorated_function_inside_another_is_not_found() -> None:
    assert pytext.decorated(ast.parse("def f():\n    @kernel\n    def g(): pass"), MARKS) == []


def test_imports_are_found_anywhere() -> None:
    text = "import a.b, c as d\ndef f():\n    from e.f import g\nfrom . import h\nfrom .i import j"
    assert pytext.imports(ast.parse(text)) == {"a.b", "c", "e.f"}
