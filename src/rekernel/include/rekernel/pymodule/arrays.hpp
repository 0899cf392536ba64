// Part of an exported module: arrays, by the buffer protocol, against their rows. For an array that passes, every
// address that the kernel can make of its pointer, extents and strides belongs to it and is aligned. Strides of axes
// without a second element, and those of an empty array, are never used for an address and may be anything.
namespace rekernel_module {

inline void release(View &view) {
    if (view.buffer.obj) PyBuffer_Release(&view.buffer);
    PyMem_Free(view.sizes);
    Py_CLEAR(view.dtype);
    Py_CLEAR(view.array);
}

inline bool make_sizes(View &view) {
    view.sizes = PyMem_New(Py_ssize_t, static_cast<size_t>(view.ndim) * 2 + 1);
    if (!view.sizes) PyErr_NoMemory();
    view.shape = view.sizes;
    view.strides = view.sizes + view.ndim;
    return view.sizes != nullptr;
}

inline void pack_strides(View &view, Py_ssize_t itemsize) {
    size_t packed = static_cast<size_t>(itemsize);  // may wrap: a view can claim any shape
    for (int i = view.ndim - 1; i >= 0; --i) {
        view.sizes[view.ndim + i] = static_cast<Py_ssize_t>(packed);
        packed *= static_cast<size_t>(view.sizes[i]);
    }
}

inline bool copy_sizes(PyObject *tuple, Py_ssize_t *out) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) out[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(tuple, i));
    return !PyErr_Occurred();
}

// NumPy's own account of an array, for records have more kinds of fields than the buffer protocol has letters.
inline bool view_interface(PyObject *interface, View &view) {
    PyObject *shape = PyDict_GetItemString(interface, "shape"), *data = PyDict_GetItemString(interface, "data");
    PyObject *strides = PyDict_GetItemString(interface, "strides");
    bool fits = shape && PyTuple_Check(shape) && data && PyTuple_Check(data) && PyTuple_GET_SIZE(data) == 2;
    if (!fits) {
        PyErr_SetString(PyExc_TypeError, "__array_interface__ of the array is incomplete");
        return false;
    }
    view.data = static_cast<char *>(PyLong_AsVoidPtr(PyTuple_GET_ITEM(data, 0)));
    view.writeable = PyTuple_GET_ITEM(data, 1) == Py_False;
    view.ndim = static_cast<int>(PyTuple_GET_SIZE(shape));
    if (PyErr_Occurred() || !make_sizes(view) || !copy_sizes(shape, view.sizes)) return false;
    if (strides && PyTuple_Check(strides)) return copy_sizes(strides, view.sizes + view.ndim);
    PyObject *itemsize = PyObject_GetAttrString(view.dtype, "itemsize");
    if (itemsize) pack_strides(view, PyLong_AsSsize_t(itemsize));
    Py_XDECREF(itemsize);
    return !PyErr_Occurred();
}

inline bool view_records(View &view) {
    PyObject *numpy = PyImport_ImportModule("numpy");
    view.array = numpy ? PyObject_CallMethod(numpy, "asanyarray", "O", view.argument) : nullptr;
    view.dtype = view.array ? PyObject_GetAttrString(view.array, "dtype") : nullptr;
    PyObject *interface = view.dtype ? PyObject_GetAttrString(view.array, "__array_interface__") : nullptr;
    bool viewed = interface && view_interface(interface, view);
    Py_XDECREF(interface);
    Py_XDECREF(numpy);
    return viewed;
}

inline bool view_buffer(View &view) {
    if (PyObject_GetBuffer(view.argument, &view.buffer, PyBUF_RECORDS_RO) < 0) return false;
    const Py_buffer &buffer = view.buffer;
    view.data = static_cast<char *>(buffer.buf);
    view.ndim = buffer.ndim;
    view.shape = buffer.shape;
    view.strides = buffer.strides;
    view.writeable = !buffer.readonly;
    view.element = element_of_format(buffer.format, buffer.itemsize, view.swapped);
    // ctypes leaves the strides out although they are asked for.
    if (view.ndim == 0 || (view.shape && view.strides)) return true;
    if (!make_sizes(view)) return false;
    for (int i = 0; i < view.ndim; ++i) {
        view.sizes[i] = buffer.shape ? buffer.shape[i] : i == 0 ? buffer.len / buffer.itemsize : 1;
    }
    pack_strides(view, buffer.itemsize);
    return true;
}

