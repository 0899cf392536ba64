// Part of an exported module: do two strided arrays share a byte? `no` and `yes` are exact, `unknown` is said after a
// bounded search. With all steps made positive the question is whether sum(step_k * x_k) == target has a solution with
// 0 <= x_k <= most_k; the bytes of the items are a term of step 1.
namespace rekernel_module {

enum class Overlap { no, yes, unknown };

struct Region {
    const char *data;
    const Py_ssize_t *shape, *strides;
    int ndim;
    Py_ssize_t itemsize;
};

struct Term {
    long long step, most;
};

class Equation {
public:
    Equation(const Region &a, const Region &b) {
        target = static_cast<long long>(reinterpret_cast<size_t>(b.data) - reinterpret_cast<size_t>(a.data));
        if (target > huge || target < -huge) real = false;
        target += b.itemsize - 1;
        add(1, a.itemsize + b.itemsize - 2);
        add_axes(a, true);
        add_axes(b, false);
    }

    Overlap solve() {
        if (!real) return Overlap::unknown;
        if (target < 0 || target > total) return Overlap::no;
        long long sum = 0, divisor = 0;
        for (int i = 0; i < count; ++i) {
            sum += terms[i].step * terms[i].most;
            for (long long other = terms[i].step; other;) {
                long long rest = divisor % other;
                divisor = other;
                other = rest;
            }
            reach[i] = sum;
            common[i] = divisor;
        }
        return search(count - 1, target);
    }

private:
    static constexpr long long huge = 1ll << 60;  // beyond it nothing is real memory
    static constexpr int most_terms = 130, most_work = 20000;

    // Terms are kept in the order of their steps.
    void add(long long step, long long most) {
        if (step == 0 || most == 0 || !real) return;
        if (count == most_terms || step > huge / most || total + step * most > huge) {
            real = false;
            return;
        }
        total += step * most;
        int place = count;
        while (place > 0 && terms[place - 1].step > step) --place;
        if (place > 0 && terms[place - 1].step == step) {
            terms[place - 1].most += most;
            return;
        }
        for (int i = count; i > place; --i) terms[i] = terms[i - 1];
        terms[place] = Term{step, most};
        ++count;
    }

    void add_axes(const Region &region, bool first) {
        for (int i = 0; i < region.ndim; ++i) {
            long long stride = region.strides[i], most = region.shape[i] - 1;
            if (stride == 0 || most == 0) continue;
            if (stride < -huge) {
                real = false;
                return;
            }
            long long step = stride < 0 ? -stride : stride;
            add(step, most);
            if (real && (stride < 0) == first) target += step * most;
        }
    }

    // Can the terms up to `last` make `wanted`? The largest step has the fewest choices and is tried first.
    Overlap search(int last, long long wanted) {
        if (++work > most_work) return Overlap::unknown;
        if (wanted == 0) return Overlap::yes;
        if (last < 0 || wanted < 0 || wanted > reach[last] || wanted % common[last] != 0) return Overlap::no;
        if (last == 0) return Overlap::yes;
        const Term &term = terms[last];
        long long rest = wanted - reach[last - 1];
        long long low = rest > 0 ? (rest + term.step - 1) / term.step : 0;
        long long high = wanted / term.step < term.most ? wanted / term.step : term.most;
        Overlap found = Overlap::no;
        for (long long x = high; x >= low && found == Overlap::no; --x) found = search(last - 1, wanted - x * term.step);
        return found;
    }

    Term terms[most_terms];
    long long reach[most_terms], common[most_terms];
    long long target = 0, total = 0;
    int count = 0, work = 0;
    bool real = true;
};

inline Overlap find_overlap(const Region &a, const Region &b) {
    for (int i = 0; i < a.ndim; ++i) {
        if (a.shape[i] == 0) return Overlap::no;
    }
    for (int i = 0; i < b.ndim; ++i) {
        if (b.shape[i] == 0) return Overlap::no;
    }
    return Equation(a, b).solve();
}

}  // namespace rekernel_module
