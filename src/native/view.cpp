// What an argument is: NumPy arrays at once, other objects by the buffer protocol or by DLPack.
//
// Invariant: a view of an array refers to the array's own memory and is good only until Python code runs; a view of
// another object is good until release_foreign(). So a call looks at all other objects first and at arrays last.
#include "function.hpp"
#include "numpy_api.hpp"

namespace rekernel {

namespace {

// Numbers and text have buffers, too, or look as if; none of them is an array.
bool is_plain(PyObject *object) {
    return object == Py_None || PyLong_Check(object) || PyFloat_Check(object) || PyComplex_Check(object) ||
           PyUnicode_Check(object) || PyArray_IsScalar(object, Generic);
}

// Records: NumPy reads the format of the buffer better than we would.
bool view_records(PyObject *argument, View &out, Foreign *foreign) {
    PyObject *array = PyArray_FromAny(argument, nullptr, 0, 0, 0, nullptr);
    if (!array) return false;
    Py_SETREF(foreign->object, array);
    view_array(array, out);
    return true;
}

// ctypes leaves the strides out although it was asked for them.
bool complete_sizes(const Py_buffer &buffer, View &out, Foreign *foreign) {
    if (buffer.ndim == 0 || (buffer.shape && buffer.strides)) return true;
    if (!make_sizes(buffer.ndim, foreign)) return false;
    for (int i = 0; i < buffer.ndim; ++i) {
        foreign->sizes[i] = buffer.shape ? buffer.shape[i] : i == 0 ? buffer.len / buffer.itemsize : 1;
    }
    pack_strides(buffer.ndim, buffer.itemsize, foreign);
    out.shape = foreign->sizes;
    out.strides = foreign->sizes + buffer.ndim;
    return true;
}

bool view_buffer(PyObject *argument, View &out, Foreign *foreign) {
    if (PyObject_GetBuffer(argument, &foreign->buffer, PyBUF_RECORDS_RO) < 0) return false;
    const Py_buffer &buffer = foreign->buffer;
    out = {static_cast<char *>(buffer.buf), buffer.shape, buffer.strides, buffer.ndim, Element::none, false,
           !buffer.readonly, false, nullptr};
    out.element = element_of_format(buffer.format, buffer.itemsize, out.swapped);
    return complete_sizes(buffer, out, foreign);
}

bool wants_records(const Function *function, Py_ssize_t parameter) {
    return function->layouts[parameter].element == Element::none;
}

}  // namespace

Foreign *add_foreign(PyObject *object, Foreign *&list) {
    Foreign *foreign = static_cast<Foreign *>(PyMem_Calloc(1, sizeof(Foreign)));
    if (!foreign) {
        PyErr_NoMemory();
        return nullptr;
    }
    foreign->object = new_reference(object);
    foreign->next = list;
    list = foreign;
    return foreign;
}

bool make_sizes(int ndim, Foreign *foreign) {
    foreign->sizes = static_cast<Py_ssize_t *>(PyMem_Malloc(2 * static_cast<size_t>(ndim) * sizeof(Py_ssize_t)));
    if (!foreign->sizes) PyErr_NoMemory();
    return foreign->sizes != nullptr;
}

void pack_strides(int ndim, Py_ssize_t itemsize, Foreign *foreign) {
    std::uintptr_t packed = static_cast<std::uintptr_t>(itemsize);
    for (int i = ndim - 1; i >= 0; --i) {
        foreign->sizes[ndim + i] = static_cast<Py_ssize_t>(packed);
        packed *= static_cast<std::uintptr_t>(foreign->sizes[i]);
    }
}

void view_array(PyObject *object, View &out) {
    PyArrayObject *array = as_array(object);
    PyArray_Descr *dtype = PyArray_DESCR(array);
    out.data = PyArray_BYTES(array);
    static_assert(sizeof(npy_intp) == sizeof(Py_ssize_t));
    out.shape = reinterpret_cast<const Py_ssize_t *>(PyArray_DIMS(array));
    out.strides = reinterpret_cast<const Py_ssize_t *>(PyArray_STRIDES(array));
    out.ndim = PyArray_NDIM(array);
    out.element = element_of_typenum(dtype->type_num);
    out.swapped = !PyArray_ISNBO(dtype->byteorder);
    out.writeable = PyArray_CHKFLAGS(array, NPY_ARRAY_WRITEABLE);
    out.aligned = PyArray_CHKFLAGS(array, NPY_ARRAY_ALIGNED);
    out.dtype = reinterpret_cast<PyObject *>(dtype);
}

bool exports_array(PyObject *object) {
    return !is_plain(object) && (PyObject_CheckBuffer(object) || has_dlpack(object));
}

bool view_foreign(const Function *function, Py_ssize_t parameter, PyObject *argument, View &out, Foreign *&list) {
    Refused refused = {function, parameter, argument, nullptr};
    if (!exports_array(argument)) return refuse_object(refused);
    Foreign *foreign = add_foreign(argument, list);
    if (!foreign) return false;
    if (!PyObject_CheckBuffer(argument)) return view_dlpack(function, parameter, argument, out, foreign);
    bool viewed = wants_records(function, parameter) ? view_records(argument, out, foreign)
                                                     : view_buffer(argument, out, foreign);
    return viewed || refuse_export(refused, "it gives no access to its buffer");
}

void release_foreign(Foreign *list) {
    if (!list) return;
    PyObject *pending = PyErr_Occurred() ? take_error() : nullptr;
    while (list) {
        Foreign *foreign = list;
        list = foreign->next;
        if (foreign->buffer.obj) PyBuffer_Release(&foreign->buffer);
        if (foreign->managed && foreign->deleter) foreign->deleter(foreign->managed);
        PyMem_Free(foreign->sizes);
        Py_DECREF(foreign->object);
        PyMem_Free(foreign);
    }
    // A deleter cannot fail; whatever it left behind is not the user's business.
    if (pending) {
        PyErr_Clear();
        restore_error(pending);
    } else if (PyErr_Occurred()) {
        PyErr_WriteUnraisable(nullptr);
    }
}

}  // namespace rekernel
