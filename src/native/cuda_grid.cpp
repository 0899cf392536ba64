// Launch grids: read from what stands in brackets, or computed by the kernel's own function from the arguments.
//
// Invariant: a Geometry that was read is inside of what CUDA allows for every device; a grid may be empty, a block not.
// What a kernel's function has answered is kept by the values it was asked with, never by an object's identity.
#include "cuda.hpp"

#include <climits>
#include <cstring>

namespace rekernel {

namespace {

constexpr Py_ssize_t most_grids = 64;  // of one kernel
constexpr long long grid_limits[] = {2147483647, 65535, 65535}, block_limits[] = {1024, 1024, 64};
constexpr long long most_threads = 1024;
constexpr long long most_shared = 2147483647;

bool refuse_launch(Fault fault, PyObject *name, const char *what, PyObject *stolen_got, PyObject *stolen_problem) {
    Owned argument(PyUnicode_FromString(what)), problem(stolen_problem);
    Owned expected(PyUnicode_FromString("an int or a tuple of up to 3 ints"));
    Parameter nobody = {};
    nobody.name = argument.object;
    nobody.expected = expected.object;
    bool worded = argument && expected && stolen_got && problem;
    PyObject *message = worded ? PyUnicode_FromFormat("%U[grid, block]: %s %U", name, what, problem.object) : nullptr;
    raise_message(fault, nobody, stolen_got, message);
    return false;
}

bool refuse_type(PyObject *name, const char *what, PyObject *object, const char *wanted) {
    PyErr_Clear();
    PyObject *got = describe(object);
    return refuse_launch(Fault::type, name, what, got, got ? PyUnicode_FromFormat("must be %s, got %U", wanted, got)
                                                           : nullptr);
}

// "a block has 1 to 1024 threads along x"
bool refuse_limit(PyObject *name, const char *what, PyObject *number, PyObject *stolen_limit) {
    PyObject *got = PyObject_Str(number);
    Owned limit(stolen_limit);
    return refuse_launch(Fault::value, name, what, got,
                         got && limit ? PyUnicode_FromFormat("is %U: %U", got, limit.object) : nullptr);
}

// False without an exception for what is no int; too large ones become the largest.
bool read_int(PyObject *object, long long &out) {
    if (PyBool_Check(object) || !PyIndex_Check(object)) return false;
    Owned number(PyNumber_Index(object));
    if (!number) return false;
    int overflow = 0;
    out = PyLong_AsLongLongAndOverflow(number.object, &overflow);
    if (overflow) out = overflow < 0 ? LLONG_MIN : LLONG_MAX;
    return true;
}

bool read_extents(PyObject *name, const char *what, PyObject *object, long long least, const long long *limits,
                  unsigned *out) {
    static const char *wanted = "an int or a tuple of up to 3 ints", *axes[] = {"x", "y", "z"};
    Owned items(PyTuple_Check(object) || PyList_Check(object) ? PySequence_Tuple(object) : PyTuple_Pack(1, object));
    if (!items) return false;
    Py_ssize_t count = PyTuple_GET_SIZE(items.object);
    if (count < 1 || count > 3) return refuse_type(name, what, object, wanted);
    for (Py_ssize_t i = 0; i < 3; ++i) {
        long long extent = 1;
        if (i < count && !read_int(PyTuple_GET_ITEM(items.object, i), extent)) {
            return !(PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_TypeError)) &&
                   refuse_type(name, what, object, wanted);
        }
        if (extent < least || extent > limits[i]) {
            return refuse_limit(name, what, PyTuple_GET_ITEM(items.object, i),
                                PyUnicode_FromFormat("a %s has %lld to %lld %s along %s", what, least, limits[i],
                                                     least ? "threads" : "blocks", axes[i]));
        }
        out[i] = static_cast<unsigned>(extent);
    }
    return true;
}

bool read_shared(PyObject *name, PyObject *object, unsigned &out) {
    long long bytes = 0;
    if (!read_int(object, bytes)) return refuse_type(name, "shared_bytes", object, "an int");
    if (bytes < 0 || bytes > most_shared) {
        return refuse_limit(name, "shared_bytes", object,
                            PyUnicode_FromFormat("a block has 0 to %lld bytes of it", most_shared));
    }
    out = static_cast<unsigned>(bytes);
    return true;
}

// An answer of four items is asked for anew by each call.
bool ask_grid(CudaKernel *kernel, PyObject *key, Geometry &out, bool &keep) {
    Owned grid(new_reference(kernel->grid)), answer(PyObject_CallObject(grid.object, key));
    if (!answer) return false;
    Py_ssize_t count = PyTuple_Check(answer.object) ? PyTuple_GET_SIZE(answer.object) : 0;
    if (count != 3 && count != 4) {
        PyErr_SetString(PyExc_TypeError, "grid() must return (grid, block, shared_bytes)");
        return false;
    }
    keep = count == 3;
    PyObject *const *items = &PyTuple_GET_ITEM(answer.object, 0);
    return read_geometry(kernel->function.name, items[0], items[1], items[2], out);
}

bool keep_grid(CudaKernel *kernel, PyObject *key, const Geometry &geometry) {
    if (!kernel->grids) kernel->grids = PyDict_New();
    if (!kernel->grids) return false;
    if (PyDict_GET_SIZE(kernel->grids) >= most_grids) PyDict_Clear(kernel->grids);
    Owned bytes(PyBytes_FromStringAndSize(reinterpret_cast<const char *>(&geometry), sizeof geometry));
    return bytes && PyDict_SetItem(kernel->grids, key, bytes.object) == 0;
}

}  // namespace

bool read_geometry(PyObject *name, PyObject *grid, PyObject *block, PyObject *shared, Geometry &out) {
    out.shared = 0;
    if (!read_extents(name, "grid", grid, 0, grid_limits, out.grid) ||
        !read_extents(name, "block", block, 1, block_limits, out.block) ||
        (shared && !read_shared(name, shared, out.shared))) {
        return false;
    }
    long long threads = static_cast<long long>(out.block[0]) * out.block[1] * out.block[2];
    if (threads <= most_threads) return true;
    return refuse_limit(name, "block", block,
                        PyUnicode_FromFormat("a block has at most %lld threads in all, not %lld", most_threads,
                                             threads));
}

bool find_grid(CudaKernel *kernel, PyObject *stolen_shapes, PyObject *stolen_scalars, Geometry &out) {
    Owned shapes(stolen_shapes), scalars(stolen_scalars);
    Owned key(shapes && scalars ? PyTuple_Pack(2, shapes.object, scalars.object) : nullptr);
    if (!key) return false;
    PyObject *kept = kernel->grids ? PyDict_GetItemWithError(kernel->grids, key.object) : nullptr;
    if (kept) std::memcpy(&out, PyBytes_AS_STRING(kept), sizeof out);
    if (kept || PyErr_Occurred()) return kept != nullptr;
    bool keep = true;
    return ask_grid(kernel, key.object, out, keep) && (!keep || keep_grid(kernel, key.object, out));
}

}  // namespace rekernel
