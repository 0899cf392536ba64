"""The demo, played small in a process of its own: Taichi can be started only once in this one."""

from __future__ import annotations

import doctest
import importlib
import io
import os
import re
import signal
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest

np = pytest.importorskip("numpy")
Image = pytest.importorskip("PIL.Image")
pytest.importorskip("rich")

from rich.console import Console  # noqa: E402

from jitkernels import needs_compiler  # noqa: E402
from rekernel.__main__ import main  # noqa: E402
from rekernel.demo import gray_scott, picture, results, show, window  # noqa: E402  (they need what is checked above)
from rekernel.demo.cpp_text import CPP  # noqa: E402
from rekernel.demo.taichi_text import TAICHI  # noqa: E402

PANEL = 512
"""What a small field is enlarged to in the picture."""
TEXTS = {"Taichi": TAICHI, "C++": CPP}
ACTS = len(gray_scott.ACTS)


def rekernel(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command line in a new process, its output in pipes."""
    return subprocess.run(
        [sys.executable, "-m", "rekernel", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
    )


def without(*names: str) -> str:
    """Code that plays a small demo where some packages cannot be found."""
    return (
        "import importlib.util as u, sys; find = u.find_spec;"
        f"u.find_spec = lambda name, *rest: None if name in {names} else find(name, *rest);"
        "from rekernel.__main__ import main;"
        "sys.exit(main(['demo', '--size', '32', '--steps', '4', '--out', 's.png']))"
    )


def played_by(*command: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a new process."""
    return subprocess.run(
        [sys.executable, *command],
        cwd=cwd,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
    )


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What a small run through both languages printed, and its picture."""
    pytest.importorskip("taichi")
    folder = tmp_path_factory.mktemp("demo")
    result = rekernel("demo", "--size", "64", "--steps", "40", "--out", "deep/strip.png", cwd=folder)
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout, folder / "deep" / "strip.png"


def broken_line(text: gray_scott.Text) -> tuple[int, str]:
    """The number and the words of the line that the third act breaks."""
    lines = gray_scott.edited(text.sized(64), text.edits["flower"] + text.edits["typo"]).splitlines()
    return next((number, line.strip()) for number, line in enumerate(lines, 1) if "lapalcian" in line)


def panels(path: Path, rows: int = 2) -> list[list[np.ndarray]]:
    """The squares of a sheet, row by row, cut out where the frames are."""
    sheet = np.asarray(Image.open(path).convert("RGB")).astype(int)
    left = [picture._MARGIN + number * (PANEL + picture._GAP) for number in range(ACTS)]
    first, high = picture._HEAD + picture._LABEL, picture._LABEL + PANEL + picture._FOOT
    return [[sheet[first + r * high : first + r * high + PANEL, x : x + PANEL] for x in left] for r in range(rows)]


def table(output: str) -> list[str]:
    """The lines of the table below its heading."""
    lines = output.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("act  version"))
    return lines[start + 1 : start + 1 + ACTS]


@needs_compiler
def test_the_picture_has_one_row_for_each_language_and_one_panel_for_each_act(played):
    width = 2 * picture._MARGIN + ACTS * PANEL + (ACTS - 1) * picture._GAP
    with Image.open(played[1]) as sheet:
        assert sheet.format == "PNG"
        assert sheet.size == (width, picture._HEAD + 2 * (picture._LABEL + PANEL + picture._FOOT))


@needs_compiler
def test_both_rows_show_the_same(played):
    taichi, cpp = panels(played[1])
    for number, (one, other) in enumerate(zip(taichi, cpp, strict=True), 1):
        assert (one == other).all(), f"the panels {number} differ"


def test_every_panel_shows_a_pattern(played):
    for number, panel in enumerate(panels(played[1], 1)[0], 1):
        assert panel.std() > 5, f"panel {number} is of one colour"


def test_panels_differ_from_each_other(played):
    for (a, one), (b, other) in combinations(enumerate(panels(played[1], 1)[0], 1), 2):
        assert (abs(one - other).max(axis=2) > 24).mean() > 0.005, f"panels {a} and {b} look the same"


def test_the_table_names_the_versions_in_order(played):
    versions = [line.split()[1:3] for line in table(played[0])]
    assert versions == [
        ["v1", "coral"],
        ["v2", "flower"],
        ["v2", "flower"],
        ["v3", "whirl"],
        ["v4", "flower"],
    ]


def test_a_rollback_says_whose_text_it_brings_back(played):
    assert "v4 flower = v2" in table(played[0])[-1]


@needs_compiler
def test_the_table_gives_two_times_for_every_edit(played):
    assert [line.count(" ms") for line in table(played[0])] == [2] * ACTS
    assert table(played[0])[2].count("error: ") == 2


@needs_compiler
def test_both_languages_come_to_the_same_bits_in_every_act(played):
    assert played[0].count("both states: 8,192 values of u and v, equal bit for bit") == ACTS
    assert all(line.rstrip().endswith("bit for bit") for line in table(played[0]))


@needs_compiler
@pytest.mark.parametrize("title", TEXTS)
def test_the_broken_edit_is_shown_with_its_line_and_what_keeps_running(played, title):
    text = TEXTS[title]
    number, line = broken_line(text)
    assert f"gray_scott v3 ({text.language}), line {number}" in played[0]
    assert re.search(rf"^> {number} \| +{re.escape(line)}$", played[0], re.M)
    assert played[0].count("gray_scott v2 keeps running") == 2


@needs_compiler
def test_no_swap_changes_the_state(played):
    for title in TEXTS:
        assert played[0].count(f"{title} state: 16,384 values of u and v, none changed") == ACTS - 1


def test_a_log_has_no_control_codes(played):
    assert not [character for character in played[0] if ord(character) < 32 and character != "\n"]


@needs_compiler
def test_a_log_has_one_line_for_the_steps_of_each_act_and_language(played):
    for title in TEXTS:
        assert played[0].count(f"  ran {title} v") == ACTS


def test_quiet_prints_the_table_and_the_path_only(tmp_path):
    pytest.importorskip("taichi")
    result = rekernel("demo", "--size", "32", "--steps", "2", "--quiet", "--out", "q.png", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    lines = [line for line in result.stdout.splitlines() if line.strip()]
    assert [line.split()[0] for line in lines] == ["Taichi", "act", "1", "2", "3", "4", "5", "Picture:"]
    assert (tmp_path / "q.png").exists()


@needs_compiler
def test_without_taichi_the_half_in_cpp_runs_alone_and_says_so(tmp_path):
    result = played_by("-c", without("taichi"), cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stderr.startswith('The Taichi half needs taichi: pip install "rekernel[taichi]"')
    assert len(result.stderr.splitlines()) == 1
    assert "ran C++ v4 flower = v2" in result.stdout
    assert "Taichi" not in result.stdout
    assert [line.count(" ms") for line in table(result.stdout)] == [1] * ACTS
    assert len(panels(tmp_path / "s.png", 1)[0]) == ACTS


def test_without_a_compiler_the_half_in_taichi_runs_alone_and_says_so(tmp_path):
    pytest.importorskip("taichi")
    result = played_by("-c", without(), cwd=tmp_path, REKERNEL_CXX="/nowhere/g++")
    assert result.returncode == 0, result.stderr
    assert result.stderr.startswith("The C++ half needs a C++ compiler: ")
    assert "/nowhere/g++" in result.stderr
    assert "ran Taichi v4 flower = v2" in result.stdout
    assert "C++" not in result.stdout
    with Image.open(tmp_path / "s.png") as sheet:
        assert sheet.height == picture._HEAD + picture._LABEL + PANEL + picture._FOOT


def test_without_both_there_is_nothing_to_show(tmp_path):
    result = played_by("-c", without("taichi"), cwd=tmp_path, REKERNEL_CXX="/nowhere/g++")
    assert result.returncode == 2
    assert result.stdout == ""
    assert "The Taichi half needs" in result.stderr
    assert "The C++ half needs" in result.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is sent as SIGINT")
def test_ctrl_c_leaves_the_picture_of_what_there_is(tmp_path):
    pytest.importorskip("taichi")
    command = [sys.executable, "-u", "-m", "rekernel", "demo", "--size", "32", "--steps", "60000"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while "Act 2" not in (line := process.stdout.readline()):
            assert line, "the demo ended before its second act"
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    assert "Stopped" in output
    assert "Picture: gray_scott.png" in output
    with Image.open(tmp_path / "gray_scott.png") as strip:
        assert 2 * picture._MARGIN + PANEL <= strip.width < 5 * PANEL


def test_without_its_packages_the_demo_names_the_extra(tmp_path):
    result = played_by("-c", without("rich", "PIL"), cwd=tmp_path)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr == 'rekernel demo needs rich, pillow: pip install "rekernel[demo]"\n'


def test_a_place_that_cannot_hold_the_picture_is_told_before_the_run(tmp_path, capsys):
    (tmp_path / "file").touch()
    for out in (tmp_path, tmp_path / "file" / "strip.png"):
        assert main(["demo", "--out", str(out)]) == 2
        assert f"cannot write {out}: " in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["nonsense"], ["demo", "--size", "100"], ["demo", "--steps", "few"]])
def test_a_call_that_makes_no_sense_prints_how_to_call_it_and_exits_with_2(arguments, capsys):
    try:
        status = main(arguments)
    except SystemExit as stop:
        status = stop.code
    shown = capsys.readouterr()
    assert status == 2
    assert shown.out == ""
    assert shown.err.startswith("usage: ")
    assert ("options:" in shown.err) == (not arguments), "all of the help where nothing was asked for only"


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("rekernel ")


def test_help_needs_none_of_the_extras(tmp_path):
    code = (
        "import sys; from rekernel.__main__ import main\n"
        "try: main(['demo', '--help'])\n"
        "finally: print(sorted({'taichi', 'rich', 'PIL'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert result.stdout.splitlines()[-1] == "[]"


def test_an_edit_that_does_not_fit_the_text_is_an_error():
    with pytest.raises(ValueError, match="found 0 times"):
        gray_scott.edited("a = 1", (("b", "c"),))
    with pytest.raises(ValueError, match="found 2 times"):
        gray_scott.edited("a = a", (("a", "b"),))


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_every_edit_of_the_acts_fits_its_text(text):
    now = text.sized(64)
    for act in gray_scott.ACTS:
        if act.edit:
            new = gray_scott.edited(now, text.edits[act.edit])
            assert gray_scott.changed_lines(now, new)
            now = now if act.move is gray_scott.Move.BREAK else new
    assert {act.edit for act in gray_scott.ACTS if act.edit} == set(text.edits)


@pytest.mark.parametrize(
    ("value", "says", "close"),
    [
        (1.0, "bit for bit", True),
        (1.000001, "within 1e-06", True),
        (1.1, "within 0.1", False),
        (np.nan, "within nan", False),
    ],
)
def test_states_are_compared_bit_by_bit_and_as_numbers(value, says, close):
    one = np.ones((2, 3, 3), np.float32), np.ones((2, 3, 3), np.float32)
    other = one[0].copy(), one[1].copy()
    other[1][0, 1, 2] = value
    other[1][1] = 7  # the older buffer, which does not count
    found = results.agreement(one, other)
    assert (str(found), found.close, found.size, found.different) == (says, close, 18, int(value != 1))


def test_the_colour_map_goes_from_dark_to_light():
    lightness = picture.colours() @ np.array([0.2126, 0.7152, 0.0722])
    assert (np.diff(lightness) >= -0.5).all()  # half a step of eight bits is rounding
    assert lightness[0] < 15
    assert lightness[-1] > 240


def test_a_field_that_blew_up_is_still_painted():
    field = np.array([[np.nan, np.inf], [-np.inf, 1e30]], dtype=np.float32)
    assert picture.paint(field).shape == (2, 2, 3)


def test_a_sheet_of_nothing_is_an_error():
    for strips in ([], [picture.Strip("C++", "", [])]):
        with pytest.raises(ValueError, match="at least one panel"):
            picture.sheet(strips, "nothing")


@pytest.mark.parametrize("size", [32, 512])
@pytest.mark.parametrize(("columns", "rows"), [(40, 6), (110, 26), (8, 40)])
def test_the_window_fits_where_it_is_put(size, columns, rows):
    lines = window.window(np.ones((size, size), dtype=np.float32), columns, rows)
    assert 0 < len(lines) <= rows
    assert all(line.plain == "\u28ff" * columns for line in lines)


def test_a_terminal_shows_the_progress_and_the_window():
    screen = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    console = Console(file=screen, force_terminal=True, width=100, height=40, highlight=False)
    with show.Show(console).running("v1 coral", 100) as advance:
        advance(50, 1234.0, lambda: np.ones((64, 64), dtype=np.float32))
    screen.flush()
    drawn = screen.buffer.getvalue().decode()
    assert "50 / 100 steps" in drawn
    assert "1,234 steps/s" in drawn
    assert "\u28ff" in drawn


@pytest.mark.parametrize("name", ["__main__", "demo.gray_scott", "demo.picture", "demo.results", "demo.window"])
def test_examples_in_docstrings(name):
    result = doctest.testmod(importlib.import_module(f"rekernel.{name}"))
    assert result.attempted > 0
    assert result.failed == 0
