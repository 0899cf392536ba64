"""The live picture of a field, without a browser: what it shows, when it steps, how it ends, what it says."""

from __future__ import annotations

import asyncio
import gc
import io
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("PIL", reason="Pillow is not installed; it makes the pictures")

from PIL import Image

import rekernel
from jitkernels import needs_compiler
from rekernel.colours import NAMES, chosen
from rekernel.notebook import host, widget
from rekernel.notebook.pace import AWAY, Pace, Watchers
from rekernel.notebook.pictures import MOST, picture
from rekernel.notebook.used import kernels_used, newest

GREY = chosen("grey")
GREEN = (57, 255, 130)


def pixels(png: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB"))


class Page:
    """The page's side without a page: what was sent to it."""

    def __init__(self, answer: Callable[[dict[str, Any]], None]) -> None:
        self.answer, self.frames, self.state, self.closed = answer, [], {}, 0

    def show(self, png: bytes, frame: int, state: dict[str, Any]) -> None:
        self.frames.append((frame, png))
        self.state = state

    def tell(self, state: dict[str, Any]) -> None:
        self.state = state

    def close(self) -> None:
        self.closed += 1

    def says(self, does: str, **more: Any) -> None:
        self.answer({"view": more.pop("view", "one"), "does": does, **more})

    def took(self, view: str = "one") -> None:
        self.says("took", view=view, frame=self.frames[-1][0])


@pytest.fixture(autouse=True)
def pages(monkeypatch: pytest.MonkeyPatch) -> list[Page]:
    made: list[Page] = []

    def page_for(heard: Any, loop: Any) -> Page:
        made.append(Page(lambda message: host.soon(loop, heard, message)))
        return made[-1]

    monkeypatch.setattr(widget, "page_for", page_for)
    return made


async def until(true: Callable[[], object]) -> None:
    """Let the loop go round until something is so."""

    async def look() -> None:
        while not true():
            await asyncio.sleep(0)

    await asyncio.wait_for(look(), 60)


# --- pictures --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i1", "u2", "i8", "u8", ">f4", "?"])
def test_the_lowest_value_has_the_first_colour_and_the_highest_the_last(dtype: str) -> None:
    field = np.array([[0, 1], [1, 0]]).astype(dtype)
    assert pixels(picture(field, None, GREY).png)[..., 0].tolist() == [[0, 255], [255, 0]]


def test_values_outside_the_limits_have_the_colours_at_the_ends() -> None:
    shown = pixels(picture(np.array([[-5.0, 0, 0.5, 1, 7]]), (0, 1), GREY).png)[0, :, 0]
    assert shown[[0, 1, 3, 4]].tolist() == [0, 0, 255, 255]
    assert 126 <= shown[2] <= 129


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("colours", list(NAMES))
def test_what_is_not_finite_has_a_colour_that_no_value_has(bad: float, colours: str) -> None:
    field = np.linspace(0, 1, 400).reshape(20, 20)
    field[3, 4] = bad
    made = picture(field, None, chosen(colours))
    marked = (pixels(made.png) == GREEN).all(axis=2)
    assert np.argwhere(marked).tolist() == [[3, 4]]
    assert (made.not_finite, made.limits) == (1, (0.0, 1.0))


@pytest.mark.parametrize("value", [0.0, -3.5, 1e300, np.nan])
def test_a_field_of_one_value_is_shown(value: float) -> None:
    assert pixels(picture(np.full((4, 6), value), None, GREY).png).shape == (4, 6, 3)


def test_extremes_of_a_float_have_a_width_that_is_no_float() -> None:
    field = np.array([[-1.7e308, 0, 1.7e308]])
    assert pixels(picture(field, None, GREY).png)[0, :, 0].tolist()[::2] == [0, 255]


def test_an_image_is_shown_as_it_is() -> None:
    image = np.random.default_rng(1).integers(0, 256, (5, 7, 3), np.uint8)
    assert (pixels(picture(image, None, GREY).png) == image).all()
    assert (pixels(picture(image / 255, None, GREY).png) == image).all()


def test_row_0_is_on_top_and_views_are_shown_as_they_are_indexed() -> None:
    field = np.arange(12.0).reshape(3, 4)
    upright = pixels(picture(field, None, GREY).png)
    assert (pixels(picture(field[::-1, ::2], None, GREY).png)[-1, 0] == upright[0, 0]).all()
    assert upright[0, 0, 0] == 0


def test_a_very_large_field_is_thinned_out() -> None:
    made = picture(np.zeros((3 * MOST, 10)), None, GREY)
    assert made.shape == (3 * MOST, 10)
    assert pixels(made.png).shape[0] == MOST


@pytest.mark.parametrize(
    ("field", "error", "says"),
    [
        (np.zeros(5), ValueError, "(5,)"),
        (np.zeros((2, 2, 2)), ValueError, "(2, 2, 2)"),
        (np.zeros((0, 5)), ValueError, "(0, 5)"),
        (np.zeros((2, 2), complex), TypeError, "complex128"),
        (np.array([["a"]]), TypeError, "<U1"),
        (None, ValueError, "()"),
    ],
)
def test_what_is_no_picture_is_refused_with_its_shape_or_dtype(field: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match="a view shows") as caught:
        rekernel.view(field)
    assert says in str(caught.value)


def test_a_taichi_field_and_a_taichi_image_are_shown(ti: Any) -> None:
    field, image = ti.field(ti.f32, (4, 6)), ti.Vector.field(3, ti.f32, (4, 6))
    field[1, 2] = 1.0
    image[1, 2] = (0, 1, 0)
    assert pixels(rekernel.view(field, colours="grey").png())[1, 2].tolist() == [255, 255, 255]
    assert pixels(rekernel.view(image).png())[1, 2].tolist() == [0, 255, 0]


@pytest.mark.parametrize("wrong", ["ebmer", [[1, 2]], [[1, 2, 3]], [[0.5, 0.5, 0.5], [1, 1, 1]]])
def test_colours_that_are_none_are_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="colours"):
        rekernel.view(np.zeros((2, 2)), colours=wrong)


