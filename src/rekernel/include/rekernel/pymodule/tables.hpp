// Part of an exported module: what its kernels are. All of it is constant; a call changes nothing but its own memory.
namespace rekernel_module {

enum class Element : unsigned char {
    none, boolean, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, float32, float64, complex64,
    complex128
};

// family: b bool, i signed, u unsigned, f real, c complex, - none.
struct ElementInfo {
    const char *name;
    char family;
    int size, alignment;
};

inline const ElementInfo &about(Element element) {
    static const ElementInfo table[] = {
        {"", '-', 0, 1},        {"bool", 'b', 1, 1},    {"int8", 'i', 1, 1},    {"int16", 'i', 2, 2},
        {"int32", 'i', 4, 4},   {"int64", 'i', 8, 8},   {"uint8", 'u', 1, 1},   {"uint16", 'u', 2, 2},
        {"uint32", 'u', 4, 4},  {"uint64", 'u', 8, 8},  {"float16", 'f', 2, 2}, {"float32", 'f', 4, 4},
        {"float64", 'f', 8, 8}, {"complex64", 'c', 8, 4}, {"complex128", 'c', 16, 8},
    };
    return table[static_cast<int>(element)];
}

inline Element find_element(char family, Py_ssize_t size) {
    for (int i = 1; i <= static_cast<int>(Element::complex128); ++i) {
        const ElementInfo &info = about(static_cast<Element>(i));
        if (info.family == family && info.size == size) return static_cast<Element>(i);
    }
    return Element::none;
}

// extent: fixed, or -1. name: number of a named extent, or -1. stride: in bytes, where it is fixed. stride_name: number
// of a named stride (in elements), or -1. margin: ghost layers at either end, which the kernel does not count.
struct Axis {
    Py_ssize_t extent;
    int name;
    bool fixed;
    Py_ssize_t stride;
    int stride_name;
    Py_ssize_t margin;
};

struct Field {
    const char *name;
    Element element;
    Py_ssize_t offset;
};

// element: none for records, which have fields. ndim: -1 for any. group: arrays of one group, unless 0, may be one and
// the same array although restricted.
struct Parameter {
    const char *name, *type;
    Element element;
    bool is_array, contiguous, written, restricted;
    int ndim, least_ndim;
    Py_ssize_t itemsize;
    const Axis *axes;
    const Field *fields;
    int field_count, group;
};

// kind: p pointer (plus offset bytes), n extent, s stride in items, v value.
struct Slot {
    char kind;
    int parameter, axis;
    Py_ssize_t offset;
    Element element;
};

// nogil: 1 every call releases the GIL, -1 none does, 0 those do that have much to do.
struct Kernel {
    const char *name, *signature;
    const Parameter *parameters;
    int count;
    const Slot *slots;
    int slot_count;
    const char *const *extents;
    int extent_count;
    int (*entry)(rk_call *);
    Element returns;
    bool keywords_only, openmp;
    int nogil;
};

// One argument of one call.
struct View {
    PyObject *argument;  // borrowed
    Py_buffer buffer;    // to be released where buffer.obj is set
    PyObject *array;     // NumPy's array of records, owned; or nullptr
    PyObject *dtype;     // NumPy's, owned, for records; or nullptr
    Py_ssize_t *sizes;   // owned shape and strides where the exporter does not hold them so; or nullptr
    char *data;
    const Py_ssize_t *shape, *strides;  // strides in bytes
    int ndim;
    Element element;
    bool swapped, writeable;
};

// An extent as the kernel counts it.
inline Py_ssize_t inner_extent(const Parameter &row, const View &view, int axis) {
    Py_ssize_t inner = view.shape[axis] - (axis < row.ndim ? 2 * row.axes[axis].margin : 0);
    return inner > 0 ? inner : 0;
}

struct What {
    const Kernel &kernel;
    const Parameter &parameter;
    const View &view;
};

}  // namespace rekernel_module
