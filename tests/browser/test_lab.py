"""A user in JupyterLab: a picture that moves, a kernel cell that is edited, broken, put right and rolled back."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from browserlab import Notebook
from jitkernels import needs_compiler

pytestmark = [pytest.mark.slow, needs_compiler]

Open = Callable[..., Notebook]
Keep = Callable[[Notebook, str], Path]

START = "%load_ext rekernel\nimport time\nimport numpy as np\nimport rekernel"
KERNEL = """\
%%kernel halves
void brighten(rekernel::Array<double, 2> a) {
    const int64_t n = a.shape(0);
    for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j)
            if (j < n / 2) a(i, j) += 0.1 * (1 - a(i, j));
}
"""
FIELD = """\
a = np.zeros((64, 64))

def step():
    brighten(a)
"""
VIEW = "w = rekernel.view(a, step, limits=(0, 1), size=256, play=True)\nw"

# Brightness from 0 to 1 of the four quarters of the picture: upper left, upper right, lower left, lower right.
QUARTERS = """image => {
    if (!image?.complete || !image.naturalWidth) return null;
    const canvas = document.createElement('canvas'), n = 16;
    canvas.width = canvas.height = n;
    const context = canvas.getContext('2d');
    context.imageSmoothingEnabled = false;
    context.drawImage(image, 0, 0, n, n);
    const sums = [0, 0, 0, 0], pixels = context.getImageData(0, 0, n, n).data;
    for (let p = 0; p < n * n; ++p)
        sums[(p >= n * n / 2) * 2 + (p % n >= n / 2)] += (pixels[4 * p] + pixels[4 * p + 1] + pixels[4 * p + 2]) / 765;
    return sums.map(sum => sum / (n * n / 4));
}"""


def view(notebook: Notebook, number: int = 0) -> Any:
    """A live picture with its controls."""
    return notebook.page.locator(".rekernel-view").nth(number)


def bright(notebook: Notebook, wanted: str) -> None:
    """Wait until the quarters are bright where `wanted` has #, and dark where it has a point."""
    image = view(notebook).locator("img")
    image.wait_for()
    notebook.page.wait_for_function(
        f"([image, wanted]) => ({QUARTERS})(image)?.every((q, i) => wanted[i] === '#' ? q > 0.8 : q < 0.3)",
        arg=[image.element_handle(), wanted],
    )


def pixels(notebook: Notebook) -> bytes:
    """The picture on the screen, as a screenshot has it."""
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed; it reads the screenshots")
    shot = view(notebook).locator("img").screenshot()
    return bytes(image.open(io.BytesIO(shot)).convert("RGB").tobytes())


def steps(notebook: Notebook) -> int:
    """How many steps the picture says were made."""
    text = view(notebook).locator(".count").inner_text()
    return int(text.split(" steps")[0].replace(",", ""))


def more_steps(notebook: Notebook, than: int) -> None:
    notebook.page.wait_for_function(
        "([count, than]) => Number(count.innerText.split(' steps')[0].replaceAll(',', '')) > than",
        arg=[view(notebook).locator(".count").element_handle(), than],
    )


def text(where: Any, wanted: str) -> str:
    """Wait for words in a part of the page; returns all that stands there."""
    where.filter(has_text=wanted).first.wait_for()
    return str(where.first.inner_text())


def test_an_edited_kernel_cell_changes_the_running_picture_and_keeps_its_state(notebook: Open, shots: Keep) -> None:
    book = notebook(["# Halves", START, KERNEL, FIELD, VIEW, "%kernels"])
    book.run_all()
    bright(book, "#.#.")
    shots(book, "running")
    assert "halves v1" in text(book.output(2), "halves")
    before = pixels(book)

    book.change(2, "j < n / 2", "j >= n / 2")
    book.run(2)
    bright(book, "####")  # the left half is what it was: nobody set the field back
    assert pixels(book) != before
    assert "v2" in text(view(book).locator("button.live"), "v2")
    shots(book, "edited")

    book.change(2, "brighten(rekernel", "brighten(rekrenel")
    book.run(2)
    said = text(book.output(2), "rekrenel")
    assert "halves v3 (cpp), line 2" in said  # the second line of the cell, as the user counts
    assert "void brighten(rekrenel::Array" in said
    assert "halves v2 keeps running" in said
    assert "line 2" in text(view(book).locator(".wrong"), "refused")
    more_steps(book, steps(book))  # and it does
    shots(book, "broken")

    book.change(2, "rekrenel", "rekernel")
    book.change(2, "a(i, j) += 0.1 * (1 - a(i, j))", "a(i, j) *= 0.8")
    book.run(2)
    bright(book, "#.#.")
    view(book).locator(".wrong").wait_for(state="hidden")
    shots(book, "fixed")

    book.change(2, "j >= n / 2", "j < n")
    book.run(2)
    bright(book, "....")
    view(book).get_by_role("button", name="v1").click()
    bright(book, "#.#.")
    assert "v5 = v1" in text(view(book).locator("button.live"), "v5")
    shots(book, "rolled back")

    book.run(5)
    table = text(book.output(5), "halves")
    assert all(word in table for word in ("halves", "v5", "cpp", "brighten"))


