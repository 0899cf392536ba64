// The words of what is refused: what was expected, what came, what to do.
//
// Invariant: every function returns false and leaves exactly one exception set, made by raise_argument. They run only
// when a call has failed already, so they may be slow.
#include "cuda.hpp"
#include "numpy_api.hpp"

namespace rekernel {

namespace {

const Parameter &parameter_of(const Refused &what) { return what.function->parameters[what.parameter]; }

PyObject *sizes_text(const Py_ssize_t *sizes, int count) {
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; tuple && i < count; ++i) {
        PyObject *number = PyLong_FromSsize_t(sizes[i]);
        if (number) PyTuple_SET_ITEM(tuple, i, number);
        else Py_CLEAR(tuple);
    }
    PyObject *text = tuple ? PyObject_Repr(tuple) : nullptr;
    Py_XDECREF(tuple);
    return text;
}

// "a float64 array of shape (3, 4)"; `word` is "shape" or "strides" (in bytes).
PyObject *got_sizes(const Refused &what, const char *word, const Py_ssize_t *sizes) {
    PyObject *array = got_text(what, nullptr);
    PyObject *tuple = array ? sizes_text(sizes, what.view->ndim) : nullptr;
    PyObject *text = tuple ? PyUnicode_FromFormat("%U of %s %U", array, word, tuple) : nullptr;
    Py_XDECREF(array);
    Py_XDECREF(tuple);
    return text;
}

// "cupy.ndarray", "torch.Tensor", "DeviceNDArray": with the module where that is a short one.
PyObject *type_text_of(PyTypeObject *type) {
    PyObject *name = PyObject_GetAttrString(reinterpret_cast<PyObject *>(type), "__qualname__");
    PyObject *module = name ? PyObject_GetAttrString(reinterpret_cast<PyObject *>(type), "__module__") : nullptr;
    if (!module) PyErr_Clear();
    bool short_one = module && PyUnicode_Check(module) &&
                     PyUnicode_FindChar(module, '.', 0, PyUnicode_GET_LENGTH(module), 1) == -1 &&
                     PyUnicode_CompareWithASCIIString(module, "builtins") != 0;
    if (short_one) Py_SETREF(name, PyUnicode_FromFormat("%U.%U", module, name));
    Py_XDECREF(module);
    return name;
}

// A remedy in NumPy's words, said with those of the array's own library.
PyObject *translate(const Refused &what, PyObject *stolen_problem) {
    if (!stolen_problem || !what.function->on_device) return stolen_problem;
    PyObject *name = parameter_of(what).name;
    PyObject *from = PyUnicode_FromFormat("np.ascontiguousarray(%U)", name);
    PyObject *to = is_torch(Py_TYPE(what.argument)) ? PyUnicode_FromFormat("%U.contiguous()", name)
                                                    : PyUnicode_FromFormat("cupy.ascontiguousarray(%U)", name);
    PyObject *text = from && to ? PyUnicode_Replace(stolen_problem, from, to, -1) : nullptr;
    Py_XDECREF(from);
    Py_XDECREF(to);
    Py_DECREF(stolen_problem);
    return text;
}

}  // namespace

PyObject *got_text(const Refused &what, const char *adjective) {
    if (PyArray_Check(what.argument)) return describe_array(what.argument, adjective);
    if (!what.view) return describe(what.argument);
    const char *article = adjective ? adjective : "a";
    PyObject *type = what.function->on_device ? type_text_of(Py_TYPE(what.argument))
                                              : PyUnicode_FromFormat("%.200s", Py_TYPE(what.argument)->tp_name);
    PyObject *text = nullptr;
    if (type && what.view->dtype) {
        text = PyUnicode_FromFormat("%s %U of %S", article, type, what.view->dtype);
    } else if (type && what.view->element == Element::none) {
        text = PyUnicode_FromFormat("%s %U of elements of another kind", article, type);
    } else if (type) {
        text = PyUnicode_FromFormat("%s %U of %s", article, type, about(what.view->element).name);
    }
    Py_XDECREF(type);
    return text;
}

bool refuse(Fault fault, const Refused &what, PyObject *got, PyObject *problem) {
    raise_argument(fault, what.function->name, parameter_of(what), got, translate(what, problem));
    return false;
}

bool refuse_unlike(Fault fault, const Refused &what, PyObject *got, const char *remedy) {
    const Parameter &parameter = parameter_of(what);
    PyObject *problem = got ? PyUnicode_FromFormat("expected %U, got %U", parameter.expected, got) : nullptr;
    PyObject *name = parameter.name;
    PyObject *more = problem && *remedy ? PyUnicode_FromFormat(remedy, name, name) : nullptr;
    if (more) PyUnicode_Append(&problem, more);
    Py_XDECREF(more);
    return refuse(fault, what, got, problem);
}

bool refuse_object(const Refused &what) {
    bool sequence = PyList_Check(what.argument) || PyTuple_Check(what.argument);
    bool array_like = PyObject_HasAttrString(what.argument, "__cuda_array_interface__");
    const char *remedy = "";
    if (what.function->on_device) remedy = sequence && !parameter_of(what).written ? "; pass cupy.asarray(%U) of that type" : "";
    else if (array_like) remedy = "; it is on a CUDA device: move it to the CPU first";
    else if (sequence && !parameter_of(what).written) remedy = "; pass np.asarray(%U) of that type";
    return refuse_unlike(Fault::type, what, describe(what.argument), remedy);
}

