// The way of one launch: bind, look at the arguments, choose device and stream, check, pack the parameters, launch.
//
// Invariant: as in invoke.cpp: all Python code of the arguments runs before the arrays are checked. The GIL is not held
// while the driver is asked to launch: it may wait for a full queue, and what is in the queue may wait for the GIL.
#include "cuda.hpp"
#include "prepare.hpp"

#include <utility>

namespace rekernel {

namespace {

constexpr Py_ssize_t least_words = 3;  // of an Array of rank 0, which has room for one axis that nobody looks at
constexpr unsigned plain_shared = 48 << 10;  // more must be asked for
constexpr int dynamic_shared = 8;            // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES

// The device's context for the length of a block, where it is not the thread's own.
class Context {
public:
    Context(const DriverCalls &calls, void *context) : calls(calls) {
        void *current = nullptr;
        code = calls.get_context(&current);
        if (code != 0 || current == context) return;
        code = calls.push_context(context);
        pushed = code == 0;
    }
    ~Context() {
        void *popped;
        if (pushed) calls.pop_context(&popped);
    }
    Context(const Context &) = delete;
    Context &operator=(const Context &) = delete;

    int code = 0;

private:
    const DriverCalls &calls;
    bool pushed = false;
};

class DeviceCall : Prepared {
public:
    explicit DeviceCall(CudaKernel *kernel)
        : Prepared(&kernel->function), kernel(kernel), driver(as_driver(kernel->driver)),
          parameters(kernel->packed_count), words(kernel->function.slot_count + least_words * kernel->packed_count),
          producers(kernel->function.count + 1) {
        sight.driver = driver;
        sight.producers = producers.data();
    }

    // `place` is nullptr where the kernel's own grid is asked for.
    PyObject *perform(const Place *place, PyObject *const *args, Py_ssize_t positional, PyObject *kwnames) {
        bool ready = allocate_all() && bind(args, positional, kwnames) && read_arguments() && find_device() &&
                     find_stream(place) && import_tensors() && check_arrays() && check_overlaps() && fill_slots() &&
                     find_geometry(place);
        if (!ready) return nullptr;
        if (!geometry.is_empty() && !launch()) return nullptr;
        Py_RETURN_NONE;
    }

private:
    bool allocate_all() {
        if (parameters.data() && words.data() && producers.data()) return allocate();
        PyErr_NoMemory();
        return false;
    }

    Refused refused(Py_ssize_t parameter) { return {function, parameter, given[parameter], nullptr}; }

    bool read_arguments() {
        for (Py_ssize_t i = 0; i < function->count; ++i) {
            Value &value = values.data()[i];
            bool read = function->layouts[i].is_array
                            ? view_on_device(refused(i), value.view, sight, sizes, foreign)
                            : read_scalar(function, i, given[i], value.scalar);
            if (!read) return false;
        }
        return true;
    }

    bool find_device() {
        if (sight.device < 0 && !cupy_device(driver->calls, sight.device)) return false;
        return check_alive(driver, sight.device, kernel->errors);
    }

    bool find_stream(const Place *place) {
        if (!place || !place->has_stream) return choose_stream(sight.device, sight, stream);
        stream = place->stream;
        return true;
    }

    // Their owners make our stream wait for theirs; into a graph that is being captured they must not.
    bool import_tensors() {
        Owned number(nullptr);
        for (Py_ssize_t i = 0; i < function->count; ++i) {
            if (!function->layouts[i].is_array || values.data()[i].view.ndim >= 0) continue;
            if (!number) number.object = stream_for_dlpack();
            if (!number) return false;
            if (!view_dlpack_on_device(refused(i), number.object, values.data()[i].view, foreign)) return false;
        }
        return true;
    }

    PyObject *stream_for_dlpack() {
        if (is_captured(driver->calls, stream)) return PyLong_FromLong(-1);
        return stream ? PyLong_FromVoidPtr(stream) : PyLong_FromLong(1);
    }

    bool check_arrays() {
        forget_extents();
        for (Py_ssize_t i = 0; i < function->count; ++i) {
            if (!function->layouts[i].is_array) continue;
            if (!check_array(function, i, given[i], values.data()[i].view, extents.data())) return false;
        }
        return true;
    }

    bool find_geometry(const Place *place) {
        if (place) geometry = place->geometry;
        return place || find_grid(kernel, shapes_tuple(), scalars_tuple(), geometry);
    }

    PyObject *shapes_tuple() {
        PyObject *shapes = PyList_New(0);
        for (Py_ssize_t i = 0; shapes && i < function->count; ++i) {
            if (!function->layouts[i].is_array) continue;
            const View &view = values.data()[i].view;
            Owned shape(PyTuple_New(view.ndim));
            for (int axis = 0; shape && axis < view.ndim; ++axis) {
                PyObject *extent = PyLong_FromSsize_t(view.shape[axis]);
                if (!extent) Py_CLEAR(shape.object);
                else PyTuple_SET_ITEM(shape.object, axis, extent);
            }
            if (!shape || PyList_Append(shapes, shape.object) < 0) Py_CLEAR(shapes);
        }
        Owned list(shapes);
        return list ? PyList_AsTuple(list.object) : nullptr;
    }

