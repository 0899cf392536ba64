// The words of what only kernels on a device refuse.
//
// Invariant: as in refuse.cpp: exactly one exception is set, and these run only when a call has failed already.
#include "cuda.hpp"

namespace rekernel {

namespace {

PyObject *name_of(const Refused &refused) { return refused.function->parameters[refused.parameter].name; }

// The array that tells the extents: the first that is written, or the first at all; -1 where there is none.
Py_ssize_t main_array(const Function *function) {
    Py_ssize_t first = -1;
    for (Py_ssize_t i = function->count - 1; i >= 0; --i) {
        if (function->layouts[i].is_array && (first < 0 || function->parameters[i].written ||
                                              !function->parameters[first].written)) {
            first = i;
        }
    }
    return first;
}

// "y, x, k", or "y=y, x=x, k=k"
PyObject *spelled_arguments(const Function *function) {
    PyObject *text = PyUnicode_FromString("");
    for (Py_ssize_t i = 0; text && i < function->count; ++i) {
        PyObject *name = function->parameters[i].name;
        const char *before = i ? ", " : "";
        PyUnicode_AppendAndDel(&text, function->keywords_only ? PyUnicode_FromFormat("%s%U=%U", before, name, name)
                                                              : PyUnicode_FromFormat("%s%U", before, name));
    }
    return text;
}

bool is_extents(PyObject *object) {
    if (!PyTuple_Check(object) || PyTuple_GET_SIZE(object) < 1 || PyTuple_GET_SIZE(object) > 3) return false;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) {
        if (!PyIndex_Check(PyTuple_GET_ITEM(object, i))) return false;
    }
    return true;
}

// A call as CuPy's RawKernel takes it: k((g,), (b,), (args...)).
bool is_cupy_form(PyObject *const *args, Py_ssize_t positional) {
    return positional >= 3 && is_extents(args[0]) && is_extents(args[1]) && PyTuple_Check(args[2]);
}

PyObject *grid_text(const Function *function, PyObject *const *args, Py_ssize_t positional) {
    if (is_cupy_form(args, positional)) return PyUnicode_FromFormat("%R, %R", args[0], args[1]);
    Py_ssize_t array = main_array(function);
    if (array < 0) return PyUnicode_FromString("grid, block");
    return PyUnicode_FromFormat("LaunchGrid.cover(%U.shape)", function->parameters[array].name);
}

}  // namespace

bool refuse_host(const Refused &refused) {
    PyObject *got = got_text(refused, nullptr);
    const char *remedy = is_torch(Py_TYPE(refused.argument))
                             ? "expected %U, got %U in host memory; move it: %U.cuda()"
                             : "expected %U, got %U in host memory; move it: cupy.asarray(%U)";
    PyObject *expected = refused.function->parameters[refused.parameter].expected;
    return refuse(Fault::type, refused, got,
                  got ? PyUnicode_FromFormat(remedy, expected, got, name_of(refused)) : nullptr);
}

bool refuse_mixed(const Refused &refused, int device, const Sight &sight) {
    PyObject *other = refused.function->parameters[sight.parameter].name;
    PyObject *problem = PyUnicode_FromFormat("it is on CUDA device %d, but '%U' is on device %d; pass arrays of one "
                                             "device",
                                             device, other, sight.device);
    return refuse(Fault::value, refused, got_text(refused, nullptr), problem);
}

bool refuse_gradient(const Refused &refused) {
    const char *problem = "the tensor requires a gradient, which torch cannot follow into the kernel that writes to "
                          "it; pass %U.detach()";
    return refuse_value(Fault::value, refused, nullptr, problem, problem);
}

bool refuse_lazy(const Refused &refused, const char *bit) {
    PyObject *got = got_text(refused, nullptr);
    PyObject *problem = PyUnicode_FromFormat("the %s bit of the tensor is set, so its memory holds other values; pass "
                                             "%U.resolve_%s()",
                                             bit, name_of(refused), bit);
    return refuse(Fault::value, refused, got, problem);
}

PyObject *raise_no_brackets(const Function *function, PyObject *const *args, Py_ssize_t positional) {
    PyObject *grid = grid_text(function, args, positional);
    PyObject *spelled = grid ? spelled_arguments(function) : nullptr;
    if (spelled) {
        PyErr_Format(PyExc_TypeError,
                     is_cupy_form(args, positional) ? "%U takes its launch grid in brackets: %U[%U](%U)"
                                                    : "%U needs a launch grid: %U[%U](%U)",
                     function->name, function->name, grid, spelled);
    }
    Py_XDECREF(spelled);
    Py_XDECREF(grid);
    return nullptr;
}

}  // namespace rekernel
