"""The examples that come inside Taichi, one row each: how to run it without a window, and what to look at.

Sizes are cut down by exact replacements in the text, so that a run takes about a second; a replacement that does not
occur exactly once is an error, because the row would then no longer test what it says.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

Edit = tuple[str, str]
Module = Any
"""What a driver gets: an imported module, or what the loader returned. It must not be able to tell."""


@dataclass(frozen=True)
class Swap:
    """Test (b): the same program with one change after step ``at`` of ``total``."""

    edit: Edit
    """The change."""
    step: Callable[[Module, int], object]
    """Advances the program by one step; gets the module and the number of the step."""
    setup: Callable[[Module], object] = lambda m: None
    """Brings the program to step 0, as far as its text does not do so by itself."""
    at: int = 4
    total: int = 8
    edits: tuple[Edit, ...] = ()
    """Further edits that both texts have, on top of the row's."""
    held: tuple[str, ...] = ()
    """Kernels that the driver reads once, before the change, and goes on calling after it."""
    sparse: tuple[str, ...] = ()
    """Fields that restoring has to activate cell by cell."""


@dataclass(frozen=True)
class Row:
    """One example."""

    path: str
    """Relative to ``taichi/examples``, without ``.py``."""
    watch: tuple[str, ...] = ()
    """What must have come to life: each of these arrays has a value other than zero. Empty: something was drawn."""
    edits: tuple[Edit, ...] = ()
    append: str = ""
    """Text added at the end, for a file that only defines things."""
    run: Callable[[Module], dict[str, object] | None] | None = None
    """Called after loading; None where loading runs the program. May return further results to compare."""
    frames: int = 2
    """How many frames the stand-in for the window hands out."""
    mouse: bool = False
    """Whether a mouse button is held down while the pointer moves."""
    argv: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    """Modules that the text imports for drawing only; a silent stand-in takes their place."""
    output: bool = False
    """Whether what the program prints is compared as well."""
    variant: str = ""
    skip: str = ""
    """Why the row cannot run."""
    swap: Swap | None = None
    quick: bool = False
    """Part of the short run."""

    @property
    def id(self) -> str:
        return f"{self.path}[{self.variant}]" if self.variant else self.path

    @property
    def module_name(self) -> str:
        return "example_" + Path(self.path).name.replace("-", "_")


def examples_folder() -> Path:
    spec = importlib.util.find_spec("taichi")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent / "examples"


def _apply(text: str, edits: tuple[Edit, ...], row: Row) -> str:
    for old, new in edits:
        if text.count(old) != 1:
            raise ValueError(f"{row.id}: {old!r} occurs {text.count(old)} times, expected once")
        text = text.replace(old, new)
    return text


def original_text(row: Row) -> str:
    """The example as the tests run it."""
    text = (examples_folder() / f"{row.path}.py").read_text(encoding="utf-8") + row.append
    return _apply(text, row.edits, row)


def swap_texts(row: Row) -> tuple[str, str]:
    """The text before the change of test (b), and after it."""
    assert row.swap is not None
    before = _apply(original_text(row), row.swap.edits, row)
    return before, _apply(before, (row.swap.edit,), row)


def main(m: Module) -> None:
    m.main()


def in_fresh_runtime(make: Callable[[Module], dict[str, object]]) -> Callable[[Module], dict[str, object]]:
    """For texts that leave ``ti.init`` to their ``__main__`` block."""

    def run(m: Module) -> dict[str, object]:
        import taichi as ti

        ti.init(arch=ti.cpu)
        return make(m)

    return run


def shrink(old: str, new: str) -> tuple[Edit, ...]:
    return ((old, new),)


MATPLOTLIB = ("matplotlib.pyplot", "matplotlib.cm", "matplotlib.colors", "mpl_toolkits.mplot3d")
NO_TEXTURES = "textures exist on Vulkan and OpenGL only"
MOUSE_DATA = np.array([0.6, 0.8, 30.0, 20.0, 0.9, 0.5, 0.3, 0.0], dtype=np.float32)


# Drivers of single programs ------------------------------------------------------------------------------------------


def _mciso(m: Module) -> dict[str, object]:
    found: dict[str, object] = {}
    for name, options in (
        ("flat", {"N": 32, "dim": 2}),
        ("sparse", {"N": 32, "dim": 2, "blk_size": 8}),
        ("solid", {"N": 12}),
    ):
        example = m.MCISO_Example(**options)
        with suppress(Exception):
            example.main()
        found |= {f"{name}.m": example.m, f"{name}.r": example.r}
    return found


