// Part of an exported module: the way of one call. Bind, read numbers and open arrays, check, fill the slots, run.
// Whatever happens, all that a call has borrowed is given back, and nothing of it is kept for another.
namespace rekernel_module {

constexpr Py_ssize_t gil_threshold = 16384;  // elements; below it the kernel is done before the GIL is handed over

// Rounding, flush-to-zero and exception masks are after the kernel as they were before it.
class FloatEnvironment {
public:
#if defined(__x86_64__)
    FloatEnvironment() : sse(__builtin_ia32_stmxcsr()) { __asm__ volatile("fnstcw %0" : "=m"(x87)); }
    ~FloatEnvironment() {
        __asm__ volatile("fldcw %0" : : "m"(x87));
        __builtin_ia32_ldmxcsr(sse);
    }

private:
    unsigned sse;
    unsigned short x87;
#else
    FloatEnvironment() { fegetenv(&environment); }
    ~FloatEnvironment() { fesetenv(&environment); }

private:
    fenv_t environment;
#endif
    FloatEnvironment(const FloatEnvironment &);
};

// Inside of a catch block; touches nothing of Python.
inline void describe(rk_error *error) {
    error->kind = 1;
    const char *text = "an exception of unknown type";
    char *name = nullptr;
    try {
        throw;
    } catch (const std::exception &exception) {
        snprintf(error->text, static_cast<size_t>(error->size), "%s", exception.what());
        return;
    } catch (const char *thrown) {
        snprintf(error->text, static_cast<size_t>(error->size), "%s", thrown);
        return;
    } catch (...) {
        const std::type_info *type = abi::__cxa_current_exception_type();
        int status = 0;
        name = type ? abi::__cxa_demangle(type->name(), nullptr, nullptr, &status) : nullptr;
        if (type) text = name ? name : type->name();
    }
    snprintf(error->text, static_cast<size_t>(error->size), "%s", text);
    free(name);
}

// "step(), line 3: index 9 is out of range ..."
inline void raise_failure(const Kernel &kernel, int status, const rk_error &error) {
    PyObject *said = PyUnicode_DecodeUTF8(error.text, static_cast<Py_ssize_t>(strlen(error.text)), "replace");
    PyObject *place = error.line > 0 ? PyUnicode_FromFormat("%s(), line %d", kernel.name, error.line)
                                     : PyUnicode_FromFormat("%s()", kernel.name);
    if (said && place && error.kind == 2) {
        PyErr_Format(PyExc_IndexError, "%U: index %lld is out of bounds for axis %d with size %lld%s%U", place,
                     error.index, error.axis, error.extent, *error.text ? " of " : "", said);
    } else if (said && place && error.kind >= 1 && error.kind <= 4) {
        static const char *const words[] = {"a C++ exception", "", "division by zero", "an assertion failed"};
        PyObject *classes[] = {PyExc_RuntimeError, nullptr, PyExc_ZeroDivisionError, PyExc_AssertionError};
        PyErr_Format(classes[error.kind - 1], "%U: %s%U", place, *error.text ? "" : words[error.kind - 1], said);
    } else if (said && place) {
        PyErr_Format(PyExc_RuntimeError, "%U: the kernel failed with status %d", place, status);
    }
    Py_XDECREF(place);
    Py_XDECREF(said);
}

#if defined(REKERNEL_MODULE_OPENMP)
// A forked child only seems to have the threads of its parent's OpenMP pool, and would wait for them for ever.
inline unsigned long long &fork_count() {
    static unsigned long long count = 1;
    return count;
}

inline void count_fork() { ++fork_count(); }

inline bool enter_openmp(const Kernel &kernel) {
    static unsigned long long pool = 0;  // the count at which the pool was made
    if (pool == 0) {
        if (pthread_atfork(nullptr, nullptr, count_fork) != 0) {
            PyErr_NoMemory();
            return false;
        }
        pool = fork_count();
    }
    if (pool == fork_count()) return true;
    PyErr_Format(PyExc_RuntimeError,
                 "%s() uses OpenMP and cannot run in this process: it was forked from one that had run OpenMP kernels, "
                 "and would hang. Start processes with multiprocessing's 'spawn' or 'forkserver', or build the kernel "
                 "without OpenMP",
                 kernel.name);
    return false;
}
#else
inline bool enter_openmp(const Kernel &) { return true; }
#endif

inline bool same_name(PyObject *keyword, const char *name) {
    Py_ssize_t size = 0;
    const char *text = PyUnicode_Check(keyword) ? PyUnicode_AsUTF8AndSize(keyword, &size) : nullptr;
    if (!text) PyErr_Clear();
    return text && static_cast<size_t>(size) == strlen(name) && memcmp(text, name, static_cast<size_t>(size)) == 0;
}

inline int find_parameter(const Kernel &kernel, PyObject *keyword) {
    for (int i = 0; i < kernel.count; ++i) {
        if (same_name(keyword, kernel.parameters[i].name)) return i;
    }
    return -1;
}

// The wording and the order of Python itself: keywords, then too many, then missing ones.
inline bool bind(const Kernel &kernel, PyObject *const *args, Py_ssize_t given, PyObject *kwnames, View *views) {
    for (int i = 0; i < kernel.count && i < given; ++i) views[i].argument = args[i];
    for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); ++i) {
        PyObject *keyword = PyTuple_GET_ITEM(kwnames, i);
        int place = find_parameter(kernel, keyword);
        const char *problem = place < 0 ? "%s() got an unexpected keyword argument '%S'"
                                        : views[place].argument ? "%s() got multiple values for argument '%S'" : nullptr;
        if (problem) {
            PyErr_Format(PyExc_TypeError, problem, kernel.name, keyword);
            return false;
        }
        views[place].argument = args[given + i];
    }
    if (given > kernel.count) {
        PyErr_Format(PyExc_TypeError, "%s() takes %d positional argument%s but %zd %s given", kernel.name, kernel.count,
                     kernel.count == 1 ? "" : "s", given, given == 1 ? "was" : "were");
        return false;
    }
    int missing = 0, seen = 0;
    for (int i = 0; i < kernel.count; ++i) missing += !views[i].argument;
    if (missing == 0) return true;
    PyObject *names = PyUnicode_FromString("");
    for (int i = 0; i < kernel.count; ++i) {
        if (views[i].argument) continue;
        ++seen;
        const char *before = seen == 1 ? "" : seen < missing ? ", " : missing == 2 ? " and " : ", and ";
        if (names) PyUnicode_AppendAndDel(&names, PyUnicode_FromFormat("%s'%s'", before, kernel.parameters[i].name));
    }
    if (names) {
        PyErr_Format(PyExc_TypeError, "%s() missing %d required positional argument%s: %U", kernel.name, missing,
                     missing == 1 ? "" : "s", names);
    }
    Py_XDECREF(names);
    return false;
}

