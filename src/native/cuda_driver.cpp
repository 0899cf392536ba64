// CudaDriver: libcuda, opened when it is asked for, and what it did last.
//
// Invariant: the library stays in memory until the process ends, as CUDA itself wants it. A device on which a kernel
// has failed is dead for this process: the driver answers everything with the same error from then on, and so do we,
// with the words of the first time.
#include "cuda.hpp"

#include <algorithm>
#include <cstring>

namespace rekernel {

PyTypeObject *driver_type = nullptr;

namespace {

template <class F>
void set_call(F *&call, void *address) {
    static_assert(sizeof call == sizeof address);
    std::memcpy(&call, &address, sizeof address);
}

template <class F>
bool find_call(void *handle, const char *name, bool needed, F *&call) {
    void *address = find_symbol(handle, name);
    set_call(call, address);
    if (address || needed) return address != nullptr;
    PyErr_Clear();
    return true;
}

bool find_calls(void *handle, DriverCalls &calls) {
    return find_call(handle, "cuLaunchKernel", true, calls.launch) &&
           find_call(handle, "cuCtxGetCurrent", true, calls.get_context) &&
           find_call(handle, "cuCtxPushCurrent_v2", true, calls.push_context) &&
           find_call(handle, "cuCtxPopCurrent_v2", true, calls.pop_context) &&
           find_call(handle, "cuStreamIsCapturing", false, calls.is_capturing) &&
           find_call(handle, "cuEventCreate", false, calls.make_event) &&
           find_call(handle, "cuEventRecord", false, calls.record_event) &&
           find_call(handle, "cuStreamWaitEvent", false, calls.wait_event) &&
           find_call(handle, "cuEventDestroy_v2", false, calls.destroy_event) &&
           find_call(handle, "cuPointerGetAttribute", false, calls.pointer_attribute) &&
           find_call(handle, "cuCtxGetDevice", false, calls.current_device) &&
           find_call(handle, "cuFuncSetAttribute", false, calls.set_attribute) &&
           find_call(handle, "cuGetErrorName", false, calls.error_name) &&
           find_call(handle, "cuGetErrorString", false, calls.error_text);
}

PyObject *driver_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static const char *keywords[] = {"path", nullptr};
    PyObject *path = Py_None, *encoded = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O:CudaDriver", const_cast<char **>(keywords), &path)) {
        return nullptr;
    }
    PyObject *text = path == Py_None ? PyUnicode_FromString("libcuda.so.1") : new_reference(path);
    if (!text || !PyUnicode_FSConverter(text, &encoded)) {
        Py_XDECREF(text);
        return nullptr;
    }
    void *handle = open_file("libcuda", PyBytes_AS_STRING(encoded));
    Py_DECREF(encoded);
    PyObject *self = handle ? type->tp_alloc(type, 0) : nullptr;
    if (self) as_driver(self)->path = text;
    else Py_DECREF(text);
    if (self && !find_calls(handle, as_driver(self)->calls)) Py_CLEAR(self);
    return self;
}

void forget(Launched &launch) {
    Py_CLEAR(launch.kernel_id);
    Py_CLEAR(launch.name);
}

void driver_dealloc(PyObject *self) {
    CudaDriver *driver = as_driver(self);
    if (driver->weakrefs) PyObject_ClearWeakRefs(self);
    for (Launched &launch : driver->last) forget(launch);
    Py_CLEAR(driver->dead);
    Py_CLEAR(driver->path);
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject *driver_repr(PyObject *self) { return PyUnicode_FromFormat("<CUDA driver %R>", as_driver(self)->path); }

PyObject *launch_tuple(const Launched &launch) {
    PyObject *kernel_id = launch.kernel_id ? launch.kernel_id : Py_None;
    PyObject *grid = extents_tuple(launch.geometry.grid), *block = extents_tuple(launch.geometry.block);
    PyObject *stream = PyLong_FromVoidPtr(launch.stream);
    if (grid && block && stream) {
        return Py_BuildValue("(OOliNNN)", kernel_id, launch.name, launch.version, launch.device, grid, block, stream);
    }
    Py_XDECREF(grid);
    Py_XDECREF(block);
    Py_XDECREF(stream);
    return nullptr;
}

PyObject *launches(PyObject *self, PyObject *) {
    const CudaDriver *driver = as_driver(self);
    unsigned long long count = std::min(driver->launched, remembered), first = driver->launched - count;
    PyObject *list = PyList_New(0);
    for (unsigned long long i = first; list && i < first + count; ++i) {
        PyObject *one = launch_tuple(driver->last[i % remembered]);
        if (!one || PyList_Append(list, one) < 0) Py_CLEAR(list);
        Py_XDECREF(one);
    }
    PyObject *tuple = list ? PyList_AsTuple(list) : nullptr;
    Py_XDECREF(list);
    return tuple;
}

PyObject *dead(PyObject *self, PyObject *number) {
    int device = static_cast<int>(PyLong_AsLong(number));
    if (device == -1 && PyErr_Occurred()) return nullptr;
    PyObject *message = find_dead(as_driver(self), device);
    if (!message && PyErr_Occurred()) return nullptr;
    return new_reference(message ? message : Py_None);
}

PyObject *failed(PyObject *self, PyObject *args) {
    int device, code;
    PyObject *what;
    if (!PyArg_ParseTuple(args, "iiU:failed", &device, &code, &what)) return nullptr;
    return tell_failure(as_driver(self), device, code, what);
}

}  // namespace

PyObject *extents_tuple(const unsigned *extents) { return Py_BuildValue("(III)", extents[0], extents[1], extents[2]); }

void remember_launch(CudaDriver *driver, const Launched &launch) {
    Launched &place = driver->last[driver->launched++ % remembered];
    Launched old = place;
    place = launch;
    Py_XINCREF(place.kernel_id);
    Py_INCREF(place.name);
    forget(old);
}

PyTypeObject *make_driver_type(PyObject *module) {
    static PyMethodDef methods[] = {
        {"launches", launches, METH_NOARGS,
         "launches()\n--\n\nThe last 16 launches, the latest last: (kernel_id, name, version, device, grid, block, "
         "stream)."},
        {"dead", dead, METH_O, "dead(device, /)\n--\n\nWhy nothing can run on the device any more, or None."},
        {"failed", failed, METH_VARARGS,
         "failed(device, code, what, /)\n--\n\nThe words for an error of the driver; notes a device that it ended."},
        {nullptr, nullptr, 0, nullptr},
    };
    static PyMemberDef members[] = {
        {"path", T_OBJECT, offsetof(CudaDriver, path), READONLY, "The library that was opened."},
        {"__weaklistoffset__", T_PYSSIZET, offsetof(CudaDriver, weakrefs), READONLY, nullptr},
        {nullptr, 0, 0, 0, nullptr},
    };
    static PyType_Slot slots[] = {
        {Py_tp_doc, const_cast<char *>("CudaDriver(path=None)\n--\n\nThe driver library of CUDA.")},
        {Py_tp_new, slot(driver_new)},
        {Py_tp_dealloc, slot(driver_dealloc)},
        {Py_tp_repr, slot(driver_repr)},
        {Py_tp_methods, methods},
        {Py_tp_members, members},
        {0, nullptr},
    };
    static PyType_Spec spec = {"rekernel._native.CudaDriver", sizeof(CudaDriver), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_IMMUTABLETYPE, slots};
    return reinterpret_cast<PyTypeObject *>(PyType_FromModuleAndSpec(module, &spec, nullptr));
}

}  // namespace rekernel
