// Handle: the callable that a user holds; it follows its cell.
//
// Invariant: a call takes one strong reference to the target before it starts and uses nothing else of the cell
// afterwards. So it runs to its end on the version it began with, whatever other threads swap meanwhile, and that
// version cannot be freed under it.
#include "cuda.hpp"
#include "timing.hpp"

namespace rekernel {

PyTypeObject *handle_type = nullptr;

namespace {

struct Handle {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *cell;
    PyObject *name;
    Py_ssize_t index;
    bool timed;
    unsigned long long calls;
    unsigned long long failures;
    Timing *timing;  // nullptr until calls were timed for the first time
    PyObject *weakrefs;
};

Handle *as_handle(PyObject *self) { return reinterpret_cast<Handle *>(self); }

PyObject *ask_hook(Handle *handle, const Cell *cell) {
    if (!cell || !cell->hook) {
        if (handle->name) PyErr_Format(PyExc_RuntimeError, "kernel %R has no code", handle->name);
        else PyErr_SetString(PyExc_RuntimeError, "this kernel has no code");
        return nullptr;
    }
    PyObject *hook = new_reference(cell->hook);  // the hook may set another hook
    PyObject *target = PyObject_CallOneArg(hook, reinterpret_cast<PyObject *>(handle));
    Py_DECREF(hook);
    return target;
}

PyObject *find_target(Handle *handle) {
    const Cell *cell = reinterpret_cast<const Cell *>(handle->cell);
    if (cell && !cell->override_ && cell->table && handle->index < PyTuple_GET_SIZE(cell->table)) {
        PyObject *target = PyTuple_GET_ITEM(cell->table, handle->index);
        if (target != Py_None) return new_reference(target);
    }
    return ask_hook(handle, cell);
}

// Only calls that return are timed: one that is refused says nothing about the kernel. Timing may have been switched
// off meanwhile, by another thread or by the kernel itself.
void note_time(const Handle *handle, std::uint64_t began, const PyObject *result) {
    if (result && handle->timed) handle->timing->add(now_ns() - began);
}

PyObject *handle_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    Handle *handle = as_handle(self);
    // A table may lead back to its own handle; without this the C stack would overflow.
    if (Py_EnterRecursiveCall(" while calling a kernel")) return nullptr;
    PyObject *result = nullptr;
    PyObject *target = find_target(handle);
    if (target) {
        ++handle->calls;
        const std::uint64_t began = handle->timed ? now_ns() : 0;
        result = PyObject_Vectorcall(target, args, nargsf, kwnames);
        if (!result) ++handle->failures;
        if (began) note_time(handle, began, result);
        Py_DECREF(target);
    }
    Py_LeaveRecursiveCall();
    return result;
}

// The handle has the words, which depend on what it leads to.
PyObject *refuse_launch(PyObject *self) {
    PyObject *answer = PyObject_CallMethod(self, "_refuse_launch", nullptr);
    if (answer || PyErr_ExceptionMatches(PyExc_AttributeError)) {
        PyErr_Format(PyExc_TypeError, "kernel %R takes no launch grid", as_handle(self)->name);
    }
    Py_XDECREF(answer);
    return nullptr;
}

// What will be called is only looked up then; but what is there now and takes no grid is refused at once.
PyObject *handle_subscript(PyObject *self, PyObject *index) {
    const Handle *handle = as_handle(self);
    const Cell *cell = reinterpret_cast<const Cell *>(handle->cell);
    if (cell && !cell->override_ && cell->table && handle->index < PyTuple_GET_SIZE(cell->table)) {
        PyObject *target = PyTuple_GET_ITEM(cell->table, handle->index);
        if (target != Py_None && !can_launch(target)) return refuse_launch(self);
    }
    return make_launch(self, index);
}

PyObject *handle_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static const char *keywords[] = {"cell", "index", "name", nullptr};
    PyObject *cell = nullptr, *name = nullptr;
    Py_ssize_t index = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!nU:Handle", const_cast<char **>(keywords), cell_type, &cell,
                                     &index, &name)) {
        return nullptr;
    }
    if (index < 0) {
        PyErr_SetString(PyExc_ValueError, "Handle() index must not be negative");
        return nullptr;
    }
    PyObject *self = type->tp_alloc(type, 0);
    if (!self) return nullptr;
    Handle *handle = as_handle(self);
    handle->vectorcall = handle_call;
    handle->index = index;
    set_new(handle->cell, cell);
    set_new(handle->name, name);
    return self;
}

int handle_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(as_handle(self)->cell);
    Py_VISIT(as_handle(self)->name);
    return 0;
}

int handle_clear(PyObject *self) {
    Py_CLEAR(as_handle(self)->cell);
    Py_CLEAR(as_handle(self)->name);
    return 0;
}

void handle_dealloc(PyObject *self) {
    PyObject_GC_UnTrack(self);
    Py_TRASHCAN_BEGIN(self, handle_dealloc)
    if (as_handle(self)->weakrefs) PyObject_ClearWeakRefs(self);
    handle_clear(self);
    PyMem_Free(as_handle(self)->timing);
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
    Py_TRASHCAN_END
}

PyObject *handle_get_timed(PyObject *self, void *) { return PyBool_FromLong(as_handle(self)->timed); }

