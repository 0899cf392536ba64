// Numbers into slots, and the result back.
//
// Invariant: the plain cases (a Python int or float of its own type) are decided here and run no Python code; all else
// goes through accept(), so a compiled kernel takes exactly the numbers that other kernels take. A finite number never
// becomes infinite.
#include "function.hpp"
#include "numpy_api.hpp"

#include <cmath>
#include <cstring>
#include <limits>

namespace rekernel {

namespace {

// The smallest magnitudes that the rounding to a shorter type takes to infinity.
constexpr double float16_limit = 65520.0, float32_limit = 0x1.ffffffp127;
constexpr double no_limit = std::numeric_limits<double>::infinity();

std::uint64_t bits_of(double value) {
    std::uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

// To nearest, ties to even, whatever rounding is set.
std::uint16_t to_half(double value) {
    std::uint64_t bits = bits_of(value);
    std::uint16_t sign = static_cast<std::uint16_t>(bits >> 48 & 0x8000);
    int exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1023;
    std::uint64_t mantissa = bits & 0xfffffffffffff;
    if (exponent == 1024) return static_cast<std::uint16_t>(sign | 0x7c00 | (mantissa ? 0x200 : 0));
    if (exponent < -25) return sign;
    mantissa |= std::uint64_t{1} << 52;
    int dropped = exponent < -14 ? 42 + (-14 - exponent) : 42;
    std::uint64_t kept = mantissa >> dropped;
    std::uint64_t rest = mantissa & ((std::uint64_t{1} << dropped) - 1), tie = std::uint64_t{1} << (dropped - 1);
    if (rest > tie || (rest == tie && (kept & 1))) ++kept;
    // A carry out of the mantissa goes into the exponent, as it should; the hidden bit counts one of its steps.
    if (exponent >= -14) kept += static_cast<std::uint64_t>(exponent + 14) << 10;
    return static_cast<std::uint16_t>(sign | (kept > 0x7c00 ? 0x7c00 : kept));
}

double from_half(std::uint16_t half) {
    int exponent = half >> 10 & 0x1f, mantissa = half & 0x3ff;
    double value;
    if (exponent == 31) value = mantissa ? std::numeric_limits<double>::quiet_NaN() : no_limit;
    else if (exponent == 0) value = std::ldexp(mantissa, -24);
    else value = std::ldexp(mantissa + 1024, exponent - 25);
    return half & 0x8000 ? -value : value;
}

bool in_range(const Parameter &parameter, Integer value) {
    return !is_less(value, parameter.low) && !is_less(parameter.high, value);
}

bool read_whole(const Function *function, const Parameter &parameter, PyObject *argument, rk_slot &out) {
    if (PyLong_CheckExact(argument)) {
        int overflow = 0;
        long long value = PyLong_AsLongLongAndOverflow(argument, &overflow);
        if (!overflow && in_range(parameter, {value < 0, static_cast<std::uint64_t>(value)})) {
            out.i = value;
            return true;
        }
    }
    PyObject *accepted = accept(parameter, function->name, argument);
    PyObject *number = accepted ? PyNumber_Index(accepted) : nullptr;
    Integer value = {false, 0};
    bool read = number && read_integer(number, value);
    out.u = value.bits;
    Py_XDECREF(number);
    Py_XDECREF(accepted);
    return read;
}

bool read_double(const Function *function, const Parameter &parameter, PyObject *argument, double &out) {
    if (PyFloat_CheckExact(argument)) {
        out = PyFloat_AS_DOUBLE(argument);
        if (std::fabs(out) < parameter.limit || !std::isfinite(out)) return true;
    }
    PyObject *accepted = accept(parameter, function->name, argument);
    if (!accepted) return false;
    // A subclass of float or int may have a __float__ of its own: its value counts, as in accept().
    if (PyFloat_Check(accepted)) out = PyFloat_AS_DOUBLE(accepted);
    else out = PyLong_AsDouble(accepted);
    Py_DECREF(accepted);
    return !(out == -1.0 && PyErr_Occurred());
}

bool is_numpy_complex(PyObject *object) {
    if (PyArray_Check(object)) {
        Element element = element_of_typenum(PyArray_TYPE(as_array(object)));
        return PyArray_NDIM(as_array(object)) == 0 && about(element).family == Family::complex;
    }
    return PyArray_IsScalar(object, CFloat) || PyArray_IsScalar(object, CDouble);
}

bool refuse_infinite(const Function *function, const Parameter &parameter, PyObject *argument) {
    PyObject *got = PyObject_Str(argument);
    PyObject *problem =
        got ? PyUnicode_FromFormat("%U does not fit %U (it would become infinite)", got, parameter.expected) : nullptr;
    raise_argument(Fault::value, function->name, parameter, got, problem);
    return false;
}

bool read_complex(const Function *function, const Parameter &parameter, PyObject *argument, double (&out)[2]) {
    if (PyComplex_Check(argument)) {
        Py_complex value = reinterpret_cast<PyComplexObject *>(argument)->cval;
        out[0] = value.real;
        out[1] = value.imag;
    } else if (is_numpy_complex(argument)) {
        PyObject *number = PyObject_CallMethod(argument, PyArray_Check(argument) ? "item" : "__complex__", nullptr);
        if (!number) return false;
        Py_complex value = PyComplex_AsCComplex(number);
        Py_DECREF(number);
        if (PyErr_Occurred()) return false;
        out[0] = value.real;
        out[1] = value.imag;
    } else {
        out[1] = 0;
        return read_double(function, parameter, argument, out[0]);
    }
    for (double part : out) {
        if (std::isfinite(part) && std::fabs(part) >= parameter.limit) {
            return refuse_infinite(function, parameter, argument);
        }
    }
    return true;
}

}  // namespace

// Gives a parameter the range of its type.
bool prepare_scalar(Parameter &parameter, Element element) {
    const ElementInfo &info = about(element);
    unsigned bits = info.size * 8u;
    parameter.kind = Kind::integer;
    parameter.limit = no_limit;
    switch (info.family) {
        case Family::boolean: parameter.high = {false, 1}; return true;
        case Family::unsigned_integer: parameter.high = {false, ~std::uint64_t{0} >> (64 - bits)}; return true;
        case Family::signed_integer:
            parameter.high = {false, ~std::uint64_t{0} >> (65 - bits)};
            parameter.low = {true, ~parameter.high.bits};
            return true;
        case Family::real: break;
        case Family::complex: bits /= 2; break;
        case Family::none: return false;
    }
    parameter.kind = Kind::real;
    if (bits < 64) parameter.limit = bits == 16 ? float16_limit : float32_limit;
    return true;
}

bool read_scalar(const Function *function, Py_ssize_t index, PyObject *argument, rk_slot &out) {
    const Parameter &parameter = function->parameters[index];
    Element element = function->layouts[index].element;
    if (parameter.kind == Kind::integer) return read_whole(function, parameter, argument, out);
    double parts[2];
    if (about(element).family == Family::complex) {
        if (!read_complex(function, parameter, argument, parts)) return false;
        if (element == Element::complex128) {
            out.cd[0] = parts[0];
            out.cd[1] = parts[1];
        } else {
            out.cf[0] = static_cast<float>(parts[0]);
            out.cf[1] = static_cast<float>(parts[1]);
        }
        return true;
    }
    if (!read_double(function, parameter, argument, parts[0])) return false;
    if (element == Element::float64) out.d = parts[0];
    else if (element == Element::float32) out.f = static_cast<float>(parts[0]);
    else out.h = to_half(parts[0]);
    return true;
}

PyObject *make_result(Element element, const rk_slot &slot) {
    switch (about(element).family) {
        case Family::none: Py_RETURN_NONE;
        case Family::boolean: return PyBool_FromLong(slot.i != 0);
        case Family::signed_integer: return PyLong_FromLongLong(slot.i);
        case Family::unsigned_integer: return PyLong_FromUnsignedLongLong(slot.u);
        case Family::complex:
            if (element == Element::complex128) return PyComplex_FromDoubles(slot.cd[0], slot.cd[1]);
            return PyComplex_FromDoubles(slot.cf[0], slot.cf[1]);
        case Family::real: break;
    }
    if (element == Element::float64) return PyFloat_FromDouble(slot.d);
    return PyFloat_FromDouble(element == Element::float32 ? slot.f : from_half(slot.h));
}

}  // namespace rekernel
