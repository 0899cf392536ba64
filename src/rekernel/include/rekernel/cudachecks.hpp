// debug=True for CUDA: what a failed check does. The first thread that fails notes what was wrong, and every thread that
// fails ends. The context lives on; after the launch the host reads the note and raises.
#ifndef REKERNEL_CUDACHECKS
#define REKERNEL_CUDACHECKS 1

// The other side is rekernel.languages.cuda.checked: the layout there is this one.
struct rekernel_note {
    unsigned taken;
    int kind;  // as rk_error's: 2 an index out of range, 4 an assertion
    int line;
    int axis;
    int rank;
    int block[3];
    int thread[3];
    int padding;
    long long index;
    long long shape[8];
    char file[256];
    char text[256];
};
extern "C" __device__ rekernel_note rekernel_failed = {};

namespace rekernel_checks {

__device__ inline void copy(char *to_, const char *from_) {
    int at_ = 0;
    for (; from_ && from_[at_] && at_ < 255; ++at_) to_[at_] = from_[at_];
    to_[at_] = 0;
}

__device__ inline bool first(int kind_, const char *file_, int line_) {
    if (atomicCAS(&rekernel_failed.taken, 0u, 1u) != 0u) return false;
    rekernel_failed.kind = kind_;
    rekernel_failed.line = line_;
    copy(rekernel_failed.file, file_);
    const int block_[] = {static_cast<int>(blockIdx.x), static_cast<int>(blockIdx.y), static_cast<int>(blockIdx.z)};
    const int thread_[] = {static_cast<int>(threadIdx.x), static_cast<int>(threadIdx.y), static_cast<int>(threadIdx.z)};
    for (int axis_ = 0; axis_ < 3; ++axis_) {
        rekernel_failed.block[axis_] = block_[axis_];
        rekernel_failed.thread[axis_] = thread_[axis_];
    }
    return true;
}

__device__ __noinline__ inline void failed_assert(const char *text_, const char *file_, int line_) {
    if (first(4, file_, line_)) copy(rekernel_failed.text, text_);
    asm volatile("exit;");
}

}  // namespace rekernel_checks

namespace rekernel {
namespace detail {

__device__ __noinline__ void out_of_range(const index &index_, int axis_, int rank_, const long long *shape_) {
    if (rekernel_checks::first(2, index_.file, index_.line)) {
        rekernel_failed.axis = axis_;
        rekernel_failed.rank = rank_;
        rekernel_failed.index = index_.value;
        for (int each_ = 0; each_ < rank_ && each_ < 8; ++each_) rekernel_failed.shape[each_] = shape_[each_];
    }
    asm volatile("exit;");
}

}  // namespace detail
}  // namespace rekernel

#endif
