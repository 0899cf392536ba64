// The slots of a Function, and the pairs of arrays that must not overlap.
//
// Invariant: a slot refers to a parameter of the right kind and to an axis that it has. The parameters are read first.
#include "rows.hpp"

namespace rekernel {

namespace {

constexpr Py_ssize_t slot_size = 5;  // (kind, parameter, axis, offset, dtype)

bool read_slot_kind(PyObject *name, Slot &out) {
    const char *names[] = {"pointer", "shape", "stride", "scalar"};
    for (std::uint8_t i = 0; i < 4; ++i) {
        out.kind = static_cast<Slot::Kind>(i);
        if (PyUnicode_CompareWithASCIIString(name, names[i]) == 0) return true;
    }
    return false;
}

bool read_slot(Function *function, const Row &row, Slot &out) {
    if (!is_tuple_of(row.items, slot_size) || !PyUnicode_Check(item(row, 0)) || !PyUnicode_Check(item(row, 4))) {
        return bad_row(row, "expected (kind, parameter, axis, offset, dtype)");
    }
    if (!read_slot_kind(item(row, 0), out)) return bad_row(row, "unknown kind");
    if (!read_size(item(row, 1), 0, function->count - 1, out.parameter)) return bad_row(row, "no such parameter");
    const Layout &layout = function->layouts[out.parameter];
    if (layout.is_array == (out.kind == Slot::scalar)) return bad_row(row, "the parameter is of another kind");
    if (out.kind == Slot::scalar) return true;
    if (out.kind == Slot::pointer) {
        return read_size(item(row, 3), 0, layout.itemsize, out.offset) || bad_row(row, "bad offset");
    }
    Py_ssize_t axis = 0;
    if (!read_size(item(row, 2), 0, layout.ndim - 1, axis)) return bad_row(row, "no such axis");
    out.axis = static_cast<int>(axis);
    out.element = element_named(item(row, 4));
    Family family = about(out.element).family;
    if (family != Family::signed_integer && family != Family::unsigned_integer) {
        return bad_row(row, "dtype must be that of an integer");
    }
    return true;
}

bool pair_up(Function *function) {
    if (!allocate(function->pairs, function->count * (function->count - 1) / 2)) return false;
    for (Py_ssize_t i = 0; i < function->count; ++i) {
        for (Py_ssize_t j = i + 1; j < function->count; ++j) {
            const Layout &a = function->layouts[i], &b = function->layouts[j];
            if (!a.is_array || !b.is_array || !(a.restrict_ || b.restrict_)) continue;
            if (!function->parameters[i].written && !function->parameters[j].written) continue;
            function->pairs[function->pair_count++] = {i, j};
        }
    }
    return true;
}

}  // namespace

bool parse_slots(Function *function, PyObject *slots) {
    Py_ssize_t count = PyTuple_GET_SIZE(slots);
    if (!allocate(function->slots, count)) return false;
    function->slot_count = count;
    for (Py_ssize_t i = 0; i < count; ++i) {
        if (!read_slot(function, {"slots", i, PyTuple_GET_ITEM(slots, i)}, function->slots[i])) return false;
    }
    return pair_up(function);
}

}  // namespace rekernel