// As pystencils' kernels: keywords only, unknown ones are ignored, a missing one is a KeyError.
inline bool bind_keywords(const Kernel &kernel, PyObject *const *args, Py_ssize_t given, PyObject *kwnames,
                          View *views) {
    if (given > 0) {
        PyObject *call = PyUnicode_FromFormat("%s(", kernel.name);
        for (int i = 0; call && i < kernel.count; ++i) {
            PyUnicode_AppendAndDel(&call,
                                   PyUnicode_FromFormat("%s%s=...", i ? ", " : "", kernel.parameters[i].name));
        }
        if (call) {
            PyErr_Format(PyExc_TypeError,
                         "%s() takes keyword arguments only but %zd positional argument%s given; call it as %U)",
                         kernel.name, given, given == 1 ? " was" : "s were", call);
        }
        Py_XDECREF(call);
        return false;
    }
    for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); ++i) {
        int place = find_parameter(kernel, PyTuple_GET_ITEM(kwnames, i));
        if (place >= 0) views[place].argument = args[i];
    }
    for (int i = 0; i < kernel.count; ++i) {
        if (views[i].argument) continue;
        PyErr_Format(PyExc_KeyError, "%s() misses the keyword argument '%s'", kernel.name, kernel.parameters[i].name);
        return false;
    }
    return true;
}

class Call {
public:
    explicit Call(const Kernel &kernel_) : kernel(kernel_) {
        memset(views, 0, sizeof views);
        memset(extents, 0, sizeof extents);
    }

    ~Call() {
        for (int i = 0; i < kernel.count; ++i) release(views[i]);
    }

    PyObject *perform(PyObject *const *args, Py_ssize_t given, PyObject *kwnames) {
        bool bound = kernel.keywords_only ? bind_keywords(kernel, args, given, kwnames, views)
                                          : bind(kernel, args, given, kwnames, views);
        return bound && read() && check() && check_overlaps() && fill_slots() && enter_openmp(kernel) ? run() : nullptr;
    }

private:
    Call(const Call &);

    What what(int i) { return What{kernel, kernel.parameters[i], views[i]}; }

    bool read() {
        for (int i = 0; i < kernel.count; ++i) {
            bool good = kernel.parameters[i].is_array ? view_array(what(i), views[i]) : read_scalar(what(i), values[i]);
            if (!good) return false;
        }
        return true;
    }

    bool check() {
        for (int i = 0; i < kernel.count; ++i) {
            if (!kernel.parameters[i].is_array) continue;
            if (!check_array(what(i), extents)) return false;
            Py_ssize_t count = 1;  // no longer exact where it no longer matters, so that it cannot overflow
            for (int axis = 0; axis < views[i].ndim; ++axis) count = capped(count) * capped(views[i].shape[axis]);
            elements += capped(count);
        }
        return true;
    }

    static Py_ssize_t capped(Py_ssize_t count) { return count < gil_threshold ? count : gil_threshold; }

    Region region(int i, int part) {
        const Parameter &row = kernel.parameters[i];
        const View &view = views[i];
        if (row.field_count == 0) return Region{view.data, view.shape, view.strides, view.ndim, row.itemsize};
        const Field &field = row.fields[part];
        return Region{view.data + field.offset, view.shape, view.strides, view.ndim, about(field.element).size};
    }