bool refuse_element(const Refused &what) {
    const Layout &layout = what.function->layouts[what.parameter];
    bool array = PyArray_Check(what.argument);
    const char *remedy = "";
    if (parameter_of(what).written) remedy = "; the kernel writes to it, so make it an array of that type";
    else if (array && layout.element != Element::none) remedy = "; pass %U.astype(...) of that type";
    return refuse_unlike(Fault::type, what, got_text(what, nullptr), remedy);
}

bool refuse_field(const Refused &what, const Field &field) {
    PyObject *got = got_text(what, nullptr);
    PyObject *problem = got ? PyUnicode_FromFormat("its records must have a field '%U' of %s at byte %zd, got %U",
                                                   field.name, about(field.element).name, field.offset, got)
                            : nullptr;
    return refuse(Fault::type, what, got, problem);
}

bool refuse_rank(const Refused &what) {
    PyObject *array = got_text(what, nullptr);
    PyObject *got = array ? PyUnicode_FromFormat("%U of %d dimension%s", array, what.view->ndim,
                                                 what.view->ndim == 1 ? "" : "s")
                          : nullptr;
    Py_XDECREF(array);
    return refuse_unlike(Fault::value, what, got, "");
}

bool refuse_extent(const Refused &what, int axis, const Extent *seen) {
    PyObject *got = got_sizes(what, "shape", what.view->shape);
    const Axis &row = what.function->layouts[what.parameter].axes[axis];
    Py_ssize_t extent = what.view->shape[axis];
    PyObject *problem = nullptr;
    if (got && !seen) {
        problem = PyUnicode_FromFormat("axis %d must have extent %zd, got %zd (%U)", axis, row.extent + 2 * row.margin,
                                       extent, got);
    } else if (got) {
        PyObject *other = what.function->parameters[seen->parameter].name;
        Py_ssize_t inner = inner_extent(*what.view, what.function->layouts[what.parameter].axes, axis);
        problem = PyUnicode_FromFormat("axis %d has extent %zd, but '%U' has extent %zd there (both are %U); got %U",
                                       axis, inner, other, seen->value, what.function->extents[row.name], got);
    }
    return refuse(Fault::value, what, got, problem);
}

bool refuse_stride(const Refused &what, int axis, const Extent *seen) {
    const Layout &layout = what.function->layouts[what.parameter];
    PyObject *got = got_sizes(what, "strides", what.view->strides);
    Py_ssize_t stride = what.view->strides[axis];
    PyObject *problem = nullptr;
    if (got && stride % layout.itemsize != 0) {
        problem = PyUnicode_FromFormat("the stride of axis %d is %zd bytes, which is not a multiple of the item size "
                                       "%zd; pass a copy (np.ascontiguousarray(%U))",
                                       axis, stride, layout.itemsize, parameter_of(what).name);
    } else if (got && seen) {
        PyObject *other = what.function->parameters[seen->parameter].name;
        problem = PyUnicode_FromFormat("the stride of axis %d is %zd elements, but that of '%U' is %zd, and the kernel "
                                       "has one number for both; pass arrays of one layout",
                                       axis, stride / layout.itemsize, other, seen->value);
    } else if (got) {
        problem = PyUnicode_FromFormat("the stride of axis %d must be %zd elements, got %zd; pass an array of that "
                                       "layout",
                                       axis, layout.axes[axis].stride / layout.itemsize, stride / layout.itemsize);
    }
    return refuse(Fault::value, what, got, problem);
}

bool refuse_value(Fault fault, const Refused &what, const char *adjective, const char *for_read,
                  const char *for_written) {
    const Parameter &parameter = parameter_of(what);
    const char *problem = parameter.written ? for_written : for_read;
    return refuse(fault, what, got_text(what, adjective), PyUnicode_FromFormat(problem, parameter.name, parameter.name));
}

bool refuse_slot(const Refused &what, const Slot &slot, Py_ssize_t value) {
    bool shape = slot.kind == Slot::shape;
    PyObject *got = got_sizes(what, shape ? "shape" : "strides", shape ? what.view->shape : what.view->strides);
    PyObject *problem = got ? PyUnicode_FromFormat("the %s of axis %d is %zd, which does not fit the %s of the kernel",
                                                   shape ? "extent" : "stride", slot.axis, value,
                                                   about(slot.element).name)
                            : nullptr;
    return refuse(Fault::value, what, got, problem);
}

bool refuse_overlap(const Refused &what, Py_ssize_t other, bool decided) {
    PyObject *name = what.function->parameters[other].name;
    PyObject *got = got_text(what, nullptr);
    const char *sure = "it overlaps '%U', and the kernel was built for arrays that do not (restrict); pass a copy, or "
                       "build the kernel with allow_alias=True";
    const char *unsure = "it may overlap '%U' (their strides are too entangled to tell), and the kernel was built for "
                         "arrays that do not (restrict); pass a copy, or build the kernel with allow_alias=True";
    if (what.function->keywords_only || what.function->on_device) {  // they have no such option
        sure = "it overlaps '%U', and the kernel may read there what it has just written; pass a copy";
        unsure = "it may overlap '%U' (their strides are too entangled to tell); pass a copy";
    }
    return refuse(Fault::value, what, got, PyUnicode_FromFormat(decided ? sure : unsure, name));
}

bool refuse_export(const Refused &what, const char *how) {
    if (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError)) return false;
    PyObject *cause = take_error();
    PyObject *got = describe(what.argument);
    PyObject *problem =
        got ? PyUnicode_FromFormat("expected %U, got %U: %s (%S)", parameter_of(what).expected, got, how, cause)
            : nullptr;
    refuse(Fault::type, what, got, problem);
    PyObject *raised = take_error();
    PyException_SetContext(raised, new_reference(cause));
    PyException_SetCause(raised, cause);
    restore_error(raised);
    return false;
}

}  // namespace rekernel
