"""The documentation as its readers get it: built without a warning, no link that leads nowhere, nothing public missing."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

import docblocks
import rekernel
import rekernel.jit
import rekernel.languages
from rekernel import errors

DOCS = Path(__file__).parents[1] / "docs"
OUTLINE = ["What it looks like", "What is a kernel", "Parameters", "Options", "Errors", "Debugging", "Reloading",
           "Limits", "Speed"]  # fmt: skip
OWN = {"REKERNEL_ANSWER"}  # from the doctor to a process that it starts
LANGUAGES = ["cpp", "taichi", "cuda", "stencils", "jit"]


class Page(HTMLParser):
    """What a page of HTML leads to, and what can be led to in it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.needs: list[str] = []
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attributes}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if tag in ("img", "script", "source", "iframe") and "src" in given:
            self.needs.append(given["src"])
        if tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload"):
            self.needs.append(given["href"])


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The site, and what Sphinx printed."""
    for package in ("sphinx", "myst_parser", "furo"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed; the extra `docs` has it")
    out = tmp_path_factory.mktemp("site")
    run = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", "-E", "-W", "--keep-going", "--color", "-d", out / "trees", "-b", "html", DOCS, out / "html"],
        capture_output=True, text=True, timeout=280,
    )  # fmt: skip
    return out / "html", run.stdout + run.stderr if run.returncode or run.stderr else ""


@pytest.fixture(scope="module")
def pages(built: tuple[Path, str]) -> dict[Path, Page]:
    return {path: Page(path) for path in sorted(built[0].rglob("*.html"))}


def test_it_is_built_without_a_warning(built: tuple[Path, str]) -> None:
    assert built[1] == ""
    assert (built[0] / "index.html").is_file()


def test_no_link_leads_nowhere(built: tuple[Path, str], pages: dict[Path, Page]) -> None:
    dead = []
    for path, page in pages.items():
        for link in page.links:
            if re.match(r"[a-z]+:", link):
                continue
            target, _, anchor = unquote(link).partition("#")
            file = (path.parent / target).resolve() if target else path
            if not file.is_file() or (anchor and file in pages and anchor not in pages[file].anchors):
                dead.append(f"{path.relative_to(built[0])}: {link}")
    assert dead == []


def test_no_picture_style_or_script_is_missing_or_comes_from_elsewhere(pages: dict[Path, Page]) -> None:
    missing = [
        f"{path.name}: {need}"
        for path, page in pages.items()
        for need in page.needs
        if not (path.parent / need.partition("?")[0]).is_file()
    ]
    assert missing == []
    assert [path.name for path, page in pages.items() if any("//" in need for need in page.needs)] == []


def test_every_public_name_is_in_the_reference(built: tuple[Path, str], pages: dict[Path, Page]) -> None:
    reference = [page for path, page in pages.items() if path.parent.name == "reference"]
    there = {anchor.removeprefix("module-") for page in reference for anchor in page.anchors}
    here = {f"rekernel.{name}" for name in rekernel.__all__}
    assert here - there == set()
    both = {name for name in rekernel.jit.__all__ if f"rekernel.{name}" in here}
    assert {f"rekernel.jit.{name}" for name in set(rekernel.jit.__all__) - both} - there == set()


def test_every_page_is_led_to_from_the_first(built: tuple[Path, str], pages: dict[Path, Page]) -> None:
    first = pages[built[0] / "index.html"]
    led = {(built[0] / unquote(link).partition("#")[0]).resolve() for link in first.links}
    own = {"search.html", "genindex.html", "py-modindex.html", "index.html"}
    written = {path for path in pages if path.name not in own}
    assert {path.relative_to(built[0]).as_posix() for path in written - led} == set()


def headings(name: str, level: int = 2) -> list[str]:
    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    for block in docblocks.blocks(text):
        text = text.replace(block.text, "\n")  # a comment of Python looks like a heading
    return re.findall(rf"^{'#' * level} (.+)$", text, re.M)


@pytest.mark.parametrize("name", LANGUAGES)
def test_the_pages_of_the_languages_have_one_outline(name: str) -> None:
    assert [heading for heading in headings(name) if heading in OUTLINE] == OUTLINE


def test_every_class_of_the_error_tree_has_an_entry_in_the_catalogue() -> None:
    classes = {name for name in errors.__all__ if name != "Diagnostic"}
    assert classes - set(headings("errors")) == set()


def test_every_variable_of_the_environment_is_on_its_page() -> None:
    page = (DOCS / "environment.md").read_text(encoding="utf-8")
    read = set()
    for path in sorted(Path(rekernel.__file__).parent.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        read |= set(re.findall(r"""environ(?:\.get\(|\[)["']([A-Z_]+)["']""", text))
        read |= set(re.findall(r"""^[A-Z]+ = "(REKERNEL_[A-Z_]+)\"""", text, re.M))
    assert read
    assert {name for name in read - OWN if f"`{name}`" not in page} == set()


@pytest.mark.parametrize(("page", "language"), [("cpp", "cpp"), ("cuda", "cuda"), ("stencils", "stencil")])
def test_the_table_of_options_has_every_option_of_the_language(page: str, language: str) -> None:
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    table = text[text.index("\n## Options") : text.index("\n## Errors")]
    options = rekernel.languages.find(language).options
    assert options
    assert [name for name in options if not re.search(rf"^\| [^|]*`{name}\b", table, re.M)] == []
