// Do two strided arrays share a byte?
//
// Invariant: `no` and `yes` are exact; `unknown` is said only after a bounded search. The question is whether
//     a + sum(i_k * s_k) + p == b + sum(j_l * t_l) + q
// has a solution with every index inside its extent and p, q inside an item. With the signs of the right side turned it
// is one equation sum(c_k * x_k) == target with c_k > 0 and 0 <= x_k <= most_k.
#include "function.hpp"

#include <algorithm>
#include <cstdlib>
#include <numeric>

namespace rekernel {

namespace {

using Number = std::int64_t;
constexpr Number huge = Number{1} << 60;  // an address space is smaller; beyond it a view is not of real memory
constexpr int max_terms = 130;            // two arrays of 64 axes, and the bytes of an item
constexpr int max_work = 20000;

struct Term {
    Number step, most;
    Number reach() const { return step * most; }
};

// The equation, with its terms from the smallest step to the largest.
struct Equation {
    Term terms[max_terms];
    int count = 0;
    Number target = 0, reach = 0;
    bool real = true;  // no number of it is out of reach of an address

    void add(Number step, Number most) {
        if (step == 0 || most == 0) return;
        if (step > huge / most || reach + step * most > huge) {
            real = false;
            return;
        }
        terms[count++] = {step, most};
        reach += step * most;
    }

    // Index 0 of an axis with a negative stride becomes its last one, so that all steps are positive.
    void add_axes(const Region &region, int sign) {
        for (int i = 0; i < region.ndim && real; ++i) {
            Number stride = region.strides[i], most = region.shape[i] - 1;
            if (stride == 0 || most == 0) continue;
            if (stride > huge || stride < -huge || std::abs(stride) > huge / most) {
                real = false;
                return;
            }
            if ((stride < 0) == (sign > 0)) target += std::abs(stride) * most;
            add(std::abs(stride), most);
        }
    }
};

// Terms of one step become one term; steps that the terms before leave no gap for become part of them.
void simplify(Equation &equation) {
    std::sort(equation.terms, equation.terms + equation.count,
              [](const Term &a, const Term &b) { return a.step < b.step; });
    int kept = 0;
    for (int i = 0; i < equation.count; ++i) {
        const Term &term = equation.terms[i];
        Term *last = kept ? &equation.terms[kept - 1] : nullptr;
        bool joins = last && term.step % last->step == 0 && (kept == 1 || term.step == last->step) &&
                     term.step <= last->step * (last->most + 1);
        if (joins) last->most += term.step / last->step * term.most;
        else equation.terms[kept++] = term;
    }
    equation.count = kept;
}

Number floor_divide(Number a, Number b) { return a / b - (a % b < 0); }

class Search {
public:
    explicit Search(const Equation &equation) : terms(equation.terms) {
        Number sum = 0, divisor = 0;
        for (int i = 0; i < equation.count; ++i) {
            sum += terms[i].reach();
            divisor = std::gcd(divisor, terms[i].step);
            reach[i] = sum;
            common[i] = divisor;
        }
    }

    // Can the terms up to `last` make `target`? The largest step is tried first: it has the fewest choices.
    Overlap solve(int last, Number target) {
        if (++work > max_work) return Overlap::unknown;
        if (target == 0) return Overlap::yes;
        if (last < 0 || target < 0 || target > reach[last] || target % common[last] != 0) return Overlap::no;
        if (last == 0) return Overlap::yes;  // divisible, and inside of its reach
        const Term &term = terms[last];
        Number low = std::max<Number>(0, -floor_divide(reach[last - 1] - target, term.step));
        Number high = std::min(term.most, target / term.step);
        Overlap found = Overlap::no;
        for (Number x = high; x >= low; --x) {
            found = solve(last - 1, target - x * term.step);
            if (found != Overlap::no) return found;
        }
        return found;
    }

private:
    const Term *terms;
    Number reach[max_terms], common[max_terms];
    int work = 0;
};

bool is_empty(const Region &region) {
    return std::find(region.shape, region.shape + region.ndim, 0) != region.shape + region.ndim;
}

}  // namespace

Overlap find_overlap(const Region &a, const Region &b) {
    if (is_empty(a) || is_empty(b)) return Overlap::no;
    if (a.ndim + b.ndim + 1 > max_terms) return Overlap::unknown;
    Equation equation;
    std::intptr_t distance = reinterpret_cast<std::intptr_t>(b.data) - reinterpret_cast<std::intptr_t>(a.data);
    equation.target = distance;
    if (distance > huge || distance < -huge) return Overlap::unknown;
    equation.target += b.itemsize - 1;
    equation.add(1, a.itemsize + b.itemsize - 2);
    equation.add_axes(a, 1);
    equation.add_axes(b, -1);
    if (!equation.real) return Overlap::unknown;
    if (equation.target < 0 || equation.target > equation.reach) return Overlap::no;
    simplify(equation);
    return Search(equation).solve(equation.count - 1, equation.target);
}

}  // namespace rekernel
