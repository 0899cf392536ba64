"""Writes the pictures of the documentation: a new user's way, followed in JupyterLab as `docs/notebook.md` tells it.

    make screenshots        # or: python tests/browser/screenshots.py [DIRECTORY]

Not a test: the pictures are kept with the documents, and made again when something that they show has changed.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import docblocks  # noqa: E402
from browserlab import Notebook, Server, browser, missing  # noqa: E402

SIZE = (1000, 1500)
_MARGIN = 3


def keep(book: Notebook, path: Path, first: int, last: int) -> None:
    """Write what is on the page from one cell to another, with nothing around it."""
    book.page.evaluate("() => document.activeElement?.blur()")
    book.page.mouse.move(0, 0)
    book.page.add_style_tag(content=".jp-cell-toolbar { display: none !important; }")
    book.cell(first).scroll_into_view_if_needed()
    boxes = [book.cell(number).bounding_box() for number in (first, last)]
    top, bottom = boxes[0]["y"], boxes[1]["y"] + boxes[1]["height"]
    area = {"x": boxes[0]["x"], "y": top - _MARGIN, "width": boxes[0]["width"], "height": bottom - top + 2 * _MARGIN}
    book.page.screenshot(path=path, clip=area, animations="disabled")
    print(path)


def steps_to(book: Notebook, count: int) -> None:
    """Wait until the picture has made so many steps."""
    shown = book.page.locator(".rekernel-view .count").element_handle()
    book.page.wait_for_function(
        "([shown, count]) => parseInt(shown.innerText.replaceAll(',', '')) > count", arg=[shown, count]
    )


def retype(book: Notebook, number: int, text: str) -> None:
    """Replace what stands in a cell, and run it."""
    book.editor(number).click()
    book.page.keyboard.press("Control+A")
    book.page.keyboard.insert_text(text)
    book.run(number)


def first_way(running: Any, server: Server, to: Path) -> None:
    """Load the extension, first kernel, picture, first error, first reload, and back."""
    page = (ROOT / "docs" / "notebook.md").read_text(encoding="utf-8")
    cells = [block.text.rstrip() for block in docblocks.blocks(page) if block.kind in ("python", "cell")]
    start, kernel, plate, view, _, broken, mended, _, _, table, _ = cells
    server.write("first.ipynb", [start, kernel, plate, view, table])
    book = Notebook(running, server, "first.ipynb", size=SIZE, scale=1.5)
    for number in range(3):
        book.run(number)
    keep(book, to / "notebook-kernel.png", 0, 2)

    book.run(3)
    picture = book.page.locator(".rekernel-view")
    picture.locator("button.play").click()
    steps_to(book, 60)
    keep(book, to / "notebook-picture.png", 3, 3)
    picture.locator("select.speed").select_option("10")  # slowly: there is much to type

    retype(book, 1, broken)
    picture.locator(".wrong b").wait_for()
    keep(book, to / "notebook-error.png", 1, 3)

    retype(book, 1, mended)
    picture.locator("button.live").filter(has_text="v2").wait_for()
    picture.locator("select.speed").select_option("100")
    steps_to(book, 250)
    picture.locator("select.speed").select_option("10")
    keep(book, to / "notebook-reload.png", 1, 3)

    picture.get_by_role("button", name="v1").click()
    picture.locator("button.live").filter(has_text="v3").wait_for()
    book.run(4)
    keep(book, to / "notebook-rollback.png", 3, 4)
    book.close()


def simulation(running: Any, server: Server, to: Path) -> None:
    """The example `gray_scott.ipynb` on a dark page, in the middle of its run."""
    notebook = json.loads((ROOT / "examples" / "gray_scott.ipynb").read_text(encoding="utf-8"))
    code = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    start, kernel, state, view, grow, rings, grow_rings, broken, *_ = code
    server.write("simulation.ipynb", [start, kernel, state, view, grow, rings, grow_rings, broken])
    book = Notebook(running, server, "simulation.ipynb", dark=True, size=(1000, 2400), scale=1.5)
    for number in range(8):
        book.run(number)
    book.page.locator(".rekernel-view .wrong b").wait_for()
    book.page.locator(".rekernel-view button.play").click()
    book.page.locator(".rekernel-view button.play").filter(has_text="Play").wait_for()
    keep(book, to / "notebook-simulation.png", 3, 3)
    book.close()


def main(to: Path) -> None:
    """Make all pictures."""
    reason = missing()
    if reason:
        sys.exit(reason)
    to.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="rekernel-screenshots-") as place:
        server = Server(Path(place))
        try:
            with browser() as running:
                first_way(running, server, to)
                simulation(running, server, to)
        finally:
            server.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images")
