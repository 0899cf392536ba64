// Part of an exported module: numbers into slots, and the result back. Python's own numbers and all that NumPy has for
// one number (a scalar, an array of rank 0) are taken; what does not fit raises, and a finite number never becomes
// infinite. Whether a number is finite is asked of its bits: with -ffast-math, the compiler takes all for finite.
namespace rekernel_module {

inline unsigned long long bits_of(double value) {
    unsigned long long bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

inline bool is_finite(double value) { return (bits_of(value) >> 52 & 0x7ff) != 0x7ff; }

inline bool is_infinite(double value) { return bits_of(value) << 1 == 0xffeull << 52; }

// To nearest, ties to even.
inline unsigned short to_half(double value) {
    unsigned long long bits = bits_of(value), mantissa = bits & 0xfffffffffffffull;
    unsigned sign = static_cast<unsigned>(bits >> 48 & 0x8000);
    int exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1023;
    if (exponent == 1024) return static_cast<unsigned short>(sign | 0x7c00u | (mantissa ? 0x200u : 0u));
    if (exponent < -25) return static_cast<unsigned short>(sign);
    mantissa |= 1ull << 52;
    int dropped = exponent < -14 ? 42 + (-14 - exponent) : 42;
    unsigned long long kept = mantissa >> dropped, tie = 1ull << (dropped - 1);
    unsigned long long rest = mantissa & ((1ull << dropped) - 1);
    if (rest > tie || (rest == tie && (kept & 1))) ++kept;
    if (exponent >= -14) kept += static_cast<unsigned long long>(exponent + 14) << 10;
    return static_cast<unsigned short>(sign | static_cast<unsigned>(kept > 0x7c00 ? 0x7c00 : kept));
}

inline double from_half(unsigned short half) {
    unsigned exponent = half >> 10 & 0x1fu, mantissa = half & 0x3ffu;
    unsigned long long sign = static_cast<unsigned long long>(half & 0x8000u) << 48, bits;
    if (exponent == 0) {
        double value = static_cast<double>(mantissa) / 16777216.0;
        return sign ? -value : value;
    }
    bits = exponent == 31 ? 0x7ffull << 52 : static_cast<unsigned long long>(exponent + 1008) << 52;
    bits |= static_cast<unsigned long long>(mantissa) << 42 | sign;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

// One letter, or 'Z' and one, after an optional mark of the byte order. A missing format means bytes.
inline Element element_of_format(const char *format, Py_ssize_t itemsize, bool &swapped) {
    swapped = false;
    if (!format) return find_element('u', itemsize);
    if (*format && strchr("@=<>!", *format)) {
        bool big = *format == '>' || *format == '!', little = *format == '<';
        swapped = itemsize > 1 && (PY_BIG_ENDIAN ? little : big);
        ++format;
    }
    bool complex = *format == 'Z';
    if (complex) ++format;
    if (!*format || format[1]) return Element::none;
    if (complex) return strchr("efd", *format) ? find_element('c', itemsize) : Element::none;
    char family = *format == '?'                   ? 'b'
                  : strchr("bhilqn", *format)      ? 'i'
                  : strchr("BHILQN", *format)      ? 'u'
                  : strchr("efd", *format)         ? 'f'
                                                   : '-';
    return find_element(family, itemsize);
}

// What NumPy has for one number: b, i, u, f, c as families are, g for a long double; 0 for all else.
inline char numpy_family(PyObject *argument) {
    if (!PyObject_CheckBuffer(argument) || !(is_numpy(argument, "generic") || is_numpy(argument, "ndarray"))) return 0;
    Py_buffer buffer;
    if (PyObject_GetBuffer(argument, &buffer, PyBUF_RECORDS_RO) < 0) {  // of a time, for example
        PyErr_Clear();
        return 0;
    }
    bool swapped;
    char family = 0;
    if (buffer.ndim == 0) {
        family = about(element_of_format(buffer.format, buffer.itemsize, swapped)).family;
        const char *format = buffer.format ? buffer.format : "";
        while (*format && strchr("@=<>!", *format)) ++format;
        if (format[0] == 'g' && !format[1]) family = 'g';
    }
    PyBuffer_Release(&buffer);
    return family == '-' ? '\0' : family;
}

// Digits, or a size: Python refuses to write out very long integers.
inline PyObject *integer_text(PyObject *number) {
    PyObject *length = PyObject_CallMethod(reinterpret_cast<PyObject *>(&PyLong_Type), "bit_length", "O", number);
    long bits = length ? PyLong_AsLong(length) : -1;
    Py_XDECREF(length);
    PyErr_Clear();
    bool is_long = bits < 0 || bits > 256;
    return is_long ? PyUnicode_FromString("an integer of more than 256 bits") : PyLong_Type.tp_repr(number);
}

inline bool refuse_range(const What &what, PyObject *number) {
    const ElementInfo &info = about(what.parameter.element);
    int bits = info.size * 8;
    unsigned long long high = info.family == 'b' ? 1 : ~0ull >> (info.family == 'i' ? 65 - bits : 64 - bits);
    PyObject *got = integer_text(number), *problem = nullptr;
    if (got && info.family == 'i') {
        problem = PyUnicode_FromFormat("%U does not fit %s (%lld to %llu)", got, what.parameter.type,
                                       -static_cast<long long>(high) - 1, high);
    } else if (got) {
        problem = PyUnicode_FromFormat("%U does not fit %s (0 to %llu)", got, what.parameter.type, high);
    }
    Py_XDECREF(got);
    return raise(PyExc_ValueError, what, problem);
}

inline bool fits_integer(const ElementInfo &info, PyObject *number, rk_slot &out) {
    int overflow = 0;
    long long value = PyLong_AsLongLongAndOverflow(number, &overflow);
    if (overflow > 0 && info.family == 'u' && info.size == 8) {
        out.u = PyLong_AsUnsignedLongLong(number);
        if (!PyErr_Occurred()) return true;
        PyErr_Clear();
    }
    if (overflow) return false;
    out.i = value;
    if (info.family == 'b') return value == 0 || value == 1;
    int bits = info.size * 8;
    if (info.family == 'u') return value >= 0 && (bits == 64 || value >> bits == 0);
    return value >> (bits - 1) == 0 || value >> (bits - 1) == -1;
}

inline bool read_integer(const What &what, rk_slot &out) {
    PyObject *argument = what.view.argument, *number = nullptr;
    if (PyLong_Check(argument)) {
        Py_INCREF(argument);
        number = argument;
    } else {
        char family = numpy_family(argument);
        bool plain = family == 'b' || family == 'i' || family == 'u';
        bool numpy = family || is_numpy(argument, "generic") || is_numpy(argument, "ndarray");
        if (numpy ? !plain : !PyIndex_Check(argument)) {
            return refuse_unlike(PyExc_TypeError, what, got_text(what, nullptr), "");
        }
        number = numpy ? PyNumber_Long(argument) : PyNumber_Index(argument);
    }
    if (!number) return false;
    bool fits = fits_integer(about(what.parameter.element), number, out);
    bool read = !PyErr_Occurred() && (fits || refuse_range(what, number));
    Py_DECREF(number);
    return read;
}

inline bool refuse_infinite(const What &what) {
    PyObject *argument = what.view.argument;
    PyObject *got = PyLong_Check(argument) ? integer_text(argument) : PyObject_Str(argument);
    PyObject *problem =
        got ? PyUnicode_FromFormat("%U does not fit %s (it would become infinite)", got, what.parameter.type) : nullptr;
    Py_XDECREF(got);
    return raise(PyExc_ValueError, what, problem);
}

// The smallest magnitudes that rounding takes to infinity; 0 where there is none.
inline double limit_of(Element element) {
    int bits = about(element).size * (about(element).family == 'c' ? 4 : 8);
    return bits == 16 ? 65520.0 : bits == 32 ? 340282356779733661637539395458142568448.0 : 0.0;
}

inline bool in_reach(double limit, double value) {
    return limit == 0.0 || !is_finite(value) || (value < limit && value > -limit);
}

inline bool read_real(const What &what, double &out) {
    PyObject *argument = what.view.argument;
    double limit = limit_of(what.parameter.element);
    if (PyFloat_Check(argument)) {
        out = PyFloat_AS_DOUBLE(argument);
        return in_reach(limit, out) || refuse_infinite(what);
    }
    if (PyLong_Check(argument)) {
        out = PyLong_AsDouble(argument);
        if (PyErr_Occurred()) {
            if (!PyErr_ExceptionMatches(PyExc_OverflowError)) return false;
            PyErr_Clear();
            return refuse_infinite(what);
        }
        return in_reach(limit, out) || refuse_infinite(what);
    }
    char family = numpy_family(argument);
    if (!family || family == 'c') return refuse_unlike(PyExc_TypeError, what, got_text(what, nullptr), "");
    PyObject *number = PyNumber_Float(argument);
    if (!number) return false;
    out = PyFloat_AS_DOUBLE(number);
    int same = 1;  // a long double may be finite where the double made of it is not
    if (family == 'g' && is_infinite(out)) same = PyObject_RichCompareBool(argument, number, Py_EQ);
    Py_DECREF(number);
    if (same < 0) return false;
    return (same && in_reach(limit, out)) || refuse_infinite(what);
}

inline bool read_complex(const What &what, double (&out)[2]) {
    PyObject *argument = what.view.argument;
    out[1] = 0;
    if (!PyComplex_Check(argument) && numpy_family(argument) != 'c') return read_real(what, out[0]);
    PyObject *number = nullptr;
    if (PyComplex_Check(argument)) {
        Py_INCREF(argument);
        number = argument;
    } else {
        number = PyObject_CallMethod(argument, "item", nullptr);
    }
    if (!number) return false;
    // A subclass may have a __complex__ of its own; it has no say.
    Py_complex value = PyComplex_Check(number) ? reinterpret_cast<PyComplexObject *>(number)->cval : Py_complex{0, 0};
    Py_DECREF(number);
    out[0] = value.real;
    out[1] = value.imag;
    double limit = limit_of(what.parameter.element);
    return (in_reach(limit, out[0]) && in_reach(limit, out[1])) || refuse_infinite(what);
}

inline bool read_scalar(const What &what, rk_slot &out) {
    Element element = what.parameter.element;
    char family = about(element).family;
    if (family != 'f' && family != 'c') return read_integer(what, out);
    double parts[2] = {0, 0};
    if (family == 'c' ? !read_complex(what, parts) : !read_real(what, parts[0])) return false;
    switch (element) {
        case Element::complex128:
            out.cd[0] = parts[0];
            out.cd[1] = parts[1];
            break;
        case Element::complex64:
            out.cf[0] = static_cast<float>(parts[0]);
            out.cf[1] = static_cast<float>(parts[1]);
            break;
        case Element::float64: out.d = parts[0]; break;
        case Element::float32: out.f = static_cast<float>(parts[0]); break;
        default: out.h = to_half(parts[0]);
    }
    return true;
}

inline PyObject *make_result(Element element, const rk_slot &slot) {
    switch (about(element).family) {
        case 'b': return PyBool_FromLong(slot.i != 0);
        case 'i': return PyLong_FromLongLong(slot.i);
        case 'u': return PyLong_FromUnsignedLongLong(slot.u);
        case 'c':
            if (element == Element::complex128) return PyComplex_FromDoubles(slot.cd[0], slot.cd[1]);
            return PyComplex_FromDoubles(static_cast<double>(slot.cf[0]), static_cast<double>(slot.cf[1]));
        case 'f':
            if (element == Element::float64) return PyFloat_FromDouble(slot.d);
            if (element == Element::float32) return PyFloat_FromDouble(static_cast<double>(slot.f));
            return PyFloat_FromDouble(from_half(slot.h));
        default: Py_RETURN_NONE;
    }
}

}  // namespace rekernel_module
