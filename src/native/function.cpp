// Function: a compiled kernel with its argument table. Here: how one is made, read and freed.
//
// Invariant: it holds its Library, so the code stays in memory until the last Function and the last call of it are
// gone. No argument of a call is ever stored in it.
#include "function.hpp"

#include <cstring>
#include <initializer_list>

namespace rekernel {

PyTypeObject *function_type = nullptr;

bool set_policy(Function *function, PyObject *policy) {
    function->keywords_only = PyUnicode_CompareWithASCIIString(policy, "pystencils") == 0;
    if (function->keywords_only || PyUnicode_CompareWithASCIIString(policy, "python") == 0) return true;
    PyErr_Format(PyExc_ValueError, "policy must be 'python' or 'pystencils', got %R", policy);
    return false;
}

namespace {

bool set_nogil(Function *function, PyObject *nogil) {
    function->nogil = nogil == Py_None ? 2 : nogil == Py_True;
    if (nogil == Py_None || PyBool_Check(nogil)) return true;
    PyErr_Format(PyExc_TypeError, "Function() nogil must be True, False or None, got %R", nogil);
    return false;
}

bool set_returns(Function *function, PyObject *returns) {
    if (returns == Py_None) return true;
    function->returns = PyUnicode_Check(returns) ? element_named(returns) : Element::none;
    if (function->returns != Element::none) return true;
    PyErr_Format(PyExc_ValueError, "Function() returns must be the name of a dtype or None, got %R", returns);
    return false;
}

bool set_entry(Function *function, PyObject *library, PyObject *symbol) {
    const char *utf8 = PyUnicode_AsUTF8(symbol);
    void *address = utf8 ? library_symbol(library, utf8) : nullptr;
    if (!address) return false;
    static_assert(sizeof address == sizeof function->entry);
    std::memcpy(&function->entry, &address, sizeof address);
    set_new(function->library, library);
    return true;
}

bool set_text(PyObject *&field, PyObject *text, const char *name) {
    if (text != Py_None && !PyUnicode_Check(text)) {
        PyErr_Format(PyExc_TypeError, "Function() %s must be str or None, got %R", name, text);
        return false;
    }
    set_new(field, none_to_null(text));
    return true;
}

PyObject *function_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static const char *keywords[] = {"library", "symbol",    "name",   "parameters", "slots",      "returns", "policy",
                                     "nogil",   "kernel_id", "openmp", "filename",   "first_line", nullptr};
    PyObject *library, *symbol, *name, *parameters, *slots;
    PyObject *returns = Py_None, *policy = nullptr, *nogil = Py_None, *kernel_id = Py_None;
    PyObject *filename = Py_None;
    int openmp = 0, first_line = 1;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!UUO!O!|$OUOOpOi:Function", const_cast<char **>(keywords),
                                     library_type, &library, &symbol, &name, &PyTuple_Type, &parameters,
                                     &PyTuple_Type, &slots, &returns, &policy, &nogil, &kernel_id, &openmp,
                                     &filename, &first_line)) {
        return nullptr;
    }
    PyObject *self = type->tp_alloc(type, 0);
    if (!self) return nullptr;
    Function *function = as_function(self);
    function->vectorcall = function_call;
    function->openmp = openmp != 0;
    function->first_line = first_line;
    set_new(function->name, name);
    if (set_entry(function, library, symbol) && (!policy || set_policy(function, policy)) &&
        set_nogil(function, nogil) && set_returns(function, returns) &&
        set_text(function->kernel_id, kernel_id, "kernel_id") && set_text(function->filename, filename, "filename") &&
        parse_tables(function, parameters, slots)) {
        return self;
    }
    Py_DECREF(self);
    return nullptr;
}

// There is no tp_clear: nothing that a Function refers to can lead back to it.
int function_traverse(PyObject *self, visitproc visit, void *arg) {
    Function *function = as_function(self);
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(function->library);
    return 0;
}

void function_dealloc(PyObject *self) {
    PyObject_GC_UnTrack(self);
    Function *function = as_function(self);
    if (function->weakrefs) PyObject_ClearWeakRefs(self);
    free_tables(function);
    Py_CLEAR(function->library);
    Py_CLEAR(function->name);
    Py_CLEAR(function->kernel_id);
    Py_CLEAR(function->filename);
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject *function_repr(PyObject *self) {
    return PyUnicode_FromFormat("<compiled kernel '%U'>", as_function(self)->name);
}

PyMemberDef function_members[] = {
    {"name", T_OBJECT, offsetof(Function, name), READONLY, "The name of the kernel, for messages."},
    {"__name__", T_OBJECT, offsetof(Function, name), READONLY, "The name of the kernel."},
    {"library", T_OBJECT, offsetof(Function, library), READONLY, "The Library that holds the code."},
    {"kernel_id", T_OBJECT, offsetof(Function, kernel_id), READONLY, "Whatever the function was made with."},
    {"calls", T_ULONGLONG, offsetof(Function, calls), READONLY, "How many calls were begun."},
    {"failures", T_ULONGLONG, offsetof(Function, failures), READONLY, "How many of these calls raised."},
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Function, vectorcall), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Function, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

}  // namespace

PyTypeObject *make_function_type(PyObject *module) {
    static PyType_Slot slots[] = {
        {Py_tp_doc, const_cast<char *>("Function(library, symbol, name, parameters, slots, *, returns=None, "
                                       "policy='python', nogil=None, kernel_id=None, openmp=False, filename=None, "
                                       "first_line=1)\n--\n\n"
                                       "A compiled kernel that checks its arguments.")},
        {Py_tp_new, slot(function_new)},
        {Py_tp_call, slot(PyVectorcall_Call)},
        {Py_tp_dealloc, slot(function_dealloc)},
        {Py_tp_traverse, slot(function_traverse)},
        {Py_tp_repr, slot(function_repr)},
        {Py_tp_members, function_members},
        {0, nullptr},
    };
    static PyType_Spec spec = {"rekernel._native.Function", sizeof(Function), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                                   Py_TPFLAGS_IMMUTABLETYPE,
                               slots};
    return reinterpret_cast<PyTypeObject *>(PyType_FromModuleAndSpec(module, &spec, nullptr));
}

}  // namespace rekernel
