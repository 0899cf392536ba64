"""A JupyterLab of our own, and a Chromium that looks at it: what the browser tests and the pictures of the docs need.

The server listens on 127.0.0.1 only, behind a token; everything that it writes is below one directory, and it is ended
by its own process id.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

LONG = 60_000
"""Milliseconds: how long a condition may take on a busy machine. Nothing here waits for a time to pass."""

CHROMIUM = os.environ.get("REKERNEL_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")

_PACKAGES = ("jupyterlab", "ipykernel", "playwright", "anywidget", "nbformat", "PIL")
_ADDRESS = re.compile(r"http://127\.0\.0\.1:(\d+)/")


def missing() -> str | None:
    """What a browser test needs and is not there, as a reason to skip it."""
    names = [name for name in _PACKAGES if find_spec(name) is None]
    if names:
        return f"{', '.join(names)} not installed; they drive the browser"
    if not CHROMIUM:
        return "no Chromium is installed (Debian: apt-get install chromium)"
    from jupyter_core.paths import jupyter_path

    if not any(os.path.isdir(os.path.join(place, "anywidget")) for place in jupyter_path("labextensions")):
        return "JupyterLab does not find the extension of anywidget, which is installed elsewhere (JUPYTER_PATH)"
    return None


class Server:
    """A JupyterLab whose files, settings and run-time data are below `place`."""

    def __init__(self, place: Path) -> None:
        self.root = place / "notebooks"
        self.token = secrets.token_hex(16)
        self.log: list[str] = []
        self.reader: threading.Thread | None = None
        settings = place / "settings" / "@jupyterlab"
        for name, values in {
            "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
            "apputils-extension/themes": {"adaptive-theme": True},  # light or dark as the browser says
        }.items():
            file = settings / f"{name}.jupyterlab-settings"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(values))
        self.root.mkdir(parents=True, exist_ok=True)
        own = {
            "JUPYTER_CONFIG_DIR": "config", "JUPYTER_DATA_DIR": "data", "JUPYTER_RUNTIME_DIR": "runtime",
            "JUPYTERLAB_SETTINGS_DIR": "settings", "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
            "IPYTHONDIR": "ipython", "REKERNEL_CACHE_DIR": "cache", "HOME": "home",
        }  # fmt: skip
        for name in own.values():
            (place / name).mkdir(exist_ok=True)
        self.process = subprocess.Popen(
            [
                sys.executable, "-m", "jupyterlab", "--no-browser", "--ServerApp.ip=127.0.0.1", "--ServerApp.port=0",
                f"--IdentityProvider.token={self.token}", f"--ServerApp.root_dir={self.root}",
                "--ServerApp.allow_root=True", "--LabApp.extension_manager=readonly",
            ],
            cwd=place, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, **{variable: str(place / name) for variable, name in own.items()}},
        )  # fmt: skip
        try:
            self.address = self._address()
        except BaseException:
            self.stop()
            raise

    def _address(self) -> str:
        assert self.process.stdout is not None
        patience = threading.Timer(LONG / 1000, self.process.kill)  # ends the loop below, which has no time limit
        patience.start()
        try:
            for line in self.process.stdout:
                self.log.append(line)
                found = _ADDRESS.search(line)
                if found and found[1] != "0":
                    self.reader = threading.Thread(target=self.log.extend, args=(self.process.stdout,), daemon=True)
                    self.reader.start()
                    return f"http://127.0.0.1:{found[1]}"
        finally:
            patience.cancel()
        raise RuntimeError("JupyterLab did not start:\n" + "".join(self.log))

    def write(self, name: str, cells: Sequence[str]) -> None:
        """Write a notebook; a cell that begins with # and a space is text."""
        import nbformat
        from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

        made = [new_markdown_cell(cell) if cell.startswith("# ") else new_code_cell(cell) for cell in cells]
        notebook = new_notebook(cells=made)
        notebook.metadata["kernelspec"] = {
            "name": "python3",
            "display_name": "Python 3 (ipykernel)",
            "language": "python",
        }
        nbformat.write(notebook, self.root / name)

    def stop(self) -> None:
        """End the server, and it its kernels."""
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(30)
        if self.reader is not None:
            self.reader.join(30)
        if self.process.stdout is not None:
            self.process.stdout.close()