// Numbers and text have buffers, too; none of them is an array.
inline bool is_plain(PyObject *object) {
    return object == Py_None || PyLong_Check(object) || PyFloat_Check(object) || PyComplex_Check(object) ||
           PyUnicode_Check(object) || is_numpy(object, "generic");
}

inline bool view_array(const What &what, View &view) {
    if (is_plain(view.argument) || !PyObject_CheckBuffer(view.argument)) return refuse_object(what);
    if (what.parameter.element == Element::none ? view_records(view) : view_buffer(view)) return true;
    if (!PyErr_ExceptionMatches(PyExc_Exception) || PyErr_ExceptionMatches(PyExc_MemoryError)) return false;
    PyErr_Clear();  // NumPy has types that no buffer can tell, such as times
    return refuse_element(what);
}

inline bool has_steps(const View &view, bool empty, int axis) { return !empty && view.shape[axis] > 1; }

// The dtype's fields are a mapping of name to (dtype, offset, ...).
inline bool check_field(const What &what, PyObject *fields, const Field &field) {
    PyObject *found = fields == Py_None ? nullptr : PyMapping_GetItemString(fields, field.name);
    PyErr_Clear();
    bool fits = false;
    if (found && PyTuple_Check(found) && PyTuple_GET_SIZE(found) >= 2) {
        PyObject *dtype = PyTuple_GET_ITEM(found, 0);
        PyObject *name = PyObject_GetAttrString(dtype, "name"), *native = PyObject_GetAttrString(dtype, "isnative");
        fits = name && PyUnicode_Check(name) && native == Py_True &&
               PyUnicode_CompareWithASCIIString(name, about(field.element).name) == 0 &&
               PyLong_AsSsize_t(PyTuple_GET_ITEM(found, 1)) == field.offset;
        Py_XDECREF(native);
        Py_XDECREF(name);
    }
    Py_XDECREF(found);
    if (PyErr_Occurred()) return false;
    return fits || refuse_field(what, field);
}

inline bool check_records(const What &what) {
    PyObject *fields = PyObject_GetAttrString(what.view.dtype, "fields");
    PyObject *size = fields ? PyObject_GetAttrString(what.view.dtype, "itemsize") : nullptr;
    bool fits = size && fields != Py_None && PyLong_AsSsize_t(size) == what.parameter.itemsize;
    bool accepted = !PyErr_Occurred() && (fits || refuse_element(what));
    for (int i = 0; accepted && i < what.parameter.field_count; ++i) {
        accepted = check_field(what, fields, what.parameter.fields[i]);
    }
    Py_XDECREF(size);
    Py_XDECREF(fields);
    return accepted;
}

inline bool check_element(const What &what) {
    if (what.parameter.element == Element::none) return check_records(what);
    if (what.view.element != what.parameter.element) return refuse_element(what);
    if (!what.view.swapped) return true;
    const char *remedy = "the bytes of the array are in foreign order; pass %s.astype(%s.dtype.newbyteorder('='))";
    return refuse_value(PyExc_TypeError, what, remedy, remedy);
}

inline bool is_aligned(const View &view, bool empty, Py_ssize_t offset, int alignment) {
    size_t bits = reinterpret_cast<size_t>(view.data) + static_cast<size_t>(offset);
    for (int i = 0; i < view.ndim; ++i) {
        if (has_steps(view, empty, i)) bits |= static_cast<size_t>(view.strides[i]);
    }
    return (bits & static_cast<size_t>(alignment - 1)) == 0;
}

inline bool check_alignment(const What &what, bool empty) {
    if (empty) return true;
    bool aligned = is_aligned(what.view, empty, 0, about(what.parameter.element).alignment);
    for (int i = 0; i < what.parameter.field_count; ++i) {
        const Field &field = what.parameter.fields[i];
        aligned = aligned && is_aligned(what.view, empty, field.offset, about(field.element).alignment);
    }
    return aligned || refuse_value(PyExc_ValueError, what,
                                   "the array is not aligned; pass an aligned array (%s.copy())",
                                   "the array is not aligned and the kernel writes to it; pass an aligned array and "
                                   "copy the result back");
}

