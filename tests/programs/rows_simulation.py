"""Rows: the simulations."""

from __future__ import annotations

from programs import drivers
from programs.row import Row, Swap, main
from programs.rows_basics import MATPLOTLIB


def _inside(loop_over: str, first_line: str) -> dict[str, str]:
    loop = f"for i, j in {loop_over}:\n        {first_line}"
    return {loop: loop.replace(f"in {loop_over}:", "in ti.ndrange((1, 47), (1, 47)):")}


PARTICLES = (
    Row(
        "simulation/ad_gravity",
        ("x", "v"),
        run=main,
        quick=True,
        swap=Swap({"dt = 1e-5": "dt = 3e-5"}, lambda m, i: m.substep(), lambda m: m.init()),
    ),
    Row(
        "simulation/comet",
        ("x", "img"),
        {"N = 1024 * 8": "N = 1024", "res = 640": "res = 64"},
        run=main,
        swap=Swap(
            {"gravity = 0.5": "gravity = 0.25"},
            drivers.comet_step,
            drivers.launch_comet,
            held=("substep", "render"),
            sparse=("x", "v", "inv_m", "color"),
        ),
    ),
    Row("simulation/mass_spring_game", ("x", "rest_length"), run=main, mouse=True),
    Row(
        "simulation/mpm128",
        ("x", "grid_m"),
        {"9000 * quality**2, 128 * quality": "900 * quality**2, 64 * quality"},
        mouse=True,
    ),
    Row(
        "simulation/mpm3d",
        ("F_x", "F_grid_m"),
        {"dim, n_grid, steps, dt = 3, 32, 25, 4e-4": "dim, n_grid, steps, dt = 3, 16, 5, 4e-4"},
        run=main,
    ),
    Row(
        "simulation/mpm88",
        ("x", "grid_m", "C"),
        {"n_particles = 8192": "n_particles = 512", "n_grid = 128": "n_grid = 32"},
        quick=True,
        swap=Swap({"gravity = 9.8": "gravity = 4.9"}, lambda m, i: m.substep(), at=20, total=40, held=("substep",)),
    ),
    Row(
        "simulation/mpm99",
        ("x", "grid_m"),
        {"9000 * quality**2, 128 * quality": "900 * quality**2, 64 * quality"},
        run=main,
    ),
    Row(
        "simulation/mpm_lagrangian_forces",
        ("x", "v", "grid_m"),
        {"n_particle_x = 100 * quality": "n_particle_x = 12 * quality"},
        run=main,
        frames=1,
    ),
    Row(
        "simulation/nbody",
        ("pos", "force"),
        {"N = 3000": "N = 150"},
        run=main,
        quick=True,
        swap=Swap(
            {"h = 1e-4": "h = 3e-4"},
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
            {"return offset / offset.norm() ** 3": "return offset / offset.norm() ** 2"},
            lambda m, i: m.solar.integrate(),
            edits={
                'if __name__ == "__main__":\n    main()': (
                    "solar = SolarSystem(8, 0.01)\nsolar.center[None] = [0.5, 0.5]\nsolar.initialize_particles()\n"
                )
            },
        ),
    ),
    Row(
        "simulation/pbf2d",
        ("positions", "lambdas"),
        {"num_particles_x = 60": "num_particles_x = 20"},
        run=main,
        output=True,
    ),
    Row("simulation/physarum", ("grid", "position"), {"GRID_SIZE = 512": "GRID_SIZE = 64"}, run=main, frames=4),
    Row("simulation/two_stream_instability", ("x", "v", "rho"), {"np = 16384": "np = 512"}, run=main),
    Row(
        "simulation/vortex_rings",
        ("pos", "tracer"),
        {"n_tracer = 200000": "n_tracer = 500"},
        run=main,
        swap=Swap(
            {"dt = 0.1": "dt = 0.03"},
            lambda m, i: (m.advect(), m.integrate_vortex()),
            lambda m: m.init_tracers(),
            held=("advect", "integrate_vortex"),
        ),
    ),
)

SOLIDS = (
    Row("simulation/fem128", ("pos", "U"), {"N = 12\n": "N = 6\n"}, run=main, mouse=True),
    Row(
        "simulation/fem99",
        ("pos", "U"),
        {"N = 32": "N = 8"},
        run=main,
        swap=Swap(
            {"E, nu = 4e4, 0.2": "E, nu = 1e4, 0.3"},
            drivers.elastic_step,
            lambda m: (m.init_mesh(), m.init_pos()),
            held=("update_U", "advance"),
        ),
    ),
    Row(
        "simulation/implicit_fem",
        ("F_x", "F_v"),
        run=main,
        swap=Swap(
            {"    dt = 1e-2": "    dt = 4e-3"},
            lambda m, i: m.substep(),
            lambda m: (m.get_vertices(), m.init(), m.get_indices()),
        ),
    ),
    Row("simulation/implicit_fem", ("F_x", "F_v"), run=main, argv=("-s",), variant="sparse matrix"),
    Row("simulation/implicit_mass_spring", run=main),
    Row("simulation/implicit_mass_spring", ("pos", "vel", "rest_len"), run=drivers.cloth, variant="class"),
    Row("simulation/snow_phaseField", ("phi", "temperature"), run=drivers.dendrite),
)

