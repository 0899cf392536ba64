// Guard: the type that checks arguments and then calls. Here: how one is made, read and freed.
//
// Invariant: all but `program` is fixed when the constructor returns. The parameter table and every reference live
// until the guard is collected, so a call needs no reference of its own to them. Guards sit in cycles with their
// kernels (owner -> guard -> stale -> owner), so all references are shown to the collector.
#include "common.hpp"

#include <initializer_list>

namespace rekernel {

PyTypeObject *guard_type = nullptr;
unsigned long long forks = 0;

namespace {

bool parse_parameters(Guard *guard, PyObject *rows) {
    Py_ssize_t count = PyTuple_GET_SIZE(rows);
    if (count == 0) return true;
    guard->parameters = static_cast<Parameter *>(PyMem_Calloc(static_cast<size_t>(count), sizeof(Parameter)));
    if (!guard->parameters) {
        PyErr_NoMemory();
        return false;
    }
    guard->count = count;
    for (Py_ssize_t i = 0; i < count; ++i) {
        if (!parse_parameter(PyTuple_GET_ITEM(rows, i), i, guard->parameters[i])) return false;
        for (Py_ssize_t j = 0; j < i; ++j) {
            if (PyUnicode_Compare(guard->parameters[i].name, guard->parameters[j].name) == 0) {
                PyErr_Format(PyExc_ValueError, "parameters[%zd]: %R is there twice", i, guard->parameters[i].name);
                return false;
            }
        }
    }
    return true;
}

bool set_runtime(Guard *guard, PyObject *runtime) {
    if (runtime == Py_None) return true;
    if (!PyTuple_Check(runtime) || PyTuple_GET_SIZE(runtime) != 3 || !PyUnicode_Check(PyTuple_GET_ITEM(runtime, 1)) ||
        !PyUnicode_Check(PyTuple_GET_ITEM(runtime, 2))) {
        PyErr_SetString(PyExc_TypeError, "Guard() runtime must be (object, str, str) or None");
        return false;
    }
    set_new(guard->runtime_root, PyTuple_GET_ITEM(runtime, 0));
    set_new(guard->runtime_a, PyTuple_GET_ITEM(runtime, 1));
    set_new(guard->runtime_b, PyTuple_GET_ITEM(runtime, 2));
    PyUnicode_InternInPlace(&guard->runtime_a);
    PyUnicode_InternInPlace(&guard->runtime_b);
    return true;
}

bool set_lock(Guard *guard, PyObject *lock) {
    if (lock == Py_None) return true;
    guard->acquire = PyObject_GetAttrString(lock, "acquire");
    if (!guard->acquire) return false;
    guard->release = PyObject_GetAttrString(lock, "release");
    return guard->release != nullptr;
}

bool check_callable(PyObject *object, const char *name, bool optional) {
    if (PyCallable_Check(object) || (optional && object == Py_None)) return true;
    PyErr_Format(PyExc_TypeError, "Guard() %s must be callable%s, got %.200s", name, optional ? " or None" : "",
                 Py_TYPE(object)->tp_name);
    return false;
}

PyObject *guard_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static const char *keywords[] = {"call", "name",   "parameters", "owner", "runtime", "program",
                                     "lock", "stale",  "failed",     nullptr};
    PyObject *call, *name, *rows;
    PyObject *owner = Py_None, *runtime = Py_None, *program = Py_None, *lock = Py_None;
    PyObject *stale = Py_None, *failed = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OUO!|$OOOOOO:Guard", const_cast<char **>(keywords), &call, &name,
                                     &PyTuple_Type, &rows, &owner, &runtime, &program, &lock, &stale, &failed)) {
        return nullptr;
    }
    if (!check_callable(call, "call", false) || !check_callable(stale, "stale", true) ||
        !check_callable(failed, "failed", true)) {
        return nullptr;
    }
    PyObject *self = type->tp_alloc(type, 0);
    if (!self) return nullptr;
    Guard *guard = as_guard(self);
    guard->vectorcall = guard_call;
    guard->generation = forks;
    set_new(guard->call, call);
    set_new(guard->name, name);
    set_new(guard->owner, none_to_null(owner));
    set_new(guard->program, none_to_null(program));
    set_new(guard->stale, none_to_null(stale));
    set_new(guard->failed, none_to_null(failed));
    if (parse_parameters(guard, rows) && set_runtime(guard, runtime) && set_lock(guard, lock)) return self;
    Py_DECREF(self);
    return nullptr;
}

