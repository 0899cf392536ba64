"""Rows: the small examples, automatic differentiation, algorithms."""

from __future__ import annotations

from programs import drivers
from programs.row import Row, Swap, main

MATPLOTLIB = ("matplotlib.pyplot", "matplotlib.cm", "matplotlib.colors", "mpl_toolkits.mplot3d")

DRAW_LOGO = """

ti.init()
picture = ti.field(float, (32, 32))


@ti.kernel
def draw():
    for i, j in picture:
        picture[i, j] = taichi_logo(ti.Vector([i, j]) / 32)
"""

FEATURES = (
    Row("minimal", ("p()",), run=lambda m: {"p()": m.p()}, output=True),
    Row("patterns", ("picture",), append=DRAW_LOGO, run=lambda m: m.draw()),
    Row("features/gui/fullscreen", ("img",), {"res = (1920, 1080)": "res = (96, 54)"}),
    Row("features/gui/gui_image_io", ("pixel",), {"shape=(512, 512, 3)": "shape=(32, 32, 3)"}),
    Row("features/gui/gui_widgets"),
    Row("features/gui/keyboard", mouse=True),
    Row("features/io/export_mesh", ("x", "indices")),
    Row("features/io/export_ply", ("pos", "rgba")),
    Row(
        "features/io/export_videos",
        ("pixels",),
        {"shape=(512, 512, 3)": "shape=(32, 32, 3)", "range(50)": "range(3)"},
        run=main,
    ),
    # All its cells are inactive in the end; what counts is what it prints on the way.
    Row("features/sparse/explicit_activation", ("size",), run=lambda m: {"size": m.x.shape}, output=True),
    Row(
        "features/sparse/taichi_bitmasked",
        ("x",),
        run=main,
        swap=Swap(
            {"in x:\n        x[i, j] = color": "in x:\n        x[i, j] = color + 0.5 * x[i, j]"},
            step=lambda m, i: m.paint_active_pixels(0.25 + 0.01 * i),
            setup=lambda m: m.activate(),
            sparse=("x",),
        ),
    ),
    Row("features/sparse/taichi_dynamic", ("x", "l"), run=main),
    Row(
        "features/sparse/taichi_sparse",
        ("img",),
        {"n = 512": "n = 128"},
        run=main,
        quick=True,
        swap=Swap({"1 - t / 4": "1 - t / 5"}, drivers.sparse_step, lambda m: m.img.fill(0.05), sparse=("x",)),
    ),
    Row("features/sparse/tutorial", ("x",), output=True),
)

AUTODIFF = (
    Row(
        "autodiff/jacobian",
        ("jacobian_fwd", "jacobian_rev"),
        {"N_param = 50": "N_param = 8", "N_loss = 100": "N_loss = 12"},
        absent=MATPLOTLIB,
    ),
    Row(
        "autodiff/minimization",
        ("x",),
        run=main,
        output=True,
        swap=Swap(
            {"x.grad[i] * 0.1": "x.grad[i] * 0.3"},
            drivers.descend,
            drivers.start_descent,
            held=("reduce", "gradient_descent"),
        ),
    ),
    Row("autodiff/regression", ("coeffs",), {"range(1000)": "range(20)"}, run=main, absent=MATPLOTLIB),
    Row("autodiff/simple_derivative", ("y", "x.grad"), {"N = 2048": "N = 64"}, run=main, absent=MATPLOTLIB),
    Row(
        "autodiff/diff_sph/diff_sph",
        ("F_pos", "pos_vis_buffer"),
        {
            "os.path.dirname(os.path.realpath(__file__))": "ti.__path__[0] + '/examples/autodiff/diff_sph'",
            "    steps = 128": "    steps = 8",
            "[0.5, 0.05, 0.5]": "[0.16, 0.05, 0.16]",
            # Its layers write as many outputs as they have hidden cells, past the end of the field.
            "self.n_hidden):\n                self.output[model_id, t, k, i] = ti.tanh(": (
                "self.n_output):\n                self.output[model_id, t, k, i] = ti.tanh("
            ),
            "self.n_hidden):\n                self.output[model_id, t, k, i] = self.": (
                "self.n_output):\n                self.output[model_id, t, k, i] = self."
            ),
        },
        run=main,
        frames=1,
        absent=MATPLOTLIB,
    ),
)