    bool check_overlaps() {
        for (int i = 0; i < kernel.count; ++i) {
            for (int j = i + 1; j < kernel.count; ++j) {
                const Parameter &a = kernel.parameters[i], &b = kernel.parameters[j];
                bool matters = a.is_array && b.is_array && (a.restricted || b.restricted) && (a.written || b.written);
                if (matters && !check_overlap(i, j)) return false;
            }
        }
        return true;
    }

    // One array in two places, of which the kernel touches the same elements at the same time.
    bool is_same(int i, int j) {
        const View &a = views[i], &b = views[j];
        int group = kernel.parameters[i].group;
        bool same = group && group == kernel.parameters[j].group && a.data == b.data && a.ndim == b.ndim;
        same = same && !(kernel.parameters[i].written && kernel.parameters[j].written);
        for (int k = 0; same && k < a.ndim; ++k) same = a.shape[k] == b.shape[k] && a.strides[k] == b.strides[k];
        return same;
    }

    bool check_overlap(int i, int j) {
        if (is_same(i, j)) return true;
        int firsts = kernel.parameters[i].field_count, seconds = kernel.parameters[j].field_count;
        for (int a = 0; a == 0 || a < firsts; ++a) {
            for (int b = 0; b == 0 || b < seconds; ++b) {
                Overlap found = find_overlap(region(i, a), region(j, b));
                if (found != Overlap::no) return refuse_overlap(what(j), kernel.parameters[i], found == Overlap::yes);
            }
        }
        return true;
    }

    bool fill_slots() {
        for (int i = 0; i < kernel.slot_count; ++i) {
            const Slot &row = kernel.slots[i];
            const View &view = views[row.parameter];
            if (row.kind == 'v') slots[i] = values[row.parameter];
            else if (row.kind == 'p') slots[i].p = pointer(row, view);
            else if (!fill_size(row, view, slots[i])) return false;
        }
        return true;
    }

    static bool is_known(int name, const Seen *extents) { return name >= 0 && extents[name].parameter; }

    void *pointer(const Slot &row, const View &view) {
        const Parameter &parameter = kernel.parameters[row.parameter];
        char *data = view.data ? view.data + row.offset : nullptr;
        for (int i = 0; data && i < view.ndim && i < parameter.ndim; ++i) {
            data += parameter.axes[i].margin * view.strides[i];
        }
        return data;
    }

    // An axis that the caller left out has extent 1 and is never stepped along.
    bool fill_size(const Slot &row, const View &view, rk_slot &out) {
        out.i = 1;
        if (row.axis >= view.ndim) return true;
        const Parameter &parameter = kernel.parameters[row.parameter];
        Py_ssize_t extent = inner_extent(parameter, view, row.axis);
        Py_ssize_t value = extent;
        if (row.kind == 's') value = view.strides[row.axis] / parameter.itemsize;
        // Of arrays that share a stride, one that has a second element there tells it.
        if (row.kind == 's' && is_known(parameter.axes[row.axis].stride_name, extents)) {
            value = extents[parameter.axes[row.axis].stride_name].value;
        }
        if (holds(row.element, value)) out.i = value;
        else if (row.kind == 'n' || extent > 1) return refuse_slot(what(row.parameter), row, value);
        return true;
    }

    static bool holds(Element element, Py_ssize_t value) {
        int bits = about(element).size * 8;
        if (about(element).family == 'u') return value >= 0 && (bits == 64 || value >> bits == 0);
        return value >> (bits - 1) == 0 || value >> (bits - 1) == -1;
    }

    PyObject *run() {
        char text[1024];
        text[0] = 0;
        rk_error error = {0, 0, 0, 0, 0, static_cast<int>(sizeof text), text, nullptr};
        rk_slot result;
        memset(&result, 0, sizeof result);
        rk_call call = {REKERNEL_ABI, static_cast<unsigned>(kernel.slot_count), slots, &result, &error, describe};
        bool released = kernel.nogil ? kernel.nogil > 0 : elements >= gil_threshold;
        PyThreadState *state = released ? PyEval_SaveThread() : nullptr;
        int status;
        {
            FloatEnvironment environment;
            status = kernel.entry(&call);
        }
        if (released) PyEval_RestoreThread(state);
        if (status != 0) {
            raise_failure(kernel, status, error);
            return nullptr;
        }
        // Whoever pressed Ctrl-C during a long kernel wants to see it now.
        if (released && PyErr_CheckSignals() < 0) return nullptr;
        return make_result(kernel.returns, result);
    }

    const Kernel &kernel;
    Py_ssize_t elements = 0;
    View views[most_parameters];
    rk_slot values[most_parameters];
    rk_slot slots[most_slots];
    Seen extents[most_extents];
};

template <const Kernel &kernel>
PyObject *call(PyObject *, PyObject *const *args, Py_ssize_t given, PyObject *kwnames) {
    return Call(kernel).perform(args, given, kwnames);
}

// The calling convention of METH_FASTCALL | METH_KEYWORDS, in the one type that a method table has.
typedef PyObject *(*Callable)(PyObject *, PyObject *const *, Py_ssize_t, PyObject *);
inline PyCFunction as_method(Callable function) {
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

}  // namespace rekernel_module
