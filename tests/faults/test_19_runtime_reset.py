"""Row 19: ``ti.init`` or ``ti.reset`` under live handles: the text runs again, or one clear error; never a crash."""

from __future__ import annotations

import pytest

from support import START, lines_of, run_python

BEGIN = (
    START
    + """
def again(**settings):
    ti.init(arch=ti.cpu, offline_cache=False, log_level=ti.ERROR, **settings)

def attempt(work):
    try:
        print("->", work())
    except RuntimeError as error:
        print(type(error).__name__, "ti.init" in str(error))

FIELD = "x = ti.field(ti.f32, 4)\\n@ti.kernel\\ndef put(v: ti.f32):\\n    for i in x:\\n        x[i] = v\\n" \\
        "@ti.kernel\\ndef total() -> ti.f32:\\n    s = 0.0\\n    for i in x:\\n        s += x[i]\\n    return s\\n"
"""
)


def run(body):
    return lines_of(run_python(BEGIN + body))


def test_kernels_and_their_fields_are_made_again():
    assert run("""
module = loader.load(FIELD, "k")
put, total, pinned = module.put, module.total, module.total.pinned()
put(2.0)
print(total(), pinned())
for _ in range(3):
    again()
    other = ti.field(ti.f32, 100)
    other.fill(7)
    print(total(), module.x.shape, pinned())
    put(3.0)
    print(total(), module.x[0], other.to_numpy().sum())
""") == ["8.0 8.0", *["0.0 (4,) 0.0", "12.0 3.0 700.0"] * 3]


def test_never_called_before_the_reset():
    assert run("""
module = loader.load(FIELD, "k")
again()
other = ti.field(ti.f32, 100)
other.fill(7)
module.put(3.0)
print(module.total(), other.to_numpy().sum(), loader.info("k").version)
""") == ["12.0 700.0 1"]


@pytest.mark.parametrize("settings", ["default_fp=ti.f64", "debug=True", "cpu_max_num_threads=1", "default_ip=ti.i64"])
def test_other_settings(settings):
    assert run(f"""
module = loader.load(FIELD, "k")
module.put(2.0)
again({settings})
module.put(3.0)
print(module.total())
loader.load(FIELD.replace("= v", "= v + 1"), "k")
module.put(3.0)
print(module.total())
""") == ["12.0", "16.0"]


def test_default_types_follow_the_running_program():
    assert run("""
text = "@ti.kernel\\ndef f() -> ti.f64:\\n    x = 0.1\\n    return x\\n"
f = loader.load(text, "k").f
print(f() == 0.1)
again(default_fp=ti.f64)
print(f() == 0.1)
""") == ["False", "True"]


def test_after_a_bare_reset_one_clear_error():
    assert run("""
module = loader.load(FIELD, "k")
module.put(2.0)
put = module.put
ti.reset()
attempt(lambda: put(1.0))
attempt(lambda: module.put(1.0))
again()
put(1.0)
print(module.total())
""") == ["RuntimeError True", "RuntimeError True", "4.0"]


def test_before_any_init_one_clear_error():
    program = (
        BEGIN.replace("ti.init(arch=ti.cpu, offline_cache=False, log_level=ti.ERROR)\nloader", "loader")
        + """
module = loader.load(times(3), "k")
attempt(lambda: module.f(1))
again()
print(module.f(1))
"""
    )
    assert lines_of(run_python(program)) == ["RuntimeError True", "3.0"]


def test_fields_and_objects_of_the_dead_program_are_refused_or_made_again():
    assert run("""
text = '''
@ti.data_oriented
class C:
    def __init__(self):
        self.x = ti.field(ti.f32, 3)
    @ti.kernel
    def put(self):
        for i in self.x:
            self.x[i] = 5
'''
module = loader.load(text, "k")
old = module.C()
old.put()
again()
other = ti.field(ti.f32, 3)
other.fill(1)
try:
    old.put()
    print("ran", other.to_numpy().sum())
except RuntimeError as error:
    print("refused", other.to_numpy().sum())
new = module.C()
new.put()
print(new.x[0], other.to_numpy().sum())
""") == ["refused 3.0", "5.0 3.0"]


def test_a_field_of_the_namespace_that_is_dead_is_named():
    assert run("""
x = ti.field(ti.f32, 3)
module = loader.load("@ti.kernel\\ndef f():\\n    x[0] = 4\\n", "k", namespace=globals())
module.f()
again()
attempt(lambda: module.f())
x = ti.field(ti.f32, 3)
module.f()
print(x[0])
""") == ["RuntimeError True", "4.0"]


def test_helpers_and_their_fields_are_made_again_together():
    assert run("""
helper = loader.load("s = ti.field(ti.f32, ())\\n@ti.func\\ndef h(v):\\n    return s[None] + v\\n"
                     "@ti.kernel\\ndef put(v: ti.f32):\\n    s[None] = v\\n", "helper")
user = loader.load("@ti.kernel\\ndef f(v: ti.f32) -> ti.f32:\\n    return h(v) + helper.s[None]\\n", "user",
                   namespace={"h": helper.h, "helper": helper})
helper.put(2.0)
print(user.f(1.0))
loader.load(loader.info("helper").source + "# edited\\n", "helper")
print(user.f(1.0))
for order in (0, 1):
    again()
    if order:
        helper.put(3.0)
        print(user.f(1.0))
    else:
        print(user.f(1.0))
        helper.put(3.0)
        print(user.f(1.0))
""") == ["5.0", "5.0", "1.0", "7.0", "7.0"]


def test_reloading_rolling_back_and_failing_after_a_reset():
    assert run("""
module = loader.load(times(3), "k")
loader.load(times(4), "k")
print(module.f(1))
again()
loader.rollback("k")
print(module.f(1))
again()
try:
    loader.load(times("nonsense") + times(1, "g") + "nonsense\\n", "k")
except rekernel.KernelSourceError as error:
    print(error.line)
print(module.f(1), module.f(2))
again()
loader.load(times(3), "k")
print(module.f(1), loader.info("k").version)
loader.unload("k")
again()
loader.load(times(5), "k")
print(module.f(1))
""") == ["4.0", "3.0", "7", "3.0 6.0", "3.0 3", "5.0"]


def test_reset_by_the_loader():
    assert run("""
module = loader.load(FIELD, "k")
module.put(2.0)
loader.cleanup_all(reset_taichi=True)
try:
    module.put(1.0)
except rekernel.KernelRemovedError:
    print("removed")
again()
loader.load(FIELD, "k")
module.put(1.0)
print(module.total())
""") == ["removed", "4.0"]


def test_an_old_vulkan_or_cuda_request_falls_back_and_works():
    assert run("""
f = loader.load(times(3), "k").f
f(1)
ti.init(arch=[ti.cuda, ti.cpu], offline_cache=False, log_level=ti.ERROR)
print(f(1), f(2))
""") == ["3.0 6.0"]


def test_many_resets_and_reloads_in_turn():
    assert run("""
module = loader.load(FIELD, "k")
for n in range(6):
    again()
    if n % 2:
        loader.load(FIELD.replace("= v", f"= v + {n}"), "k")
    module.put(1.0)
print(module.total(), loader.info("k").version)
""") == ["24.0 4"]