    PyObject *scalars_tuple() {
        PyObject *numbers = PyList_New(0);
        for (Py_ssize_t i = 0; numbers && i < function->count; ++i) {
            if (function->layouts[i].is_array) continue;
            bool whole = function->parameters[i].kind == Kind::integer;
            Owned number(whole ? make_result(function->layouts[i].element, values.data()[i].scalar)
                               : new_reference(Py_None));
            if (!number || PyList_Append(numbers, number.object) < 0) Py_CLEAR(numbers);
        }
        Owned list(numbers);
        return list ? PyList_AsTuple(list.object) : nullptr;
    }

    // One pointer for each parameter of the kernel: to its slot, or to the slots of an array packed into a struct.
    void pack() {
        std::uint64_t *next = words.data();
        for (Py_ssize_t i = 0; i < kernel->packed_count; ++i) {
            const Packed &packed = kernel->packed[i];
            rk_slot *first = slots.data() + packed.first;
            if (function->slots[packed.first].kind != Slot::pointer) {
                parameters.data()[i] = first;
                continue;
            }
            parameters.data()[i] = next;
            for (Py_ssize_t k = 0; k < packed.count; ++k) *next++ = first[k].u;
            for (Py_ssize_t k = packed.count; k < least_words; ++k) *next++ = 0;
        }
    }

    bool launch() {
        Py_ssize_t place = find_on_device(kernel, sight.device);
        if (place < 0) return false;
        const OnDevice there = kernel->devices[place];
        pack();
        Context context(driver->calls, there.context);
        if (context.code != 0) return fail(context.code);
        bool captured = (there.captured || sight.producer_count > 0) && is_captured(driver->calls, stream);
        if (captured && !tell_captured(place)) return false;
        if (captured) sight.producer_count = 0;
        int code = launch_released(there.function);
        if (code != 0) return fail(code);
        remember_launch(driver, {function->kernel_id, function->name, kernel->version, sight.device, geometry, stream});
        return !kernel->checked || call_checked();
    }

    int launch_released(void *code_there) {
        const DriverCalls &calls = driver->calls;
        const unsigned *grid = geometry.grid, *block = geometry.block;
        hold_arguments();
        PyThreadState *state = PyEval_SaveThread();
        int code = 0;
        if (geometry.shared > plain_shared && calls.set_attribute) {
            code = calls.set_attribute(code_there, dynamic_shared, static_cast<int>(geometry.shared));
        }
        if (code == 0 && wait_for_producers(calls, sight, stream, code)) {
            code = calls.launch(code_there, grid[0], grid[1], grid[2], block[0], block[1], block[2], geometry.shared,
                                stream, parameters.data(), nullptr);
        }
        PyEval_RestoreThread(state);
        drop_arguments();
        return code;
    }

    // Once: whoever is told keeps the code for as long as the graph may run.
    bool tell_captured(Py_ssize_t place) {
        Owned captured(kernel->devices[place].captured);
        kernel->devices[place].captured = nullptr;
        Owned answer(captured ? PyObject_CallNoArgs(captured.object) : new_reference(Py_None));
        if (!answer && !kernel->devices[place].captured) std::swap(kernel->devices[place].captured, captured.object);
        return static_cast<bool>(answer);
    }

    bool call_checked() {
        Owned checked(new_reference(kernel->checked)), number(PyLong_FromVoidPtr(stream));
        Owned answer(number ? PyObject_CallFunction(checked.object, "iO", sight.device, number.object) : nullptr);
        return static_cast<bool>(answer);
    }

    bool fail(int code) {
        Owned text(failure_text(function, geometry, code));
        Owned message(text ? tell_failure(driver, sight.device, code, text.object) : nullptr);
        if (message) PyErr_SetObject(kernel->errors, message.object);
        return false;
    }

    CudaKernel *const kernel;
    CudaDriver *const driver;
    Geometry geometry = {};
    void *stream = nullptr;
    Sight sight;
    Sizes sizes;
    Room<void *, 32> parameters;
    Room<std::uint64_t, 128> words;
    Room<void *, 16> producers;
};

}  // namespace

PyObject *launch_kernel(PyObject *self, const Place *place, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    CudaKernel *kernel = as_cuda_kernel(self);
    ++kernel->function.calls;
    PyObject *result = DeviceCall(kernel).perform(place, args, PyVectorcall_NARGS(nargsf), kwnames);
    if (!result) ++kernel->function.failures;
    return result;
}

}  // namespace rekernel