int guard_traverse(PyObject *self, visitproc visit, void *arg) {
    Guard *guard = as_guard(self);
    Py_VISIT(Py_TYPE(self));
    for (PyObject *object : {guard->call, guard->name, guard->owner, guard->program, guard->stale, guard->failed,
                             guard->acquire, guard->release, guard->runtime_root}) {
        Py_VISIT(object);
    }
    for (Py_ssize_t i = 0; i < guard->count; ++i) {
        Py_VISIT(guard->parameters[i].name);
        Py_VISIT(guard->parameters[i].expected);
        Py_VISIT(guard->parameters[i].check);
    }
    return 0;
}

// The texts stay: a finalizer that still calls the guard gets a message made of them.
int guard_clear(PyObject *self) {
    Guard *guard = as_guard(self);
    Py_CLEAR(guard->call);
    Py_CLEAR(guard->owner);
    Py_CLEAR(guard->program);
    Py_CLEAR(guard->stale);
    Py_CLEAR(guard->failed);
    Py_CLEAR(guard->acquire);
    Py_CLEAR(guard->release);
    Py_CLEAR(guard->runtime_root);
    for (Py_ssize_t i = 0; i < guard->count; ++i) Py_CLEAR(guard->parameters[i].check);
    return 0;
}

void guard_dealloc(PyObject *self) {
    PyObject_GC_UnTrack(self);
    Py_TRASHCAN_BEGIN(self, guard_dealloc)
    Guard *guard = as_guard(self);
    if (guard->weakrefs) PyObject_ClearWeakRefs(self);
    guard_clear(self);
    Py_CLEAR(guard->name);
    Py_CLEAR(guard->runtime_a);
    Py_CLEAR(guard->runtime_b);
    for (Py_ssize_t i = 0; i < guard->count; ++i) {
        Py_CLEAR(guard->parameters[i].name);
        Py_CLEAR(guard->parameters[i].expected);
    }
    PyMem_Free(guard->parameters);
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
    Py_TRASHCAN_END
}

PyMemberDef guard_members[] = {
    {"call", T_OBJECT, offsetof(Guard, call), READONLY, "What is called once all checks have passed."},
    {"name", T_OBJECT, offsetof(Guard, name), READONLY, "The name of the kernel, for messages."},
    {"owner", T_OBJECT, offsetof(Guard, owner), READONLY, "Whatever the guard was made with."},
    {"program", T_OBJECT, offsetof(Guard, program), 0, "What `runtime` has to lead to."},
    {"stale", T_OBJECT, offsetof(Guard, stale), READONLY, "stale(guard) -> callable or None."},
    {"failed", T_OBJECT, offsetof(Guard, failed), READONLY, "failed(guard, exception, args) -> result."},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Guard, vectorcall), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Guard, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

}  // namespace

PyObject *note_fork(PyObject *, PyObject *) {
    ++forks;
    Py_RETURN_NONE;
}

PyObject *fork_generation(PyObject *, PyObject *) { return PyLong_FromUnsignedLongLong(forks); }

PyTypeObject *make_guard_type(PyObject *module) {
    static PyType_Slot slots[] = {
        {Py_tp_doc, const_cast<char *>("Guard(call, name, parameters, *, owner=None, runtime=None, program=None, "
                                       "lock=None, stale=None, failed=None)\n--\n\nChecks arguments, then calls.")},
        {Py_tp_new, slot(guard_new)},
        {Py_tp_call, slot(PyVectorcall_Call)},
        {Py_tp_dealloc, slot(guard_dealloc)},
        {Py_tp_traverse, slot(guard_traverse)},
        {Py_tp_clear, slot(guard_clear)},
        {Py_tp_members, guard_members},
        {0, nullptr},
    };
    static PyType_Spec spec = {"rekernel._native.Guard", sizeof(Guard), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                                   Py_TPFLAGS_IMMUTABLETYPE,
                               slots};
    return reinterpret_cast<PyTypeObject *>(PyType_FromModuleAndSpec(module, &spec, nullptr));
}

}  // namespace rekernel
