// CudaKernel: a kernel for a device with its argument table. Here: how one is made, loaded on a device, and freed.
//
// Invariant: the tables of its Function part are complete and sound when the constructor returns. A device's entry is
// added once, when the kernel is first launched there, and stays. The module of a device is kept by `resolve`.
#include "cuda.hpp"
#include "rows.hpp"

#include <initializer_list>

namespace rekernel {

PyTypeObject *cuda_kernel_type = nullptr;

namespace {

// A kernel called without brackets.
PyObject *kernel_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    if (as_cuda_kernel(self)->grid) return launch_kernel(self, nullptr, args, nargsf, kwnames);
    ++as_function(self)->calls;
    ++as_function(self)->failures;
    return raise_no_brackets(as_function(self), args, PyVectorcall_NARGS(nargsf));
}

bool bad_arguments() {
    if (!PyErr_Occurred()) {
        PyErr_SetString(PyExc_ValueError, "CudaKernel() arguments must count all slots, in order; several make one "
                                          "parameter only if they are of one array and have 64 bits each");
    }
    return false;
}

// Slots that travel together are one `rekernel::Array`.
bool is_one_array(const Function *function, Py_ssize_t first, Py_ssize_t count) {
    for (Py_ssize_t i = first; i < first + count; ++i) {
        const Slot &slot = function->slots[i];
        if (slot.parameter != function->slots[first].parameter || slot.kind == Slot::scalar) return false;
        if (slot.kind != Slot::pointer && about(slot.element).size != 8) return false;
    }
    return true;
}

bool pack_slots(CudaKernel *kernel, PyObject *counts) {
    const Function *function = &kernel->function;
    kernel->packed_count = counts ? PyTuple_GET_SIZE(counts) : function->slot_count;
    if (!allocate(kernel->packed, kernel->packed_count)) return false;
    Py_ssize_t next = 0;
    for (Py_ssize_t i = 0; i < kernel->packed_count; ++i) {
        Py_ssize_t count = 1;
        if (counts && !read_size(PyTuple_GET_ITEM(counts, i), 1, function->slot_count - next, count)) {
            return bad_arguments();
        }
        if (count > 1 && !is_one_array(function, next, count)) return bad_arguments();
        kernel->packed[i] = {next, count};
        next += count;
    }
    return next == function->slot_count || bad_arguments();
}

bool check_callable(PyObject *object, const char *name) {
    if (object == Py_None || PyCallable_Check(object)) return true;
    PyErr_Format(PyExc_TypeError, "CudaKernel() %s must be callable or None, got %R", name, object);
    return false;
}

bool check_errors(PyObject *cls) {
    if (PyExceptionClass_Check(cls)) return true;
    PyErr_Format(PyExc_TypeError, "CudaKernel() errors must be an exception class, got %R", cls);
    return false;
}

PyObject *kernel_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static const char *keywords[] = {"driver",    "name", "parameters", "slots",     "resolve", "errors", "policy",
                                     "kernel_id", "version", "grid",    "arguments", "checked", nullptr};
    PyObject *driver, *name, *parameters, *slots, *resolve = nullptr, *errors = PyExc_RuntimeError, *policy = nullptr;
    PyObject *kernel_id = Py_None, *grid = Py_None, *counts = Py_None, *checked = Py_None;
    long version = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!UO!O!|$OOUOlOOO:CudaKernel", const_cast<char **>(keywords),
                                     driver_type, &driver, &name, &PyTuple_Type, &parameters, &PyTuple_Type, &slots,
                                     &resolve, &errors, &policy, &kernel_id, &version, &grid, &counts, &checked)) {
        return nullptr;
    }
    if (!resolve || !PyCallable_Check(resolve)) {
        PyErr_SetString(PyExc_TypeError, "CudaKernel() resolve must be given and be callable");
        return nullptr;
    }
    if (!check_callable(grid, "grid") || !check_callable(checked, "checked") || !check_errors(errors)) return nullptr;
    if (counts != Py_None && !PyTuple_Check(counts)) {
        bad_arguments();
        return nullptr;
    }
    if (kernel_id != Py_None && !PyUnicode_Check(kernel_id)) {
        PyErr_Format(PyExc_TypeError, "CudaKernel() kernel_id must be str or None, got %R", kernel_id);
        return nullptr;
    }
    PyObject *self = type->tp_alloc(type, 0);
    if (!self) return nullptr;
    CudaKernel *kernel = as_cuda_kernel(self);
    kernel->function.vectorcall = kernel_call;
    kernel->function.on_device = true;
    kernel->version = version;
    set_new(kernel->function.name, name);
    set_new(kernel->function.kernel_id, none_to_null(kernel_id));
    set_new(kernel->driver, driver);
    set_new(kernel->resolve, resolve);
    set_new(kernel->errors, errors);
    set_new(kernel->grid, none_to_null(grid));
    set_new(kernel->checked, none_to_null(checked));
    if ((!policy || set_policy(&kernel->function, policy)) && parse_tables(&kernel->function, parameters, slots) &&
        pack_slots(kernel, none_to_null(counts))) {
        return self;
    }
    Py_DECREF(self);
    return nullptr;
}

int kernel_traverse(PyObject *self, visitproc visit, void *arg) {
    CudaKernel *kernel = as_cuda_kernel(self);
    Py_VISIT(Py_TYPE(self));
    for (PyObject *each : {kernel->driver, kernel->resolve, kernel->errors, kernel->grid, kernel->checked,
                           kernel->grids}) {
        Py_VISIT(each);
    }
    for (Py_ssize_t i = 0; i < kernel->device_count; ++i) Py_VISIT(kernel->devices[i].captured);
    return 0;
}

