// The way of one call of a compiled kernel: bind, read what is no array, check the arrays, fill the slots, run.
//
// Invariant: from the first look at an array to the end of the call no Python code runs on this thread; everything
// that may run some (numbers of unusual types, the buffer protocol, DLPack) comes before. While the GIL is released the
// call holds a reference to every argument, and whatever happens all that it has taken is given back. Nothing of one
// call is kept for another.
#include "floatenv.hpp"
#include "numpy_api.hpp"
#include "prepare.hpp"

#include <algorithm>

namespace rekernel {

namespace {

constexpr Py_ssize_t gil_threshold = 16384;  // elements; below it the kernel is done sooner than the GIL is handed over

class Call : Prepared {
public:
    explicit Call(Function *function) : Prepared(function) {}

    PyObject *perform(PyObject *const *args, Py_ssize_t positional, PyObject *kwnames) {
        bool ready = allocate() && bind(args, positional, kwnames) && read_others() && check_arrays() &&
                     check_overlaps() && fill_slots() && (!function->openmp || enter_openmp(function));
        return ready ? run() : nullptr;
    }

private:
    bool read_others() {
        for (Py_ssize_t i = 0; i < function->count; ++i) {
            if (!function->layouts[i].is_array) {
                if (!read_scalar(function, i, given[i], values.data()[i].scalar)) return false;
            } else if (!PyArray_Check(given[i])) {
                if (!view_foreign(function, i, given[i], values.data()[i].view, foreign)) return false;
            }
        }
        return true;
    }

    bool check_arrays() {
        forget_extents();
        for (Py_ssize_t i = 0; i < function->count; ++i) {
            if (!function->layouts[i].is_array) continue;
            View &view = values.data()[i].view;
            if (PyArray_Check(given[i])) view_array(given[i], view);
            if (!check_array(function, i, given[i], view, extents.data())) return false;
            count_elements(view);
        }
        return true;
    }

    // Stops counting where it no longer matters, long before a number could overflow.
    void count_elements(const View &view) {
        Py_ssize_t count = 1;
        for (int i = 0; i < view.ndim; ++i) {
            count = std::min<Py_ssize_t>(count, gil_threshold) * std::min<Py_ssize_t>(view.shape[i], gil_threshold);
        }
        elements = std::min<Py_ssize_t>(elements + count, Py_ssize_t{1} << 40);
    }

    PyObject *run() {
        char text[1024];
        text[0] = 0;
        rk_error error = {0, 0, 0, 0, 0, sizeof text, text, nullptr};
        rk_slot result = {};
        rk_call call = {REKERNEL_ABI, static_cast<unsigned>(function->slot_count), slots.data(), &result, &error,
                        describe_exception};
        bool release = function->nogil == 2 ? elements >= gil_threshold : function->nogil == 1;
        int status = release ? run_released(&call) : run_held(&call);
        if (status != 0) {
            raise_failure(function, status, error);
            return nullptr;
        }
        // Whoever pressed Ctrl-C during a long kernel wants to see it now.
        if (release && PyErr_CheckSignals() < 0) return nullptr;
        return make_result(function->returns, result);
    }

    int run_held(rk_call *call) {
        FloatEnvironment environment;
        int status = function->entry(call);
        environment.restore();
        return status;
    }

    int run_released(rk_call *call) {
        Function *held = function;
        Py_INCREF(reinterpret_cast<PyObject *>(held));
        hold_arguments();
        PyThreadState *state = PyEval_SaveThread();
        int status = run_held(call);
        PyEval_RestoreThread(state);
        drop_arguments();
        Py_DECREF(reinterpret_cast<PyObject *>(held));
        return status;
    }

    Py_ssize_t elements = 0;
};

}  // namespace

PyObject *function_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames) {
    Function *function = as_function(self);
    ++function->calls;
    PyObject *result = Call(function).perform(args, PyVectorcall_NARGS(nargsf), kwnames);
    if (!result) ++function->failures;
    return result;
}

}  // namespace rekernel
