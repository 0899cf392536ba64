"""The page "Five minutes in a notebook", followed in JupyterLab as its reader does, with a screenshot of each stage."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import docblocks
from browserlab import Notebook
from jitkernels import needs_compiler

pytestmark = [pytest.mark.slow, needs_compiler]

PAGE = Path(__file__).parents[2] / "docs" / "notebook.md"


def type_over(book: Notebook, number: int, text: str) -> None:
    """Replace what stands in a cell."""
    book.editor(number).click()
    book.page.keyboard.press("Control+A")
    book.page.keyboard.insert_text(text)


def said(where: Any, wanted: str) -> str:
    """Wait for words in a part of the page; return all that stands there."""
    where.filter(has_text=wanted).first.wait_for()
    return str(where.first.inner_text())


def more_steps(book: Notebook, more: int) -> None:
    """Wait until the picture has made so many steps more."""
    count = book.page.locator(".rekernel-view .count")
    now = int(count.inner_text().split()[0].replace(",", ""))
    book.page.wait_for_function(
        "([count, least]) => parseInt(count.innerText.replaceAll(',', '')) >= least",
        arg=[count.element_handle(), now + more],
    )


def test_a_reader_of_the_page_gets_what_it_promises(
    notebook: Callable[..., Notebook], shots: Callable[[Notebook, str], Path]
) -> None:
    blocks = list(docblocks.blocks(PAGE.read_text(encoding="utf-8")))
    cells = [block.text.rstrip() for block in blocks if block.kind in ("python", "cell")]
    error = next(block.text for block in blocks if block.kind == "output" and "KernelSourceError" in block.text)
    start, kernel, plate, view, _, broken, mended, _, back, table, _ = cells

    book = notebook([start, kernel, plate, view, back, table], size=(980, 1190))
    for number in range(3):
        book.run(number)
    assert "spread v1" in said(book.output(1), "spread")
    assert "0.2" in said(book.output(2), "0.2")
    shots(book, "first")

    book.run(3)
    picture = book.page.locator(".rekernel-view")
    picture.locator("button.play").click()
    more_steps(book, 30)
    shots(book, "playing")

    type_over(book, 1, broken)
    book.run(1)
    shown = said(book.output(1), "declared")
    assert error.splitlines()[0].removeprefix("rekernel.KernelSourceError: ") in shown
    assert error.splitlines()[-1] in shown
    more_steps(book, 1)  # the picture goes on
    shots(book, "broken")

    type_over(book, 1, mended)
    book.run(1)
    assert "spread v2" in said(book.output(1), "v2")
    picture.locator("button.live").filter(has_text="v2").wait_for()
    more_steps(book, 100)
    shots(book, "reloaded")

    book.run(4)
    picture.locator("button.live").filter(has_text="v3").wait_for()
    book.run(5)
    assert all(word in said(book.output(5), "spread") for word in ("v3", "cpp"))
    shots(book, "table")
