// Launch: a kernel with its launch grid, `kernel[grid, block, stream, shared_bytes]`.
//
// Invariant: it never changes. It holds the handle, not what that leads to, so it follows the handle through reloads;
// and it holds the stream that it was given, so that the stream is there for as long as it may be used.
#include "cuda.hpp"
#include "overloads.hpp"

#include <initializer_list>

namespace rekernel {

PyTypeObject *launch_type = nullptr;

namespace {

struct Launch {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *target, *stream;  // stream: nullptr stands for None
    Place place;
    PyObject *weakrefs;
};

Launch *as_launch(PyObject *self) { return reinterpret_cast<Launch *>(self); }

PyObject *launch_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    Launch *launch = as_launch(self);
    Owned target(new_reference(launch->target));
    const Place place = launch->place;
    if (PyObject_TypeCheck(target.object, handle_type)) {
        return launch_handle(target.object, place, args, nargsf, kwnames);
    }
    return launch_target(target.object, place, args, nargsf, kwnames);
}

bool check_target(PyObject *target) {
    if (PyObject_TypeCheck(target, handle_type) || can_launch(target)) return true;
    PyErr_Format(PyExc_TypeError, "Launch() target must be a Handle or a CUDA kernel, got %R", target);
    return false;
}

PyObject *make(PyTypeObject *type, PyObject *target, const Brackets &brackets) {
    Place place = {{}, false, nullptr};
    PyObject *name = name_of_target(target), *stream = brackets.stream ? none_to_null(brackets.stream) : nullptr;
    if (!read_geometry(name, brackets.grid, brackets.block, brackets.shared, place.geometry)) return nullptr;
    if (stream && !read_stream(name, stream, place.stream)) return nullptr;
    place.has_stream = stream != nullptr;
    PyObject *self = type->tp_alloc(type, 0);
    if (!self) return nullptr;
    as_launch(self)->vectorcall = launch_call;
    as_launch(self)->place = place;
    set_new(as_launch(self)->target, target);
    set_new(as_launch(self)->stream, stream);
    return self;
}

PyObject *launch_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
    static const char *keywords[] = {"target", "grid", "block", "stream", "shared_bytes", nullptr};
    PyObject *target;
    Brackets brackets = {nullptr, nullptr, nullptr, nullptr};
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OOO|OO:Launch", const_cast<char **>(keywords), &target,
                                     &brackets.grid, &brackets.block, &brackets.stream, &brackets.shared) ||
        !check_target(target)) {
        return nullptr;
    }
    return make(type, target, brackets);
}

int launch_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(as_launch(self)->target);
    Py_VISIT(as_launch(self)->stream);
    return 0;
}

// There is no tp_clear: target and stream were there before, so a cycle through a Launch has another way out.
void launch_dealloc(PyObject *self) {
    PyObject_GC_UnTrack(self);
    if (as_launch(self)->weakrefs) PyObject_ClearWeakRefs(self);
    Py_CLEAR(as_launch(self)->target);
    Py_CLEAR(as_launch(self)->stream);
    PyTypeObject *type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject *launch_repr(PyObject *self) {
    const Launch *launch = as_launch(self);
    Owned grid(extents_tuple(launch->place.geometry.grid)), block(extents_tuple(launch->place.geometry.block));
    if (!grid || !block) return nullptr;
    PyObject *text = PyUnicode_FromFormat("%U[%R, %R", name_of_target(launch->target), grid.object, block.object);
    unsigned shared = launch->place.geometry.shared;
    if (text && (launch->stream || shared)) {
        PyUnicode_AppendAndDel(&text, PyUnicode_FromFormat(", %R", launch->stream ? launch->stream : Py_None));
    }
    if (text && shared) PyUnicode_AppendAndDel(&text, PyUnicode_FromFormat(", %u", shared));
    if (text) PyUnicode_AppendAndDel(&text, PyUnicode_FromString("]"));
    return text;
}

PyObject *get_grid(PyObject *self, void *) { return extents_tuple(as_launch(self)->place.geometry.grid); }
PyObject *get_block(PyObject *self, void *) { return extents_tuple(as_launch(self)->place.geometry.block); }

PyObject *get_shared(PyObject *self, void *) {
    return PyLong_FromUnsignedLong(as_launch(self)->place.geometry.shared);
}

}  // namespace

bool can_launch(PyObject *target) {
    if (Py_TYPE(target) == overloads_type) return function_at(as_overloads(target), 0)->on_device;
    return Py_TYPE(target) == cuda_kernel_type;
}

PyObject *launch_target(PyObject *target, const Place &place, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    if (Py_TYPE(target) == overloads_type) return launch_overloads(target, place, args, nargsf, kwnames);
    return launch_kernel(target, &place, args, nargsf, kwnames);
}

PyObject *name_of_target(PyObject *target) {
    if (Py_TYPE(target) == overloads_type) return as_overloads(target)->name;
    return Py_TYPE(target) == cuda_kernel_type ? as_function(target)->name : name_of_handle(target);
}

PyObject *make_launch(PyObject *target, PyObject *index) {
    if (!can_launch(target) && !PyObject_TypeCheck(target, handle_type)) {
        PyErr_Format(PyExc_TypeError, "kernel '%U' takes no launch grid", name_of_target(target));
        return nullptr;
    }
    Brackets brackets = {nullptr, nullptr, nullptr, nullptr};
    PyObject *made =
        read_brackets(name_of_target(target), index, brackets) ? make(launch_type, target, brackets) : nullptr;
    for (PyObject *each : {brackets.grid, brackets.block, brackets.stream, brackets.shared}) Py_XDECREF(each);
    return made;
}

PyTypeObject *make_launch_type(PyObject *module) {
    static PyGetSetDef properties[] = {
        {"grid", get_grid, nullptr, "How many blocks there are along x, y and z.", nullptr},
        {"block", get_block, nullptr, "How many threads a block has along x, y and z.", nullptr},
        {"shared_bytes", get_shared, nullptr, "The dynamic shared memory of a block.", nullptr},
        {nullptr, nullptr, nullptr, nullptr, nullptr},
    };
    static PyMemberDef members[] = {
        {"target", T_OBJECT, offsetof(Launch, target), READONLY, "The handle or kernel that is launched."},
        {"stream", T_OBJECT, offsetof(Launch, stream), READONLY, "The stream that was given, or None."},
        {"__vectorcalloffset__", T_PYSSIZET, offsetof(Launch, vectorcall), READONLY, nullptr},
        {"__weaklistoffset__", T_PYSSIZET, offsetof(Launch, weakrefs), READONLY, nullptr},
        {nullptr, 0, 0, 0, nullptr},
    };
    static PyType_Slot slots[] = {
        {Py_tp_doc, const_cast<char *>("Launch(target, grid, block, stream=None, shared_bytes=0)\n--\n\n"
                                       "A kernel with its launch grid; calling it launches the kernel.")},
        {Py_tp_new, slot(launch_new)},
        {Py_tp_call, slot(PyVectorcall_Call)},
        {Py_tp_dealloc, slot(launch_dealloc)},
        {Py_tp_traverse, slot(launch_traverse)},
        {Py_tp_repr, slot(launch_repr)},
        {Py_tp_getset, properties},
        {Py_tp_members, members},
        {0, nullptr},
    };
    static PyType_Spec spec = {"rekernel._native.Launch", sizeof(Launch), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                                   Py_TPFLAGS_IMMUTABLETYPE,
                               slots};
    return reinterpret_cast<PyTypeObject *>(PyType_FromModuleAndSpec(module, &spec, nullptr));
}

}  // namespace rekernel
