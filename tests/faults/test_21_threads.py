"""Row 21: threads load, replace, call and unload at once: every result was current at some time during its call."""

from __future__ import annotations

import os

import pytest

from support import START, lines_of, run_python

SECONDS = float(os.environ.get("REKERNEL_STRESS_SECONDS", "30"))

STRESS = """
import faulthandler, random, sys, threading, time
SECONDS = float(sys.argv[1])
faulthandler.dump_traceback_later(SECONDS + 90, exit=True)
ti.sync()  # Taichi wants its first kernel on the thread of ti.init
REMOVED = "removed"
stop = time.monotonic() + SECONDS

class Story:
    '''What one thread did to one id, step by step: (label, began, ended). Only that thread changes the id.'''

    def __init__(self, kernel_id):
        self.kernel_id, self.steps, self.handle = kernel_id, [], None

    def step(self, label, work):
        entry = [label, time.monotonic(), None]
        self.steps.append(entry)
        work()
        entry[2] = time.monotonic()

    def allows(self, label, began, ended):
        '''Whether the label was current between the two: its step had begun, the next had not ended before.'''
        steps = list(self.steps)
        for place, (name, start, _) in enumerate(steps):
            if name == label and start <= ended:
                following = steps[place + 1][2] if place + 1 < len(steps) else None
                if following is None or following >= began:
                    return True
        return False

problems, counts = [], []
def noted(work):
    def run(*arguments):
        try:
            work(*arguments)
        except BaseException as error:
            import traceback
            problems.append(traceback.format_exc())
    return run
"""

TAICHI = (
    STRESS
    + """
def text(value):
    return f"@ti.kernel\\ndef f(x: ti.types.ndarray(ndim=1)):\\n    for i in x:\\n        x[i] = {value}\\n"

stories = [Story(f"id{n}") for n in range(4)]
for story in stories:
    story.step(0, lambda: loader.load(text(0), story.kernel_id))
    story.handle = loader[story.kernel_id].f

@noted
def write(story, seed):
    choose, value = random.Random(seed), 0
    while time.monotonic() < stop:
        what = choose.random()
        if what < 0.15:
            story.step(REMOVED, lambda: loader.unload(story.kernel_id))
        elif what < 0.25:
            try:
                loader.load(text("nonsense"), story.kernel_id, check=(np.zeros(1, np.float32),))
                problems.append("a broken text was loaded")
            except rekernel.KernelSourceError:
                continue
        value += 1
        story.step(value % 100, lambda: loader.load(text(value % 100), story.kernel_id))

@noted
def read(seed):
    choose, calls = random.Random(seed), 0
    while time.monotonic() < stop:
        story = choose.choice(stories)
        x = np.full(choose.choice([1, 3]), -1, choose.choice([np.float32, np.float64, np.int32]))
        began = time.monotonic()
        try:
            story.handle(x)
            label = int(x[0])
        except rekernel.KernelRemovedError:
            label = REMOVED
        ended = time.monotonic()
        calls += 1
        if not (x == x[0]).all() or not story.allows(label, began, ended):
            problems.append(f"{story.kernel_id}: {label} between {began} and {ended}; {story.steps[-6:]}")
    counts.append(calls)

threads = [threading.Thread(target=write, args=(story, n)) for n, story in enumerate(stories)]
threads += [threading.Thread(target=read, args=(n,)) for n in range(12)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("\\n".join(problems[:3]), file=sys.stderr)
print(len(problems), min(counts) > 0, all(len(story.steps) > 3 for story in stories))
loader.cleanup_all()
loader.load(text(5), "after").f(x := np.zeros(1, np.float32))
print(x[0])
"""
)


@pytest.mark.slow
def test_every_result_was_current_during_its_call():
    printed = lines_of(run_python(START + TAICHI, str(SECONDS), timeout=SECONDS + 120))
    assert printed == ["0 True True", "5.0"]


