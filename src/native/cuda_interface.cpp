// Arrays by __cuda_array_interface__ (versions 0 to 3), as Numba and many others have it.
//
// Invariant: what the dict says is copied or kept for the length of the call. It does not name the device: the driver
// knows whose memory an address is.
#include "cuda.hpp"
#include "numpy_api.hpp"

#include <utility>

namespace rekernel {

namespace {

constexpr int memory_type = 2, device_ordinal = 9;  // of CUpointer_attribute
constexpr int managed = 8;                          // CU_POINTER_ATTRIBUTE_IS_MANAGED
constexpr unsigned host_memory = 1;                 // of CUmemorytype

struct Names {
    PyObject *interface = PyUnicode_InternFromString("__cuda_array_interface__");
};

const Names &names() {
    static const Names all;
    return all;
}

bool bad_interface(const char *problem) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, problem);
    return false;
}

// Borrowed; None and what is missing are nullptr.
PyObject *entry(PyObject *interface, const char *name) {
    PyObject *found = PyDict_GetItemString(interface, name);
    return found ? none_to_null(found) : nullptr;
}

bool read_data(PyObject *interface, View &out) {
    PyObject *data = entry(interface, "data");
    if (!data || !PyTuple_Check(data) || PyTuple_GET_SIZE(data) != 2) {
        return bad_interface("data must be a tuple of an address and a bool");
    }
    PyObject *address = none_to_null(PyTuple_GET_ITEM(data, 0));
    out.data = address ? static_cast<char *>(PyLong_AsVoidPtr(address)) : nullptr;
    int read_only = PyObject_IsTrue(PyTuple_GET_ITEM(data, 1));
    out.writeable = read_only == 0;
    return !PyErr_Occurred();
}

// A typestr of records says their size only; `descr` has the fields.
bool read_dtype(PyObject *interface, View &out, Py_ssize_t &itemsize, Foreign *&list) {
    PyObject *typestr = entry(interface, "typestr"), *fields = entry(interface, "descr");
    if (!typestr) return bad_interface("there is no typestr");
    PyArray_Descr *dtype = nullptr;
    if (!PyArray_DescrConverter(typestr, &dtype)) return false;
    if (dtype->type_num == NPY_VOID && fields) {
        PyArray_Descr *records = nullptr;
        if (PyArray_DescrConverter(fields, &records)) std::swap(dtype, records);
        else PyErr_Clear();
        Py_XDECREF(reinterpret_cast<PyObject *>(records));
    }
    itemsize = PyDataType_ELSIZE(dtype);
    return set_dtype(reinterpret_cast<PyObject *>(dtype), out, list);
}

bool read_layout(PyObject *interface, Py_ssize_t itemsize, View &out, Sizes &sizes, Foreign *&list) {
    PyObject *shape = entry(interface, "shape"), *strides = entry(interface, "strides");
    if (!shape || !PyTuple_Check(shape) || PyTuple_GET_SIZE(shape) > 64) {
        return bad_interface("shape must be a tuple of at most 64 numbers");
    }
    out.ndim = static_cast<int>(PyTuple_GET_SIZE(shape));
    Py_ssize_t *memory = take_sizes(sizes, out.ndim, list);
    if (!memory || !read_sizes(shape, memory, out.ndim)) return false;
    out.shape = memory;
    out.strides = memory + out.ndim;
    for (int i = 0; i < out.ndim; ++i) {
        if (out.shape[i] < 0) return bad_interface("an extent is negative");
    }
    if (strides) return read_sizes(strides, memory + out.ndim, out.ndim);
    std::uintptr_t packed = static_cast<std::uintptr_t>(itemsize);
    for (int i = out.ndim - 1; i >= 0; --i) {
        memory[out.ndim + i] = static_cast<Py_ssize_t>(packed);
        packed *= static_cast<std::uintptr_t>(memory[i]);
    }
    return true;
}

bool read_producer(PyObject *interface, Sight &sight) {
    PyObject *stream = entry(interface, "stream");
    if (!stream) return true;
    void *address = PyLong_AsVoidPtr(stream);
    if (PyErr_Occurred()) return false;
    // 0 is not allowed there, because it does not say which default stream is meant.
    if (address) note_producer(sight, address);
    return true;
}

bool is_host(const DriverCalls &calls, unsigned long long address) {
    unsigned type = 0, shared = 0;
    if (calls.pointer_attribute(&type, memory_type, address) != 0 || type != host_memory) return false;
    return calls.pointer_attribute(&shared, managed, address) != 0 || shared == 0;
}

// Of no memory, and of memory that the driver does not know, nothing is told.
bool find_device(const Refused &refused, const View &view, Sight &sight) {
    const DriverCalls &calls = sight.driver->calls;
    if (!view.data || !calls.pointer_attribute) return true;
    auto address = reinterpret_cast<unsigned long long>(view.data);
    int device = 0;
    if (calls.pointer_attribute(&device, device_ordinal, address) != 0) return true;
    return is_host(calls, address) ? refuse_host(refused) : note_device(refused, device, sight);
}

}  // namespace

PyObject *cuda_interface(PyObject *argument) {
    PyObject *found = PyObject_GetAttr(argument, names().interface);
    if (!found && PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
    return found;
}

bool view_interface(const Refused &refused, PyObject *stolen_interface, View &out, Sight &sight, Sizes &sizes,
                    Foreign *&list) {
    Owned interface(stolen_interface);
    Py_ssize_t itemsize = 1;
    bool read = (PyDict_Check(interface.object) || bad_interface("it must be a dict")) &&
                read_data(interface.object, out) && read_dtype(interface.object, out, itemsize, list) &&
                read_layout(interface.object, itemsize, out, sizes, list) &&
                (!entry(interface.object, "mask") || bad_interface("it is masked")) &&
                read_producer(interface.object, sight);
    if (!read) return refuse_export(refused, "its __cuda_array_interface__ cannot be used");
    return find_device(refused, out, sight);
}

}  // namespace rekernel
