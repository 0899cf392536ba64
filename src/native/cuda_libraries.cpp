// CuPy and PyTorch, where the process has them: their types, and the stream and device that are current there.
//
// Invariant: nothing is imported here. A type is known by a reference to it, so that its address stays its own; what is
// current is asked at every call.
#include "cuda.hpp"

#include <iterator>

namespace rekernel {

namespace {

struct Names {
    PyObject *cupy = PyUnicode_InternFromString("cupy"), *ndarray = PyUnicode_InternFromString("ndarray");
    PyObject *torch = PyUnicode_InternFromString("torch"), *tensor = PyUnicode_InternFromString("Tensor");
    PyObject *streams = PyUnicode_InternFromString("cupy_backends.cuda.stream");
};

const Names &names() {
    static const Names all;
    return all;
}

// torch's dtypes are objects of their own, one for each type.
struct TorchType {
    const char *name;
    Element element;
    PyObject *object;
};

struct Known {
    PyObject *module = nullptr;
    PyTypeObject *type = nullptr;
    PyObject *stream = nullptr;             // torch's function of a device
    intptr_t (*stream_of)(int) = nullptr;   // CuPy's own, where it can be reached
};

Known cupy, torch;

TorchType torch_types[] = {
    {"bool", Element::boolean, nullptr},         {"int8", Element::int8, nullptr},
    {"int16", Element::int16, nullptr},          {"int32", Element::int32, nullptr},
    {"int64", Element::int64, nullptr},          {"uint8", Element::uint8, nullptr},
    {"uint16", Element::uint16, nullptr},        {"uint32", Element::uint32, nullptr},
    {"uint64", Element::uint64, nullptr},        {"float16", Element::float16, nullptr},
    {"float32", Element::float32, nullptr},      {"float64", Element::float64, nullptr},
    {"complex64", Element::complex64, nullptr},  {"complex128", Element::complex128, nullptr},
};

// Whatever is missing is nullptr.
PyObject *find_attribute(PyObject *object, const char *name) {
    PyObject *found = object ? PyObject_GetAttrString(object, name) : nullptr;
    if (!found) PyErr_Clear();
    return found;
}

PyObject *find_module(PyObject *name) {
    PyObject *module = PyDict_GetItemWithError(PyImport_GetModuleDict(), name);
    PyErr_Clear();
    return module;
}

// The same as `cupy.cuda.get_current_stream(device).ptr`, which takes longer than the launch.
void find_cupy_stream(Known &known) {
    known.stream_of = nullptr;
    PyObject *table = find_attribute(find_module(names().streams), "__pyx_capi__");
    PyObject *capsule = table && PyDict_Check(table) ? PyDict_GetItemString(table, "get_stream_ptr") : nullptr;
    static const char *signature = "intptr_t (int)";
    if (capsule && PyCapsule_IsValid(capsule, signature)) {
        void *address = PyCapsule_GetPointer(capsule, signature);
        static_assert(sizeof address == sizeof known.stream_of);
        known.stream_of = reinterpret_cast<intptr_t (*)(int)>(address);
    }
    Py_XDECREF(table);
}

void find_torch_parts(Known &known) {
    PyObject *part = find_attribute(known.module, "_C");
    Py_XSETREF(known.stream, find_attribute(part, "_cuda_getCurrentRawStream"));
    Py_XDECREF(part);
    for (TorchType &type : torch_types) Py_XSETREF(type.object, find_attribute(known.module, type.name));
}

// Looks again: the module may have come meanwhile.
void refresh(Known &known, PyObject *name, PyObject *type_name, void (*find_parts)(Known &)) {
    PyObject *module = find_module(name);
    if (!module || (module == known.module && known.type)) return;
    PyObject *type = PyObject_GetAttr(module, type_name);
    if (!type) return PyErr_Clear();
    if (!PyType_Check(type)) return Py_DECREF(type);
    Py_INCREF(module);
    Py_XSETREF(known.module, module);
    Py_XSETREF(known.type, reinterpret_cast<PyTypeObject *>(type));
    find_parts(known);
}

void refresh_cupy() { refresh(cupy, names().cupy, names().ndarray, find_cupy_stream); }

bool as_pointer(PyObject *stolen_number, void *&out) {
    out = stolen_number ? PyLong_AsVoidPtr(stolen_number) : nullptr;
    Py_XDECREF(stolen_number);
    return !PyErr_Occurred();
}

}  // namespace

bool is_cupy(PyTypeObject *type) {
    if (type == cupy.type) return true;
    if (type == torch.type) return false;
    refresh_cupy();
    return cupy.type && PyType_IsSubtype(type, cupy.type);
}

bool is_torch(PyTypeObject *type) {
    if (type == torch.type) return true;
    refresh(torch, names().torch, names().tensor, find_torch_parts);
    return torch.type && PyType_IsSubtype(type, torch.type);
}

Element element_of_torch(PyObject *dtype) {
    for (const TorchType &type : torch_types) {
        if (type.object == dtype) return type.element;
    }
    return Element::none;
}

bool cupy_stream(int device, void *&out) {
    out = nullptr;
    if (!cupy.module) refresh_cupy();
    if (!cupy.module) return true;
    if (cupy.stream_of) {
        out = reinterpret_cast<void *>(cupy.stream_of(device));
        return !PyErr_Occurred();
    }
    PyObject *part = PyObject_GetAttrString(cupy.module, "cuda");
    PyObject *stream = part ? PyObject_CallMethod(part, "get_current_stream", "i", device) : nullptr;
    PyObject *number = stream ? PyObject_GetAttrString(stream, "ptr") : nullptr;
    Py_XDECREF(stream);
    Py_XDECREF(part);
    return as_pointer(number, out);
}

bool torch_stream(int device, void *&out, bool &known) {
    known = torch.stream != nullptr;
    if (!known) return true;
    PyObject *number = PyLong_FromLong(device);
    PyObject *answer = number ? PyObject_CallOneArg(torch.stream, number) : nullptr;
    Py_XDECREF(number);
    return as_pointer(answer, out);
}

bool cupy_device(const DriverCalls &calls, int &out) {
    out = 0;
    if (!cupy.module) refresh_cupy();
    if (!cupy.module) {
        // Whoever has no CuPy may have a context all the same.
        if (!calls.current_device || calls.current_device(&out) != 0) out = 0;
        return true;
    }
    PyObject *part = PyObject_GetAttrString(cupy.module, "cuda");
    PyObject *runtime = part ? PyObject_GetAttrString(part, "runtime") : nullptr;
    PyObject *number = runtime ? PyObject_CallMethod(runtime, "getDevice", nullptr) : nullptr;
    out = number ? static_cast<int>(PyLong_AsLong(number)) : 0;
    Py_XDECREF(number);
    Py_XDECREF(runtime);
    Py_XDECREF(part);
    return !PyErr_Occurred();
}

}  // namespace rekernel
