// Library: compiled code in memory.
//
// Invariant: the code is mapped from the constructor to the deallocation and never exchanged; whoever may still run it
// holds the Library.
#include "function.hpp"

namespace rekernel {

PyTypeObject *library_type = nullptr;

namespace {

struct Library {
    PyObject_HEAD
    void *handle;
    PyObject *name;
    PyObject *path;  // or nullptr
    PyObject *weakrefs;
};

Library *as_library(PyObject *self) { return reinterpret_cast<Library *>(self); }

bool load(Library *library, PyObject *data, PyObject *path) {
    const char *name = PyUnicode_AsUTF8(library->name);
    if (!name) return false;
    if (path != Py_None) {
        PyObject *bytes = nullptr;
        if (!PyUnicode_FSConverter(path, &bytes)) return false;
        library->handle = open_file(name, PyBytes_AS_STRING(bytes));
        Py_DECREF(bytes);
        return library->handle != nullptr;
    }
    Py_buffer buffer;
    if (PyObject_GetBuffer(data, &buffer, PyBUF_SIMPLE) < 0) return false;
    library->handle = open_image(name, buffer.buf, static_cast<size_t>(buffer.len));
    PyBuffer_Release(&buffer);
    return library->handle != nullptr;
}

PyObject *library_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static const char *keywords[] = {"data", "name", "path", nullptr};
    PyObject *data, *name, *path = Py_None;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|$UO:Library", const_cast<char **>(keywords), &data, &name,
                                     &path)) {
        return nullptr;
    }
    if (!kwargs || !PyDict_GetItemString(kwargs, "name")) {
        PyErr_SetString(PyExc_TypeError, "Library() missing required keyword-only argument: 'name'");
        return nullptr;
    }
    PyObject *self = type->tp_alloc(type, 0);
    if (!self) return nullptr;
    Library *library = as_library(self);
    set_new(library->name, name);
    set_new(library->path, none_to_null(path));
    if (load(library, data, path)) return self;
    Py_DECREF(self);
    return nullptr;
}

// There is no tp_clear: a name and a path lead nowhere.
int library_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(as_library(self)->path);
    return 0;
}

void library_dealloc(PyObject *self) {
    PyObject_GC_UnTrack(self);
    Library *library = as_library(self);
    if (library->weakrefs) PyObject_ClearWeakRefs(self);
    if (library->handle) close_image(library->handle);
    Py_CLEAR(library->name);
    Py_CLEAR(library->path);
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject *library_repr(PyObject *self) {
    return PyUnicode_FromFormat("<compiled library '%U'>", as_library(self)->name);
}

PyObject *symbol(PyObject *self, PyObject *name) {
    if (!PyUnicode_Check(name)) {
        PyErr_Format(PyExc_TypeError, "symbol() expected str, got %.200s", Py_TYPE(name)->tp_name);
        return nullptr;
    }
    const char *utf8 = PyUnicode_AsUTF8(name);
    void *address = utf8 ? library_symbol(self, utf8) : nullptr;
    return address ? PyLong_FromVoidPtr(address) : nullptr;
}

PyObject *hold_open(PyObject *, PyObject *names) {
    PyObject *all = PySequence_Fast(names, "hold_open() expected a sequence of str");
    if (!all) return nullptr;
    bool held = true;
    for (Py_ssize_t i = 0; held && i < PySequence_Fast_GET_SIZE(all); ++i) {
        const char *name = PyUnicode_AsUTF8(PySequence_Fast_GET_ITEM(all, i));
        held = name && hold_library(name);
    }
    Py_DECREF(all);
    if (!held) return nullptr;
    Py_RETURN_NONE;
}

PyMethodDef library_methods[] = {
    {"symbol", symbol, METH_O, "symbol($self, name, /)\n--\n\nReturn the address of a symbol."},
    {"hold_open", hold_open, METH_O | METH_STATIC,
     "hold_open(names, /)\n--\n\nKeep these shared libraries in memory until the process ends."},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef library_members[] = {
    {"name", T_OBJECT, offsetof(Library, name), READONLY, "The name, for messages."},
    {"path", T_OBJECT, offsetof(Library, path), READONLY, "The file that was loaded, or None."},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Library, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

}  // namespace

void *library_symbol(PyObject *library, const char *symbol) { return find_symbol(as_library(library)->handle, symbol); }

PyTypeObject *make_library_type(PyObject *module) {
    static PyType_Slot slots[] = {
        {Py_tp_doc, const_cast<char *>("Library(data, *, name, path=None)\n--\n\nCompiled code in memory.")},
        {Py_tp_new, slot(library_new)},
        {Py_tp_dealloc, slot(library_dealloc)},
        {Py_tp_traverse, slot(library_traverse)},
        {Py_tp_repr, slot(library_repr)},
        {Py_tp_methods, library_methods},
        {Py_tp_members, library_members},
        {0, nullptr},
    };
    static PyType_Spec spec = {"rekernel._native.Library", sizeof(Library), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE, slots};
    return reinterpret_cast<PyTypeObject *>(PyType_FromModuleAndSpec(module, &spec, nullptr));
}

}  // namespace rekernel
