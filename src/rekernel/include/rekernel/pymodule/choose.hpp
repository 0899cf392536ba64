// Part of an exported module: which of several kernels of one name a call means. The nearest one by dtypes, ranks and
// kinds of numbers, by the rules of a loader's own handles; it then makes all checks anew and raises in its own words.
// The order of the kernels matters for equals only.
namespace rekernel_module {

// Numbers cost less than 64 each, and there are never so many that they outweigh a loose rank.
typedef long long Cost;
constexpr Cost no_match = static_cast<Cost>(~0ull >> 1);
constexpr Cost loose_rank = 1ll << 24;
constexpr Cost refused = 1ll << 40;  // of the right kind, but the kernel will not take it

inline Cost rank_cost(const Parameter &row, const View &view) {
    if (view.ndim == row.ndim) return 0;
    if (row.ndim < 0) return 2 * loose_rank;
    bool single = row.ndim == 0 && row.written;
    for (int i = 0; i < view.ndim; ++i) single = single && view.shape[i] == 1;
    return single || (view.ndim < row.ndim && view.ndim >= row.least_ndim) ? loose_rank : no_match;
}

inline Cost array_cost(const Parameter &row, PyObject *argument) {
    if (is_plain(argument) || !PyObject_CheckBuffer(argument)) return no_match;
    View view;
    memset(&view, 0, sizeof view);
    view.argument = argument;
    if (!view_buffer(view)) {
        PyErr_Clear();
        return is_numpy(argument, "ndarray") ? no_match : refused;
    }
    Cost cost = view.element == row.element ? rank_cost(row, view) : no_match;
    release(view);
    return cost;
}

struct Number {
    char family;  // as families of elements are; 0 for what is no number
    Element element;  // of NumPy's numbers; none for Python's
    bool index_only;  // an object with __index__, which is no real number
};

inline Number look_at_number(PyObject *argument) {
    char family = numpy_family(argument);
    if (family) {
        Py_buffer buffer;
        if (PyObject_GetBuffer(argument, &buffer, PyBUF_RECORDS_RO) < 0) {
            PyErr_Clear();
            return Number{0, Element::none, false};
        }
        bool swapped;
        Element element = element_of_format(buffer.format, buffer.itemsize, swapped);
        PyBuffer_Release(&buffer);
        return Number{family == 'g' ? 'f' : family, element, false};
    }
    if (PyBool_Check(argument)) return Number{'b', Element::none, false};
    if (PyLong_Check(argument)) return Number{'i', Element::none, false};
    if (PyFloat_Check(argument)) return Number{'f', Element::none, false};
    if (PyComplex_Check(argument)) return Number{'c', Element::none, false};
    bool index = PyIndex_Check(argument) && !is_numpy(argument, "ndarray");
    return Number{index ? 'i' : '\0', Element::none, index};
}

inline int kind_of(char family) { return family == 'b' ? 0 : family == 'f' ? 2 : family == 'c' ? 3 : 1; }

inline Cost number_cost(const Kernel &kernel, const Parameter &row, PyObject *argument) {
    // How far a number (row) is from a parameter (column): bool, integer, real, complex; 0: no kernel takes it.
    static const Cost distances[4][4] = {{1, 2, 3, 4}, {4, 1, 2, 3}, {0, 0, 1, 2}, {0, 0, 0, 1}};
    Number number = look_at_number(argument);
    if (!number.family) return no_match;
    if (number.element != Element::none && number.element == row.element) return 0;
    const ElementInfo &info = about(row.element);
    Cost distance = distances[kind_of(number.family)][kind_of(info.family)];
    if (distance == 0 || (number.index_only && kind_of(info.family) > 1)) return no_match;
    Cost cost = distance * 8;
    for (int size = info.family == 'c' ? 16 : 8; size > info.size; size /= 2) cost += 2;
    // Of two types of one width the one with the number's own signedness is nearer.
    if (distance == 1 && number.family != info.family) ++cost;
    View view;
    memset(&view, 0, sizeof view);
    view.argument = argument;
    rk_slot unused;
    if (read_scalar(What{kernel, row, view}, unused)) return cost;
    PyErr_Clear();
    return refused + cost;
}

// Whether the kernel has a parameter for every argument and the other way round. Raises nothing.
inline bool can_bind(const Kernel &kernel, PyObject *const *args, Py_ssize_t given, PyObject *kwnames, View *views) {
    if (given + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0) != kernel.count) return false;
    for (int i = 0; i < kernel.count; ++i) views[i].argument = nullptr;
    bool bound = bind(kernel, args, given, kwnames, views);
    PyErr_Clear();
    return bound;
}

