"""Rows: rendering, graphs, real functions, and the examples with a ``ti.ui`` window."""

from __future__ import annotations

from programs import drivers
from programs.row import Row, Swap, main

NO_TEXTURES = "textures exist on Vulkan and OpenGL only"
NO_SHARED_MEMORY = "needs block-shared memory, so a GPU, and a pretrained model from the network"

GRAPHS = (
    Row(
        "graph/mpm88_graph",
        ("F_x", "F_grid_m"),
        {"n_particles = 8192": "n_particles = 512", "n_grid = 128": "n_grid = 32", "N_ITER = 500": "N_ITER = 10"},
        run=main,
        quick=True,
        swap=Swap(
            {"gravity = 9.8": "gravity = 4.9"},
            drivers.graph_step,
            lambda m: m.init_particles(m.F_x, m.F_v, m.F_J),
        ),
    ),
    # Its fields are local to `main`; what it computes shows in what it draws.
    Row(
        "graph/stable_fluid_graph",
        ("mouse_data_ti",),
        {"res = 512": "res = 64", "p_jacobi_iters = 500": "p_jacobi_iters = 10"},
        run=main,
        frames=3,
        mouse=True,
    ),
    Row("graph/texture_graph", skip=NO_TEXTURES),
)

RENDERING = (
    Row(
        "rendering/cornell_box",
        ("image_pixels", "objects.transform.matrix"),
        {"image_resolution = (512, 512)": "image_resolution = (12, 12)"},
        run=main,
        frames=1,
    ),
    Row(
        "rendering/oit_renderer",
        ("color_buffer", "spheres.radius"),
        {"res = (1000, 1000)": "res = (24, 24)"},
        run=main,
    ),
    Row(
        "rendering/rasterizer",
        ("pixels", "samples", "block_num_triangles"),
        {"width, height = 500, 500": "width, height = 64, 64"},
        run=drivers.triangles,
    ),
    Row("rendering/sdf_renderer", ("color_buffer",), {"res = 1280, 720": "res = 32, 18"}, run=main, frames=0),
    Row("rendering/simple_texture", skip=NO_TEXTURES),
    Row("rendering/simple_uv", ("pixels",), {"res = (512, 512)": "res = (32, 32)"}),
    Row("rendering/taichi_logo", ("x",), {"n = 512": "n = 32"}, run=main),
    Row("rendering/taichi_ngp", skip=NO_SHARED_MEMORY),
)

REAL_FUNCTIONS = (
    Row(
        "real_func/algorithm/marching_squares",
        ("pixels", "edges.p0"),
        {
            "W, H = 800, 600": "W, H = 60, 40",
            "t0 = time.perf_counter()": "",
            "time.perf_counter() - t0": "0.1 * gui.frame",
        },
        quick=True,
        swap=Swap({"level = 0.15": "level = 0.05"}, drivers.contour_step, held=("march_squares", "render")),
    ),
    Row(
        "real_func/algorithm/poisson_disk_sampling",
        ("samples", "img"),
        {"window_size = 800": "window_size = 64"},
        run=main,
    ),
    Row(
        "real_func/graph/stable_fluid_graph",
        ("mouse_data_ti",),
        {"res = 512": "res = 64", "p_jacobi_iters = 500": "p_jacobi_iters = 10"},
        run=main,
        frames=3,
        mouse=True,
    ),
    Row(
        "real_func/rendering/cornell_box",
        ("image_pixels", "objects.transform.matrix"),
        {"image_resolution = (512, 512)": "image_resolution = (12, 12)"},
        run=main,
        frames=1,
    ),
    Row("real_func/rendering/taichi_ngp", skip=NO_SHARED_MEMORY),
)

WINDOWS = (
    Row("ggui_examples/fem128_ggui", ("pos", "U"), {"N = 12\n": "N = 6\n"}, run=main, mouse=True),
    Row("ggui_examples/fractal3d_ggui", (), {"image_res = (1280, 720)": "image_res = (24, 16)"}, run=main),
    Row(
        "ggui_examples/mass_spring_3d_ggui",
        ("x", "v", "vertices"),
        # The springs are too stiff for the longer time step that would come with fewer points.
        {"n = 128": "n = 12", "dt = 4e-2 / n": "dt = 2e-4"},
        run=main,
        swap=Swap(
            {"drag_damping = 1\n": "drag_damping = 20\n"},
            lambda m, i: (m.substep(), m.update_vertices()),
            lambda m: m.initialize_mass_points(),
        ),
    ),
    Row("ggui_examples/mass_spring_game_ggui", ("x", "rest_length"), run=main, mouse=True),
    Row(
        "ggui_examples/mpm128_ggui",
        ("x", "grid_m"),
        {"9000 * quality**2, 128 * quality": "900 * quality**2, 64 * quality"},
        run=main,
        mouse=True,
    ),
    Row(
        "ggui_examples/mpm3d_ggui",
        ("F_x", "F_grid_m"),
        {"dim, n_grid, steps, dt = 3, 64, 25, 2e-4": "dim, n_grid, steps, dt = 3, 32, 2, 2e-4"},
        run=main,
    ),
    Row(
        "ggui_examples/stable_fluid_ggui",
        ("_dye_buffer", "_velocities", "_pressures"),
        {"res = 512": "res = 64", "p_jacobi_iters = 500": "p_jacobi_iters = 20"},
        run=main,
        mouse=True,
        frames=4,
    ),
)

ROWS = (*GRAPHS, *RENDERING, *REAL_FUNCTIONS, *WINDOWS)