FLUIDS = (
    Row(
        "simulation/euler",
        ("Q", "img"),
        {"N = 512": "N = 32", "res = 512": "res = 32"},
        run=main,
        absent=MATPLOTLIB,
    ),
    Row(
        "simulation/eulerfluid2d",
        ("colorField", "curlField"),
        {
            '"shape": [512, 512]': '"shape": [48, 48]',
            # Its stencils read one cell beyond every edge, which is whatever lies there in memory.
            **_inside("vf", "cf[i, j] = 0.5"),
            **_inside("cf", "gradcurl = "),
            **_inside("vf", "divf[i, j] = "),
            **_inside("pf", "new_pf[i, j] = "),
            **_inside("vf", "vf_new[i, j] = vf[i, j] - ti.Vector("),
        },
        mouse=True,
        frames=3,
        swap=Swap({"- divf[i, j]) / 4": "- divf[i, j]) / 5"}, drivers.fluid_step, drivers.stir_once),
    ),
    Row(
        "simulation/karman_vortex_street",
        ("vel", "mask"),
        run=drivers.channel,
        absent=MATPLOTLIB,
        quick=True,
        swap=Swap(
            {"4.5 * eu * eu - 1.5 * uv": "4.5 * eu * eu - 1.2 * uv"},
            lambda m, i: drivers.lattice_step(m.lbm),
            watch=("lbm.vel", "lbm.f_old"),
            edits={
                'if __name__ == "__main__":': "if True:",
                "        801,\n        201,": "        80,\n        40,",
                "[160.0, 100.0, 20.0]": "[16.0, 20.0, 4.0]",
                "lbm.solve()": "lbm.init()",
            },
        ),
    ),
    Row(
        "simulation/laplace_equation",
        ("points", "arrows.dir", "dipoles.m"),
        run=drivers.streams,
        mouse=True,
        swap=Swap(
            {"dt = 0.002": "dt = 0.004"},
            lambda m, i: m.updatePoints(),
            drivers.start_streams,
            held=("updatePoints",),
        ),
    ),
    Row(
        "simulation/stable_fluid",
        ("_dye_buffer", "_velocities", "_pressures"),
        {"\nres = 512": "\nres = 64", "p_jacobi_iters = 500": "p_jacobi_iters = 20"},
        run=main,
        mouse=True,
        frames=4,
        quick=True,
        swap=Swap({"time_c = 2": "time_c = 0.1"}, lambda m, i: m.step(drivers.MOUSE_DATA)),
    ),
    Row(
        "simulation/stable_fluid",
        ("_dye_buffer", "_velocities", "_pressures"),
        {"\nres = 512": "\nres = 32"},
        run=main,
        mouse=True,
        frames=4,
        argv=("-S",),
        variant="sparse matrix",
    ),
    Row(
        "simulation/waterwave",
        ("pixels", "height"),
        {"shape = 512, 512": "shape = 64, 64"},
        run=main,
        mouse=True,
        frames=4,
        swap=Swap(
            {"damping = 0.2": "damping = 5.0"},
            lambda m, i: (m.update(), m.visualize_wave()),
            lambda m: (m.reset(), m.create_wave(3, 20, 30)),
        ),
    ),
)

PATTERNS = (
    Row(
        "simulation/fractal",
        ("pixels",),
        {"n = 320": "n = 24"},
        run=main,
        quick=True,
        swap=Swap({"ti.cos(t) * 0.2": "ti.cos(t) * 0.3"}, lambda m, i: m.paint(0.03 * i), held=("paint",)),
    ),
    Row(
        "simulation/game_of_life",
        ("alive", "count"),
        run=main,
        swap=Swap(
            {"\nB, S = [3], [2, 3]": "\nB, S = [3, 6], [2, 3]"},
            lambda m, i: m.run(),
            lambda m: m.init(),
            held=("run",),
        ),
    ),
    Row(
        "simulation/initial_value_problem",
        ("dirs",),
        {"(time.time_ns() - beginning) * 0.00000001": "k * 0.1"},
        run=main,
    ),
    Row("simulation/mandelbrot_zoom", ("pixels",), {"width, height = 800, 640": "width, height = 60, 48"}, run=main),
)

ROWS = (*PARTICLES, *SOLIDS, *FLUIDS, *PATTERNS)
