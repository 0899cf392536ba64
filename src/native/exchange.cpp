// Tensors by DLPack's table of C functions, which a type may offer: what takes microseconds by `__dlpack__` takes a
// tenth of that.
//
// Invariant: the table is used for objects of exactly the type that offers it, and never says yes where `__dlpack__`
// would say no: a tensor with a gradient, or one that is conjugated lazily, goes the slow way and gets its own error.
// Whatever fails here is tried again there.
#include "dlpack.hpp"

namespace rekernel {

namespace {

// The table of the standard, from version 1.3 on; only what is called has its type.
struct Table {
    std::uint32_t major, minor;
    Table *previous;  // of an older version
    void (*allocate)();
    int (*export_managed)(void *object, Versioned **out);
    void (*import_managed)();
    int (*export_view)(void *object, Tensor *out);  // may be missing; the object keeps the memory
};

struct Names {
    PyObject *table = PyUnicode_InternFromString("__dlpack_c_exchange_api__");
    PyObject *gradient = PyUnicode_InternFromString("requires_grad");
    PyObject *conjugated = PyUnicode_InternFromString("is_conj");
    PyObject *negated = PyUnicode_InternFromString("is_neg");
    bool made = table && gradient && conjugated && negated;
};

const Names &names() {
    static const Names all;
    return all;
}

const Table *table_of(PyTypeObject *type) {
#if PY_VERSION_HEX >= 0x030C0000
    PyObject *dict = PyType_GetDict(type);
#else
    PyObject *dict = type->tp_dict;
    Py_XINCREF(dict);
#endif
    // In the type's own dict: a subclass may have overridden __dlpack__.
    PyObject *capsule = dict && names().made ? PyDict_GetItemWithError(dict, names().table) : nullptr;
    const Table *table = nullptr;
    if (capsule && PyCapsule_IsValid(capsule, "dlpack_exchange_api")) {
        table = static_cast<const Table *>(PyCapsule_GetPointer(capsule, "dlpack_exchange_api"));
    }
    Py_XDECREF(dict);
    while (table && table->major > 1) table = table->previous;
    return table && table->major == 1 ? table : nullptr;
}

// Whether the answer is false, or nobody answers.
bool is_not(PyObject *stolen_answer) {
    int truth = stolen_answer ? PyObject_IsTrue(stolen_answer) : 0;
    Py_XDECREF(stolen_answer);
    PyErr_Clear();
    return truth == 0;
}

// A tensor that stands for the negative of its memory: DLPack has no word for that.
bool refuse_negated(const Refused &refused) {
    PyErr_SetString(PyExc_BufferError, "the negative bit is set; pass .resolve_neg()");
    return refuse_export(refused, "it cannot be exported by DLPack");
}

bool export_tensor(const Refused &refused, const Table *table, Tensor &out, std::uint64_t &flags, Foreign *foreign) {
    // Only the managed form tells whether the memory may be written.
    if (table->export_view && !refused.function->parameters[refused.parameter].written) {
        return table->export_view(refused.argument, &out) == 0;
    }
    Versioned *managed = nullptr;
    if (table->export_managed(refused.argument, &managed) != 0 || !managed) return false;
    own_tensor(managed, foreign);
    out = managed->tensor;
    flags = managed->flags;
    return true;
}

}  // namespace

Exchange exchange_tensor(const Refused &refused, View &out, Foreign *foreign) {
    const Table *table = table_of(Py_TYPE(refused.argument));
    if (!table || !is_not(PyObject_GetAttr(refused.argument, names().gradient))) return Exchange::unavailable;
    Tensor tensor = {};
    std::uint64_t flags = 0;
    if (!export_tensor(refused, table, tensor, flags, foreign)) {
        PyErr_Clear();
        return Exchange::unavailable;
    }
    bool complex = tensor.code == 5;
    if (complex && !is_not(PyObject_CallMethodNoArgs(refused.argument, names().conjugated))) {
        // The slow way has a tensor of its own to keep.
        if (foreign->managed && foreign->deleter) foreign->deleter(foreign->managed);
        foreign->managed = nullptr;
        return Exchange::unavailable;
    }
    bool fine = is_not(PyObject_CallMethodNoArgs(refused.argument, names().negated)) || refuse_negated(refused);
    return fine && view_tensor(refused, tensor, flags, out, foreign) ? Exchange::done : Exchange::failed;
}

}  // namespace rekernel
