"""What a notebook shows of loaders, modules, kernels, errors and infos: the same words as a terminal, all escaped."""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest

import toy as toys
from rekernel import KernelLoader, KernelSourceError, LaunchGrid, htmltext, info
from rekernel.infotext import took
from rekernel.notebook import tables
from rekernel.notebook.status import Status

toy = pytest.fixture(toys.fresh_toy)
loader = pytest.fixture(toys.fresh_loader)

EVIL = "<script>alert('x')</script>&\"' onload=\"x"
ALLOWED = {"div", "span", "b", "pre", "code", "table", "thead", "tbody", "tr", "th", "td"}


class Page(HTMLParser):
    """The text of a piece of HTML; what does not nest, and tags and attributes that we do not use, fail the test."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in ALLOWED
        assert {name for name, _ in attrs} <= {"style"}
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def failed(load: Callable[[], object]) -> KernelSourceError:
    with pytest.raises(KernelSourceError) as caught:
        load()
    return caught.value


def everything(loader: KernelLoader) -> dict[str, Any]:
    """One of each thing that a notebook can show, every word of it hostile."""
    loader.load("step(x) = x   ## " + EVIL, EVIL)
    module: Any = loader.load(f"step(x) = 2 * x   ## {EVIL}\nskip big: {EVIL}", EVIL)
    error = failed(lambda: loader.load(f"step(x) = 2 * x   ## {EVIL}\n{EVIL} {EVIL}", EVIL, filename=EVIL))
    live = loader._lives[EVIL]
    removed = loader.load("step(x) = x", "gone" + EVIL).step
    loader.unload("gone" + EVIL)
    return {
        "loader": loader, "module": module, "kernel": module.step, "pinned kernel": module.step.pinned(),
        "removed kernel": removed, "error": error, "info": info(module), "grid": LaunchGrid((4, 4), 16),
        "status": Status(EVIL, 3, EVIL, EVIL, [EVIL], [EVIL], [EVIL]),
        "kernels": tables.kernels([live]), "history": tables.history(loader.history(EVIL)),
        "diff": tables.diff(loader.info(EVIL), None), "empty table": tables.kernels([]),
    }  # fmt: skip


THINGS = (
    "loader", "module", "kernel", "pinned kernel", "removed kernel", "error", "info", "grid", "status", "kernels",
    "history", "diff", "empty table",
)  # fmt: skip


@pytest.mark.parametrize("name", THINGS)
def test_nothing_that_a_text_or_an_id_says_becomes_markup(loader: KernelLoader, name: str) -> None:
    page = Page(everything(loader)[name]._repr_html_())
    assert page.text


@pytest.mark.parametrize("name", ["loader", "module", "kernel", "error", "info", "status", "kernels"])
def test_hostile_words_are_shown_as_they_are(loader: KernelLoader, name: str) -> None:
    assert EVIL in Page(everything(loader)[name]._repr_html_()).text


@pytest.mark.parametrize(
    "name", ["loader", "error", "info", "status", "kernels", "history", "diff", "grid", "empty table"]
)
def test_a_terminal_shows_the_same_words(loader: KernelLoader, name: str) -> None:
    thing = everything(loader)[name]
    shown = Page(thing._repr_html_()).text
    plain = str(thing) if name == "error" else repr(thing)
    assert [word for word in re.findall(r"\w+", plain) if word not in shown] == []


@pytest.mark.parametrize("name", THINGS)
def test_colours_leave_the_text_to_the_page(loader: KernelLoader, name: str) -> None:
    """No fixed colour of the text and no opaque background, so that light and dark pages both read well."""
    styles = re.findall(r'style="([^"]*)"', everything(loader)[name]._repr_html_())
    given = [part.split(":", 1) for style in styles for part in style.split(";") if part]
    assert {value for key, value in given if key == "color"} <= {"inherit"}
    backgrounds = {value for key, value in given if key == "background"}
    assert all(value == "none" or re.fullmatch(r"rgba\(\d+,\d+,\d+,\.\d+\)", value) for value in backgrounds)


def test_the_wrong_line_of_an_error_is_marked_and_no_other(loader: KernelLoader) -> None:
    error = failed(lambda: loader.load("flux(x) = x\nstep(x) = kk\nlast(x) = x", "heat"))
    marked = re.findall(r'<span style="background:rgba[^"]*">(.*?)</span>', error._repr_html_())
    assert list(map(html.unescape, marked)) == ["> 2 | step(x) = kk"]
    assert "|           ^^" in html.unescape(error._repr_html_()), "what points at it keeps its blanks"


def test_an_error_without_a_place_is_shown_without_lines() -> None:
    error = KernelSourceError("it is wrong", kernel_id="heat", version=1, language="toy")
    assert Page(error._repr_html_()).text == "heat v1 (toy): it is wrong"


def test_a_module_shows_how_its_last_edit_failed_until_one_succeeds(loader: KernelLoader) -> None:
    module: Any = loader.load("step(x) = x", "heat")
    failed(lambda: loader.load("step(x) = kk", "heat"))
    assert "last edit failed: heat v2 (toy), line 1, column 11" in Page(module._repr_html_()).text
    loader.load("step(x) = 2 * x", "heat")
    assert "failed" not in module._repr_html_()


def test_an_empty_loader_shows_no_table(loader: KernelLoader) -> None:
    assert Page(loader._repr_html_()).text == "KernelLoader: 0 ids"


def test_an_info_says_what_there_is_to_know_in_short(loader: KernelLoader) -> None:
    base = loader.load("func twice(x) = 2 * x\none(x) = x", "base")
    loader.load("step(x) = twice(x)\nskip big: it takes a struct", "heat", namespace={"twice": base.twice}, scale=3)
    failed(lambda: loader.load("step(x) = kk", "heat"))
    rows = repr(loader.info("heat")).split("\n")
    assert rows[0].startswith("heat v1 (toy), built in ")
    assert rows[1:] == [
        "  step(x: float64)",
        "  options      scale=3",
        "  depends on   base",
        "  no kernel    big: it takes a struct",
        "  note         made by toy",
        "  last edit    failed: heat v2 (toy), line 1, column 11: name 'kk' is not defined",
        "  versions     v1",
        "  text         2 lines: .source, .code, .assembly, .diff(version)",
    ]


def test_an_id_with_a_line_break_breaks_no_line(loader: KernelLoader) -> None:
    module: Any = loader.load("step(x) = x", "a\nb")
    assert len(repr(info(module)).split("\n")) == 5
    assert "'a\\nb'" in Page(module._repr_html_()).text


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0 s"), (1e-12, "1 ns"), (4.2e-7, "420 ns"), (1e-6, "1.0 µs"), (1.26e-5, "13 µs"), (3.14e-3, "3.1 ms"),
     (0.4123, "412 ms"), (1.25, "1.2 s"), (75, "75 s")],
)  # fmt: skip
def test_times_are_in_the_unit_that_reads_best(seconds: float, said: str) -> None:
    assert took(seconds) == said


def test_a_diff_colours_what_came_and_what_went() -> None:
    rows = re.findall(
        r"<span( style=\"background:rgba\(([\d,]+),\.22\)\")?>(.)", tables.Diff("@@\n-a\n+b\n c")._repr_html_()
    )
    assert [(colour, sign) for _, colour, sign in rows] == [
        (htmltext.GRAY, "@"), (htmltext.RED, "-"), (htmltext.GREEN, "+"), ("", " "),
    ]  # fmt: skip
