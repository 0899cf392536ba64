// The types that elements and scalars can have, and their names in NumPy, in the buffer protocol and in DLPack.
//
// Invariant: a type is known by its family and size only. So int64 is one type although C, NumPy and `array` have two
// names for it, and a long double is none: no kernel takes it.
#include "function.hpp"
#include "numpy_api.hpp"

#include <cstring>
#include <iterator>

namespace rekernel {

namespace {

constexpr ElementInfo table[] = {
    {"", Family::none, 0, 1},
    {"bool", Family::boolean, 1, 1},
    {"int8", Family::signed_integer, 1, 1},
    {"int16", Family::signed_integer, 2, 2},
    {"int32", Family::signed_integer, 4, 4},
    {"int64", Family::signed_integer, 8, 8},
    {"uint8", Family::unsigned_integer, 1, 1},
    {"uint16", Family::unsigned_integer, 2, 2},
    {"uint32", Family::unsigned_integer, 4, 4},
    {"uint64", Family::unsigned_integer, 8, 8},
    {"float16", Family::real, 2, 2},
    {"float32", Family::real, 4, 4},
    {"float64", Family::real, 8, 8},
    {"complex64", Family::complex, 8, 4},
    {"complex128", Family::complex, 16, 8},
};
static_assert(std::size(table) == static_cast<size_t>(Element::complex128) + 1);

constexpr Element find(Family family, Py_ssize_t size) {
    for (size_t i = 1; i < std::size(table); ++i) {
        if (table[i].family == family && table[i].size == size) return static_cast<Element>(i);
    }
    return Element::none;
}

constexpr Family sign = Family::signed_integer, unsign = Family::unsigned_integer;

// By NumPy's type number, from NPY_BOOL to NPY_HALF.
constexpr Element by_typenum[] = {
    Element::boolean,
    Element::int8,
    Element::uint8,
    find(sign, sizeof(short)),
    find(unsign, sizeof(short)),
    find(sign, sizeof(int)),
    find(unsign, sizeof(int)),
    find(sign, sizeof(long)),
    find(unsign, sizeof(long)),
    find(sign, sizeof(long long)),
    find(unsign, sizeof(long long)),
    Element::float32,
    Element::float64,
    Element::none,  // long double
    Element::complex64,
    Element::complex128,
    Element::none,  // complex long double
    Element::none,  // object
    Element::none,  // bytes
    Element::none,  // str
    Element::none,  // void
    Element::none,  // datetime64
    Element::none,  // timedelta64
    Element::float16,
};
static_assert(std::size(by_typenum) == NPY_HALF + 1 && NPY_BOOL == 0 && NPY_FLOAT == 11 && NPY_CFLOAT == 14);

Family family_of_letter(char letter) {
    if (letter == '?') return Family::boolean;
    if (std::strchr("bhilqn", letter)) return sign;
    if (std::strchr("BHILQN", letter)) return unsign;
    if (std::strchr("efd", letter)) return Family::real;
    return Family::none;
}

bool host_is_little() {
    const std::uint16_t one = 1;
    unsigned char first;
    std::memcpy(&first, &one, 1);
    return first == 1;
}

}  // namespace

const ElementInfo &about(Element element) { return table[static_cast<size_t>(element)]; }

Element element_named(PyObject *name) {
    for (size_t i = 1; i < std::size(table); ++i) {
        if (PyUnicode_CompareWithASCIIString(name, table[i].name) == 0) return static_cast<Element>(i);
    }
    return Element::none;
}

Element element_of_typenum(int typenum) {
    return typenum >= 0 && typenum <= NPY_HALF ? by_typenum[typenum] : Element::none;
}

// One letter, or 'Z' and one, after an optional mark of the byte order. A missing format means bytes.
Element element_of_format(const char *format, Py_ssize_t itemsize, bool &swapped) {
    swapped = false;
    if (!format) return find(unsign, itemsize);
    bool foreign = false;
    if (*format && std::strchr("@=<>!", *format)) {
        char mark = *format++;
        foreign = host_is_little() ? mark == '>' || mark == '!' : mark == '<';
    }
    Family family;
    size_t length = std::strlen(format);
    if (length == 1) {
        family = family_of_letter(*format);
    } else if (length == 2 && *format == 'Z') {
        family = family_of_letter(format[1]) == Family::real ? Family::complex : Family::none;
    } else {
        return Element::none;
    }
    Element element = find(family, itemsize);
    swapped = foreign && itemsize > 1;
    return element;
}

Element element_of_dlpack(int code, int bits, int lanes) {
    if (lanes != 1 || bits % 8 != 0) return Element::none;
    switch (code) {
        case 0: return find(sign, bits / 8);
        case 1: return find(unsign, bits / 8);
        case 2: return find(Family::real, bits / 8);
        case 5: return find(Family::complex, bits / 8);
        case 6: return find(Family::boolean, bits / 8);
        default: return Element::none;  // 4 is bfloat16
    }
}

}  // namespace rekernel
