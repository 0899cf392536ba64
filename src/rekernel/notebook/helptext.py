"""What ``%%kernel?`` says. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from rekernel.notebook import arguments

__all__ = ["help_of_kernel"]


def help_of_kernel(languages: Mapping[str, Mapping[str, str]]) -> str:
    """Return the help of ``%%kernel``, its options from the languages' own tables."""
    parts = [_HELP]
    for name, options in languages.items():
        if options:
            parts.append(f"Options for {name}:\n{_listed(options)}")
    parts.append(f"For all:\n{_listed(arguments.OWN)}")
    return "\n\n".join(parts) + "\n"


def _listed(options: Mapping[str, str]) -> str:
    return "\n".join(f"  {arguments.usage(name, told):<22} {told}" for name, told in options.items())


_HELP = """Load the kernels of this cell: %%kernel [id] [--cpp | --taichi | --cuda | --stencil] [options]

The text begins below this line. Its kernels are in the notebook's names at once, and every handle of them, wherever it
is kept, runs the new text after the next run of the cell. A text that is wrong changes nothing; its error shows the
line, counted as the cell's lines are.

Without an id, the first kernel's name is the id, and the cell keeps it. The language is told by the text. Names that
the text uses and does not define are those of the notebook. What the first line no longer says is no longer meant.

    %%kernel heat --openmp --flags "-DN=8"
    void step(rekernel::Array<double, 1> x) { for (int64_t i = 0; i < x.shape(0); ++i) x[i] *= N; }

%kernels lists all kernels, %kernel_rollback goes back, %kernel_history and %kernel_diff show versions."""