TOY = (
    """
import numpy as np, rekernel
from rekernel.languages import register
from toy import Toy
class ti: sync = staticmethod(lambda: None)
register(Toy())
loader = rekernel.KernelLoader()
"""
    + STRESS
    + """
sys.setswitchinterval(1e-5)
stories = [Story(f"id{n}") for n in range(4)]
def load(story, value):
    loader.load(f"f() = {value}\\ng() = {value}", story.kernel_id, language="toy")
for story in stories:
    story.step(0, lambda: load(story, 0))
    story.handle = loader[story.kernel_id].f, loader[story.kernel_id].g

@noted
def write(story, seed):
    choose, value = random.Random(seed), 0
    while time.monotonic() < stop:
        what = choose.random()
        if what < 0.2:
            story.step(REMOVED, lambda: loader.unload(story.kernel_id))
        value += 1
        story.step(value, lambda: load(story, value))
        time.sleep(0)

@noted
def read(seed):
    choose, calls = random.Random(seed), 0
    while time.monotonic() < stop:
        story = choose.choice(stories)
        began = time.monotonic()
        try:
            label = story.handle[0]()
        except rekernel.KernelRemovedError:
            label = REMOVED
        ended = time.monotonic()
        calls += 1
        if calls % 50 == 0 and not story.allows(label, began, ended):
            problems.append(f"{story.kernel_id}: {label} between {began} and {ended}; {story.steps[-6:]}")
        if calls % 20 == 0:
            with loader.hold():  # a held time step is whole
                try:
                    pair = {story.handle[0](), story.handle[1](), story.handle[0]()}
                except rekernel.KernelRemovedError:
                    continue
                if len(pair) != 1:
                    problems.append(f"torn: {pair}")
        if calls % 500 == 0:
            repr(loader), loader.stats(), list(loader), dir(loader)
            for kernel_id in loader:
                try:
                    repr(loader[kernel_id]), loader.info(kernel_id), loader.history(kernel_id)
                except (rekernel.KernelNotFoundError, rekernel.KernelRemovedError):
                    pass
    counts.append(calls)

threads = [threading.Thread(target=write, args=(story, n)) for n, story in enumerate(stories)]
threads += [threading.Thread(target=read, args=(n,)) for n in range(12)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("\\n".join(problems[:3]), file=sys.stderr)
print(len(problems), min(counts) > 0, all(len(story.steps) > 20 for story in stories))
"""
)


def test_the_loader_alone_under_a_short_switch_interval():
    assert lines_of(run_python(TOY, str(min(SECONDS, 6)), timeout=120)) == ["0 True True"]


def test_the_same_text_from_many_threads_is_compiled_once():
    program = (
        START
        + """
import threading
ti.sync()
barrier = threading.Barrier(16)
results, problems = [], []
def work():
    try:
        barrier.wait()
        f = loader.load(times(3), "k").f
        results.append((f(1), f(2)))
    except BaseException as error:
        problems.append(repr(error))
threads = [threading.Thread(target=work) for _ in range(16)]
for thread in threads: thread.start()
for thread in threads: thread.join(60)
stats = loader.stats()
print(problems, set(results), stats.loads, loader.info("k").version, stats.languages["taichi"]["compiled"])
"""
    )
    assert lines_of(run_python(program)) == ["[] {(3.0, 6.0)} 1 1 2"]


def test_helpers_and_users_from_many_threads():
    program = (
        START
        + """
import threading
ti.sync()
helper = loader.load("@ti.func\\ndef h(x):\\n    return x * 1\\n", "helper")
user = "@ti.kernel\\ndef f(x: ti.types.ndarray(ndim=1)):\\n    for i in x:\\n        x[i] = helper.h({})\\n"
for n in range(3):
    loader.load(user.format(n + 1), f"user{n}", namespace={"helper": helper})
handles = [loader[f"user{n}"].f for n in range(3)]
problems, done = [], threading.Event()
def replace():
    for factor in range(2, 14):
        loader.load(f"@ti.func\\ndef h(x):\\n    return x * {factor}\\n", "helper")
    done.set()
def edit(n):
    turn = 0
    while not done.is_set():
        turn += 1
        loader.load(user.format(n + 1) + f"# {turn}\\n", f"user{n}", namespace={"helper": helper})
def call():
    seen = 0
    while not done.is_set():
        with loader.hold():
            values = []
            for n, f in enumerate(handles):
                x = np.zeros(1, np.float32)
                f(x)
                values.append(x[0] / (n + 1))
            if len(set(values)) != 1 or values[0] < seen:
                problems.append(values)
            seen = values[0]
def guarded(work, *arguments):
    try:
        work(*arguments)
    except BaseException as error:
        problems.append(repr(error)); done.set()
jobs = [(replace,), (edit, 0), (edit, 1), (call,), (call,)]
threads = [threading.Thread(target=guarded, args=job) for job in jobs]
for thread in threads: thread.start()
for thread in threads: thread.join(100)
x = np.zeros(1, np.float32)
handles[2](x)
print(problems[:3], x[0], any(thread.is_alive() for thread in threads))
"""
    )
    assert lines_of(run_python(program)) == ["[] 39.0 False"]


def test_a_load_on_another_thread_before_the_first_kernel_says_what_to_do():
    program = (
        START
        + """
import threading
def work():
    try:
        print(loader.load(times(3), "k").f(1))
    except RuntimeError as error:
        print("ti.sync()" in str(error))
thread = threading.Thread(target=work)
thread.start()
thread.join()
ti.sync()
print(loader.load(times(3), "k").f(1))
"""
    )
    printed = [line for line in lines_of(run_python(program)) if line]
    assert printed in (["True", "3.0"], ["3.0", "3.0"])
