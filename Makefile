# make demo: see it work.  make test: every check there is.  make docs: the documentation.  make sanitize: the C++ part under sanitizers.
# PYTHON=python3.12 picks the interpreter of .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# Everything that ends up in the installed package; directories, too, so that a removed file is noticed.
SOURCES := pyproject.toml CMakeLists.txt LICENSE $(wildcard README.md) \
	$(shell find src -name __pycache__ -prune -o -print)

# Taichi asks its server for news once a day and prints a banner otherwise.
export TI_SKIP_VERSION_CHECK := ON
export ENABLE_TAICHI_HEADER_PRINT := False

.PHONY: demo test docs screenshots sanitize clean

demo: $(VENV)/.installed-demo
	@echo "demo: python -m rekernel demo"
	@$(BIN)/python -m rekernel demo

test: $(VENV)/.installed-test
	@echo "test 1/4: ruff check (mistakes)"
	@$(BIN)/ruff check
	@echo "test 2/4: ruff format --check (layout)"
	@$(BIN)/ruff format --check
	@echo "test 3/4: mypy (types)"
	@$(BIN)/mypy
	@echo "test 4/4: pytest (behaviour)"
	@$(BIN)/python -m pytest

# Warnings are errors: a link that leads nowhere, a public name without a page, a page that nothing leads to.
docs: $(VENV)/.installed-docs
	@echo "docs: Sphinx, into docs/_build/html"
	@$(BIN)/python -m sphinx -q -W --keep-going -E -d docs/_build/doctrees -b html docs docs/_build/html
	@echo "docs: open docs/_build/html/index.html"

# The pictures of docs/notebook.md, from a JupyterLab that a script drives in Chromium. Kept in git, so only by hand.
screenshots: $(VENV)/.installed-test
	@$(BIN)/python tests/browser/screenshots.py docs/images

# The whole suite runs without them: an interpreter under the address sanitizer is several times slower, and keeps
# freed memory for a while, which the test of 10,000 loads would take for a leak.
SANITIZED := tests/test_native.py tests/test_timing.py tests/test_native_accept.py tests/test_native_guard.py \
	tests/test_library.py $(wildcard tests/test_function*.py) tests/test_cuda_launch.py tests/test_cuda_arrays.py tests/test_cuda_streams.py

sanitize: $(VENV)/.installed-test
	@echo "sanitize 1/2: building the extension with address and undefined-behaviour sanitizers"
	@rm -rf $(VENV)/sanitized
	@$(PIP) --no-deps --target $(VENV)/sanitized -C cmake.define.REKERNEL_SANITIZE=ON .
	@echo "sanitize 2/2: its tests"
	@LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libstdc++.so.6)" ASAN_OPTIONS=detect_leaks=0 \
		PYTHONPATH=$(VENV)/sanitized $(BIN)/python -m pytest -q -p no:cacheprovider -k 'not ten_thousand' $(SANITIZED)

clean:
	@echo "clean: removing .venv, build output and tool caches"
	@rm -rf $(VENV) build dist docs/_build .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

# pip is the last thing that venv puts there: a .venv without it is half made and is made again.
$(BIN)/pip:
	@echo "setup: creating $(VENV) with $(PYTHON)"
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-%: $(SOURCES) | $(BIN)/pip
	@echo "setup: building and installing rekernel[$*] into $(VENV) (the first time takes a while)"
	@$(PIP) '.[$*]'
	@touch $@