// "float64[:, :]", "int"
inline PyObject *type_text(PyObject *argument) {
    bool array = is_numpy(argument, "ndarray");
    PyObject *dtype = array || is_numpy(argument, "generic") ? PyObject_GetAttrString(argument, "dtype") : nullptr;
    PyObject *ndim = dtype && array ? PyObject_GetAttrString(argument, "ndim") : nullptr;
    PyObject *text = dtype ? PyObject_Str(dtype) : PyUnicode_FromFormat("%.200s", Py_TYPE(argument)->tp_name);
    long rank = ndim ? PyLong_AsLong(ndim) : 0;
    for (long i = 0; text && i < rank; ++i) PyUnicode_AppendAndDel(&text, PyUnicode_FromString(i ? ", :" : "[:"));
    if (text && array) PyUnicode_AppendAndDel(&text, PyUnicode_FromString(rank ? "]" : "[]"));
    Py_XDECREF(ndim);
    Py_XDECREF(dtype);
    return text;
}

inline void raise_no_match(const Kernel *const *kernels, int count, PyObject *const *args, Py_ssize_t given,
                           PyObject *kwnames) {
    PyObject *text = PyUnicode_FromFormat("%s: no overload takes (", kernels[0]->name);
    Py_ssize_t all = given + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    for (Py_ssize_t i = 0; text && i < all; ++i) {
        if (i > 0) PyUnicode_AppendAndDel(&text, PyUnicode_FromString(", "));
        if (text && i >= given) {
            PyUnicode_AppendAndDel(&text, PyUnicode_FromFormat("%S=", PyTuple_GET_ITEM(kwnames, i - given)));
        }
        if (text) PyUnicode_AppendAndDel(&text, type_text(args[i]));
    }
    if (text) PyUnicode_AppendAndDel(&text, PyUnicode_FromString("); there are:"));
    for (int i = 0; text && i < count; ++i) {
        PyUnicode_AppendAndDel(&text, PyUnicode_FromFormat("\n  %s", kernels[i]->signature));
    }
    if (text) PyErr_SetObject(PyExc_TypeError, text);
    Py_XDECREF(text);
}

// nullptr with an exception where no kernel fits.
inline const Kernel *choose(const Kernel *const *kernels, int count, PyObject *const *args, Py_ssize_t given,
                            PyObject *kwnames) {
    View views[most_parameters];
    const Kernel *nearest = nullptr, *bound = nullptr;
    Cost least = no_match;
    int binding = 0;
    for (int i = 0; i < count; ++i) {
        const Kernel &kernel = *kernels[i];
        if (!can_bind(kernel, args, given, kwnames, views)) continue;
        ++binding;
        bound = &kernel;
        Cost total = 0;
        for (int j = 0; j < kernel.count && total < no_match; ++j) {
            const Parameter &row = kernel.parameters[j];
            PyObject *argument = views[j].argument;
            Cost cost = row.is_array ? array_cost(row, argument) : number_cost(kernel, row, argument);
            total = cost == no_match ? no_match : total + cost;
        }
        if (total >= least) continue;
        least = total;
        nearest = &kernel;
    }
    if (binding == 1) return bound;  // it says best what is wrong
    bool alike = !kwnames;
    for (int i = 0; i < count; ++i) alike = alike && kernels[i]->count == kernels[0]->count;
    if (binding == 0 && alike) return kernels[0];  // which says what all would
    if (!nearest) raise_no_match(kernels, count, args, given, kwnames);
    return nearest;
}

template <const Kernel &...kernels>
PyObject *call_nearest(PyObject *, PyObject *const *args, Py_ssize_t given, PyObject *kwnames) {
    const Kernel *const choices[] = {&kernels...};
    const Kernel *chosen = choose(choices, static_cast<int>(sizeof...(kernels)), args, given, kwnames);
    return chosen ? Call(*chosen).perform(args, given, kwnames) : nullptr;
}

}  // namespace rekernel_module