inline bool check_rank(const What &what) {
    int ndim = what.view.ndim;
    const Parameter &row = what.parameter;
    if (row.ndim < 0 || (ndim <= row.ndim && ndim >= row.least_ndim)) return true;
    bool one = row.ndim == 0 && row.written;  // an output of rank 0 may be any array of one element
    for (int i = 0; i < ndim; ++i) one = one && what.view.shape[i] == 1;
    return one || refuse_rank(what);
}

// Where a named extent or stride was seen first.
struct Seen {
    Py_ssize_t value;
    const Parameter *parameter;
};

inline bool check_extent(const What &what, int axis, Seen *extents) {
    const Axis &row = what.parameter.axes[axis];
    Py_ssize_t extent = inner_extent(what.parameter, what.view, axis);
    if (row.extent >= 0 && extent != row.extent) return refuse_extent(what, axis, nullptr, 0);
    if (row.name < 0) return true;
    Seen &seen = extents[row.name];
    if (!seen.parameter) seen = Seen{extent, &what.parameter};
    return seen.value == extent || refuse_extent(what, axis, seen.parameter, seen.value);
}

inline bool check_stride(const What &what, int axis, Seen *extents) {
    Py_ssize_t stride = what.view.strides[axis];
    if (stride % what.parameter.itemsize != 0) return refuse_stride(what, axis, nullptr, 0);
    if (axis >= what.parameter.ndim) return true;
    const Axis &row = what.parameter.axes[axis];
    if (row.fixed && row.stride != stride) return refuse_stride(what, axis, nullptr, 0);
    if (row.stride_name < 0) return true;
    Seen &seen = extents[row.stride_name];
    Py_ssize_t elements = stride / what.parameter.itemsize;
    if (!seen.parameter) seen = Seen{elements, &what.parameter};
    return seen.value == elements || refuse_stride(what, axis, seen.parameter, seen.value);
}

inline bool check_strides(const What &what, bool empty, Seen *extents) {
    const Parameter &row = what.parameter;
    size_t packed = static_cast<size_t>(row.itemsize);
    bool contiguous = true;
    for (int i = what.view.ndim - 1; i >= 0; --i) {
        if (has_steps(what.view, empty, i)) {
            if (!check_stride(what, i, extents)) return false;
            contiguous = contiguous && static_cast<size_t>(what.view.strides[i]) == packed;
        }
        packed *= static_cast<size_t>(what.view.shape[i]);
    }
    if (contiguous || !row.contiguous) return true;
    return refuse_value(PyExc_ValueError, what, "the array is not C-contiguous; pass np.ascontiguousarray(%s)",
                        "the array is not C-contiguous and the kernel writes to it; pass a C-contiguous array and copy "
                        "the result back");
}

inline bool check_written(const What &what, bool empty) {
    if (!what.view.writeable) {
        const char *problem = "the array is read-only and the kernel writes to it; pass a writeable array (%s.copy())";
        return refuse_value(PyExc_ValueError, what, problem, problem);
    }
    for (int i = 0; i < what.view.ndim; ++i) {
        if (!has_steps(what.view, empty, i) || what.view.strides[i] != 0) continue;
        const char *problem = "elements of the array share memory (a stride is 0) and the kernel writes to it; pass "
                              "%s.copy()";
        return refuse_value(PyExc_ValueError, what, problem, problem);
    }
    return true;
}

inline bool check_array(const What &what, Seen *extents) {
    bool empty = false;
    for (int i = 0; i < what.view.ndim; ++i) empty = empty || what.view.shape[i] == 0;
    if (!check_element(what) || !check_rank(what) || !check_alignment(what, empty)) return false;
    for (int i = 0; i < what.view.ndim && i < what.parameter.ndim; ++i) {
        if (!check_extent(what, i, extents)) return false;
    }
    return check_strides(what, empty, extents) && (!what.parameter.written || check_written(what, empty));
}

}  // namespace rekernel_module
