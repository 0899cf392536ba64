// The module rekernel._native: its names, and the one place where it is put together.
//
// Invariant: the types exist once per process. Importing the module again (after somebody removed it from
// sys.modules) hands out the same types, and another interpreter is refused: see common.hpp.
#define REKERNEL_FILLS_NUMPY_TABLE
#include "cuda.hpp"
#include "numpy_api.hpp"
#include "overloads.hpp"

#include <initializer_list>

namespace rekernel {

namespace {

bool make_types(PyObject *module) {
    if (!cell_type) cell_type = make_cell_type(module);
    if (!handle_type) handle_type = make_handle_type(module);
    if (!guard_type) guard_type = make_guard_type(module);
    if (!library_type) library_type = make_library_type(module);
    if (!function_type) function_type = make_function_type(module);
    if (!overloads_type) overloads_type = make_overloads_type(module);
    if (!driver_type) driver_type = make_driver_type(module);
    if (!cuda_kernel_type) cuda_kernel_type = make_cuda_kernel_type(module);
    if (!launch_type) launch_type = make_launch_type(module);
    return cell_type && handle_type && guard_type && library_type && function_type && overloads_type && driver_type &&
           cuda_kernel_type && launch_type;
}

bool add_names(PyObject *module) {
    for (PyTypeObject *type : {cell_type, handle_type, guard_type, library_type, function_type, overloads_type,
                               driver_type, cuda_kernel_type, launch_type}) {
        if (PyModule_AddType(module, type) < 0) return false;
    }
    struct {
        const char *name;
        Kind kind;
    } kinds[] = {{"ANY", Kind::any},
                 {"INT", Kind::integer},
                 {"FLOAT", Kind::real},
                 {"ARRAY", Kind::array},
                 {"CHECK", Kind::check}};
    for (auto &entry : kinds) {
        if (PyModule_AddIntConstant(module, entry.name, static_cast<long>(entry.kind)) < 0) return false;
    }
    return true;
}

int execute(PyObject *module) {
    static PyInterpreterState *home = nullptr;
    if (!home) home = PyInterpreterState_Get();
    if (home != PyInterpreterState_Get()) {
        PyErr_SetString(PyExc_ImportError, "rekernel._native can be used in one interpreter of a process only");
        return -1;
    }
    if (PyArray_ImportNumPyAPI() < 0) return -1;
    return watch_forks() && make_types(module) && add_names(module) ? 0 : -1;
}

PyMethodDef functions[] = {
    {"swap", swap, METH_O,
     "swap(changes, /)\n--\n\nExchange the tables of many cells at once; returns what they held before."},
    {"seal", seal, METH_O, "seal(cls, /)\n--\n\nMake calls of a Handle subclass fast and the class immutable."},
    {"configure", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(configure)),
     METH_VARARGS | METH_KEYWORDS,
     "configure(*, argument_type_error=None, argument_value_error=None)\n--\n\nSet the exception classes of guards."},
    {"note_fork", note_fork, METH_NOARGS, "note_fork()\n--\n\nTell all guards that this process is a forked child."},
    {"fork_generation", fork_generation, METH_NOARGS, "fork_generation()\n--\n\nHow many forks were noted."},
    {nullptr, nullptr, 0, nullptr},
};

PyModuleDef_Slot slots[] = {
    {Py_mod_exec, slot(execute)},
#ifdef Py_mod_multiple_interpreters
    {Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED},
#endif
    {0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "rekernel._native", "The call path of rekernel.", 0, functions, slots, nullptr, nullptr,
    nullptr,
};

}  // namespace

}  // namespace rekernel

PyMODINIT_FUNC PyInit__native() { return PyModuleDef_Init(&rekernel::definition); }