@pytest.mark.parametrize("limits", [5, (1, 0), (0, 0), (0, 1, 2), "ab", (float("nan"), 1)])
def test_limits_are_two_numbers_the_lower_one_first(limits: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="limits are two numbers"):
        rekernel.view(np.zeros((2, 2)), limits=limits)


@pytest.mark.parametrize("name", ["size", "fps", "speed"])
def test_sizes_and_speeds_are_above_zero(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} is a number above 0; got 0"):
        rekernel.view(np.zeros((2, 2)), **{name: 0})


# --- the clock -------------------------------------------------------------------------------------------------


def test_steps_come_at_their_speed_and_what_was_missed_is_not_made_up_for() -> None:
    pace = Pace(fps=30, speed=10)
    pace.start(0.0)
    done = 0
    for tick in range(1001):  # one second
        while pace.step_due(tick / 1000):
            pace.stepped()
            done += 1
    assert 10 <= done <= 11
    assert pace.step_due(60.0)  # a cell ran for a minute
    pace.stepped()
    assert not pace.step_due(60.05)


def test_a_pause_lasts_until_the_next_step_or_picture() -> None:
    pace = Pace(fps=10, speed=2)
    pace.start(0.0)
    pace.stepped()
    pace.drawn(0.0)
    assert pace.pause(0.0, True, False, False) == pytest.approx(0.5)
    assert pace.pause(0.0, True, True, False) == pytest.approx(0.1)
    assert Pace(fps=10).pause(0.0, True, True, True) == 0  # full speed


