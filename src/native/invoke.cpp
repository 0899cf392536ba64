// The way of one call of a compiled kernel: bind, read what is no array, check the arrays, fill the slots, run.
//
// Invariant: from the first look at an array to the end of the call no Python code runs on this thread; everything
// that may run some (numbers of unusual types, the buffer protocol, DLPack) comes before. While the GIL is released the
// call holds a reference to every argument, and whatever happens all that it has taken is given back. Nothing of one
// call is kept for another.
#include "floatenv.hpp"
#include "function.hpp"
#include "numpy_api.hpp"
#include "room.hpp"

#include <algorithm>

namespace rekernel {

namespace {

constexpr Py_ssize_t gil_threshold = 16384;  // elements; below it the kernel is done sooner than the GIL is handed over

// What became of an argument.
union Value {
    View view;
    rk_slot scalar;
};

class Call {
public:
    explicit Call(Function *function)
        : function(function), bound(function->count), values(function->count), slots(function->slot_count),
          extents(function->extent_count) {}
    ~Call() { release_foreign(foreign); }
    Call(const Call &) = delete;
    Call &operator=(const Call &) = delete;

    PyObject *perform(PyObject *const *args, Py_ssize_t positional, PyObject *kwnames) {
        bool ready = allocate() && bind(args, positional, kwnames) && read_others() && check_arrays() &&
                     check_overlaps() && fill_slots() && (!function->openmp || enter_openmp(function));
        return ready ? run() : nullptr;
    }

private:
    bool allocate() {
        if (bound.data() && values.data() && slots.data() && extents.data()) return true;
        PyErr_NoMemory();
        return false;
    }

    bool bind(PyObject *const *args, Py_ssize_t positional, PyObject *kwnames) {
        Signature signature = {function->name, function->parameters, function->count};
        given = args;
        if (function->keywords_only) {
            if (function->count == 0 && positional == 0) return true;
            given = bound.data();
            return bind_keywords_only(signature, args, positional, kwnames, bound.data());
        }
        if (positional == function->count && !kwnames) return true;
        given = bound.data();
        return bind_arguments(signature, args, positional, kwnames, bound.data());
    }

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
        std::fill(extents.data(), extents.data() + function->extent_count, Extent{0, -1});
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

    bool check_overlaps() {
        for (Py_ssize_t i = 0; i < function->pair_count; ++i) {
            if (!check_overlap(function->pairs[i])) return false;
        }
        return true;
    }

    // One region for an array, one for each field of an array of records.
    Region region_of(Py_ssize_t parameter, Py_ssize_t part) {
        const Layout &layout = function->layouts[parameter];
        const View &view = values.data()[parameter].view;
        if (layout.field_count == 0) return {view.data, view.shape, view.strides, view.ndim, layout.itemsize};
        const Field &field = layout.fields[part];
        return {view.data + field.offset, view.shape, view.strides, view.ndim, about(field.element).size};
    }

    // One array in two places, of which the kernel touches the same elements at the same time.
    bool is_same(const Pair &pair) {
        Py_ssize_t group = function->layouts[pair.first].group;
        if (!group || group != function->layouts[pair.second].group) return false;
        if (function->parameters[pair.first].written && function->parameters[pair.second].written) return false;
        const View &a = values.data()[pair.first].view, &b = values.data()[pair.second].view;
        return a.data == b.data && a.ndim == b.ndim && std::equal(a.shape, a.shape + a.ndim, b.shape) &&
               std::equal(a.strides, a.strides + a.ndim, b.strides);
    }

    bool check_overlap(const Pair &pair) {
        if (is_same(pair)) return true;
        Py_ssize_t firsts = std::max<Py_ssize_t>(function->layouts[pair.first].field_count, 1);
        Py_ssize_t seconds = std::max<Py_ssize_t>(function->layouts[pair.second].field_count, 1);
        for (Py_ssize_t i = 0; i < firsts * seconds; ++i) {
            Overlap found = find_overlap(region_of(pair.first, i / seconds), region_of(pair.second, i % seconds));
            if (found == Overlap::no) continue;
            Refused what = {function, pair.second, given[pair.second], &values.data()[pair.second].view};
            return refuse_overlap(what, pair.first, found == Overlap::yes);
        }
        return true;
    }

    bool fill_slots() {
        for (Py_ssize_t i = 0; i < function->slot_count; ++i) {
            const Slot &row = function->slots[i];
            const Value &value = values.data()[row.parameter];
            rk_slot &out = slots.data()[i];
            if (row.kind == Slot::scalar) out = value.scalar;
            else if (row.kind == Slot::pointer) out.p = pointer(row, value.view);
            else if (!fill_size(row, value.view, out)) return false;
        }
        return true;
    }

    void *pointer(const Slot &row, const View &view) {
        const Layout &layout = function->layouts[row.parameter];
        if (!view.data) return nullptr;
        char *data = view.data + row.offset;
        for (int i = 0; layout.has_margins && i < view.ndim; ++i) data += layout.axes[i].margin * view.strides[i];
        return data;
    }

    // An axis that the caller left out has extent 1 and is never stepped along.
    bool fill_size(const Slot &row, const View &view, rk_slot &out) {
        bool there = row.axis < view.ndim;
        const Layout &layout = function->layouts[row.parameter];
        Py_ssize_t value = 1;
        if (there && row.kind == Slot::shape) {
            value = inner_extent(view, layout.axes, row.axis);
        } else if (there) {
            value = view.strides[row.axis];
            value = layout.shift != no_shift ? value >> layout.shift : value / layout.itemsize;
            // Of arrays that share a stride, one that has a second element there tells it.
            Py_ssize_t name = layout.axes[row.axis].stride_name;
            if (name >= 0 && extents.data()[name].parameter >= 0) value = extents.data()[name].value;
        }
        out.i = value;
        if (row.element == Element::int64 || holds(row.element, value)) return true;
        // Of an axis without a second element no kernel uses the stride.
        if (row.kind == Slot::stride && view.shape[row.axis] <= 1) {
            out.i = 1;
            return true;
        }
        return refuse_slot({function, row.parameter, given[row.parameter], &view}, row, value);
    }

    static bool holds(Element element, Py_ssize_t value) {
        const ElementInfo &info = about(element);
        if (info.family == Family::unsigned_integer) {
            return value >= 0 && (info.size == 8 || value >> (info.size * 8) == 0);
        }
        Py_ssize_t beyond = value >> (info.size * 8 - 1);
        return beyond == 0 || beyond == -1;
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
        // In memory of their own: the caller's list of arguments is his.
        std::copy(given, given + function->count, bound.data());
        for (Py_ssize_t i = 0; i < function->count; ++i) Py_INCREF(bound.data()[i]);
        PyThreadState *state = PyEval_SaveThread();
        int status = run_held(call);
        PyEval_RestoreThread(state);
        for (Py_ssize_t i = 0; i < function->count; ++i) Py_DECREF(bound.data()[i]);
        Py_DECREF(reinterpret_cast<PyObject *>(held));
        return status;
    }

    Function *const function;
    PyObject *const *given = nullptr;
    Foreign *foreign = nullptr;
    Py_ssize_t elements = 0;
    Room<PyObject *, 16> bound;
    Room<Value, 16> values;
    Room<rk_slot, 64> slots;
    Room<Extent, 16> extents;
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
