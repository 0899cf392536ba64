// What calls of compiled kernels share, on the CPU and on a device: binding, pairs that must not overlap, slots.
//
// Invariant: nothing here runs Python code after the views are filled. All memory of a call is its own.
#pragma once

#include "function.hpp"
#include "room.hpp"

#include <algorithm>

namespace rekernel {

class Prepared {
public:
    Prepared(const Prepared &) = delete;
    Prepared &operator=(const Prepared &) = delete;

protected:
    // What became of an argument.
    union Value {
        View view;
        rk_slot scalar;
    };

    explicit Prepared(Function *function)
        : function(function), bound(function->count), values(function->count), slots(function->slot_count),
          extents(function->extent_count) {}
    ~Prepared() { release_foreign(foreign); }

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

    void forget_extents() {
        std::fill(extents.data(), extents.data() + function->extent_count, Extent{0, -1});
    }

    bool check_overlaps() {
        for (Py_ssize_t i = 0; i < function->pair_count; ++i) {
            if (!check_overlap(function->pairs[i])) return false;
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

    // References to all arguments, in memory of their own: the caller's list of them is his.
    void hold_arguments() {
        if (given != bound.data()) std::copy(given, given + function->count, bound.data());
        for (Py_ssize_t i = 0; i < function->count; ++i) Py_INCREF(bound.data()[i]);
    }

    void drop_arguments() {
        for (Py_ssize_t i = 0; i < function->count; ++i) Py_DECREF(bound.data()[i]);
    }

    Function *const function;
    PyObject *const *given = nullptr;
    Foreign *foreign = nullptr;
    Room<PyObject *, 16> bound;
    Room<Value, 16> values;
    Room<rk_slot, 64> slots;
    Room<Extent, 16> extents;

private:
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
};

}  // namespace rekernel