// Switching it on begins anew, switching it off keeps what was measured.
int handle_set_timed(PyObject *self, PyObject *value, void *) {
    Handle *handle = as_handle(self);
    int on = value ? PyObject_IsTrue(value) : 0;
    if (on < 0) return -1;
    if (on) {
        if (!handle->timing) handle->timing = static_cast<Timing *>(PyMem_Malloc(sizeof(Timing)));
        if (!handle->timing) {
            PyErr_NoMemory();
            return -1;
        }
        *handle->timing = Timing{};
    }
    handle->timed = on;
    return 0;
}

PyObject *handle_get_times(PyObject *self, void *) { return summary(as_handle(self)->timing); }

PyGetSetDef handle_getset[] = {
    {"_timed", handle_get_timed, handle_set_timed, "Whether calls are timed; to switch it on begins anew.", nullptr},
    {"_times", handle_get_times, nullptr,
     "(count, total, min, p50, p95, p99, max) of the timed calls that returned, in seconds; or None.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMemberDef handle_members[] = {
    {"_cell", T_OBJECT, offsetof(Handle, cell), READONLY, "The cell that this handle follows."},
    {"_index", T_PYSSIZET, offsetof(Handle, index), READONLY, "The place of this kernel in the cell's table."},
    {"_name", T_OBJECT, offsetof(Handle, name), READONLY, "The name of the kernel."},
    {"calls", T_ULONGLONG, offsetof(Handle, calls), READONLY, "How many calls were begun."},
    {"failures", T_ULONGLONG, offsetof(Handle, failures), READONLY, "How many of them raised."},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Handle, vectorcall), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Handle, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

// True when nothing can ever put a `__call__` between the class and Handle.
bool inherits_only_fixed_types(PyTypeObject *type) {
    PyObject *mro = type->tp_mro;
    for (Py_ssize_t i = 0; mro && i < PyTuple_GET_SIZE(mro); ++i) {
        PyObject *base = PyTuple_GET_ITEM(mro, i);
        if (base == reinterpret_cast<PyObject *>(type)) continue;
        if (!PyType_Check(base)) return false;
        if (!PyType_HasFeature(reinterpret_cast<PyTypeObject *>(base), Py_TPFLAGS_IMMUTABLETYPE)) return false;
    }
    return mro != nullptr;
}

}  // namespace

PyObject *name_of_handle(PyObject *self) { return as_handle(self)->name; }

PyObject *launch_handle(PyObject *self, const Place &place, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    Handle *handle = as_handle(self);
    Owned target(find_target(handle));
    if (!target) return nullptr;
    if (!can_launch(target.object)) return refuse_launch(self);
    ++handle->calls;
    const std::uint64_t began = handle->timed ? now_ns() : 0;
    PyObject *result = launch_target(target.object, place, args, nargsf, kwnames);
    if (!result) ++handle->failures;
    if (began) note_time(handle, began, result);
    return result;
}

// Before Python 3.12 a class written in Python does not inherit the flag that makes vectorcall the way of a call,
// because `cls.__call__ = f` could come later. A type that cannot change any more may have it.
PyObject *seal(PyObject *, PyObject *cls) {
    if (!PyType_Check(cls)) {
        PyErr_Format(PyExc_TypeError, "seal() expected a class, got %.200s", Py_TYPE(cls)->tp_name);
        return nullptr;
    }
    PyTypeObject *type = reinterpret_cast<PyTypeObject *>(cls);
    if (type == handle_type || !PyType_IsSubtype(type, handle_type) || !PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE)) {
        PyErr_Format(PyExc_TypeError, "seal() expected a subclass of Handle, got %R", cls);
        return nullptr;
    }
    if (type->tp_call != PyVectorcall_Call) {
        PyErr_Format(PyExc_TypeError, "seal(): %R defines __call__", cls);
        return nullptr;
    }
    if (!inherits_only_fixed_types(type)) {
        PyErr_Format(PyExc_TypeError, "seal(): %R has a base class that can still change", cls);
        return nullptr;
    }
    type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
    PyType_Modified(type);
    type->tp_flags |= Py_TPFLAGS_IMMUTABLETYPE;
    Py_RETURN_NONE;
}

PyTypeObject *make_handle_type(PyObject *module) {
    static PyType_Slot slots[] = {
        {Py_tp_doc, const_cast<char *>("Handle(cell, index, name)\n--\n\nA callable that follows a cell.")},
        {Py_tp_new, slot(handle_new)},
        {Py_tp_call, slot(PyVectorcall_Call)},
        {Py_tp_dealloc, slot(handle_dealloc)},
        {Py_tp_traverse, slot(handle_traverse)},
        {Py_tp_clear, slot(handle_clear)},
        {Py_mp_subscript, slot(handle_subscript)},
        {Py_tp_members, handle_members},
        {Py_tp_getset, handle_getset},
        {0, nullptr},
    };
    static PyType_Spec spec = {"rekernel._native.Handle", sizeof(Handle), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE |
                                   Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_IMMUTABLETYPE,
                               slots};
    return reinterpret_cast<PyTypeObject *>(PyType_FromModuleAndSpec(module, &spec, nullptr));
}

}  // namespace rekernel