def _circles(m: Module) -> dict[str, object]:
    # Distances to the border of a picture that shows one square.
    y, x = np.mgrid[0:60, 0:80]
    distance = np.minimum(np.abs(np.maximum(np.abs(x - 40), np.abs(y - 30)) - 18), 24).astype(np.float32)
    filled = np.zeros(distance.shape, dtype=np.int32)
    radii = [12, 9, 6, 4, 2]
    found = [m.add_new_circles(filled, distance, small, large) for large, small in zip(radii, radii[1:])]
    return {"filled": filled, "found": found}


def _karman(m: Module) -> dict[str, object]:
    solver = m.lbm_solver(80, 40, 0.01, [0, 0, 1, 0], [[0.1, 0.0]] + [[0.0, 0.0]] * 3, 1, [16.0, 20.0, 4.0])
    solver.init()
    for _ in range(10):
        _lattice_step(solver)
    return {"vel": solver.vel, "rho": solver.rho, "mask": solver.mask}


def _lattice_step(solver: Any) -> None:
    solver.collide_and_stream()
    solver.update_macro_var()
    solver.apply_bc()


def _streams(m: Module) -> None:
    m.initPoints()
    m.updateArrows()
    m.refillPoints()
    for frame in range(4):
        m.processGuiEvent(m.gui_)
        m.drawArrows(m.gui_)
        m.updatePoints()
        m.drawMark(m.gui_, frame)


def _dendrite(m: Module) -> dict[str, object]:
    import taichi as ti

    ti.init(arch=ti.cpu, default_fp=ti.f64)
    snow = m.Dendrite(n=64)
    snow.getDendritic()
    return {"phi": snow.phi, "temperature": snow.temperature}


def _cloth(m: Module) -> dict[str, object]:
    cloth = m.Cloth(N=5)
    for _ in range(3):
        cloth.update(0.01)
    return {"pos": cloth.pos, "vel": cloth.vel, "rest_len": cloth.rest_len}


def _multigrid(m: Module) -> dict[str, object]:
    solver = m.MGPCG_Example()
    solver.run()
    return {"pixels": solver.pixels, "x": solver.x}


def _rasterizer(m: Module) -> dict[str, object]:
    triangles = m.TriangleRasterizer(m.num_triangles)
    import taichi as ti

    for i in range(12):
        corners = np.random.rand(3, 2) * [m.width, m.height]
        triangles.set_triangle(
            i, *(ti.Vector(list(c)) for c in corners), *(ti.Vector(list(c)) for c in np.random.rand(3, 3))
        )
    triangles.tile_culling()
    triangles.rasterize()
    return {"block_num_triangles": triangles.block_num_triangles}


def _graph_step(m: Module, i: int) -> None:
    """Builds the graph anew: a compiled graph keeps the kernels it was made of."""
    import taichi as ti

    vec, mat, nd = ti.math.vec2, ti.math.mat2, ti.graph.ArgKind.NDARRAY
    args = {
        name: ti.graph.Arg(nd, name, dtype=dtype, ndim=ndim)
        for name, dtype, ndim in (
            ("x", vec, 1), ("v", vec, 1), ("C", mat, 1), ("J", ti.f32, 1), ("grid_v", vec, 2), ("grid_m", ti.f32, 2),
        )
    }  # fmt: skip
    builder = ti.graph.GraphBuilder()
    builder.dispatch(m.substep_reset_grid, args["grid_v"], args["grid_m"])
    builder.dispatch(m.substep_p2g, *args.values())
    builder.dispatch(m.substep_update_grid_v, args["grid_v"], args["grid_m"])
    builder.dispatch(m.substep_g2p, *(args[name] for name in ("x", "v", "C", "J", "grid_v")))
    graph = builder.compile()
    for _ in range(5):
        graph.run({name: getattr(m, f"F_{name}") for name in args})


def _potential_step(m: Module, i: int) -> None:
    import taichi as ti

    for _ in range(5):
        with ti.ad.Tape(loss=m.U):
            m.update_U()
        m.advance()


def _descend(m: Module, i: int) -> None:
    import taichi as ti

    with ti.ad.Tape(loss=m.L):
        m.reduce()
    m.gradient_descent()


