// Streams: the one that a launch goes to, and those it has to wait for.
//
// Invariant: a stream is a number of the driver; 0 and 1 are the same one, the legacy default stream, and 2 is the
// default stream of the thread. No stream is kept alive but by the brackets it stands in.
#include "cuda.hpp"

namespace rekernel {

namespace {

constexpr unsigned without_timing = 2;  // CU_EVENT_DISABLE_TIMING
void *const legacy = nullptr;

void *plain(void *stream) { return stream == reinterpret_cast<void *>(1) ? legacy : stream; }

bool bad_stream(PyObject *name, PyObject *object) {
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_AttributeError)) return false;
    PyErr_Clear();
    Parameter nobody = {};
    PyObject *argument = PyUnicode_FromString("stream");
    PyObject *expected = PyUnicode_FromString("a CUDA stream");
    nobody.name = argument;
    nobody.expected = expected;
    PyObject *got = describe(object);
    PyObject *message =
        got ? PyUnicode_FromFormat("%U[grid, block, stream]: stream must be a CUDA stream (of CuPy, PyTorch or Numba, "
                                   "an object with __cuda_stream__, or its address as an int), got %U",
                                   name, got)
            : nullptr;
    raise_message(Fault::type, nobody, got, message);
    Py_XDECREF(argument);
    Py_XDECREF(expected);
    return false;
}

// What the object has under the name, nullptr without an exception if nothing.
PyObject *attribute(PyObject *object, const char *name) {
    PyObject *found = PyObject_GetAttrString(object, name);
    if (!found && PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
    return found;
}

// __cuda_stream__() returns (version, address).
PyObject *protocol_number(PyObject *object) {
    PyObject *method = attribute(object, "__cuda_stream__");
    if (!method) return nullptr;
    PyObject *pair = PyCallable_Check(method) ? PyObject_CallNoArgs(method) : new_reference(method);
    Py_DECREF(method);
    PyObject *number = pair ? PySequence_GetItem(pair, 1) : nullptr;
    Py_XDECREF(pair);
    return number;
}

PyObject *stream_number(PyObject *object) {
    if (PyLong_Check(object)) return PyBool_Check(object) ? nullptr : new_reference(object);
    PyObject *number = attribute(object, "ptr");
    if (!number && !PyErr_Occurred()) number = attribute(object, "cuda_stream");
    if (!number && !PyErr_Occurred()) number = protocol_number(object);
    if (!number && !PyErr_Occurred()) number = attribute(object, "handle");
    // Numba's is a ctypes pointer, whose value is None where it is 0.
    PyObject *value = number && !PyLong_Check(number) ? attribute(number, "value") : nullptr;
    if (value) Py_SETREF(number, value == Py_None ? PyLong_FromLong(0) : new_reference(value));
    Py_XDECREF(value);
    return number;
}

}  // namespace

bool read_stream(PyObject *name, PyObject *object, void *&out) {
    PyObject *number = stream_number(object);
    if (!number || !PyLong_Check(number)) {
        Py_XDECREF(number);
        return bad_stream(name, object);
    }
    out = PyLong_AsVoidPtr(number);
    Py_DECREF(number);
    return !PyErr_Occurred();
}

bool choose_stream(int device, Sight &sight, void *&out) {
    bool known = false;
    if (sight.has_torch && !torch_stream(device, out, known)) return false;
    if (!known) return cupy_stream(device, out);
    // CuPy has its own opinion about its arrays.
    void *other = nullptr;
    if (!sight.has_cupy) return true;
    if (!cupy_stream(device, other)) return false;
    note_producer(sight, other);
    return true;
}

void note_producer(Sight &sight, void *stream) {
    for (Py_ssize_t i = 0; i < sight.producer_count; ++i) {
        if (sight.producers[i] == stream) return;
    }
    sight.producers[sight.producer_count++] = stream;
}

// The legacy default stream is never captured, and to ask for it would break the capture of another.
bool is_captured(const DriverCalls &calls, void *stream) {
    int status = 0;
    return plain(stream) != legacy && calls.is_capturing && calls.is_capturing(stream, &status) == 0 && status == 1;
}

bool wait_for_producers(const DriverCalls &calls, const Sight &sight, void *stream, int &code) {
    code = 0;
    for (Py_ssize_t i = 0; i < sight.producer_count && code == 0; ++i) {
        if (plain(sight.producers[i]) == plain(stream)) continue;
        if (!calls.make_event || !calls.record_event || !calls.wait_event || !calls.destroy_event) continue;
        void *event = nullptr;
        code = calls.make_event(&event, without_timing);
        if (code != 0) break;
        code = calls.record_event(event, sight.producers[i]);
        if (code == 0) code = calls.wait_event(stream, event, 0);
        calls.destroy_event(event);  // the driver frees it once it has passed
    }
    return code == 0;
}

}  // namespace rekernel
