// Cell: the one mutable reference of a kernel id.
//
// Invariant: a reader that takes a strong reference to an entry of `table` while it holds the GIL has a callable of
// one version; `swap` exchanges any number of cells with no Python code in between, so nobody sees half of a change.
// No lock is taken: the GIL is held throughout, and the exchange allocates nothing and drops no reference.
#include "common.hpp"

namespace rekernel {

PyTypeObject *cell_type = nullptr;

namespace {

Cell *as_cell(PyObject *self) { return reinterpret_cast<Cell *>(self); }

PyObject *cell_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    if (PyTuple_GET_SIZE(args) != 0 || (kwargs && PyDict_GET_SIZE(kwargs) != 0)) {
        PyErr_SetString(PyExc_TypeError, "Cell() takes no arguments");
        return nullptr;
    }
    return type->tp_alloc(type, 0);
}

int cell_traverse(PyObject *self, visitproc visit, void *arg) {
    Cell *cell = as_cell(self);
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(cell->table);
    Py_VISIT(cell->version);
    Py_VISIT(cell->hook);
    return 0;
}

int cell_clear(PyObject *self) {
    Cell *cell = as_cell(self);
    Py_CLEAR(cell->table);
    Py_CLEAR(cell->version);
    Py_CLEAR(cell->hook);
    return 0;
}

void cell_dealloc(PyObject *self) {
    PyObject_GC_UnTrack(self);
    Py_TRASHCAN_BEGIN(self, cell_dealloc)
    if (as_cell(self)->weakrefs) PyObject_ClearWeakRefs(self);
    cell_clear(self);
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
    Py_TRASHCAN_END
}

PyObject *cell_get_hook(PyObject *self, void *) {
    PyObject *hook = as_cell(self)->hook;
    return new_reference(hook ? hook : Py_None);
}

int cell_set_hook(PyObject *self, PyObject *value, void *) {
    if (!value || (value != Py_None && !PyCallable_Check(value))) {
        PyErr_SetString(PyExc_TypeError, "Cell.hook must be callable or None");
        return -1;
    }
    PyObject *old = as_cell(self)->hook;
    set_new(as_cell(self)->hook, none_to_null(value));
    Py_XDECREF(old);
    return 0;
}

PyMemberDef cell_members[] = {
    {"table", T_OBJECT, offsetof(Cell, table), READONLY, "The callables of the current version, or None."},
    {"version", T_OBJECT, offsetof(Cell, version), READONLY, "The current version, or None."},
    {"override", T_BOOL, offsetof(Cell, override_), 0, "When True, every call asks the hook first."},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(Cell, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyGetSetDef cell_getset[] = {
    {"hook", cell_get_hook, cell_set_hook, "hook(handle) -> callable, asked when the table has no entry.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

bool check_change(PyObject *change, Py_ssize_t position) {
    if (!PyTuple_Check(change) || PyTuple_GET_SIZE(change) != 3) {
        PyErr_Format(PyExc_TypeError, "swap() changes[%zd]: expected a tuple (cell, table, version)", position);
        return false;
    }
    if (!PyObject_TypeCheck(PyTuple_GET_ITEM(change, 0), cell_type)) {
        PyErr_Format(PyExc_TypeError, "swap() changes[%zd]: expected a Cell, got %.200s", position,
                     Py_TYPE(PyTuple_GET_ITEM(change, 0))->tp_name);
        return false;
    }
    PyObject *table = PyTuple_GET_ITEM(change, 1);
    if (table == Py_None) return true;
    if (!PyTuple_Check(table)) {
        PyErr_Format(PyExc_TypeError, "swap() changes[%zd]: the table must be a tuple or None, got %.200s", position,
                     Py_TYPE(table)->tp_name);
        return false;
    }
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(table); ++i) {
        PyObject *entry = PyTuple_GET_ITEM(table, i);
        if (entry != Py_None && !PyCallable_Check(entry)) {
            PyErr_Format(PyExc_TypeError, "swap() changes[%zd]: entry %zd of the table is not callable (%.200s)",
                         position, i, Py_TYPE(entry)->tp_name);
            return false;
        }
    }
    return true;
}

// A list of `count` pairs with empty slots, so that the exchange itself needs no memory. Empty slots also keep the
// garbage collector from taking a pair for one that never needs tracking.
PyObject *make_empty_pairs(Py_ssize_t count) {
    PyObject *pairs = PyList_New(count);
    if (!pairs) return nullptr;
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyObject *pair = PyTuple_New(2);
        if (!pair) {
            Py_DECREF(pairs);
            return nullptr;
        }
        PyList_SET_ITEM(pairs, i, pair);
    }
    return pairs;
}

// Puts `value` into `slot` and hands back what the slot held, None for an empty one.
PyObject *exchange(PyObject *&slot, PyObject *value) {
    PyObject *old = slot;
    set_new(slot, none_to_null(value));
    return old ? old : new_reference(Py_None);
}

}  // namespace

PyObject *swap(PyObject *, PyObject *changes) {
    // A copy that nobody else can change; its items are checked to be tuples, which nobody can change either.
    PyObject *copy = PySequence_Tuple(changes);
    if (!copy) return nullptr;
    Py_ssize_t count = PyTuple_GET_SIZE(copy);
    bool valid = true;
    for (Py_ssize_t i = 0; valid && i < count; ++i) valid = check_change(PyTuple_GET_ITEM(copy, i), i);
    PyObject *before = valid ? make_empty_pairs(count) : nullptr;
    if (before) {
        for (Py_ssize_t i = 0; i < count; ++i) {
            PyObject *change = PyTuple_GET_ITEM(copy, i);
            PyObject *pair = PyList_GET_ITEM(before, i);
            Cell *cell = as_cell(PyTuple_GET_ITEM(change, 0));
            PyTuple_SET_ITEM(pair, 0, exchange(cell->table, PyTuple_GET_ITEM(change, 1)));
            PyTuple_SET_ITEM(pair, 1, exchange(cell->version, PyTuple_GET_ITEM(change, 2)));
        }
    }
    Py_DECREF(copy);
    return before;
}

PyTypeObject *make_cell_type(PyObject *module) {
    static PyType_Slot slots[] = {
        {Py_tp_doc, const_cast<char *>("Cell()\n--\n\nThe one mutable reference of a kernel id.")},
        {Py_tp_new, slot(cell_new)},
        {Py_tp_dealloc, slot(cell_dealloc)},
        {Py_tp_traverse, slot(cell_traverse)},
        {Py_tp_clear, slot(cell_clear)},
        {Py_tp_members, cell_members},
        {Py_tp_getset, cell_getset},
        {0, nullptr},
    };
    static PyType_Spec spec = {"rekernel._native.Cell", sizeof(Cell), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_IMMUTABLETYPE, slots};
    return reinterpret_cast<PyTypeObject *>(PyType_FromModuleAndSpec(module, &spec, nullptr));
}

}  // namespace rekernel