def _start_descent(m: Module) -> None:
    m.x.from_numpy(np.linspace(0, 1, 8, dtype=np.float32))
    m.y.from_numpy(np.linspace(2, -1, 8, dtype=np.float32))


def _sparse_step(m: Module, i: int) -> None:
    m.block1.deactivate_all()
    m.activate(i * 0.05)
    m.paint()


def _launch_comet(m: Module) -> None:
    m.inv_m[0] = 0
    m.x[0].x, m.x[0].y = 0.5, -0.01
    m.v[0].x, m.v[0].y = 0.6, 0.4
    m.color[0] = 1
    m.generate()


def _comet_step(m: Module, i: int) -> None:
    m.substep()
    m.render()


def _contour_step(m: Module, i: int) -> None:
    m.iTime[None] = i * 0.2
    m.march_squares()
    m.render()


def _start_streams(m: Module) -> None:
    m.initPoints()
    m.updateArrows()
    m.refillPoints()


def _stir(m: Module, i: int) -> None:
    m.advaction_step()
    m.voricity_step()
    if i == 0:
        m.mouse_addspeed(30, 30, 20, 25, 4.0, m.velocityField, m._new_velocityField)
        m._new_velocityField, m.velocityField
    m.pressure_step()


def _inside(loop_over: str, first_line: str) -> Edit:
    return (
        f"for i, j in {loop_over}:\n        {first_line}",
        f"for i, j in ti.ndrange((1, 47), (1, 47)):\n        {first_line}",
    )


INSIDE = (
    ('"shape": [512, 512]', '"shape": [48, 48]'),
    # Its stencils read one cell beyond every edge, which is whatever lies there in memory.
    _inside("vf", "cf[i, j] = 0.5"),
    _inside("cf", "gradcurl = "),
    _inside("vf", "divf[i, j] = "),
    _inside("pf", "new_pf[i, j] = "),
    _inside("vf", "vf_new[i, j] = vf[i, j] - ti.Vector("),
)


# The rows ------------------------------------------------------------------------------------------------------------

