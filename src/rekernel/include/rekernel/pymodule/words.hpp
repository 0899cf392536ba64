// Part of an exported module: what is said of a wrong argument. Every function here that refuses returns false and
// leaves an exception set; it runs only when a call has failed already, so it may be slow.
namespace rekernel_module {

// Is it an instance of a class of NumPy? Where nobody has imported NumPy nothing is.
inline bool is_numpy(PyObject *object, const char *cls) {
    PyObject *name = PyUnicode_FromString("numpy");
    PyObject *numpy = name ? PyImport_GetModule(name) : nullptr;
    PyObject *type = numpy ? PyObject_GetAttrString(numpy, cls) : nullptr;
    int is = type ? PyObject_IsInstance(object, type) : 0;
    Py_XDECREF(type);
    Py_XDECREF(numpy);
    Py_XDECREF(name);
    if (PyErr_Occurred()) PyErr_Clear();
    return is > 0;
}

inline bool raise(PyObject *cls, const What &what, PyObject *problem) {
    if (problem) PyErr_Format(cls, "%s() argument '%s': %U", what.kernel.name, what.parameter.name, problem);
    Py_XDECREF(problem);
    return false;
}

// "a float64 array", "a read-only float64 array", "a memoryview of float64", "list", "None"
inline PyObject *got_text(const What &what, const char *adjective) {
    PyObject *argument = what.view.argument;
    if (argument == Py_None) return PyUnicode_FromString("None");
    PyObject *dtype = is_numpy(argument, "ndarray") ? PyObject_GetAttrString(argument, "dtype") : nullptr;
    PyObject *text = dtype ? PyObject_Str(dtype) : nullptr;
    Py_XDECREF(dtype);
    PyErr_Clear();
    PyObject *said;
    const char *type = Py_TYPE(argument)->tp_name;
    if (text) {
        const char *word = PyUnicode_AsUTF8(text);
        bool vowel = word && (*word == 'a' || *word == 'e' || *word == 'i' || *word == 'o');
        said = PyUnicode_FromFormat("%s %U array", adjective ? adjective : vowel ? "an" : "a", text);
    } else if (!what.view.data && !what.view.buffer.obj) {
        said = PyUnicode_FromFormat("%.200s", type);
    } else if (what.view.dtype) {
        said = PyUnicode_FromFormat("%s %.200s of %S", adjective ? adjective : "a", type, what.view.dtype);
    } else {
        bool known = what.view.element != Element::none;
        said = PyUnicode_FromFormat("%s %.200s of %s", adjective ? adjective : "a", type,
                                    known ? about(what.view.element).name : "elements of another kind");
    }
    Py_XDECREF(text);
    return said;
}

// "a float64 array of shape (3, 4)"
inline PyObject *got_sizes(const What &what, const char *word, const Py_ssize_t *sizes) {
    PyObject *array = got_text(what, nullptr);
    PyObject *tuple = PyTuple_New(what.view.ndim);
    for (int i = 0; tuple && i < what.view.ndim; ++i) {
        PyObject *number = PyLong_FromSsize_t(sizes[i]);
        if (number) PyTuple_SET_ITEM(tuple, i, number);
        else Py_CLEAR(tuple);
    }
    PyObject *text = array && tuple ? PyUnicode_FromFormat("%U of %s %R", array, word, tuple) : nullptr;
    Py_XDECREF(array);
    Py_XDECREF(tuple);
    return text;
}

// "expected float64[:, :], got a float32 array", with a remedy that may name the argument twice.
inline bool refuse_unlike(PyObject *cls, const What &what, PyObject *got, const char *remedy) {
    PyObject *problem = got ? PyUnicode_FromFormat("expected %s, got %U", what.parameter.type, got) : nullptr;
    const char *name = what.parameter.name;
    if (problem && *remedy) PyUnicode_AppendAndDel(&problem, PyUnicode_FromFormat(remedy, name, name));
    Py_XDECREF(got);
    return raise(cls, what, problem);
}

inline bool refuse_object(const What &what) {
    PyObject *argument = what.view.argument;
    bool sequence = PyList_Check(argument) || PyTuple_Check(argument);
    const char *remedy = "";
    if (PyObject_HasAttrString(argument, "__cuda_array_interface__")) {
        remedy = "; it is on a CUDA device: move it to the CPU first";
    } else if (sequence && !what.parameter.written) {
        remedy = "; pass np.asarray(%s) of that type";
    }
    return refuse_unlike(PyExc_TypeError, what, got_text(what, nullptr), remedy);
}

inline bool refuse_element(const What &what) {
    const char *remedy = "";
    if (what.parameter.written) remedy = "; the kernel writes to it, so make it an array of that type";
    else if (what.parameter.element != Element::none && is_numpy(what.view.argument, "ndarray")) {
        remedy = "; pass %s.astype(...) of that type";
    }
    return refuse_unlike(PyExc_TypeError, what, got_text(what, nullptr), remedy);
}

inline bool refuse_field(const What &what, const Field &field) {
    PyObject *got = got_text(what, nullptr);
    PyObject *problem = got ? PyUnicode_FromFormat("its records must have a field '%s' of %s at byte %zd, got %U",
                                                   field.name, about(field.element).name, field.offset, got)
                            : nullptr;
    Py_XDECREF(got);
    return raise(PyExc_TypeError, what, problem);
}

inline bool refuse_rank(const What &what) {
    PyObject *array = got_text(what, nullptr);
    int ndim = what.view.ndim;
    PyObject *got =
        array ? PyUnicode_FromFormat("%U of %d dimension%s", array, ndim, ndim == 1 ? "" : "s") : nullptr;
    Py_XDECREF(array);
    return refuse_unlike(PyExc_ValueError, what, got, "");
}

// `other` is the parameter in which a named extent was seen first, with the extent that it had.
inline bool refuse_extent(const What &what, int axis, const Parameter *other, Py_ssize_t seen) {
    PyObject *got = got_sizes(what, "shape", what.view.shape);
    const Axis &row = what.parameter.axes[axis];
    Py_ssize_t extent = what.view.shape[axis];
    PyObject *problem = nullptr;
    if (got && !other) {
        problem = PyUnicode_FromFormat("axis %d must have extent %zd, got %zd (%U)", axis, row.extent + 2 * row.margin,
                                       extent, got);
    } else if (got) {
        problem = PyUnicode_FromFormat("axis %d has extent %zd, but '%s' has extent %zd there (both are %s); got %U",
                                       axis, inner_extent(what.parameter, what.view, axis), other->name, seen,
                                       what.kernel.extents[row.name], got);
    }
    Py_XDECREF(got);
    return raise(PyExc_ValueError, what, problem);
}

inline bool refuse_stride(const What &what, int axis, const Parameter *other, Py_ssize_t seen) {
    Py_ssize_t stride = what.view.strides[axis], size = what.parameter.itemsize;
    PyObject *problem;
    if (stride % size != 0) {
        problem = PyUnicode_FromFormat("the stride of axis %d is %zd bytes, which is not a multiple of the item size "
                                       "%zd; pass a copy (np.ascontiguousarray(%s))",
                                       axis, stride, size, what.parameter.name);
    } else if (other) {
        problem = PyUnicode_FromFormat("the stride of axis %d is %zd elements, but that of '%s' is %zd, and the kernel "
                                       "has one number for both; pass arrays of one layout",
                                       axis, stride / size, other->name, seen);
    } else {
        problem = PyUnicode_FromFormat("the stride of axis %d must be %zd elements, got %zd; pass an array of that "
                                       "layout",
                                       axis, what.parameter.axes[axis].stride / size, stride / size);
    }
    return raise(PyExc_ValueError, what, problem);
}

// The texts may have up to two `%s` for the argument's name.
inline bool refuse_value(PyObject *cls, const What &what, const char *for_read, const char *for_written) {
    const char *name = what.parameter.name;
    return raise(cls, what, PyUnicode_FromFormat(what.parameter.written ? for_written : for_read, name, name));
}

inline bool refuse_slot(const What &what, const Slot &slot, Py_ssize_t value) {
    const char *word = slot.kind == 'n' ? "extent" : "stride";
    return raise(PyExc_ValueError, what,
                 PyUnicode_FromFormat("the %s of axis %d is %zd, which does not fit the %s of the kernel", word,
                                      slot.axis, value, about(slot.element).name));
}

inline bool refuse_overlap(const What &what, const Parameter &other, bool decided) {
    const char *text = decided ? "it overlaps '%s', and the kernel was built for arrays that do not (restrict); pass a "
                                 "copy, or build the kernel with allow_alias=True"
                               : "it may overlap '%s' (their strides are too entangled to tell), and the kernel was "
                                 "built for arrays that do not (restrict); pass a copy, or build the kernel with "
                                 "allow_alias=True";
    if (what.kernel.keywords_only) {  // pystencils has no such option
        text = decided ? "it overlaps '%s', and the kernel may read there what it has just written; pass a copy"
                       : "it may overlap '%s' (their strides are too entangled to tell); pass a copy";
    }
    return raise(PyExc_ValueError, what, PyUnicode_FromFormat(text, other.name));
}

}  // namespace rekernel_module
