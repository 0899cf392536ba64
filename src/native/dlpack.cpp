// Arguments by DLPack: tensors in the memory of this computer, and of kernels on a device there.
//
// Invariant: a capsule is consumed (renamed) exactly when its tensor has been taken over, and from then on the tensor's
// deleter is called exactly once, by release_foreign(). A capsule that is not consumed frees its tensor itself.
#include "dlpack.hpp"

#include "cuda.hpp"

namespace rekernel {

namespace {

constexpr int max_ndim = 64;

struct Names {
    PyObject *dlpack = PyUnicode_InternFromString("__dlpack__");
    PyObject *device = PyUnicode_InternFromString("__dlpack_device__");
    PyObject *keywords = Py_BuildValue("(s)", "max_version");
    PyObject *with_stream = Py_BuildValue("(ss)", "max_version", "stream");
    PyObject *only_stream = Py_BuildValue("(s)", "stream");
    PyObject *version = Py_BuildValue("(ii)", 1, 0);
    bool made = dlpack && device && keywords && with_stream && only_stream && version;
};

const Names *names() {
    static const Names all;
    if (!all.made && !PyErr_Occurred()) PyErr_NoMemory();
    return all.made ? &all : nullptr;
}

// The tensor's device as the standard numbers it; false with an exception.
bool device_of(PyObject *argument, Device &out) {
    PyObject *pair = PyObject_CallMethodNoArgs(argument, names()->device);
    if (!pair) return false;
    long type = -1, number = -1;
    if (PyTuple_Check(pair) && PyTuple_GET_SIZE(pair) == 2) {
        type = PyLong_AsLong(PyTuple_GET_ITEM(pair, 0));
        number = PyErr_Occurred() ? -1 : PyLong_AsLong(PyTuple_GET_ITEM(pair, 1));
    } else {
        PyErr_SetString(PyExc_TypeError, "__dlpack_device__() must return a tuple of two");
    }
    Py_DECREF(pair);
    out = {static_cast<std::int32_t>(type), static_cast<std::int32_t>(number)};
    if (PyErr_Occurred()) return false;
    if (type >= 0 && type < 1 << 16 && number >= 0 && number < 1 << 16) return true;
    PyErr_SetString(PyExc_ValueError, "unknown DLPack device");
    return false;
}

// Older libraries do not know the version. `stream`: of a device, or nullptr.
PyObject *export_capsule(PyObject *argument, PyObject *stream) {
    PyObject *stack[] = {argument, names()->version, stream};
    PyObject *keywords = stream ? names()->with_stream : names()->keywords;
    PyObject *capsule = PyObject_VectorcallMethod(names()->dlpack, stack, 1, keywords);
    if (capsule || !PyErr_ExceptionMatches(PyExc_TypeError)) return capsule;
    PyErr_Clear();
    if (!stream) return PyObject_CallMethodNoArgs(argument, names()->dlpack);
    PyObject *rest[] = {argument, stream};
    return PyObject_VectorcallMethod(names()->dlpack, rest, 1, names()->only_stream);
}

template <class T>
bool consume(PyObject *capsule, T *managed, const char *used_name, Foreign *foreign) {
    if (PyCapsule_SetName(capsule, used_name) < 0) return false;
    own_tensor(managed, foreign);
    return true;
}

// Takes the tensor out of its capsule; nullptr with an exception.
const Tensor *take_tensor(PyObject *capsule, Foreign *foreign, std::uint64_t &flags) {
    flags = 0;
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        auto *managed = static_cast<Versioned *>(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
        if (managed->major > 1) {
            PyErr_Format(PyExc_BufferError, "DLPack version %u is not supported",
                         static_cast<unsigned>(managed->major));
            return nullptr;
        }
        flags = managed->flags;
        return consume(capsule, managed, "used_dltensor_versioned", foreign) ? &managed->tensor : nullptr;
    }
    if (PyCapsule_IsValid(capsule, "dltensor")) {
        auto *managed = static_cast<Managed *>(PyCapsule_GetPointer(capsule, "dltensor"));
        return consume(capsule, managed, "used_dltensor", foreign) ? &managed->tensor : nullptr;
    }
    PyErr_SetString(PyExc_TypeError, "__dlpack__() did not return a fresh DLPack capsule");
    return nullptr;
}

bool copy_sizes(const Tensor &tensor, Py_ssize_t itemsize, Foreign *foreign) {
    int ndim = tensor.ndim;
    if (ndim < 0 || ndim > max_ndim) {
        PyErr_Format(PyExc_ValueError, "a tensor of %d dimensions", ndim);
        return false;
    }
    if (!make_sizes(ndim, foreign)) return false;
    for (int i = 0; i < ndim; ++i) {
        foreign->sizes[i] = static_cast<Py_ssize_t>(tensor.shape[i]);
        if (foreign->sizes[i] >= 0) continue;
        PyErr_SetString(PyExc_ValueError, "a tensor of negative extent");
        return false;
    }
    pack_strides(ndim, itemsize, foreign);
    for (int i = 0; tensor.strides && i < ndim; ++i) {
        std::uint64_t stride = static_cast<std::uint64_t>(tensor.strides[i]) * static_cast<std::uint64_t>(itemsize);
        foreign->sizes[ndim + i] = static_cast<Py_ssize_t>(stride);
    }
    return true;
}

bool refuse_device(const Refused &refused, int device) {
    PyErr_Format(PyExc_BufferError, "DLPack device type %d is not memory of this computer", device);
    return refuse_export(refused, device == 2 || device == 13 ? "it is on a CUDA device; move it with .cpu() or "
                                                                "cupy.asnumpy()"
                                                              : "it is on another device; move it to the CPU first, "
                                                                "for example with .cpu()");
}

bool import_tensor(const Refused &refused, PyObject *stream, View &out, Foreign *foreign) {
    PyObject *capsule = export_capsule(refused.argument, stream);
    if (!capsule) return refuse_export(refused, "it cannot be exported by DLPack");
    std::uint64_t flags;
    const Tensor *tensor = take_tensor(capsule, foreign, flags);
    Py_DECREF(capsule);
    if (!tensor) return refuse_export(refused, "it cannot be exported by DLPack");
    return view_tensor(refused, *tensor, flags, out, foreign);
}

}  // namespace

bool view_tensor(const Refused &refused, const Tensor &tensor, std::uint64_t flags, View &out, Foreign *foreign) {
    if (refused.function->on_device) {
        if (!tensor.device.is_cuda()) return refuse_host(refused);
    } else if (!tensor.device.is_host()) {
        return refuse_device(refused, tensor.device.type);
    }
    Element element = element_of_dlpack(tensor.code, tensor.bits, tensor.lanes);
    Py_ssize_t itemsize = (tensor.bits * tensor.lanes + 7) / 8;
    if (!copy_sizes(tensor, itemsize, foreign)) return refuse_export(refused, "its DLPack tensor cannot be used");
    char *data = static_cast<char *>(tensor.data);
    if (data) data += tensor.offset;
    out = {data, foreign->sizes, foreign->sizes + tensor.ndim, tensor.ndim, element, false, (flags & 1) == 0, false,
           nullptr};
    bool written = refused.function->parameters[refused.parameter].written;
    if (!written || (flags & 2) == 0) return true;
    return refuse_value(Fault::value, {refused.function, refused.parameter, refused.argument, &out}, "a copied", "",
                        "the object hands out a copy only and the kernel writes to it; pass a NumPy array and copy "
                        "the result back");
}

bool has_dlpack(PyObject *argument) {
    if (!names()) {
        PyErr_Clear();
        return false;
    }
    PyObject *type = reinterpret_cast<PyObject *>(Py_TYPE(argument));
    return PyObject_HasAttr(type, names()->dlpack) && PyObject_HasAttr(type, names()->device);
}

bool view_dlpack(const Function *function, Py_ssize_t parameter, PyObject *argument, View &out, Foreign *foreign) {
    Refused refused = {function, parameter, argument, nullptr};
    Exchange exchange = exchange_tensor(refused, out, foreign);
    if (exchange != Exchange::unavailable) return exchange == Exchange::done;
    Device device;
    if (!device_of(argument, device)) return refuse_export(refused, "it does not tell its device");
    if (!device.is_host()) return refuse_device(refused, device.type);
    return import_tensor(refused, nullptr, out, foreign);
}

bool sight_dlpack(const Refused &refused, Sight &sight) {
    Device device;
    if (!device_of(refused.argument, device)) return refuse_export(refused, "it does not tell its device");
    return device.is_cuda() ? note_device(refused, device.number, sight) : refuse_host(refused);
}

bool view_dlpack_on_device(const Refused &refused, PyObject *stream, View &out, Foreign *&list) {
    Foreign *foreign = add_foreign(refused.argument, list);
    return foreign && import_tensor(refused, stream, out, foreign);
}

}  // namespace rekernel
