"""The examples that come inside Taichi, one row each."""

from __future__ import annotations

from programs import rows_basics, rows_graphics, rows_simulation
from programs.row import Row

ROWS: tuple[Row, ...] = (*rows_basics.ROWS, *rows_simulation.ROWS, *rows_graphics.ROWS)
BY_ID: dict[str, Row] = {row.id: row for row in ROWS}