// What may lead back to the kernel; its tables stay, for a finalizer may still call it.
int kernel_clear(PyObject *self) {
    CudaKernel *kernel = as_cuda_kernel(self);
    Py_CLEAR(kernel->resolve);
    Py_CLEAR(kernel->grid);
    Py_CLEAR(kernel->checked);
    for (Py_ssize_t i = 0; i < kernel->device_count; ++i) Py_CLEAR(kernel->devices[i].captured);
    return 0;
}

void kernel_dealloc(PyObject *self) {
    PyObject_GC_UnTrack(self);
    CudaKernel *kernel = as_cuda_kernel(self);
    if (kernel->function.weakrefs) PyObject_ClearWeakRefs(self);
    kernel_clear(self);
    free_tables(&kernel->function);
    PyMem_Free(kernel->packed);
    PyMem_Free(kernel->devices);
    Py_CLEAR(kernel->function.name);
    Py_CLEAR(kernel->function.kernel_id);
    Py_CLEAR(kernel->driver);
    Py_CLEAR(kernel->errors);
    Py_CLEAR(kernel->grids);
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject *kernel_repr(PyObject *self) {
    return PyUnicode_FromFormat("<compiled CUDA kernel '%U'>", as_function(self)->name);
}

bool read_loaded(PyObject *answer, int device, OnDevice &out) {
    if (!PyTuple_Check(answer) || PyTuple_GET_SIZE(answer) != 3) {
        PyErr_SetString(PyExc_TypeError, "resolve() must return (function, context, captured)");
        return false;
    }
    out = {device, PyLong_AsVoidPtr(PyTuple_GET_ITEM(answer, 0)), nullptr, nullptr};
    if (!PyErr_Occurred()) out.context = PyLong_AsVoidPtr(PyTuple_GET_ITEM(answer, 1));
    if (PyErr_Occurred()) return false;
    set_new(out.captured, none_to_null(PyTuple_GET_ITEM(answer, 2)));
    return true;
}

Py_ssize_t find_loaded(const CudaKernel *kernel, int device) {
    for (Py_ssize_t i = 0; i < kernel->device_count; ++i) {
        if (kernel->devices[i].device == device) return i;
    }
    return -1;
}

}  // namespace

Py_ssize_t find_on_device(CudaKernel *kernel, int device) {
    Py_ssize_t found = find_loaded(kernel, device);
    if (found >= 0) return found;
    if (!kernel->resolve) {
        PyErr_Format(PyExc_RuntimeError, "kernel '%U' is being taken down", kernel->function.name);
        return -1;
    }
    Owned resolve(new_reference(kernel->resolve));
    Owned answer(PyObject_CallFunction(resolve.object, "i", device));
    OnDevice loaded;
    if (!answer || !read_loaded(answer.object, device, loaded)) return -1;
    // Another thread may have done the same meanwhile.
    found = find_loaded(kernel, device);
    OnDevice *longer = found >= 0 ? nullptr
                                  : static_cast<OnDevice *>(PyMem_Realloc(
                                        kernel->devices,
                                        static_cast<size_t>(kernel->device_count + 1) * sizeof(OnDevice)));
    if (!longer) {
        Py_XDECREF(loaded.captured);
        if (found < 0) PyErr_NoMemory();
        return found;
    }
    kernel->devices = longer;
    longer[kernel->device_count] = loaded;
    return kernel->device_count++;
}

PyTypeObject *make_cuda_kernel_type(PyObject *module) {
    static PyMemberDef members[] = {
        {"name", T_OBJECT, offsetof(Function, name), READONLY, "The name of the kernel, for messages."},
        {"__name__", T_OBJECT, offsetof(Function, name), READONLY, "The name of the kernel."},
        {"kernel_id", T_OBJECT, offsetof(Function, kernel_id), READONLY, "Whatever the kernel was made with."},
        {"version", T_LONG, offsetof(CudaKernel, version), READONLY, "Whatever the kernel was made with."},
        {"driver", T_OBJECT, offsetof(CudaKernel, driver), READONLY, "The CudaDriver that launches it."},
        {"calls", T_ULONGLONG, offsetof(Function, calls), READONLY, "How many calls were begun."},
        {"failures", T_ULONGLONG, offsetof(Function, failures), READONLY, "How many of these calls raised."},
        {"__vectorcalloffset__", T_PYSSIZET, offsetof(Function, vectorcall), READONLY, nullptr},
        {"__weaklistoffset__", T_PYSSIZET, offsetof(Function, weakrefs), READONLY, nullptr},
        {nullptr, 0, 0, 0, nullptr},
    };
    static PyType_Slot slots[] = {
        {Py_tp_doc, const_cast<char *>("CudaKernel(driver, name, parameters, slots, *, resolve, errors=RuntimeError, "
                                       "policy='python', kernel_id=None, version=0, grid=None, arguments=None, "
                                       "checked=None)\n--\n\n"
                                       "A compiled kernel for a CUDA device that checks its arguments.")},
        {Py_tp_new, slot(kernel_new)},
        {Py_tp_call, slot(PyVectorcall_Call)},
        {Py_tp_dealloc, slot(kernel_dealloc)},
        {Py_tp_traverse, slot(kernel_traverse)},
        {Py_tp_clear, slot(kernel_clear)},
        {Py_tp_repr, slot(kernel_repr)},
        {Py_mp_subscript, slot(make_launch)},
        {Py_tp_members, members},
        {0, nullptr},
    };
    static PyType_Spec spec = {"rekernel._native.CudaKernel", sizeof(CudaKernel), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                                   Py_TPFLAGS_IMMUTABLETYPE,
                               slots};
    return reinterpret_cast<PyTypeObject *>(PyType_FromModuleAndSpec(module, &spec, nullptr));
}

}  // namespace rekernel
