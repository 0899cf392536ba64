// How far an argument is from a parameter.
//
// Invariant: a cost depends on the type of the argument, and on its value only where a range decides.
#include "overloads.hpp"

namespace rekernel {

namespace {

int kind_of(Family family) {
    switch (family) {
        case Family::none: return 0;
        case Family::boolean: return 1;
        case Family::signed_integer:
        case Family::unsigned_integer: return 2;
        case Family::real: return 3;
        case Family::complex: return 4;
    }
    Py_UNREACHABLE();
}

// How far a number (row) is from a parameter (column), by kind; 0: no function takes it.
constexpr Cost distances[5][5] = {
    {0, 0, 0, 0, 0},
    {0, 1, 2, 3, 4},  // bool
    {0, 4, 1, 2, 3},  // integer
    {0, 0, 0, 1, 2},  // real
    {0, 0, 0, 0, 1},  // complex
};

// How many halvings a type is short of the widest of its kind.
Cost shortness(const ElementInfo &info) {
    Cost halvings = 0;
    for (int size = info.family == Family::complex ? 16 : 8; size > info.size; size /= 2) ++halvings;
    return halvings;
}

bool is_out_of_range(const NumberLook &number, const Parameter &parameter) {
    if (parameter.kind == Kind::real) return number.magnitude >= parameter.limit;
    return !number.is_known || is_less(number.value, parameter.low) || is_less(parameter.high, number.value);
}

}  // namespace

Cost number_cost(const NumberLook &number, const Parameter &parameter, Element element) {
    if (number.element == element) return 0;
    const ElementInfo &info = about(element);
    Cost distance = distances[kind_of(number.family)][kind_of(info.family)];
    if (distance == 0 || (number.index_only && parameter.kind != Kind::integer)) return no_match;
    // Of two types of one width the one with the number's own signedness is nearer.
    bool other_sign = distance == 1 && number.family != info.family;
    Cost cost = distance * 8 + shortness(info) * 2 + (other_sign ? 1 : 0);
    return is_out_of_range(number, parameter) ? refused + cost : cost;
}

Cost rank_cost(const ArrayLook &array, const Layout &layout) {
    if (layout.ndim == array.ndim) return 0;
    if (layout.ndim < 0) return 2 * loose_rank;
    bool trailing = array.ndim < layout.ndim && array.ndim >= layout.least_ndim;
    return trailing || (layout.one_element && array.is_single) ? loose_rank : no_match;
}

}  // namespace rekernel