def test_play_pause_step_and_speed_by_mouse_and_by_keyboard(notebook: Open, shots: Keep) -> None:
    book = notebook([START, KERNEL, FIELD, VIEW.replace(", play=True", "")])
    book.run_all()
    play, step = view(book).locator("button.play"), view(book).locator("button.step")
    text(play, "Play")
    bright(book, "....")
    assert steps(book) == 0

    step.click()
    more_steps(book, 0)
    assert steps(book) == 1
    step.focus()
    book.page.keyboard.press("Enter")
    more_steps(book, 1)
    assert steps(book) == 2

    play.focus()
    book.page.keyboard.press("Space")
    text(play, "Pause")
    bright(book, "#.#.")
    play.click()
    text(play, "Play")
    shots(book, "paused")

    view(book).locator("select.speed").select_option("30")
    play.click()
    more_steps(book, steps(book) + 15)
    text(view(book).locator(".count"), "steps/s")
    book.editor(0).click()  # a cell can be run while it plays
    book.page.keyboard.press("Control+A")
    book.page.keyboard.insert_text("print(w.playing, w.speed)")
    book.run(0)
    assert "True 30" in text(book.output(0), "True")


def test_a_step_that_fails_pauses_and_a_new_definition_or_a_new_kernel_plays_on(notebook: Open, shots: Keep) -> None:
    broken = "def step():\n    brighten(a.astype(np.float32))"
    book = notebook(
        [START, KERNEL, FIELD, VIEW, broken, "def step():\n    brighten(a)", "del rekernel.kernels['halves']"]
    )
    book.run_all()
    text(view(book).locator(".wrong"), "halves")  # the last cell took the kernel away
    book.run(1)
    view(book).locator(".wrong").wait_for(state="hidden")
    more_steps(book, steps(book))

    book.run(4)
    said = text(view(book).locator(".wrong"), "paused")
    assert "argument 'a': expected float64[:, :], got a float32 array" in said
    assert "brighten(a.astype(np.float32))" in said  # the user's own line
    shots(book, "step failed")
    book.run(5)
    view(book).locator(".wrong").wait_for(state="hidden")
    more_steps(book, steps(book))


def test_the_interrupt_button_ends_a_step_that_hangs(notebook: Open) -> None:
    hang = "def step():\n    open('hangs.txt', 'w').close()\n    while True:\n        time.sleep(0.01)"
    book = notebook([START, KERNEL, FIELD, VIEW, hang, "print(w.error is None, w.playing)"])
    book.run_all_but_last()
    book.page.wait_for_function("async () => (await fetch('/api/contents/hangs.txt?content=0')).ok", polling=200)
    book.page.locator("[data-command='notebook:interrupt-kernel'], [data-jp-item-name='interrupt']").first.click()
    assert "interrupted" in text(view(book).locator(".wrong"), "interrupted")
    book.run(5)
    assert "False False" in text(book.output(5), "False")


def test_a_cell_that_is_run_again_closes_its_old_picture_and_unseen_pictures_rest(notebook: Open) -> None:
    book = notebook([START, KERNEL, FIELD, VIEW, "old = w", "w", "print(old.closed, w.closed)", "print(w.steps)"])
    book.run_all()
    assert view(book, 1).is_visible()
    more_steps(book, 10)
    assert view(book, 0).locator("img").get_attribute("src")
    book.run(3)
    book.run(6)
    assert "True False" in text(book.output(6), "True")

    book.page.get_by_role("menuitem", name="Edit", exact=True).click()
    book.page.get_by_role("menuitem", name="Clear Outputs of All Cells").click()
    book.page.wait_for_function("() => !document.querySelector('.rekernel-view')")
    counts = []
    for _ in range(2):  # no picture is shown: the steps rest
        book.run(7)
        counts.append(int(book.output(7).inner_text()))
    assert counts[0] == counts[1]


def test_words_and_buttons_can_be_read_on_a_dark_page(notebook: Open, shots: Keep) -> None:
    book = notebook([START, KERNEL, FIELD, VIEW], dark=True)
    book.run_all()
    bright(book, "#.#.")
    assert book.page.evaluate("() => document.body.dataset.jpThemeName") == "JupyterLab Dark"
    shots(book, "dark")
    ratio = book.page.evaluate(
        """root => {
            const light = colour => {
                const c = colour.match(/[\\d.]+/g).slice(0, 3).map(x => x / 255).map(
                    x => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
                return 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2];
            };
            const page = getComputedStyle(document.querySelector('.jp-Notebook')).backgroundColor;
            const words = [...root.querySelectorAll('.count, button.play, h4')].map(e => light(getComputedStyle(e).color));
            return Math.min(...words.map(w => (Math.max(w, light(page)) + 0.05) / (Math.min(w, light(page)) + 0.05)));
        }""",
        view(book).element_handle(),
    )
    assert ratio > 4.5
