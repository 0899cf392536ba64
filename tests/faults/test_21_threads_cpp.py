"""Row 21 for C++ texts: threads load, replace, call, unload and build in the background at once."""

from __future__ import annotations

import os

from cppkit import START, needs_cpp
from support import run_python

pytestmark = needs_cpp

SECONDS = float(os.environ.get("REKERNEL_STRESS_SECONDS", "6"))

STRESS = (
    START
    + """
import faulthandler, random, traceback
SECONDS = float(sys.argv[2])
faulthandler.dump_traceback_later(SECONDS + 60, exit=True)
stop = time.monotonic() + SECONDS
REMOVED, VALUES = "removed", 6

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
        steps = list(self.steps)
        for place, (name, start, _) in enumerate(steps):
            if name == label and start <= ended:
                following = steps[place + 1][2] if place + 1 < len(steps) else None
                if following is None or following >= began:
                    return True
        return False

problems, counts = [], {}
def noted(work):
    def run(*arguments):
        try: work(*arguments)
        except BaseException: problems.append(traceback.format_exc())
    return run

def text(value):
    return (f"static int value() {{ return {value}; }}\\n"
            "void f(rekernel::Array<int, 1> x) { for (int64_t i = 0; i < x.size(); ++i) x[i] = value(); }\\n"
            "int64_t g(const int *x) { return value() + 0 * x[0]; }\\n")

stories = [Story(f"id{n}") for n in range(3)]
for story in stories:
    story.step(0, lambda: loader.load(text(0), story.kernel_id, optlevel="0"))
    story.handle = loader[story.kernel_id]

@noted
def write(story, seed):
    choose = random.Random(seed)
    live = 0
    while time.monotonic() < stop:
        what, value = choose.random(), choose.randrange(VALUES)
        if what < 0.1:
            if live is not REMOVED:
                story.step(REMOVED, lambda: loader.unload(story.kernel_id))
                live = REMOVED
        elif what < 0.2:
            try: loader.load(text("nonsense"), story.kernel_id)
            except rekernel.KernelSourceError: pass
        elif what < 0.4:
            story.step(value, lambda: (loader.load(text(value), story.kernel_id, background=True),
                                       loader.wait(story.kernel_id)))
            live = value
        else:
            story.step(value, lambda: loader.load(text(value), story.kernel_id))
            live = value
        counts["writes"] = counts.get("writes", 0) + 1

@noted
def read(seed):
    choose, small, large = random.Random(seed), np.zeros(3, "i4"), np.zeros(20_000, "i4")
    while time.monotonic() < stop:
        story = choose.choice(stories)
        x = choose.choice((small, large))
        began = time.monotonic()
        try:
            story.handle.f(x)
            label = int(x[0])
            assert (x == label).all(), "half of one version, half of another"
        except rekernel.KernelRemovedError:
            label = REMOVED
        ended = time.monotonic()
        assert story.allows(label, began, ended), (story.kernel_id, label, began, ended, story.steps[-4:])
        with loader.hold():
            try: first, second = story.handle.g(small), story.handle.g(small)
            except rekernel.KernelRemovedError: first = second = None
            assert first == second, (first, second)
        counts["reads"] = counts.get("reads", 0) + 1

threads = [threading.Thread(target=write, args=(story, n)) for n, story in enumerate(stories)]
threads += [threading.Thread(target=read, args=(n,)) for n in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join(SECONDS + 50)
loader.wait()
stats = loader.jit.objcache.stats
print(problems[:2], any(t.is_alive() for t in threads), min(counts.values()) > 10, stats.published <= 2 * VALUES, stats.damaged)
"""
)


def test_every_result_was_current_during_its_call(tmp_path):
    said = run_python(STRESS, str(tmp_path / "cache"), str(SECONDS), timeout=SECONDS + 80).stdout
    assert said == "[] False True True 0\n"


def test_sixteen_threads_and_one_new_text_run_one_compiler(tmp_path):
    program = """
from pathlib import Path
shim = Shim(Path(sys.argv[1]) / "bin")
loaders = [load_with(sys.argv[1] + "/cache", shim.info) for _ in range(2)]
barrier, answers = threading.Barrier(16), []
def work(n):
    barrier.wait()
    answers.append(loaders[n % 2].load(answer(7), "k" if n % 3 else f"id{n}").f())
threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(set(answers), len(answers), len(shim.calls()), {one.info("k").version for one in loaders})
"""
    (tmp_path / "x").mkdir()
    said = run_python(START + program, str(tmp_path / "x")).stdout
    assert said == "{7} 16 1 {1}\n"