@contextmanager
def browser() -> Iterator[Any]:
    """A Chromium without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        running = driver.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--force-color-profile=srgb"],
        )
        try:
            yield running
        finally:
            running.close()


class Notebook:
    """An open notebook, as a user has it in front of them: cells from 0."""

    def __init__(
        self, running: Any, server: Server, name: str, *,
        dark: bool = False, size: tuple[int, int] = (1180, 900), scale: float = 1,
    ) -> None:  # fmt: skip
        context = running.new_context(
            viewport={"width": size[0], "height": size[1]}, device_scale_factor=scale,
            color_scheme="dark" if dark else "light", reduced_motion="reduce", timezone_id="UTC", locale="en-GB",
        )  # fmt: skip
        self.page = context.new_page()
        self.page.set_default_timeout(LONG)
        self.complaints: list[str] = []
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(f"{server.address}/doc/tree/{name}?token={server.token}")
        self.page.locator(".jp-Notebook .jp-Cell").first.wait_for()
        self.idle()

    def idle(self) -> None:
        """Wait until the kernel is there and has nothing to do."""
        self.page.locator("#jp-main-statusbar").get_by_text("| Idle").wait_for()

    def cell(self, number: int) -> Any:
        """A cell."""
        return self.page.locator(".jp-Notebook .jp-Cell").nth(number)

    def editor(self, number: int) -> Any:
        """Where its text is typed."""
        return self.cell(number).locator(".cm-content").first

    def output(self, number: int) -> Any:
        """What is below it."""
        return self.cell(number).locator(".jp-Cell-outputWrapper")

    def run(self, number: int) -> None:
        """Click into a cell and press Ctrl+Enter; returns when it was run."""
        self.editor(number).click()
        before = self.cell(number).locator(".jp-InputPrompt").inner_text()
        self.page.keyboard.press("Control+Enter")
        self.page.wait_for_function(
            "([cell, before]) => !['[*]:', '[ ]:', before].includes(cell.querySelector('.jp-InputPrompt').innerText.trim())",
            arg=[self.cell(number).element_handle(), before.strip()],
        )

    def run_all(self) -> None:
        """Choose it from the menu."""
        self.page.get_by_role("menuitem", name="Run", exact=True).click()
        self.page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        self.page.wait_for_function(
            """() => {
                const prompts = [...document.querySelectorAll('.jp-CodeCell .jp-InputPrompt')].map(p => p.innerText);
                const failed = document.querySelector('[data-mime-type="application/vnd.jupyter.error"], .jp-mod-error');
                return prompts.every(p => /\\[\\d+\\]:/.test(p)) || (failed && !prompts.includes('[*]:'));
            }"""
        )

    def run_all_but_last(self) -> None:
        """Choose the last cell, and from the menu to run all above it."""
        self.editor(self.page.locator(".jp-Notebook .jp-Cell").count() - 1).click()
        self.page.get_by_role("menuitem", name="Run", exact=True).click()
        self.page.get_by_role("menuitem", name="Run All Above Selected Cell", exact=True).click()
        self.page.locator(".rekernel-view img").first.wait_for()

    def change(self, number: int, old: str, new: str) -> None:
        """Find a text in a cell, select it there, and type another over it, key by key."""
        editor = self.editor(number)
        editor.click()
        self.page.evaluate(
            """([editor, old]) => {
                const walk = document.createTreeWalker(editor, NodeFilter.SHOW_TEXT);
                const nodes = [];
                while (walk.nextNode()) nodes.push(walk.currentNode);
                const lines = [...editor.querySelectorAll('.cm-line')].filter(line => line.textContent.includes(old));
                if (lines.length !== 1) throw new Error(`${lines.length} lines have: ${old}`);
                let from = lines[0].textContent.indexOf(old), to = from + old.length, start, end;
                for (const node of nodes.filter(node => lines[0].contains(node))) {
                    const length = node.textContent.length;
                    if (!start && from < length) start = [node, from];
                    if (!end && to <= length) end = [node, to];
                    from -= length; to -= length;
                }
                getSelection().setBaseAndExtent(...start, ...end);
            }""",
            [editor.element_handle(), old],
        )
        self.page.keyboard.type(new)

    def close(self) -> None:
        """Close the page, without a question about unsaved cells."""
        self.page.context.close()
