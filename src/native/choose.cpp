// Which of several functions a call means.
//
// Invariant: a choice says only which function is nearest by dtypes, ranks and kinds of numbers; that function then
// makes all checks anew. The order of the functions matters for equals only.
#include "overloads.hpp"
#include "room.hpp"

#include <algorithm>

namespace rekernel {

namespace {

class Choice {
public:
    Choice(const Overloads *overloads, PyObject *const *args, Py_ssize_t positional, PyObject *kwnames)
        : overloads(overloads), args(args), positional(positional), kwnames(kwnames),
          given(positional + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0)), looks(given), places(overloads->most) {}
    ~Choice() {
        for (Py_ssize_t i = 0; i < looked; ++i) Py_XDECREF(looks.data()[i].array.dtype);
        release_foreign(foreign);
    }
    Choice(const Choice &) = delete;
    Choice &operator=(const Choice &) = delete;

    PyObject *choose() {
        if (!allocate()) return nullptr;
        Py_ssize_t binding = 0, last = 0;
        for (Py_ssize_t i = 0; i < count(); ++i) {
            if (!bind(function_at(overloads, i))) continue;
            ++binding;
            last = i;
        }
        if (binding == 1) return at(last);
        if (binding > 1) return choose_nearest();
        // None can be called so. The first says why, where all would say the same.
        bool alike = overloads->one_count && (!kwnames || overloads->same_names);
        return alike ? at(0) : raise_no_match(true);
    }

private:
    struct Look {
        bool as_array, as_number;  // looked at
        ArrayLook array;
        NumberLook number;
    };

    Py_ssize_t count() const { return PyTuple_GET_SIZE(overloads->functions); }
    PyObject *at(Py_ssize_t index) const { return PyTuple_GET_ITEM(overloads->functions, index); }

    bool allocate() {
        if (!looks.data() || !places.data()) {
            PyErr_NoMemory();
            return false;
        }
        for (; looked < given; ++looked) {
            Look &look = looks.data()[looked];
            look.as_array = look.as_number = false;
            look.array.dtype = nullptr;
        }
        return true;
    }

    // Whether the function has a parameter for every argument and the other way round. Raises nothing.
    bool bind(const Function *function) {
        if (kwnames) return bind_names(function);
        return positional == function->count && (positional == 0 || !function->keywords_only);
    }

    bool bind_names(const Function *function) {
        bool by_name = function->keywords_only;
        if (positional > (by_name ? 0 : function->count)) return false;
        Signature signature = {function->name, function->parameters, function->count};
        Py_ssize_t *const place = places.data();
        for (Py_ssize_t i = 0; i < function->count; ++i) place[i] = i < positional ? i : -1;
        for (Py_ssize_t i = positional; i < given; ++i) {
            PyObject *keyword = PyTuple_GET_ITEM(kwnames, i - positional);
            Py_ssize_t found = PyUnicode_Check(keyword) ? find_parameter(signature, keyword) : -1;
            if (found >= 0 && place[found] < 0) place[found] = i;
            else if (!by_name) return false;
        }
        return std::find(place, place + function->count, -1) == place + function->count;
    }

    PyObject *choose_nearest() {
        Cost least = no_match;
        Py_ssize_t nearest = 0;
        for (Py_ssize_t i = 0; i < count(); ++i) {
            const Function *function = function_at(overloads, i);
            Cost cost = 0;
            if (!bind(function)) continue;
            if (!add_up(function, false, cost)) return nullptr;
            if (cost >= least) continue;
            least = cost;
            nearest = i;
        }
        return least < no_match ? at(nearest) : look_at_all() ? raise_no_match(false) : nullptr;
    }

    // For the message.
    bool look_at_all() {
        for (Py_ssize_t i = 0; i < count(); ++i) {
            Cost unused = 0;
            if (bind(function_at(overloads, i)) && !add_up(function_at(overloads, i), true, unused)) return false;
        }
        return true;
    }

