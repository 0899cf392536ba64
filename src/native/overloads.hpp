// Several functions of one name, and what the choice between them looks at.
//
// Invariant: a look at an argument keeps no pointer into it; what the exporter of an array has lent is given back
// before the chosen function is called.
#pragma once

#include "function.hpp"

namespace rekernel {

// ---- overloads.cpp: the type ----
struct Overloads {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    PyObject *functions;   // a tuple of at least one Function
    PyObject *name;        // for messages
    PyObject *signatures;  // a tuple of str, one for each function
    Py_ssize_t most;       // parameters of the longest
    bool one_count, same_names;  // whether all have as many parameters / the same ones by name
    unsigned long long calls, failures;
    PyObject *weakrefs;
};

inline Overloads *as_overloads(PyObject *self) { return reinterpret_cast<Overloads *>(self); }
inline Function *function_at(const Overloads *overloads, Py_ssize_t index) {
    return as_function(PyTuple_GET_ITEM(overloads->functions, index));
}
extern PyTypeObject *overloads_type;
PyTypeObject *make_overloads_type(PyObject *module);

// ---- look.cpp: what an argument is ----
struct ArrayLook {
    bool is_array;   // or something that exports one
    bool is_known;   // false: its exporter failed, so element, rank and dtype are unknown
    bool is_single;  // one element
    Element element;
    int ndim;
    PyObject *dtype;  // NumPy's, owned, where there is no element; or nullptr
};

struct NumberLook {
    Family family;    // none: no number that a kernel takes
    Element element;  // of NumPy's numbers; none for Python's
    bool index_only;  // an object with __index__, which is no real number
    bool is_known;  // of integers and bools: `value` is theirs
    Integer value;
    double magnitude;  // of integers and real numbers; 0 for those that no type is too short for
};

// The function and its parameter are those that an exporter is asked for; what it lends is linked to `list`. Both
// return false only where an exception must not be held back.
bool look_at_array(const Function *function, Py_ssize_t parameter, PyObject *argument, ArrayLook &out, Foreign *&list);
bool look_at_number(PyObject *argument, NumberLook &out);
// True where no exception is set, or one that says no more than that the argument does not fit: that one is dropped.
bool drop_refusal();
// "float64[:, :]", "int"; `look` may be nullptr.
PyObject *type_text(PyObject *argument, const ArrayLook *look);

// ---- cost.cpp: how far an argument is from a parameter ----
// Numbers cost less than 64 each, and there are never so many that they outweigh a loose rank.
using Cost = std::int64_t;
constexpr Cost no_match = INT64_MAX;
constexpr Cost loose_rank = Cost{1} << 24;
constexpr Cost refused = Cost{1} << 40;  // of the right kind, but the function will not take it

Cost number_cost(const NumberLook &number, const Parameter &parameter, Element element);
Cost rank_cost(const ArrayLook &array, const Layout &layout);

// ---- choose.cpp: the choice ----
// The function for these arguments, borrowed; nullptr with an exception.
PyObject *choose_function(const Overloads *overloads, PyObject *const *args, Py_ssize_t positional, PyObject *kwnames);

}  // namespace rekernel