ROWS: tuple[Row, ...] = (
    Row("minimal", ("p()",), run=lambda m: {"p()": m.p()}, output=True),
    Row(
        "patterns",
        ("picture",),
        append=(
            "\n\nti.init()\npicture = ti.field(float, (32, 32))\n\n\n@ti.kernel\ndef draw():\n"
            "    for i, j in picture:\n        picture[i, j] = taichi_logo(ti.Vector([i, j]) / 32)\n"
        ),
        run=lambda m: m.draw(),
    ),
    Row("features/gui/fullscreen", ("img",), shrink("res = (1920, 1080)", "res = (96, 54)")),
    Row("features/gui/gui_image_io", ("pixel",), shrink("shape=(512, 512, 3)", "shape=(32, 32, 3)")),
    Row("features/gui/gui_widgets"),
    Row("features/gui/keyboard", mouse=True),
    Row("features/io/export_mesh", ("x", "indices")),
    Row("features/io/export_ply", ("pos", "rgba")),
    Row(
        "features/io/export_videos",
        ("pixels",),
        (("shape=(512, 512, 3)", "shape=(32, 32, 3)"), ("range(50)", "range(3)")),
        run=main,
    ),
    Row("features/sparse/explicit_activation", ("p",), run=lambda m: {"p": m.x.shape}, output=True),
    Row(
        "features/sparse/taichi_bitmasked",
        ("x",),
        run=main,
        swap=Swap(
            (
                "    for i, j in x:\n        x[i, j] = color",
                "    for i, j in x:\n        x[i, j] = color + 0.5 * x[i, j]",
            ),
            step=lambda m, i: m.paint_active_pixels(0.25 + 0.01 * i),
            setup=lambda m: m.activate(),
            sparse=("x",),
        ),
    ),
    Row("features/sparse/taichi_dynamic", ("x", "l"), run=main),
    Row(
        "features/sparse/taichi_sparse",
        ("img",),
        shrink("n = 512", "n = 128"),
        run=main,
        quick=True,
        swap=Swap(("1 - t / 4", "1 - t / 5"), _sparse_step, lambda m: m.img.fill(0.05), sparse=("x",)),
    ),
    Row("features/sparse/tutorial", ("x",), output=True),
    Row(
        "autodiff/jacobian",
        ("jacobian_fwd", "jacobian_rev"),
        (("N_param = 50", "N_param = 8"), ("N_loss = 100", "N_loss = 12")),
        absent=MATPLOTLIB,
    ),
    Row(
        "autodiff/minimization",
        ("x",),
        run=main,
        output=True,
        swap=Swap(
            ("x.grad[i] * 0.1", "x.grad[i] * 0.3"),
            _descend,
            _start_descent,
            held=("reduce", "gradient_descent"),
        ),
    ),
    Row("autodiff/regression", ("coeffs",), shrink("range(1000)", "range(20)"), run=main, absent=MATPLOTLIB),
    Row(
        "autodiff/simple_derivative",
        ("y", "x.grad"),
        shrink("N = 2048", "N = 64"),
        run=main,
        absent=MATPLOTLIB,
    ),
    Row(
        "autodiff/diff_sph/diff_sph",
        ("F_pos", "pos_vis_buffer"),
        (
            (
                "os.path.dirname(os.path.realpath(__file__))",
                repr(str(examples_folder() / "autodiff/diff_sph")),
            ),
            # Its layers write as many outputs as they have hidden cells, past the end of the field.
            (
                "self.n_hidden):\n                self.output[model_id, t, k, i] = ti.tanh(",
                "self.n_output):\n                self.output[model_id, t, k, i] = ti.tanh(",
            ),
            (
                "self.n_hidden):\n                self.output[model_id, t, k, i] = self.",
                "self.n_output):\n                self.output[model_id, t, k, i] = self.",
            ),
            ("    steps = 128", "    steps = 8"),
            ("[0.5, 0.05, 0.5]", "[0.16, 0.05, 0.16]"),
        ),
        run=main,
        frames=1,
        absent=MATPLOTLIB,
    ),
    Row("algorithm/laplace", ("y",), run=main, output=True),
    Row(
        "algorithm/marching_squares",
        ("pixels", "edges.p0"),
        (("W, H = 800, 600", "W, H = 60, 40"), ("time.perf_counter() - t0", "0.1 * gui.frame")),
    ),
    Row("algorithm/mciso_advanced", ("flat.m", "sparse.m", "solid.r"), run=in_fresh_runtime(_mciso)),
    Row(
        "algorithm/mgpcg",
        ("x", "pixels"),
        # Two levels: on a third one the grid would end where its blocks end, and the stencil would read outside.
        (
            ("N = 128", "N = 16"),
            ("n_mg_levels = 4", "n_mg_levels = 2"),
            ("N_gui = 512", "N_gui = 64"),
            ("range(400)", "range(3)"),
        ),
        run=main,
    ),
    Row(
        "algorithm/mgpcg_advanced",
        ("x", "pixels"),
        (
            ("dim=3, N=128, n_mg_levels=4", "dim=3, N=16, n_mg_levels=2"),
            ("self.N_gui = 512", "self.N_gui = 64"),
            ("max_iters=400", "max_iters=3"),
        ),
        run=in_fresh_runtime(_multigrid),
    ),
    Row(
        "algorithm/poisson_disk_sampling",
        ("samples", "img"),
        shrink("window_size = 800", "window_size = 64"),
        run=main,
    ),
    Row("algorithm/print_offset", ("a",), run=main),
    Row(
        "algorithm/circle-packing/circle_packing_image",
        ("circles.r", "filled"),
        run=_circles,
        absent=(*MATPLOTLIB, "cairo", "cv2"),
    ),
    Row(
        "machine_learning/differential_evolution",
        ("best_fit", "all_pop"),
        (
            ("max_iter = 50", "max_iter = 6"),
            # It runs one iteration past the end of its results, compares 20 numbers of a trial with two bounds, and
            # draws a number of a creature that is one too high.
            ("_max_iter=max_iter", "_max_iter=max_iter - 1"),
            (
                "trial = ti.field(ti.float32, shape=(search_num,))",
                "trial = ti.field(ti.float32, shape=(dim,))",
            ),
            ("r * (high - low) + low", "r * (high - 1 - low) + low"),
        ),
        absent=MATPLOTLIB,
    ),
    Row(
        "graph/mpm88_graph",
        ("F_x", "F_grid_m"),
        (
            ("n_particles = 8192", "n_particles = 512"),
            ("n_grid = 128", "n_grid = 32"),
            ("N_ITER = 500", "N_ITER = 10"),
        ),
        run=main,
        quick=True,
        swap=Swap(("gravity = 9.8", "gravity = 4.9"), _graph_step, lambda m: m.init_particles(m.F_x, m.F_v, m.F_J)),
    ),
    Row(
        "graph/stable_fluid_graph",
        ("mouse_data_ti",),
        (("res = 512", "res = 64"), ("p_jacobi_iters = 500", "p_jacobi_iters = 10")),
        run=main,
        frames=3,
        mouse=True,
    ),
    Row("graph/texture_graph", skip=NO_TEXTURES),
    Row(
        "simulation/ad_gravity",
        ("x", "v"),
        run=main,
        quick=True,
        swap=Swap(("dt = 1e-5", "dt = 3e-5"), lambda m, i: m.substep(), lambda m: m.init()),
    ),
    Row(
        "simulation/comet",
        ("x", "img"),
        (("N = 1024 * 8", "N = 1024"), ("res = 640", "res = 64")),
        run=main,
        swap=Swap(
            ("gravity = 0.5", "gravity = 0.25"),
            _comet_step,
            _launch_comet,
            sparse=("x", "v", "inv_m", "color"),
            held=("substep", "render"),
        ),
    ),
    Row(
        "simulation/euler",
        ("Q", "img"),
        (("N = 512", "N = 32"), ("res = 512", "res = 32")),
        run=main,
        absent=MATPLOTLIB,
    ),
    Row(
        "simulation/eulerfluid2d",
        ("colorField", "curlField"),
        INSIDE,
        mouse=True,
        frames=3,
        swap=Swap(('"curl_param": 15', '"curl_param": 30'), _stir),
    ),
    Row("simulation/fem128", ("pos", "U"), shrink("N = 12\n", "N = 6\n"), run=main, mouse=True),
    Row(
        "simulation/fem99",
        ("pos", "U"),
        shrink("N = 32", "N = 8"),
        run=main,
        swap=Swap(
            ("E, nu = 4e4, 0.2", "E, nu = 1e4, 0.3"),
            _potential_step,
            lambda m: (m.init_mesh(), m.init_pos()),
            held=("update_U", "advance"),
        ),
    ),
    Row(
        "simulation/game_of_life",
        ("alive", "count"),
        run=main,
        swap=Swap(
            ("\nB, S = [3], [2, 3]", "\nB, S = [3, 6], [2, 3]"),
            lambda m, i: m.run(),
            lambda m: m.init(),
            held=("run",),
        ),
    ),
    Row(
        "simulation/implicit_fem",
        ("F_x", "F_v"),
        run=main,
        swap=Swap(
            ("    dt = 1e-2", "    dt = 4e-3"),
            lambda m, i: m.substep(),
            lambda m: (m.get_vertices(), m.init(), m.get_indices()),
        ),
    ),
    Row("simulation/implicit_fem", ("F_x", "F_v"), run=main, argv=("-s",), variant="sparse matrix"),
    Row("simulation/implicit_mass_spring", run=main),
    Row(
        "simulation/implicit_mass_spring",
        ("pos", "vel", "rest_len"),
        run=in_fresh_runtime(_cloth),
        variant="class",
    ),
    Row(
        "simulation/initial_value_problem",
        ("dirs",),
        shrink("(time.time_ns() - beginning) * 0.00000001", "k * 0.1"),
        run=main,
    ),
    Row(
        "simulation/karman_vortex_street",
        ("vel", "mask"),
        run=_karman,
        absent=MATPLOTLIB,
        quick=True,
        swap=Swap(
            ("4.5 * eu * eu - 1.5 * uv", "4.5 * eu * eu - 1.2 * uv"),
            lambda m, i: _lattice_step(m.lbm),
            edits=(
                ('if __name__ == "__main__":', "if True:"),
                ("        801,\n        201,", "        80,\n        40,"),
                ("[160.0, 100.0, 20.0]", "[16.0, 20.0, 4.0]"),
                ("lbm.solve()", "lbm.init()"),
            ),
        ),
    ),
    Row(
        "simulation/laplace_equation",
        ("points", "arrows.dir", "dipoles.m"),
        run=_streams,
        mouse=True,
        swap=Swap(
            ("dt = 0.002", "dt = 0.004"),
            lambda m, i: m.updatePoints(),
            _start_streams,
            held=("updatePoints",),
        ),
    ),
    Row(
        "simulation/mandelbrot_zoom",
        ("pixels",),
        shrink("width, height = 800, 640", "width, height = 60, 48"),
        run=main,
    ),
    Row("simulation/mass_spring_game", ("x", "rest_length"), run=main, mouse=True),
    Row(
        "simulation/mpm128",
        ("x", "grid_m"),
        shrink("9000 * quality**2, 128 * quality", "900 * quality**2, 64 * quality"),
        mouse=True,
    ),
    Row(
        "simulation/mpm3d",
        ("F_x", "F_grid_m"),
        shrink("dim, n_grid, steps, dt = 3, 32, 25, 4e-4", "dim, n_grid, steps, dt = 3, 16, 5, 4e-4"),
        run=main,
    ),
    Row(
        "simulation/mpm88",
        ("x", "grid_m", "C"),
        (("n_particles = 8192", "n_particles = 512"), ("n_grid = 128", "n_grid = 32")),
        quick=True,
        swap=Swap(("gravity = 9.8", "gravity = 4.9"), lambda m, i: m.substep(), at=20, total=40, held=("substep",)),
    ),
    Row(
        "simulation/mpm99",
        ("x", "grid_m"),
        shrink("9000 * quality**2, 128 * quality", "900 * quality**2, 64 * quality"),
        run=main,
    ),
    Row(
        "simulation/mpm_lagrangian_forces",
        ("x", "v", "grid_m"),
        shrink("n_particle_x = 100 * quality", "n_particle_x = 12 * quality"),
        run=main,
        frames=1,
    ),
    Row(
        "simulation/nbody",
        ("pos", "force"),
        shrink("N = 3000", "N = 150"),
        run=main,
        quick=True,
        swap=Swap(
            ("h = 1e-4", "h = 3e-4"),
            lambda m, i: (m.compute_force(), m.update()),
            lambda m: m.initialize(),
            held=("compute_force", "update"),
        ),
    ),
    Row(
        "simulation/odop_solar",
        ("solar.x", "solar.v"),
        run=main,
        swap=Swap(
            ("return offset / offset.norm() ** 3", "return offset / offset.norm() ** 2"),
            lambda m, i: m.solar.integrate(),
            edits=(
                (
                    'if __name__ == "__main__":\n    main()',
                    "solar = SolarSystem(8, 0.01)\nsolar.center[None] = [0.5, 0.5]\nsolar.initialize_particles()",
                ),
            ),
        ),
    ),
    Row(
        "simulation/pbf2d",
        ("positions", "lambdas"),
        shrink("num_particles_x = 60", "num_particles_x = 20"),
        run=main,
        output=True,
    ),
    Row(
        "simulation/physarum",
        ("grid", "position"),
        shrink("GRID_SIZE = 512", "GRID_SIZE = 64"),
        run=main,
        frames=4,
    ),
    Row("simulation/snow_phaseField", ("phi", "temperature"), run=_dendrite),
    Row(
        "simulation/stable_fluid",
        ("_dye_buffer", "_velocities", "_pressures"),
        (("\nres = 512", "\nres = 64"), ("p_jacobi_iters = 500", "p_jacobi_iters = 20")),
        run=main,
        mouse=True,
        frames=4,
        quick=True,
        swap=Swap(("time_c = 2", "time_c = 0.1"), lambda m, i: m.step(MOUSE_DATA)),
    ),
    Row(
        "simulation/stable_fluid",
        ("_dye_buffer", "_velocities", "_pressures"),
        (("\nres = 512", "\nres = 32"),),
        run=main,
        mouse=True,
        frames=4,
        argv=("-S",),
        variant="sparse matrix",
    ),
    Row("simulation/two_stream_instability", ("x", "v", "rho"), shrink("np = 16384", "np = 512"), run=main),
    Row(
        "simulation/vortex_rings",
        ("pos", "tracer"),
        shrink("n_tracer = 200000", "n_tracer = 500"),
        run=main,
        swap=Swap(
            ("dt = 0.1", "dt = 0.03"),
            lambda m, i: (m.advect(), m.integrate_vortex()),
            lambda m: m.init_tracers(),
            held=("advect", "integrate_vortex"),
        ),
    ),
    Row(
        "simulation/waterwave",
        ("pixels", "height"),
        shrink("shape = 512, 512", "shape = 64, 64"),
        run=main,
        mouse=True,
        frames=4,
        swap=Swap(
            ("damping = 0.2", "damping = 5.0"),
            lambda m, i: (m.update(), m.visualize_wave()),
            lambda m: (m.reset(), m.create_wave(3, 20, 30)),
        ),
    ),
    Row(
        "rendering/cornell_box",
        ("image_pixels", "objects.transform.matrix"),
        shrink("image_resolution = (512, 512)", "image_resolution = (12, 12)"),
        run=main,
        frames=1,
    ),
    Row(
        "rendering/oit_renderer",
        ("color_buffer", "spheres.radius"),
        shrink("res = (1000, 1000)", "res = (24, 24)"),
        run=main,
    ),
    Row(
        "rendering/rasterizer",
        ("pixels", "samples", "block_num_triangles"),
        shrink("width, height = 500, 500", "width, height = 64, 64"),
        run=_rasterizer,
    ),
    Row(
        "rendering/sdf_renderer",
        ("color_buffer",),
        shrink("res = 1280, 720", "res = 32, 18"),
        run=main,
        frames=0,
    ),
    Row("rendering/simple_texture", skip=NO_TEXTURES),
    Row("rendering/simple_uv", ("pixels",), shrink("res = (512, 512)", "res = (32, 32)")),
    Row("rendering/taichi_logo", ("x",), shrink("n = 512", "n = 32"), run=main),
    Row(
        "rendering/taichi_ngp",
        skip="needs block-shared memory, so a GPU, and a pretrained model from the network",
    ),
    Row(
        "real_func/algorithm/marching_squares",
        ("pixels", "edges.p0"),
        (("W, H = 800, 600", "W, H = 60, 40"), ("time.perf_counter() - t0", "0.1 * gui.frame")),
        quick=True,
        swap=Swap(("level = 0.15", "level = 0.05"), _contour_step, held=("march_squares", "render")),
    ),
    Row(
        "real_func/algorithm/poisson_disk_sampling",
        ("samples", "img"),
        shrink("window_size = 800", "window_size = 64"),
        run=main,
    ),
    Row(
        "real_func/graph/stable_fluid_graph",
        ("mouse_data_ti",),
        (("res = 512", "res = 64"), ("p_jacobi_iters = 500", "p_jacobi_iters = 10")),
        run=main,
        frames=3,
        mouse=True,
    ),
    Row(
        "real_func/rendering/cornell_box",
        ("image_pixels", "objects.transform.matrix"),
        shrink("image_resolution = (512, 512)", "image_resolution = (12, 12)"),
        run=main,
        frames=1,
    ),
    Row(
        "real_func/rendering/taichi_ngp",
        skip="needs block-shared memory, so a GPU, and a pretrained model from the network",
    ),
    Row("ggui_examples/fem128_ggui", ("pos", "U"), shrink("N = 12\n", "N = 6\n"), run=main, mouse=True),
    Row(
        "ggui_examples/fractal3d_ggui",
        (),
        shrink("image_res = (1280, 720)", "image_res = (24, 16)"),
        run=main,
    ),
    Row(
        "ggui_examples/mass_spring_3d_ggui",
        ("x", "v", "vertices"),
        (("n = 128", "n = 12"), ("dt = 4e-2 / n", "dt = 2e-4")),
        run=main,
    ),
    Row("ggui_examples/mass_spring_game_ggui", ("x", "rest_length"), run=main, mouse=True),
    Row(
        "ggui_examples/mpm128_ggui",
        ("x", "grid_m"),
        shrink("9000 * quality**2, 128 * quality", "900 * quality**2, 64 * quality"),
        run=main,
        mouse=True,
    ),
    Row(
        "ggui_examples/mpm3d_ggui",
        ("F_x", "F_grid_m"),
        shrink("dim, n_grid, steps, dt = 3, 64, 25, 2e-4", "dim, n_grid, steps, dt = 3, 32, 2, 2e-4"),
        run=main,
    ),
    Row(
        "ggui_examples/stable_fluid_ggui",
        ("_dye_buffer", "_velocities", "_pressures"),
        (("res = 512", "res = 64"), ("p_jacobi_iters = 500", "p_jacobi_iters = 20")),
        run=main,
        mouse=True,
        frames=4,
    ),
)

BY_ID = {row.id: row for row in ROWS}