    // The sum for a function; it ends at the first argument that does not match, unless all are to be looked at.
    bool add_up(const Function *function, bool to_the_end, Cost &total) {
        for (Py_ssize_t i = 0; i < function->count && (to_the_end || total < no_match); ++i) {
            Py_ssize_t place = kwnames ? places.data()[i] : i;
            Cost cost = no_match;
            bool found = function->layouts[i].is_array ? find_array_cost(function, i, place, cost)
                                                       : find_number_cost(function, i, place, cost);
            if (!found) return false;
            total = std::max(cost, total) == no_match ? no_match : total + cost;
        }
        return true;
    }

    bool find_array_cost(const Function *function, Py_ssize_t parameter, Py_ssize_t place, Cost &out) {
        const Layout &layout = function->layouts[parameter];
        Look &look = looks.data()[place];
        // A buffer of records tells its fields only to who asks for records.
        if (!look.as_array || (layout.element == Element::none && is_vague(look.array))) {
            if (!look_at_array(function, parameter, args[place], look.array, foreign)) return false;
            look.as_array = true;
        }
        const ArrayLook &array = look.array;
        if (!array.is_array) return true;
        if (!array.is_known) out = refused;
        else if (array.element != layout.element) return true;
        else if (array.element == Element::none) return find_records_cost(function, parameter, place, out);
        else out = rank_cost(array, layout);
        return true;
    }

    bool find_records_cost(const Function *function, Py_ssize_t parameter, Py_ssize_t place, Cost &out) {
        const ArrayLook &array = looks.data()[place].array;
        View view = {};
        view.dtype = array.dtype;
        if (!check_records(function, parameter, args[place], view)) return drop_refusal();
        out = rank_cost(array, function->layouts[parameter]);
        return true;
    }

    static bool is_vague(const ArrayLook &array) {
        return array.is_known && array.element == Element::none && !array.dtype;
    }

    bool find_number_cost(const Function *function, Py_ssize_t parameter, Py_ssize_t place, Cost &out) {
        Look &look = looks.data()[place];
        if (!look.as_number && !look_at_number(args[place], look.number)) return false;
        look.as_number = true;
        out = number_cost(look.number, function->parameters[parameter], function->layouts[parameter].element);
        return true;
    }

    // "(float64[:], a=float)"
    PyObject *given_text() {
        PyObject *text = PyUnicode_FromString("(");
        for (Py_ssize_t i = 0; text && i < given; ++i) {
            const Look &look = looks.data()[i];
            if (i > 0) PyUnicode_AppendAndDel(&text, PyUnicode_FromString(", "));
            if (text && i >= positional) {
                PyUnicode_AppendAndDel(&text, PyUnicode_FromFormat("%S=", PyTuple_GET_ITEM(kwnames, i - positional)));
            }
            if (text) PyUnicode_AppendAndDel(&text, type_text(args[i], look.as_array ? &look.array : nullptr));
        }
        if (text) PyUnicode_AppendAndDel(&text, PyUnicode_FromString(")"));
        return text;
    }

    // Where no function can be bound it is a plain TypeError, as it is for one function.
    PyObject *raise_no_match(bool unbound) {
        PyObject *separator = PyUnicode_FromString("\n  ");
        PyObject *list = separator ? PyUnicode_Join(separator, overloads->signatures) : nullptr;
        PyObject *got = list ? given_text() : nullptr;
        PyObject *message = got ? PyUnicode_FromFormat("%U: no overload takes %U; there are:\n  %U", overloads->name,
                                                       got, list)
                                : nullptr;
        if (message && unbound) {
            PyErr_SetObject(PyExc_TypeError, message);
            Py_CLEAR(message);
        }
        Parameter nobody = {};
        nobody.name = Py_None;
        nobody.expected = list;
        raise_message(Fault::type, nobody, got, message);
        Py_XDECREF(list);
        Py_XDECREF(separator);
        return nullptr;
    }

    const Overloads *const overloads;
    PyObject *const *const args;
    const Py_ssize_t positional;
    PyObject *const kwnames;
    const Py_ssize_t given;
    Py_ssize_t looked = 0;
    Foreign *foreign = nullptr;
    Room<Look, 16> looks;
    Room<Py_ssize_t, 16> places;
};

}  // namespace

PyObject *choose_function(const Overloads *overloads, PyObject *const *args, Py_ssize_t positional,
                          PyObject *kwnames) {
    return Choice(overloads, args, positional, kwnames).choose();
}

}  // namespace rekernel
