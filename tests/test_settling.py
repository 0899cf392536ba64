"""When a changed file is built, swapped in, complained about: the decisions alone, with clock readings as numbers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rekernel.settling import DROP, NOTHING, START, Settling, Times, same

OLD, HALF, NEW, NONE = ({"k.cpp": text} for text in ("old", "half", "new", None))


def settling():
    return Settling(OLD, 0.0, Times(swap=0.08, error=0.3))


def test_nothing_changed_nothing_happens():
    text = settling()
    assert [text.look(OLD, now) for now in (0.0, 1.0, 2.0)] == [NOTHING] * 3


def test_a_change_is_built_at_once_and_shown_when_it_was_quiet_for_a_while():
    text = settling()
    assert text.look(NEW, 10.0) == START
    assert text.look(NEW, 10.05) == NOTHING
    assert text.left(10.0) == 0.08 + 10.0 - 10.0
    assert 0.029 < text.left(10.05) < 0.031
    assert text.left(10.09) == 0.0
    assert 0.2 < text.left(10.09, error=True) < 0.22
    text.show(NEW)
    assert (text.look(NEW, 11.0), text.tried, text.failed) == (NOTHING, None, False)


def test_a_second_change_takes_the_place_of_the_first_and_the_clock_begins_anew():
    text = settling()
    assert (text.look(HALF, 10.0), text.look(NEW, 10.05)) == (START, START)
    assert text.tried == NEW
    assert text.left(10.1) > 0
    assert text.left(10.14) == 0.0


def test_back_to_what_serves_drops_the_build():
    text = settling()
    assert (text.look(NEW, 10.0), text.look(OLD, 10.05)) == (START, DROP)
    assert (text.tried, text.look(OLD, 10.1)) == (None, NOTHING)


def test_a_file_that_is_not_whole_waits_as_long_as_an_error():
    text = settling()
    assert text.look(NONE, 10.0, whole=False) == NOTHING
    assert text.look(NONE, 10.29, whole=False) == NOTHING
    assert text.look(NONE, 10.31, whole=False) == START


def test_a_file_that_was_empty_for_a_moment_is_built_at_once_when_it_is_filled():
    text = settling()
    assert text.look({"k.cpp": ""}, 10.0, whole=False) == NOTHING
    assert text.look(NEW, 10.02) == START
    assert text.left(10.11) == 0.0


def test_a_build_is_dropped_when_its_file_is_emptied():
    text = settling()
    assert (text.look(NEW, 10.0), text.look(NONE, 10.01, whole=False)) == (START, DROP)


def test_a_content_whose_error_was_told_is_quiet_until_it_changes():
    text = settling()
    text.look(HALF, 10.0)
    text.show(HALF, failed=True)
    assert (text.look(HALF, 20.0), text.failed) == (NOTHING, True)
    assert text.look(OLD, 21.0) == START  # what serves, but an error is to be taken back
    text.show(OLD)
    assert not text.failed


def test_only_files_that_both_contents_know_are_compared():
    text = settling()
    assert text.look({"k.cpp": "old", "new.hpp": 1}, 1.0) == NOTHING
    text.show({"k.cpp": "old", "new.hpp": 1})
    assert text.look({"k.cpp": "old", "new.hpp": 2}, 2.0) == START
    assert same({}, NEW)


STEPS = st.lists(st.tuples(st.sampled_from([OLD, HALF, NEW, NONE]), st.floats(0.001, 0.5)), max_size=30)


@given(STEPS)
def test_what_may_be_shown_is_what_was_last_seen_and_was_quiet(steps):
    text, now, changed, last = settling(), 0.0, 0.0, OLD
    for content, wait in steps:
        now += wait
        if content is not last:
            changed, last = now, content
        decision = text.look(content, now, whole=content is not NONE)
        assert (decision == START) <= (text.tried is content)
        assert (text.tried is None) or text.tried == content
        assert (text.left(now) == 0) == (now >= changed + 0.08 or changed + 0.08 - now <= 0)
        if text.tried is not None and text.left(now) == 0:
            text.show(content)
    # Whatever came before: in the end the last content is built, unless it serves.
    now += 1
    text.look(last, now, whole=last is not NONE)
    assert same(text.shown, last) or text.tried == last


@given(STEPS)
def test_a_content_is_started_again_only_after_another_one_or_a_drop(steps):
    text, now, running = settling(), 0.0, None
    for content, wait in steps:
        now += wait
        decision = text.look(content, now, whole=content is not NONE)
        if decision == START:
            assert content is not running
            running = content
        elif decision == DROP:
            assert running is not None
            running = None
        assert text.tried is running