def test_a_page_that_is_silent_for_long_is_not_waited_for_until_it_speaks_again() -> None:
    watchers = Watchers()
    watchers.came("one")
    watchers.came("two")
    watchers.sent(1, 0.0)
    watchers.came("one", 1)
    assert watchers.waiting(AWAY / 2)
    assert not watchers.waiting(AWAY * 2)
    watchers.sent(2, AWAY * 2)
    watchers.came("one", 2)
    assert not watchers.waiting(AWAY * 2)
    watchers.came("two", 1)
    assert watchers.waiting(AWAY * 2)
    watchers.went("two")
    watchers.went("one")
    assert not watchers


# --- playing ---------------------------------------------------------------------------------------------------


def test_it_plays_while_a_page_shows_it_and_a_picture_waits_for_the_one_before(pages: list[Page]) -> None:
    async def scene() -> None:
        a = np.zeros((4, 4))

        def step() -> None:
            a[0, 0] += 1

        view = rekernel.view(a, step, fps=1e6, play=True)
        (page,) = pages
        for _ in range(20):
            await asyncio.sleep(0)
        assert view.steps == 0  # nobody looks

        page.says("show")
        await until(lambda: view.steps > 3)
        sent = len(page.frames)
        await until(lambda: view.steps > 300)
        assert len(page.frames) == sent  # nobody has taken it
        page.took()
        await until(lambda: len(page.frames) == sent + 1)

        page.says("hide")
        await until(lambda: view._task.done())
        rest = view.steps
        assert view.playing
        page.says("show", view="another")
        await until(lambda: view.steps > rest)
        view.close()
        await until(lambda: view._task.done())
        assert page.closed == 1

    asyncio.run(scene())


def test_buttons_of_the_page_play_pause_step_and_set_the_speed(pages: list[Page]) -> None:
    async def scene() -> None:
        view = rekernel.view(np.zeros((4, 4)), lambda: None)
        (page,) = pages
        page.says("step")
        await until(lambda: view.steps == 1)
        page.says("speed", speed=30)
        await until(lambda: view.speed == 30)
        page.says("play")
        await until(lambda: view.steps > 1)
        assert page.state["playing"]
        page.says("pause")
        await until(lambda: view._task.done())
        assert not page.state["playing"]
        page.says("speed", speed=0)
        await until(lambda: view.speed is None)
        view.close()

    asyncio.run(scene())


def test_a_field_that_somebody_else_changes_is_drawn_again_and_again(pages: list[Page]) -> None:
    async def scene() -> None:
        values = iter(range(1000))
        view = rekernel.view(
            lambda: np.full((2, 2), next(values)), limits=(0, 255), colours="grey", fps=1000, play=True
        )
        (page,) = pages
        page.says("show")
        for _ in range(4):
            page.took()
            sent = len(page.frames)
            await until(lambda sent=sent: len(page.frames) > sent)
        assert len({png for _, png in page.frames}) == len(page.frames)
        assert (view.steps, page.state["steps_itself"]) == (0, False)
        view.close()

    asyncio.run(scene())


def test_words_from_another_thread_are_heard_on_the_loop(pages: list[Page]) -> None:
    async def scene() -> None:
        where: list[int] = []
        view = rekernel.view(np.zeros((2, 2)), lambda: where.append(threading.get_ident()))
        speaker = threading.Thread(target=pages[0].says, args=("step",))
        speaker.start()
        speaker.join()
        await until(lambda: where)
        assert where == [threading.get_ident()]
        view.close()

    asyncio.run(scene())


def test_a_step_that_raises_pauses_and_shows_the_users_line(pages: list[Page]) -> None:
    async def scene() -> None:
        def step() -> None:
            raise ZeroDivisionError("too bad")

        view = rekernel.view(np.zeros((2, 2)), step, play=True)
        pages[0].says("show")
        await until(lambda: view.error)
        assert not view.playing
        shown = pages[0].state["error"]
        assert "ZeroDivisionError: too bad" in shown["text"]
        assert 'raise ZeroDivisionError("too bad")' in shown["text"]
        assert "widget.py" not in shown["text"]
        view.play()
        assert pages[0].state["error"] is None
        view.close()

    asyncio.run(scene())


