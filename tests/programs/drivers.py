"""Drivers of single programs: what their ``__main__`` block or a person at the window would do."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise

import numpy as np

from programs.row import Module

MOUSE_DATA = np.array([0.6, 0.8, 30.0, 20.0, 0.9, 0.5, 0.3, 0.0], dtype=np.float32)
"""One stroke of the mouse, as the fluid examples hand it to their kernels: direction, place, colour."""

# Taichi is imported where it is used: the process that reads the table of rows does not need it.


def iso_surfaces(m: Module) -> dict[str, object]:
    """Contours on a dense and on a sparse grid, and a surface; the text leaves ``ti.init`` to its caller."""
    import taichi as ti

    from programs.headless import OutOfFramesError

    ti.init(arch=ti.cpu)
    kinds = {"flat": {"N": 32, "dim": 2}, "sparse": {"N": 32, "dim": 2, "blk_size": 8}, "solid": {"N": 12}}
    found: dict[str, object] = {}
    for name, options in kinds.items():
        example = m.MCISO_Example(**options)
        with suppress(OutOfFramesError):
            example.main()
        found |= {f"{name}.m": example.m, f"{name}.r": example.r}
    return found


def multigrid(m: Module) -> dict[str, object]:
    import taichi as ti

    ti.init(arch=ti.cpu)
    solver = m.MGPCG_Example()
    solver.run()
    return {"pixels": solver.pixels, "x": solver.x}


def descent_on_grids(m: Module, i: int) -> None:
    """One step of the solver, with fixed step sizes."""
    m.apply_preconditioner()
    m.beta[None] = 0.2
    m.update_p()
    m.compute_Ap()
    m.alpha[None] = 0.1
    m.update_x()
    m.update_r()


def dendrite(m: Module) -> dict[str, object]:
    import taichi as ti

    ti.init(arch=ti.cpu, default_fp=ti.f64)
    snow = m.Dendrite(n=64)
    snow.getDendritic()
    return {"phi": snow.phi, "temperature": snow.temperature}


def cloth(m: Module) -> dict[str, object]:
    import taichi as ti

    ti.init(arch=ti.cpu)
    cloth = m.Cloth(N=5)
    for _ in range(3):
        cloth.update(0.01)
    return {"pos": cloth.pos, "vel": cloth.vel, "rest_len": cloth.rest_len}


def square_of_distances() -> np.ndarray:
    """Distances to the border of a picture that shows one square."""
    y, x = np.mgrid[0:60, 0:80]
    return np.abs(np.maximum(np.abs(x - 40), np.abs(y - 30)) - 18).astype(np.float32)


def circles(m: Module) -> dict[str, object]:
    distance = square_of_distances()
    filled = np.zeros(distance.shape, dtype=np.int32)
    found = [m.add_new_circles(filled, distance, small, large) for large, small in pairwise([12, 9, 6, 4, 2])]
    return {"filled": filled, "found": found}


def circle_step(m: Module, i: int) -> None:
    m.add_new_circles(m.filled, m.distance, 10 - i, 11 - i)


def channel(m: Module) -> dict[str, object]:
    zero = [0.0, 0.0]
    flow = m.lbm_solver(80, 40, 0.01, [0, 0, 1, 0], [[0.1, 0.0], zero, zero, zero], 1, [16.0, 20.0, 4.0])
    flow.init()
    for _ in range(10):
        lattice_step(flow)
    return {"vel": flow.vel, "rho": flow.rho, "mask": flow.mask}


def lattice_step(flow: Module) -> None:
    flow.collide_and_stream()
    flow.update_macro_var()
    flow.apply_bc()


def start_streams(m: Module) -> None:
    m.initPoints()
    m.updateArrows()
    m.refillPoints()


def streams(m: Module) -> None:
    start_streams(m)
    for frame in range(4):
        m.processGuiEvent(m.gui_)
        m.drawArrows(m.gui_)
        m.updatePoints()
        m.drawMark(m.gui_, frame)


def triangles(m: Module) -> dict[str, object]:
    import taichi as ti

    picture = m.TriangleRasterizer(m.num_triangles)
    for i in range(12):
        corners = [ti.Vector(list(corner)) for corner in np.random.rand(3, 2) * [m.width, m.height]]
        colours = [ti.Vector(list(colour)) for colour in np.random.rand(3, 3)]
        picture.set_triangle(i, *corners, *colours)
    picture.tile_culling()
    picture.rasterize()
    return {"block_num_triangles": picture.block_num_triangles}


def graph_step(m: Module, i: int) -> None:
    """Five substeps in a graph, built anew each time: a compiled graph keeps the kernels it was made of."""
    import taichi as ti

    vec, mat = ti.math.vec2, ti.math.mat2
    kinds = {"x": vec, "v": vec, "C": mat, "J": ti.f32, "grid_v": vec, "grid_m": ti.f32}
    arg = {
        name: ti.graph.Arg(ti.graph.ArgKind.NDARRAY, name, dtype=dtype, ndim=2 if "grid" in name else 1)
        for name, dtype in kinds.items()
    }
    builder = ti.graph.GraphBuilder()
    builder.dispatch(m.substep_reset_grid, arg["grid_v"], arg["grid_m"])
    builder.dispatch(m.substep_p2g, *arg.values())
    builder.dispatch(m.substep_update_grid_v, arg["grid_v"], arg["grid_m"])
    builder.dispatch(m.substep_g2p, arg["x"], arg["v"], arg["C"], arg["J"], arg["grid_v"])
    graph = builder.compile()
    for _ in range(5):
        graph.run({name: getattr(m, f"F_{name}") for name in arg})


def elastic_step(m: Module, i: int) -> None:
    import taichi as ti

    for _ in range(5):
        with ti.ad.Tape(loss=m.U):
            m.update_U()
        m.advance()


def descend(m: Module, i: int) -> None:
    import taichi as ti

    with ti.ad.Tape(loss=m.L):
        m.reduce()
    m.gradient_descent()


def start_descent(m: Module) -> None:
    m.x.from_numpy(np.linspace(0, 1, 8, dtype=np.float32))
    m.y.from_numpy(np.linspace(2, -1, 8, dtype=np.float32))


def sparse_step(m: Module, i: int) -> None:
    m.block1.deactivate_all()
    m.activate(i * 0.05)
    m.paint()


def launch_comet(m: Module) -> None:
    m.inv_m[0] = 0
    m.x[0].x, m.x[0].y = 0.5, -0.01
    m.v[0].x, m.v[0].y = 0.6, 0.4
    m.color[0] = 1
    m.generate()


def comet_step(m: Module, i: int) -> None:
    m.substep()
    m.render()


def contour_step(m: Module, i: int) -> None:
    m.iTime[None] = i * 0.2
    m.march_squares()
    m.render()


def stir_once(m: Module) -> None:
    m.mouse_addspeed(30, 30, 20, 25, 4.0, m._new_velocityField, m.velocityField)


def fluid_step(m: Module, i: int) -> None:
    m.advaction_step()
    m.voricity_step()
    m.pressure_step()