ALGORITHMS = (
    Row("algorithm/laplace", ("y",), run=main, output=True),
    Row(
        "algorithm/marching_squares",
        ("pixels", "edges.p0"),
        {
            "W, H = 800, 600": "W, H = 60, 40",
            "t0 = time.perf_counter()": "",
            "time.perf_counter() - t0": "0.1 * gui.frame",
        },
    ),
    Row(
        "algorithm/mciso_advanced",
        ("flat.m", "sparse.m", "solid.r"),
        # Where it takes a gradient, it reads one cell beyond every edge.
        {"for I in ti.grouped(self.g):": "for I in ti.grouped(ti.ndrange(*[[1, self.N - 1]] * self.dim)):"},
        run=drivers.iso_surfaces,
    ),
    Row(
        "algorithm/mgpcg",
        ("x", "pixels"),
        # Two levels: on a third one the grid would end where its blocks end, and the stencil read beyond.
        {
            "N = 128": "N = 16",
            "n_mg_levels = 4": "n_mg_levels = 2",
            "N_gui = 512": "N_gui = 64",
            "range(400)": "range(3)",
        },
        run=main,
        swap=Swap(
            {"bottom_smoothing = 50": "bottom_smoothing = 2"},
            drivers.descent_on_grids,
            lambda m: m.init(),
            sparse=("x", "p", "Ap", "r", "z"),
            watch=("x", "z[0]"),
        ),
    ),
    Row(
        "algorithm/mgpcg_advanced",
        ("x", "pixels"),
        {
            "dim=3, N=128, n_mg_levels=4": "dim=3, N=16, n_mg_levels=2",
            "self.N_gui = 512": "self.N_gui = 64",
            "max_iters=400": "max_iters=3",
        },
        run=drivers.multigrid,
    ),
    Row("algorithm/poisson_disk_sampling", ("samples", "img"), {"window_size = 800": "window_size = 64"}, run=main),
    Row("algorithm/print_offset", ("a",), run=main),
    Row(
        "algorithm/circle-packing/circle_packing_image",
        ("circles.r", "filled"),
        run=drivers.circles,
        absent=(*MATPLOTLIB, "cairo", "cv2"),
        swap=Swap(
            {"r = int((dist_image[y, x] + 1) / 2)": "r = int((dist_image[y, x] + 1) / 3)"},
            drivers.circle_step,
            edits={
                'if __name__ == "__main__":\n    main()': (
                    "y, x = np.mgrid[0:60, 0:80]\n"
                    "distance = np.abs(np.maximum(np.abs(x - 40), np.abs(y - 30)) - 18).astype(np.float32)\n"
                    "filled = np.zeros(distance.shape, dtype=np.int32)\n"
                )
            },
            held=("add_new_circles",),
            sparse=("circles",),
        ),
    ),
    Row(
        "machine_learning/differential_evolution",
        ("best_fit", "all_pop"),
        {
            "max_iter = 50": "max_iter = 6",
            # It runs one iteration past the end of its results, compares 20 numbers of a trial with two bounds,
            # and draws the number of a creature one too high.
            "_max_iter=max_iter": "_max_iter=max_iter - 1",
            "trial = ti.field(ti.float32, shape=(search_num,))": "trial = ti.field(ti.float32, shape=(dim,))",
            "r * (high - low) + low": "r * (high - 1 - low) + low",
        },
        absent=MATPLOTLIB,
    ),
)

ROWS = (*FEATURES, *AUTODIFF, *ALGORITHMS)
