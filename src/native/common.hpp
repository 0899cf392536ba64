// What every file of the extension shares.
//
// Invariant: one interpreter, one copy of the state. NumPy's C API cannot be used from a second interpreter, so the
// module refuses to load there (module.cpp) and the types and exception classes may be plain process-wide variables.
// Every function here runs with the GIL held; a free-threaded Python switches its GIL on when it loads this module.
//
// Functions that return `PyObject *` return a new reference, or nullptr with an exception set; functions that return
// `bool` return false with an exception set. Parameters are borrowed unless the name says otherwise.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <cstddef>
#include <cstdint>

#if PY_VERSION_HEX < 0x030A0000
#error "rekernel needs Python 3.10 or newer"
#endif

namespace rekernel {

// ---- cell.cpp: the one mutable reference of a kernel id ----
struct Cell {
    PyObject_HEAD
    PyObject *table;    // tuple of callables and None; nullptr stands for None
    PyObject *version;  // any object; nullptr stands for None
    PyObject *hook;     // callable; nullptr stands for None
    char override_;     // when set, every call asks the hook
    PyObject *weakrefs;
};

extern PyTypeObject *cell_type;
PyTypeObject *make_cell_type(PyObject *module);
PyObject *swap(PyObject *module, PyObject *changes);

// ---- handle.cpp: the callable that follows a cell ----
extern PyTypeObject *handle_type;
PyTypeObject *make_handle_type(PyObject *module);
PyObject *seal(PyObject *module, PyObject *cls);

// ---- parameter.cpp: one row of a kernel's parameter table ----
enum class Kind { any = 0, integer = 1, real = 2, array = 3, check = 5 };

// A number from -2**63 to 2**64-1: its sign and its 64 bits in two's complement.
struct Integer {
    bool negative;
    std::uint64_t bits;
};

struct Parameter {
    PyObject *name;      // interned, so that a keyword is usually found by identity
    PyObject *expected;  // text for messages, e.g. "float32[:, :]"
    PyObject *check;     // Kind::check only
    Kind kind;
    Integer low, high;  // Kind::integer: both ends belong to the range
    double limit;       // Kind::real: the smallest magnitude that would become infinite
    int typenum;        // Kind::array: NumPy type number, -1 for any
    int ndim;           // Kind::array: -1 for any
    bool written;       // Kind::array: the kernel writes to it
};

// False with or without an exception: without one, the number is outside of 64 bits.
bool read_integer(PyObject *number, Integer &out);
bool is_less(Integer a, Integer b);
bool parse_parameter(PyObject *row, Py_ssize_t position, Parameter &out);

// ---- accept.cpp: one argument against its row ----
// What the kernel is to receive for `argument`: the argument itself or its converted value.
PyObject *accept(const Parameter &parameter, PyObject *kernel, PyObject *argument);

// ---- errors.cpp: exceptions and their words ----
enum class Fault { type, value };

PyObject *configure(PyObject *module, PyObject *args, PyObject *kwargs);
// "<kernel>() argument '<name>': <problem>". Takes over `got` and `problem`; either may be nullptr, then the exception
// that is already set stays.
void raise_argument(Fault fault, PyObject *kernel, const Parameter &parameter, PyObject *got, PyObject *problem);
// The same with a message of one's own.
void raise_message(Fault fault, const Parameter &parameter, PyObject *got, PyObject *message);
void raise_unexpected(PyObject *kernel, const Parameter &parameter, PyObject *argument);
PyObject *describe(PyObject *argument);
PyObject *describe_array(PyObject *array, const char *adjective);

// The exception that is set, taken away / put back.
PyObject *take_error();
void restore_error(PyObject *stolen_exception);

// ---- guard.cpp, arity.cpp, call.cpp: checked calls ----
struct Guard {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *call;     // what is called once all checks have passed
    PyObject *name;     // the kernel's name, for messages
    PyObject *owner;    // for the Python side; never looked at here
    PyObject *program;  // what `runtime` has to lead to; nullptr stands for None
    PyObject *stale;    // asked when it leads elsewhere, or after a fork; or nullptr
    PyObject *failed;   // asked when `call` has raised; or nullptr
    PyObject *acquire, *release;                    // bound methods of the lock; or nullptr
    PyObject *runtime_root, *runtime_a, *runtime_b;  // root.a.b is the current program; or nullptr
    Parameter *parameters;                          // made once; freed with the guard
    Py_ssize_t count;
    unsigned long long generation;  // of forks, at construction
    PyObject *weakrefs;
};

extern PyTypeObject *guard_type;
PyTypeObject *make_guard_type(PyObject *module);
inline Guard *as_guard(PyObject *self) { return reinterpret_cast<Guard *>(self); }

// Counts the forks that led to this process; written only in a child that has just one thread.
extern unsigned long long forks;
PyObject *note_fork(PyObject *module, PyObject *unused);
PyObject *fork_generation(PyObject *module, PyObject *unused);

// What a call is bound to: a kernel's name and its parameters.
struct Signature {
    PyObject *name;
    const Parameter *parameters;
    Py_ssize_t count;
};

// Puts the arguments of a call into the order of the parameters: `count` borrowed references into `out`.
bool bind_arguments(const Signature &signature, PyObject *const *args, Py_ssize_t positional, PyObject *kwnames,
                    PyObject **out);
// The place of the parameter that the keyword, a str, names; -1 where there is none.
Py_ssize_t find_parameter(const Signature &signature, PyObject *keyword);
PyObject *guard_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames);

// ---- small helpers ----
inline PyObject *none_to_null(PyObject *object) { return object == Py_None ? nullptr : object; }

// Fills an empty slot of an object under construction.
inline void set_new(PyObject *&slot, PyObject *object) {
    Py_XINCREF(object);
    slot = object;
}

inline PyObject *new_reference(PyObject *object) {
    Py_INCREF(object);
    return object;
}

// The `{slot, function}` pairs of a PyType_Spec want `void *`.
template <class F>
void *slot(F *function) {
    return reinterpret_cast<void *>(function);
}

}  // namespace rekernel
