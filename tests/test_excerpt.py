"""The user's own lines around an error."""

from __future__ import annotations

import pytest

from rekernel import KernelSourceError
from rekernel.errors import Diagnostic
from rekernel.excerpt import excerpt, footer, headline, line_of, place, render, render_html, split_lines

TEXT = "one\ntwo\nthree\nfour"


def error(line: int | None, column: int | None = None, end: int | None = None, **more: object) -> KernelSourceError:
    options: dict[str, object] = {"source": TEXT, "kernel_id": "heat", "version": 4, "language": "cpp", **more}
    return KernelSourceError("bad", line=line, column=column, end_column=end, **options)  # type: ignore[arg-type]


# --- lines -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_end_as_compilers_count_them(end: str) -> None:
    assert split_lines(f"a{end}b{end}") == ["a", "b", ""]


@pytest.mark.parametrize("character", ["\f", "\v", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"])
def test_other_separators_do_not_end_a_line(character: str) -> None:
    assert split_lines(f"a{character}b") == [f"a{character}b"]


@pytest.mark.parametrize(("line", "expected"), [(10, "one"), (13, "four"), (9, None), (14, None), (None, None)])
def test_a_line_is_found_by_the_number_the_user_knows(line: int | None, expected: str | None) -> None:
    assert line_of(TEXT, 10, line) == expected


# --- the first line --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (error(3, 21), "line 3, column 21"),
        (error(3), "line 3"),
        (error(3, 21, filename="heat.cpp"), "heat.cpp:3:21"),
        (error(3, filename="heat.cpp"), "heat.cpp:3"),
        (error(None), ""),
        (error(None, filename="heat.cpp"), ""),
    ],
)
def test_the_place_is_as_the_user_would_look_it_up(made: KernelSourceError, expected: str) -> None:
    assert place(made) == expected


def test_the_headline_has_id_version_language_place_and_message() -> None:
    assert headline(error(3, 21)) == "heat v4 (cpp), line 3, column 21: bad"


def test_the_headline_without_a_place_stays_readable() -> None:
    assert headline(error(None)) == "heat v4 (cpp): bad"


# --- the lines below -------------------------------------------------------------------------------------------


def test_the_line_is_shown_between_its_neighbours() -> None:
    assert excerpt(error(2)) == ["  1 | one", "> 2 | two", "  3 | three"]


def test_the_first_and_last_line_have_one_neighbour() -> None:
    assert excerpt(error(1)) == ["> 1 | one", "  2 | two"]
    assert excerpt(error(4)) == ["  3 | three", "> 4 | four"]


def test_empty_neighbours_are_left_out() -> None:
    assert excerpt(error(2, source="\ntwo\n  ")) == ["> 2 | two"]


def test_the_wrong_part_is_marked() -> None:
    assert excerpt(error(3, 2, 5))[1:3] == ["> 3 | three", "    |  ^^^"]


def test_without_an_end_one_column_is_marked() -> None:
    assert excerpt(error(3, 2))[2] == "    |  ^"


def test_the_mark_ends_with_the_line() -> None:
    assert excerpt(error(3, 4, 99))[2] == "    |    ^^"


def test_a_column_past_the_end_is_still_marked() -> None:
    assert excerpt(error(3, 6))[2] == "    |      ^"


def test_numbers_are_aligned_across_a_power_of_ten() -> None:
    assert excerpt(error(9, 1, first_line=8)) == ["   8 | one", ">  9 | two", "     | ^", "  10 | three"]


def test_a_tab_is_one_column_wide() -> None:
    assert excerpt(error(1, 2, 3, source="\tx")) == ["> 1 |  x", "    |  ^"]


def test_control_characters_cannot_reach_the_terminal() -> None:
    assert excerpt(error(1, source="a\x1b[31mb")) == ["> 1 | a\N{REPLACEMENT CHARACTER}[31mb"]


def test_a_very_long_line_is_cut() -> None:
    (row,) = excerpt(error(1, source="x" * 5000))
    assert len(row) < 200
    assert row.endswith("...")


def test_a_mark_beyond_the_cut_is_left_out() -> None:
    assert len(excerpt(error(1, 4000, source="x" * 5000))) == 1


@pytest.mark.parametrize("line", [None, 0, -3, 5])
def test_a_place_outside_the_text_shows_no_lines(line: int | None) -> None:
    assert excerpt(error(line)) == []


# --- the last line ---------------------------------------------------------------------------------------------


def test_the_footer_says_what_keeps_running() -> None:
    assert footer(error(1, keeps=3)) == "heat v3 keeps running."


def test_the_footer_counts_further_errors_and_says_where_they_are() -> None:
    one, two = Diagnostic("a"), Diagnostic("b")
    assert footer(error(1, diagnostics=[one, two])) == "1 more error; all of it: error.output, error.command"
    assert footer(error(1, diagnostics=[one, two, two])).startswith("2 more errors;")


def test_notes_and_warnings_are_no_further_errors() -> None:
    made = [Diagnostic("a"), Diagnostic("b", severity="note"), Diagnostic("c", severity="warning")]
    assert footer(error(1, diagnostics=made)) == ""


def test_a_block_with_nothing_to_show_is_one_line() -> None:
    assert render(error(None)) == "heat v4 (cpp): bad"


# --- notebooks -------------------------------------------------------------------------------------------------


def test_html_escapes_whatever_the_user_wrote() -> None:
    made = error(1, source="a < b && <script>", kernel_id="<i>", keeps=3)
    html = render_html(made)
    assert "<script>" not in html
    assert "<i>" not in html
    assert "a &lt; b &amp;&amp; &lt;script&gt;" in html


def test_html_shows_the_words_of_the_plain_block() -> None:
    html = render_html(error(2, 1, keeps=3))
    assert all(words in html for words in ("heat v4 (cpp), line 2, column 1: bad", "two", "heat v3 keeps running."))
