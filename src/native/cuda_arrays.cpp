// Arrays on a device: CuPy's and PyTorch's by their attributes, others by __cuda_array_interface__ or by DLPack.
//
// Invariant: shapes and strides are copied, so no Python code that runs later can change a view; the memory itself is
// that of an argument, which the caller holds.
#include "cuda.hpp"
#include "numpy_api.hpp"

#include <iterator>

namespace rekernel {

namespace {

constexpr int max_ndim = 64;

struct Names {
    PyObject *shape = PyUnicode_InternFromString("shape"), *strides = PyUnicode_InternFromString("strides");
    PyObject *dtype = PyUnicode_InternFromString("dtype"), *data = PyUnicode_InternFromString("data");
    PyObject *ptr = PyUnicode_InternFromString("ptr"), *device_id = PyUnicode_InternFromString("device_id");
    PyObject *stride = PyUnicode_InternFromString("stride"), *data_ptr = PyUnicode_InternFromString("data_ptr");
    PyObject *is_cuda = PyUnicode_InternFromString("is_cuda"), *device = PyUnicode_InternFromString("device");
    PyObject *index = PyUnicode_InternFromString("index");
    PyObject *requires_grad = PyUnicode_InternFromString("requires_grad");
    PyObject *is_conj = PyUnicode_InternFromString("is_conj"), *is_neg = PyUnicode_InternFromString("is_neg");
};

const Names &names() {
    static const Names all;
    return all;
}

bool read_attribute(PyObject *object, PyObject *name, Py_ssize_t &out) {
    PyObject *number = PyObject_GetAttr(object, name);
    out = number ? PyLong_AsSsize_t(number) : -1;
    Py_XDECREF(number);
    return !(out == -1 && PyErr_Occurred());
}

// -1 with an exception.
int ask(PyObject *stolen_answer) {
    int truth = stolen_answer ? PyObject_IsTrue(stolen_answer) : -1;
    Py_XDECREF(stolen_answer);
    return truth;
}

bool read_pointer(PyObject *stolen_number, View &out) {
    out.data = stolen_number ? static_cast<char *>(PyLong_AsVoidPtr(stolen_number)) : nullptr;
    Py_XDECREF(stolen_number);
    return !PyErr_Occurred();
}

// The shape, of which the rank is known from then on, and the strides.
bool copy_sizes(PyObject *stolen_shape, PyObject *stolen_strides, View &out, Sizes &sizes, Foreign *&list) {
    Owned shape(stolen_shape), strides(stolen_strides);
    if (!shape || !strides) return false;
    Py_ssize_t rank = PyTuple_Check(shape.object) ? PyTuple_GET_SIZE(shape.object) : -1;
    if (rank < 0 || rank > max_ndim) {
        PyErr_SetString(PyExc_ValueError, "shape must be a tuple of at most 64 numbers");
        return false;
    }
    out.ndim = static_cast<int>(rank);
    Py_ssize_t *memory = take_sizes(sizes, out.ndim, list);
    out.shape = memory;
    out.strides = memory + out.ndim;
    return memory && read_sizes(shape.object, memory, out.ndim) &&
           read_sizes(strides.object, memory + out.ndim, out.ndim);
}

bool view_cupy(const Refused &refused, View &out, Sight &sight, Sizes &sizes, Foreign *&list) {
    PyObject *array = refused.argument;
    Owned data(PyObject_GetAttr(array, names().data));
    Py_ssize_t device = 0;
    bool read = data && read_attribute(data.object, names().device_id, device) &&
                read_pointer(PyObject_GetAttr(data.object, names().ptr), out) &&
                copy_sizes(PyObject_GetAttr(array, names().shape), PyObject_GetAttr(array, names().strides), out, sizes,
                           list) &&
                set_dtype(PyObject_GetAttr(array, names().dtype), out, list);
    if (!read) return refuse_export(refused, "it does not tell its memory");
    sight.has_cupy = true;
    return note_device(refused, static_cast<int>(device), sight);
}

bool read_torch(const Refused &refused, View &out, Sizes &sizes, Foreign *&list) {
    PyObject *tensor = refused.argument;
    Owned dtype(PyObject_GetAttr(tensor, names().dtype));
    if (!dtype) return false;
    out.element = element_of_torch(dtype.object);
    Py_ssize_t itemsize = about(out.element).size;
    // For the message, where a number is wanted.
    if (out.element == Element::none && refused.function->layouts[refused.parameter].element != Element::none) {
        out.dtype = dtype.object;
        if (!add_foreign(dtype.object, list)) return false;
    }
    if (!read_pointer(PyObject_CallMethodNoArgs(tensor, names().data_ptr), out)) return false;
    if (!copy_sizes(PyObject_GetAttr(tensor, names().shape), PyObject_CallMethodNoArgs(tensor, names().stride), out,
                    sizes, list)) {
        return false;
    }
    Py_ssize_t *strides = const_cast<Py_ssize_t *>(out.strides);
    for (int i = 0; i < out.ndim; ++i) strides[i] *= itemsize;
    return true;
}

// What a tensor stands for without being it; the exporters of torch refuse the same.
bool check_plain(const Refused &refused, Element element) {
    if (about(element).family == Family::complex) {
        int conjugated = ask(PyObject_CallMethodNoArgs(refused.argument, names().is_conj));
        if (conjugated != 0) return conjugated > 0 && refuse_lazy(refused, "conj");
    }
    int negated = ask(PyObject_CallMethodNoArgs(refused.argument, names().is_neg));
    if (negated != 0) return negated > 0 && refuse_lazy(refused, "neg");
    if (!refused.function->parameters[refused.parameter].written) return true;
    int gradient = ask(PyObject_GetAttr(refused.argument, names().requires_grad));
    return gradient == 0 || (gradient > 0 && refuse_gradient(refused));
}

bool view_torch(const Refused &refused, View &out, Sight &sight, Sizes &sizes, Foreign *&list) {
    int there = ask(PyObject_GetAttr(refused.argument, names().is_cuda));
    if (there == 0) return refuse_host(refused);
    Py_ssize_t number = 0;
    Owned device(there > 0 ? PyObject_GetAttr(refused.argument, names().device) : nullptr);
    bool read = device && read_attribute(device.object, names().index, number) && read_torch(refused, out, sizes, list);
    if (!read) return refuse_export(refused, "it does not tell its memory");
    sight.has_torch = true;
    return check_plain({refused.function, refused.parameter, refused.argument, &out}, out.element) &&
           note_device(refused, static_cast<int>(number), sight);
}

}  // namespace

bool set_dtype(PyObject *stolen_dtype, View &out, Foreign *&list) {
    Owned dtype(stolen_dtype);
    if (!dtype) return false;
    if (!PyArray_DescrCheck(dtype.object)) {
        PyErr_SetString(PyExc_TypeError, "dtype is not one of NumPy's");
        return false;
    }
    PyArray_Descr *descr = reinterpret_cast<PyArray_Descr *>(dtype.object);
    out.element = element_of_typenum(descr->type_num);
    out.swapped = !PyArray_ISNBO(descr->byteorder);
    if (out.element != Element::none) return true;
    out.dtype = dtype.object;
    return add_foreign(dtype.object, list) != nullptr;
}

Py_ssize_t *take_sizes(Sizes &sizes, int ndim, Foreign *&list) {
    if (2 * ndim <= static_cast<int>(std::size(sizes.stack)) - sizes.used) {
        Py_ssize_t *taken = sizes.stack + sizes.used;
        sizes.used += 2 * ndim;
        return taken;
    }
    Foreign *foreign = add_foreign(Py_None, list);
    return foreign && make_sizes(ndim, foreign) ? foreign->sizes : nullptr;
}

bool read_sizes(PyObject *numbers, Py_ssize_t *out, int ndim) {
    if (!PyTuple_Check(numbers) || PyTuple_GET_SIZE(numbers) != ndim) {
        PyErr_SetString(PyExc_ValueError, "shape and strides must be tuples of one length");
        return false;
    }
    for (int i = 0; i < ndim; ++i) {
        out[i] = PyLong_AsSsize_t(PyTuple_GET_ITEM(numbers, i));
        if (out[i] == -1 && PyErr_Occurred()) return false;
    }
    return true;
}

bool note_device(const Refused &refused, int device, Sight &sight) {
    if (sight.device >= 0 && sight.device != device) return refuse_mixed(refused, device, sight);
    if (sight.device < 0) sight.parameter = refused.parameter;
    sight.device = device;
    return true;
}

bool view_on_device(const Refused &refused, View &out, Sight &sight, Sizes &sizes, Foreign *&list) {
    out = {nullptr, nullptr, nullptr, -1, Element::none, false, true, false, nullptr};
    PyTypeObject *type = Py_TYPE(refused.argument);
    if (is_cupy(type)) return view_cupy(refused, out, sight, sizes, list);
    if (is_torch(type)) return view_torch(refused, out, sight, sizes, list);
    // NumPy's arrays have DLPack and buffers, but on the host.
    if (PyArray_Check(refused.argument)) return refuse_host(refused);
    PyObject *interface = cuda_interface(refused.argument);
    if (interface) return view_interface(refused, interface, out, sight, sizes, list);
    if (PyErr_Occurred()) return refuse_export(refused, "its __cuda_array_interface__ cannot be read");
    if (!exports_array(refused.argument)) return refuse_object(refused);
    if (has_dlpack(refused.argument)) return sight_dlpack(refused, sight);
    return refuse_host(refused);
}

}  // namespace rekernel
