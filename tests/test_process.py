"""Running programs in work directories: output, interrupts, and that nothing stays behind."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import sys
from pathlib import Path

import pytest

from rekernel import process, workdirs
from rekernel.process import run, working
from support import run_python


@pytest.fixture
def root(tmp_path: Path) -> Path:
    directory = tmp_path / "a b" / "ü\"'$x"
    directory.mkdir(parents=True, mode=0o700)
    return directory


def test_output_exit_code_and_environment(root: Path) -> None:
    with working(root) as place:
        code = "import os,sys; print(os.environ['LC_ALL'], os.environ['TMPDIR']==os.getcwd(), file=sys.stderr); exit(3)"
        finished = run([sys.executable, "-c", code], place)
    assert finished.returncode == 3
    assert finished.output == "C True\n"
    assert finished.command[0] == sys.executable


def test_standard_input_is_closed(root: Path) -> None:
    with working(root) as place:
        assert run(["cat"], place).output == ""


def test_a_program_that_is_not_there_is_an_os_error(root: Path) -> None:
    with working(root) as place, pytest.raises(FileNotFoundError):
        run(["/nowhere/g++"], place)


def test_relative_search_paths_mean_what_they_meant(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    monkeypatch.setenv("CPATH", "inc:/abs:")
    assert process.environment("/w")["CPATH"] == f"{root}/inc:/abs:{root}"


def test_a_work_directory_is_private_and_goes_away(root: Path) -> None:
    with working(root) as place:
        assert stat.S_IMODE(os.stat(place).st_mode) == 0o700
        assert Path(place).parent == root
        Path(place, "x").touch()
    assert os.listdir(root) == []


@pytest.mark.parametrize("kind", ["file", "foreign", "read-only"])
def test_where_no_directory_can_be_made_another_place_serves(root: Path, tmp_path: Path, kind: str) -> None:
    bad = tmp_path / "bad"
    if kind == "file":
        bad.touch()
    else:
        bad.mkdir()
        bad.chmod(0o777 if kind == "foreign" else 0o500)
    if kind == "read-only" and os.geteuid() == 0:
        pytest.skip("root writes everywhere")
    with working(bad) as place:
        assert not place.startswith(str(bad))
        assert stat.S_IMODE(os.stat(place).st_mode) == 0o700
    assert not os.path.exists(place)


def test_directories_of_dead_processes_are_removed_and_no_others(root: Path) -> None:
    pid, started, host = workdirs.mark().split("-")
    dead = [f"work-{pid}-1-{host}-0", f"work-{2**22 + 1}-5-{host}-0"]  # another start; beyond all numbers
    alive = [f"work-{pid}-{started}-{host}-ffff", "entry"]
    for name in dead + alive:
        (root / name / "sub").mkdir(parents=True)
    with working(root) as place:
        assert sorted(os.listdir(root)) == sorted([*alive, os.path.basename(place)])


def test_a_killed_process_leaves_nothing_after_the_next_start(root: Path) -> None:
    code = """
        import os, signal, sys
        from rekernel.process import working
        with working(sys.argv[1]) as place:
            open(place + "/unit.s", "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
    """
    run_python(code, str(root), returncode=-signal.SIGKILL)
    assert len(os.listdir(root)) == 1
    process._swept.clear()
    with working(root) as place:
        assert os.listdir(root) == [os.path.basename(place)]


INTERRUPTED = """
    import os, signal, sys
    from rekernel.process import run, working
    inner = 'echo $$ > "$2"; kill -$3 $4; exec sleep 1000'
    script = f"echo $$ > \\"$1\\"; sh -c '{inner}' x \\"$@\\"; echo never"
    if sys.argv[4] == "TERM":
        def leave(number, frame):
            raise SystemExit(7)
        signal.signal(signal.SIGTERM, leave)
    try:
        with working(sys.argv[1]) as place:
            run(["sh", "-c", script, "x", *sys.argv[2:5], str(os.getpid())], place)
    except KeyboardInterrupt:
        print("interrupted")
"""


@pytest.mark.parametrize(("name", "code"), [("INT", 0), ("TERM", 7)])
def test_an_interrupt_ends_the_whole_group_and_leaves_no_file(root: Path, tmp_path: Path, name: str, code: int) -> None:
    pids = [tmp_path / "outer", tmp_path / "inner"]
    done = run_python(INTERRUPTED, str(root), *map(str, pids), name, returncode=code, timeout=30)
    assert done.stdout == ("interrupted\n" if name == "INT" else "")
    assert os.listdir(root) == []
    outer, inner = (int(path.read_text()) for path in pids)
    assert gone(outer)
    assert gone(inner)


def gone(pid: int) -> bool:
    """Whether a process has ended; one that waits for its parent to notice has."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] in "ZX"
    except OSError:
        return True


def test_at_exit_threads_in_the_background_leave_neither_process_nor_file(root: Path, tmp_path: Path) -> None:
    code = """
        import sys, threading
        from rekernel.process import run, working
        def work():
            with working(sys.argv[1]) as place:
                run(["sh", "-c", 'echo $$ > "$1"; exec sleep 1000', "x", sys.argv[2]], place)
        import os
        os.mkfifo(sys.argv[2])
        threading.Thread(target=work, daemon=True).start()
        print(open(sys.argv[2]).read().strip())
    """
    done = run_python(code, str(root), str(tmp_path / "pid"), timeout=30)
    assert gone(int(done.stdout))
    assert os.listdir(root) == []


def test_a_forked_child_leaves_the_parents_compilers_alone(root: Path) -> None:
    code = """
        import os, sys
        from rekernel import process, workdirs
        with process.working(sys.argv[1]) as place:
            if os.fork() == 0:
                process._clean_up()
                assert os.path.isdir(place)
                with process.working(sys.argv[1]) as other:
                    assert other != place
                os._exit(0)
            assert os.wait()[1] == 0
            assert os.listdir(sys.argv[1]) == [os.path.basename(place)]
    """
    run_python(code, str(root))


def test_nothing_is_left_in_the_directory_for_temporary_files(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with working(root) as place:
        code = "import tempfile,os; print(os.path.dirname(tempfile.mkstemp()[1]))"
        assert run([shutil.which("python3") or sys.executable, "-c", code], place).output.strip() == place
