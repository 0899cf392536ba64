// One array against its row: type, byte order, rank, extents, strides, alignment, order, writeable.
//
// Invariant: for an array that passes, every address that the kernel can compute from the pointer, the extents and the
// strides of its slots belongs to the array and is aligned for its type. Strides of axes that have no second element
// are never used for an address, so they may be anything; nor has an empty array any address.
#include "function.hpp"

#include <algorithm>

namespace rekernel {

namespace {

struct Item {
    const Refused refused;
    const Layout &layout;
    const View &view;
    bool empty;
};

bool has_steps(const Item &item, int axis) { return !item.empty && item.view.shape[axis] > 1; }

// The dtype's fields are a mapping of name to (dtype, offset, ...).
bool check_field(const Refused &refused, PyObject *fields, const Field &field) {
    PyObject *found = PyObject_GetItem(fields, field.name);
    if (!found) {
        PyErr_Clear();
        return refuse_field(refused, field);
    }
    PyObject *dtype = PyTuple_GetItem(found, 0), *offset = PyTuple_GetItem(found, 1);
    PyObject *number = dtype ? PyObject_GetAttrString(dtype, "num") : nullptr;
    PyObject *native = number ? PyObject_GetAttrString(dtype, "isnative") : nullptr;
    bool fits = native && native == Py_True && offset && PyLong_AsSsize_t(offset) == field.offset &&
                element_of_typenum(static_cast<int>(PyLong_AsLong(number))) == field.element;
    Py_XDECREF(native);
    Py_XDECREF(number);
    Py_DECREF(found);
    if (PyErr_Occurred()) return false;
    return fits || refuse_field(refused, field);
}

bool check_records(const Item &item) {
    PyObject *dtype = item.view.dtype;
    PyObject *fields = dtype ? PyObject_GetAttrString(dtype, "fields") : nullptr;
    if (dtype && !fields) return false;
    PyObject *size = fields ? PyObject_GetAttrString(dtype, "itemsize") : nullptr;
    bool fits = size && fields != Py_None && PyLong_AsSsize_t(size) == item.layout.itemsize;
    bool accepted = fits || refuse_element(item.refused);
    for (Py_ssize_t i = 0; accepted && i < item.layout.field_count; ++i) {
        accepted = check_field(item.refused, fields, item.layout.fields[i]);
    }
    Py_XDECREF(size);
    Py_XDECREF(fields);
    return accepted;
}

bool check_element(const Item &item) {
    if (item.layout.element == Element::none) return check_records(item);
    if (item.view.element != item.layout.element) return refuse_element(item.refused);
    if (!item.view.swapped) return true;
    const char *remedy = "the bytes of the array are in foreign order; pass %U.astype(%U.dtype.newbyteorder('='))";
    return refuse_value(Fault::type, item.refused, "a byte-swapped", remedy, remedy);
}

bool is_aligned(const Item &item, Py_ssize_t offset, Py_ssize_t alignment) {
    std::uintptr_t bits = reinterpret_cast<std::uintptr_t>(item.view.data) + static_cast<std::uintptr_t>(offset);
    for (int i = 0; i < item.view.ndim; ++i) {
        if (has_steps(item, i)) bits |= static_cast<std::uintptr_t>(item.view.strides[i]);
    }
    return (bits & static_cast<std::uintptr_t>(alignment - 1)) == 0;
}

bool check_alignment(const Item &item) {
    if (item.empty) return true;
    bool aligned = item.layout.element == Element::none || item.view.aligned ||
                   is_aligned(item, 0, item.layout.alignment);
    for (Py_ssize_t i = 0; i < item.layout.field_count; ++i) {
        const Field &field = item.layout.fields[i];
        aligned = aligned && is_aligned(item, field.offset, about(field.element).alignment);
    }
    return aligned || refuse_value(Fault::value, item.refused, "an unaligned",
                                   "the array is not aligned; pass an aligned array (%U.copy())",
                                   "the array is not aligned and the kernel writes to it; pass an aligned array and "
                                   "copy the result back");
}

bool check_rank(const Item &item) {
    int ndim = item.view.ndim;
    if (item.layout.ndim < 0 || (ndim <= item.layout.ndim && ndim >= item.layout.least_ndim)) return true;
    bool one = item.layout.one_element;
    for (int i = 0; i < ndim; ++i) one = one && item.view.shape[i] == 1;
    return one || refuse_rank(item.refused);
}

bool check_extent(const Item &item, int axis, Extent *extents) {
    const Axis &row = item.layout.axes[axis];
    Py_ssize_t extent = inner_extent(item.view, item.layout.axes, axis);
    if (row.extent >= 0 && extent != row.extent) return refuse_extent(item.refused, axis, nullptr);
    if (row.name < 0) return true;
    Extent &seen = extents[row.name];
    if (seen.parameter < 0) seen = {extent, item.refused.parameter};
    return seen.value == extent || refuse_extent(item.refused, axis, &seen);
}

bool is_multiple(Py_ssize_t stride, const Layout &layout) {
    // Most item sizes are powers of two, and a division takes longer than all other checks of an axis.
    if (layout.shift != no_shift) return (stride & (layout.itemsize - 1)) == 0;
    return stride % layout.itemsize == 0;
}

bool check_stride(const Item &item, int axis, Extent *extents) {
    const Axis &row = item.layout.axes[axis];
    Py_ssize_t stride = item.view.strides[axis];
    if (row.stride != free_stride && row.stride != stride) return refuse_stride(item.refused, axis, nullptr);
    if (row.stride_name < 0) return true;
    Extent &seen = extents[row.stride_name];
    Py_ssize_t elements = stride / item.layout.itemsize;
    if (seen.parameter < 0) seen = {elements, item.refused.parameter};
    return seen.value == elements || refuse_stride(item.refused, axis, &seen);
}

bool check_strides(const Item &item, Extent *extents) {
    std::uintptr_t packed = static_cast<std::uintptr_t>(item.layout.itemsize);  // may wrap: a view can claim any shape
    bool contiguous = true;
    for (int i = item.view.ndim - 1; i >= 0; --i) {
        if (has_steps(item, i)) {
            Py_ssize_t stride = item.view.strides[i];
            if (!is_multiple(stride, item.layout)) return refuse_stride(item.refused, i, nullptr);
            // A rank of -1 has no rows, and what has more axes than rows is one element.
            if (i < item.layout.ndim && !check_stride(item, i, extents)) return false;
            contiguous = contiguous && static_cast<std::uintptr_t>(stride) == packed;
        }
        packed *= static_cast<std::uintptr_t>(item.view.shape[i]);
    }
    if (contiguous || !item.layout.contiguous) return true;
    return refuse_value(Fault::value, item.refused, "a non-contiguous",
                        "the array is not C-contiguous; pass np.ascontiguousarray(%U)",
                        "the array is not C-contiguous and the kernel writes to it; pass a C-contiguous array and copy "
                        "the result back");
}

bool check_written(const Item &item) {
    if (!item.view.writeable) {
        const char *problem = "the array is read-only and the kernel writes to it; pass a writeable array (%U.copy())";
        return refuse_value(Fault::value, item.refused, "a read-only", problem, problem);
    }
    for (int i = 0; i < item.view.ndim; ++i) {
        if (!has_steps(item, i) || item.view.strides[i] != 0) continue;
        const char *problem = "elements of the array share memory (a stride is 0) and the kernel writes to it; pass "
                              "%U.copy()";
        return refuse_value(Fault::value, item.refused, "a broadcast", problem, problem);
    }
    return true;
}

}  // namespace

bool check_records(const Function *function, Py_ssize_t parameter, PyObject *argument, const View &view) {
    return check_records(Item{{function, parameter, argument, &view}, function->layouts[parameter], view, false});
}

bool check_array(const Function *function, Py_ssize_t parameter, PyObject *argument, const View &view,
                 Extent *extents) {
    const Layout &layout = function->layouts[parameter];
    bool empty = std::find(view.shape, view.shape + view.ndim, 0) != view.shape + view.ndim;
    Item item = {{function, parameter, argument, &view}, layout, view, empty};
    if (!check_element(item) || !check_rank(item) || !check_alignment(item)) return false;
    int rows = std::min(view.ndim, std::max(layout.ndim, 0));
    for (int i = 0; i < rows; ++i) {
        if (!check_extent(item, i, extents)) return false;
    }
    return check_strides(item, extents) && (!function->parameters[parameter].written || check_written(item));
}

}  // namespace rekernel