def test_a_field_that_becomes_no_picture_pauses_with_the_reason(pages: list[Page]) -> None:
    async def scene() -> None:
        fields = [np.zeros((2, 2))]
        view = rekernel.view(lambda: fields[0], lambda: None, play=True)
        fields[0] = np.zeros(3)
        pages[0].says("show")
        pages[0].took()
        await until(lambda: view.error)
        assert "this one is (3,)" in pages[0].state["error"]["text"]
        view.close()

    asyncio.run(scene())


def test_an_interrupt_ends_a_step_that_hangs_and_the_signal_is_as_before(pages: list[Page]) -> None:
    async def scene() -> None:
        def step() -> None:
            signal.raise_signal(signal.SIGINT)
            raise AssertionError("not reached")

        view = rekernel.view(np.zeros((2, 2)), step, play=True)
        pages[0].says("show")
        await until(lambda: view.error)
        assert isinstance(view.error, KeyboardInterrupt)
        assert pages[0].state["error"]["text"] == "interrupted"
        view.close()

    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a kernel has it between cells
    try:
        loop = asyncio.new_event_loop()  # asyncio.run has a handler of its own
        loop.run_until_complete(scene())
        loop.close()
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_view_that_nobody_holds_ends_its_task_and_its_page(pages: list[Page]) -> None:
    async def scene() -> None:
        held = [rekernel.view(np.zeros((2, 2)), lambda: None, play=True)]
        pages[0].says("show")
        await until(lambda: held[0].steps > 0)
        gone, task = weakref.ref(held[0]), held.pop()._task
        await until(lambda: gc.collect() >= 0 and gone() is None)
        await until(task.done)
        assert pages[0].closed == 1

    asyncio.run(scene())


# --- outside a notebook ----------------------------------------------------------------------------------------


def test_without_a_notebook_it_steps_draws_and_says_so(pages: list[Page]) -> None:
    a = np.zeros((3, 3))

    def step() -> None:
        a[1, 1] += 1

    with rekernel.view(a, step, limits=(0, 5), colours="grey") as view:
        view.advance(5)
        assert pixels(view.png())[1, 1, 0] == 255
        assert repr(view) == ("<view of 3 x 3, 5 steps, paused; a notebook shows it live, here: advance(steps), png()>")
        with pytest.raises(RuntimeError, match="plays in a notebook"):
            view.play()
        assert set(view._repr_mimebundle_()) == {"text/plain"}
    assert view.closed
    assert pages[0].closed == 1
    with pytest.raises(RuntimeError, match="closed"):
        view.advance()


def test_what_a_step_raises_in_a_cell_comes_out() -> None:
    with pytest.raises(ZeroDivisionError):
        rekernel.view(np.zeros((2, 2)), lambda: 1 / 0).advance()
    with pytest.raises(ValueError, match="this view has no step"):
        rekernel.view(np.zeros((2, 2))).advance()
    with pytest.raises(TypeError, match="step is a function"):
        rekernel.view(np.zeros((2, 2)), 3)


