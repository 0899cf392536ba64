// The way of one checked call: bind, check, lock, look for a stale program, call, unlock, hand a failure on.
//
// Invariant: whatever raises where, every argument reference taken is dropped and the lock is released exactly once if
// it was acquired, and never otherwise. `failed` runs without the lock, so it may load, wait or call again.
#include "common.hpp"

namespace rekernel {

namespace {

// The arguments on their way: few on the stack, many on the heap. The place before the first is left free for the
// callee (PY_VECTORCALL_ARGUMENTS_OFFSET).
class Arguments {
public:
    explicit Arguments(Py_ssize_t count) {
        if (count > small) storage = PyMem_New(PyObject *, static_cast<size_t>(count) + 1);
        if (!storage) PyErr_NoMemory();
    }
    ~Arguments() {
        for (Py_ssize_t i = 0; i < owned; ++i) Py_DECREF(values()[i]);
        if (storage != stack) PyMem_Free(storage);
    }
    Arguments(const Arguments &) = delete;
    Arguments &operator=(const Arguments &) = delete;

    bool has_memory() const { return storage != nullptr; }
    PyObject **values() const { return storage + 1; }

    // Replaces borrowed arguments by what the kernel is to receive.
    bool accept_all(const Guard *guard, PyObject *const *given) {
        for (Py_ssize_t i = 0; i < guard->count; ++i) {
            PyObject *value = accept(guard->parameters[i], guard->name, given[i]);
            if (!value) return false;
            values()[i] = value;
            owned = i + 1;
        }
        return true;
    }

    PyObject *as_tuple() const {
        PyObject *tuple = PyTuple_New(owned);
        for (Py_ssize_t i = 0; tuple && i < owned; ++i) PyTuple_SET_ITEM(tuple, i, new_reference(values()[i]));
        return tuple;
    }

private:
    static constexpr Py_ssize_t small = 16;
    PyObject *stack[small + 1];
    PyObject **storage = stack;
    Py_ssize_t owned = 0;
};

bool acquire_lock(const Guard *guard) {
    if (!guard->acquire) return true;
    PyObject *answer = PyObject_CallNoArgs(guard->acquire);
    Py_XDECREF(answer);
    return answer != nullptr;
}

// An exception that is already on its way stays the one that is seen.
bool release_lock(const Guard *guard) {
    if (!guard->release) return true;
    PyObject *pending = PyErr_Occurred() ? take_error() : nullptr;
    PyObject *answer = PyObject_CallNoArgs(guard->release);
    bool released = answer != nullptr;
    Py_XDECREF(answer);
    if (pending) {
        if (!released) PyErr_WriteUnraisable(guard->release);
        restore_error(pending);
    }
    return released;
}

bool is_stale(const Guard *guard, bool &out) {
    out = guard->generation != forks;
    if (!guard->runtime_root) return true;
    PyObject *middle = PyObject_GetAttr(guard->runtime_root, guard->runtime_a);
    PyObject *program = middle ? PyObject_GetAttr(middle, guard->runtime_b) : nullptr;
    Py_XDECREF(middle);
    if (!program) return false;
    if (none_to_null(program) != none_to_null(guard->program)) out = true;
    Py_DECREF(program);
    return true;
}

// What to call: a new reference to `call`, or to what `stale` has put in its place for this once.
PyObject *choose_target(Guard *guard) {
    bool stale = false;
    if (guard->stale && !is_stale(guard, stale)) return nullptr;
    if (stale) {
        PyObject *other = PyObject_CallOneArg(guard->stale, reinterpret_cast<PyObject *>(guard));
        if (!other) return nullptr;
        if (other != Py_None) {
            if (PyCallable_Check(other)) return other;
            PyErr_Format(PyExc_TypeError, "stale() must return a callable or None, got %.200s",
                         Py_TYPE(other)->tp_name);
            Py_DECREF(other);
            return nullptr;
        }
        Py_DECREF(other);
    }
    if (guard->call) return new_reference(guard->call);
    PyErr_Format(PyExc_RuntimeError, "kernel '%U' is being taken down", guard->name);
    return nullptr;
}

// Only exceptions of the kernel itself are for `failed`: not those of the lock or of `stale`, and no request to stop.
PyObject *report_failure(Guard *guard, const Arguments &arguments) {
    if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt) || PyErr_ExceptionMatches(PyExc_SystemExit)) return nullptr;
    PyObject *exception = take_error();
    PyObject *given = arguments.as_tuple();
    PyObject *result = nullptr;
    if (given) {
        result = PyObject_CallFunctionObjArgs(guard->failed, reinterpret_cast<PyObject *>(guard), exception, given,
                                              nullptr);
        Py_DECREF(given);
    }
    Py_XDECREF(exception);
    return result;
}

PyObject *call_locked(Guard *guard, const Arguments &arguments) {
    if (!acquire_lock(guard)) return nullptr;
    PyObject *target = choose_target(guard);
    bool kernel_ran = target != nullptr;
    PyObject *result = nullptr;
    if (target) {
        size_t count = static_cast<size_t>(guard->count) | PY_VECTORCALL_ARGUMENTS_OFFSET;
        result = PyObject_Vectorcall(target, arguments.values(), count, nullptr);
        Py_DECREF(target);
    }
    bool kernel_failed = kernel_ran && !result;
    if (!release_lock(guard)) Py_CLEAR(result);
    if (kernel_failed && guard->failed) return report_failure(guard, arguments);
    return result;
}

PyObject *check_and_call(Guard *guard, PyObject *const *args, Py_ssize_t positional, PyObject *kwnames) {
    Arguments arguments(guard->count);
    if (!arguments.has_memory()) return nullptr;
    if (positional != guard->count || kwnames) {
        Signature signature = {guard->name, guard->parameters, guard->count};
        if (!bind_arguments(signature, args, positional, kwnames, arguments.values())) return nullptr;
        args = arguments.values();
    }
    return arguments.accept_all(guard, args) ? call_locked(guard, arguments) : nullptr;
}

}  // namespace

PyObject *guard_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    // A guard may lead back to itself; without this the C stack would overflow.
    if (Py_EnterRecursiveCall(" while calling a kernel")) return nullptr;
    PyObject *result = check_and_call(as_guard(self), args, PyVectorcall_NARGS(nargsf), kwnames);
    Py_LeaveRecursiveCall();
    return result;
}

}  // namespace rekernel