def test_without_the_extra_the_error_names_it() -> None:
    code = (
        "import sys; sys.modules['anywidget'] = None\nimport numpy, rekernel\n"
        "try: rekernel.view(numpy.zeros((2, 2)))\nexcept rekernel.ToolchainError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert 'pip install "rekernel[notebook]"' in done.stdout, done.stderr


# --- kernels ---------------------------------------------------------------------------------------------------

ADD = "void add(rekernel::Array<double, 2> a) { a(0, 0) += 1; }"


@pytest.fixture
def loader() -> Iterator[rekernel.KernelLoader]:
    with rekernel.KernelLoader() as made:
        yield made


@needs_compiler
def test_the_kernels_of_a_step_are_found_through_names_closures_defaults_and_called_functions(loader) -> None:
    one, two, three = (loader.load(ADD, name) for name in ("one", "two", "three"))
    space: dict[str, Any] = {"module": one, "handle": two.add}
    exec("def called(): handle(); called()\ndef step(): module.add(); called()", space)

    def closure(of: Any = three) -> None:
        space["step"](later)

    assert [live.kernel_id for live in kernels_used([space["step"]])] == ["one", "two"]
    assert [live.kernel_id for live in kernels_used([closure])] == ["three"]
    later = two
    assert [live.kernel_id for live in kernels_used([closure, None, 3])] == ["two", "three"]


@needs_compiler
def test_versions_follow_loads_failures_and_rollbacks_by_click(
    loader: rekernel.KernelLoader, pages: list[Page]
) -> None:
    async def scene() -> None:
        a = np.zeros((2, 2))
        add = loader.load(ADD, "adds").add

        def inner() -> None:
            add(a)

        view = rekernel.view(a, lambda: inner(), play=True)
        (page,) = pages
        page.says("show")
        await until(lambda: view.steps > 0)
        assert [k["id"] for k in page.state["kernels"]] == ["adds"]

        loader.load(ADD.replace("+= 1", "-= 1"), "adds")
        await until(lambda: len(page.state["kernels"][0]["versions"]) == 2)
        newest_version, first = page.state["kernels"][0]["versions"]
        assert (newest_version["number"], newest_version["live"], first["live"]) == (2, True, False)
        assert first["diff"].splitlines() == [f"-{ADD.replace('+= 1', '-= 1')}", f"+{ADD}"]

        with pytest.raises(rekernel.KernelSourceError):
            loader.load(ADD.replace("+= 1", "+= x"), "adds")
        await until(lambda: page.state["error"])
        assert "'x' was not declared" in page.state["error"]["text"]
        assert view.playing  # version 2 goes on

        page.says("roll back", id="adds", version=1)
        await until(lambda: add.version == 3)
        await until(lambda: page.state["error"] is None)
        assert page.state["kernels"][0]["versions"][0]["restores"] == 1
        view.close()
        assert loader._callbacks == {}

    asyncio.run(scene())


@needs_compiler
def test_after_an_error_of_a_kernel_the_next_good_load_plays_on(
    loader: rekernel.KernelLoader, pages: list[Page]
) -> None:
    async def scene() -> None:
        a = np.zeros((2, 2))
        add = loader.load(ADD, "adds").add
        view = rekernel.view(a, lambda: add(a), play=True)
        pages[0].says("show")
        loader.unload("adds")
        await until(lambda: view.error)
        assert isinstance(view.error, rekernel.KernelRemovedError)
        loader.load(ADD, "adds")
        await until(lambda: view.playing and view.error is None)
        rest = view.steps
        await until(lambda: view.steps > rest)
        view.close()

    asyncio.run(scene())


@needs_compiler
def test_a_kernel_can_be_named_by_id_module_or_handle(loader: rekernel.KernelLoader, pages: list[Page]) -> None:
    module = loader.load(ADD, "adds")
    for kernel in ("adds", module, module.add, ["adds"]):
        rekernel.view(np.zeros((2, 2)), kernel=kernel, loader=loader)
        assert [k["id"] for k in pages[-1].state["kernels"]] == ["adds"]
    with pytest.raises(rekernel.KernelNotFoundError, match="no kernel id 'adsd'"):
        rekernel.view(np.zeros((2, 2)), kernel="adsd", loader=loader)
    with pytest.raises(TypeError, match="kernel is an id"):
        rekernel.view(np.zeros((2, 2)), kernel=3)
    with pytest.raises(TypeError, match=r"step is called without arguments, and add takes some; lambda: add\(a\)"):
        rekernel.view(np.zeros((2, 2)), module.add)


def test_a_function_that_is_defined_again_under_its_name_is_followed() -> None:
    space: dict[str, Any] = {}
    exec("def step(): return 1", space)
    now = newest(space["step"])
    exec("def step(): return 2", space)
    assert now()() == 2
    space["step"] = 3  # something else of that name is no new definition
    assert now()() == 1
    same = lambda: None  # noqa: E731
    assert newest(same)() is same
