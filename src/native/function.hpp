// What the files of compiled kernels share: Library (loaded code) and Function (the checked call into it).
//
// Invariant: a Function's tables are complete and sound when its constructor returns and never change afterwards, so a
// call reads them without checks and without a lock. What belongs to one call lives in that call's own memory.
#pragma once

#include "common.hpp"
#include "rekernel/abi.hpp"

namespace rekernel {

// ---- element.cpp: types of elements and scalars, and their names elsewhere ----
enum class Element : std::uint8_t {
    none, boolean, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, float32, float64, complex64,
    complex128
};

enum class Family : std::uint8_t { none, boolean, signed_integer, unsigned_integer, real, complex };

struct ElementInfo {
    const char *name;  // NumPy's
    Family family;
    std::uint8_t size, alignment;
};

const ElementInfo &about(Element element);
Element element_named(PyObject *name);          // Element::none for a name that we do not know; raises nothing
Element element_of_typenum(int typenum);        // of NumPy
Element element_of_format(const char *format, Py_ssize_t itemsize, bool &swapped);  // of the buffer protocol
Element element_of_dlpack(int code, int bits, int lanes);

// ---- table.cpp, slots.cpp: the tables of a Function ----
struct Axis {
    Py_ssize_t extent;  // fixed, or -1
    Py_ssize_t name;    // number of a named extent, or -1
    Py_ssize_t stride;  // fixed, in bytes, or `free_stride`
    Py_ssize_t stride_name;  // number of a named stride (in elements), or -1; named as extents are
    Py_ssize_t margin;  // ghost layers at either end, which the kernel counts neither in pointer nor in extent
};
constexpr Py_ssize_t free_stride = PY_SSIZE_T_MIN;
constexpr std::uint8_t no_shift = 255;

struct Field {
    PyObject *name;
    Element element;
    Py_ssize_t offset;
};

struct Layout {
    Element element;      // of a scalar or of an array; none for an array of records
    bool is_array, contiguous, restrict_, one_element;  // one_element: a written array of rank 0
    bool has_margins;
    int ndim, least_ndim;  // -1 for any
    Py_ssize_t group;  // arrays of one group, unless 0, may be one and the same array although restricted
    Py_ssize_t itemsize;
    std::uint8_t shift;    // log2 of the item size, or `no_shift`
    Py_ssize_t alignment;  // every element must be so aligned; for records 1, the fields are looked at
    Axis *axes;            // ndim of them
    Field *fields;
    Py_ssize_t field_count;
};

struct Slot {
    enum Kind : std::uint8_t { pointer, shape, stride, scalar } kind;
    Element element;  // of a shape or stride
    int axis;
    Py_ssize_t parameter;
    Py_ssize_t offset;  // pointer: in bytes
};
struct Pair {
    Py_ssize_t first, second;  // must not overlap
};

struct Function {
    PyObject_HEAD
    vectorcallfunc vectorcall;
    int (*entry)(rk_call *);
    PyObject *library;    // keeps the code in memory
    PyObject *name;       // for messages
    PyObject *kernel_id;  // for the Python side, or nullptr
    PyObject *filename;   // of the kernel's text, for messages, or nullptr
    int first_line;       // of the text in that file
    Parameter *parameters;
    Layout *layouts;  // one for each parameter
    Slot *slots;
    Pair *pairs;
    PyObject **extents;  // names of the named extents
    Py_ssize_t count, slot_count, pair_count, extent_count;
    unsigned long long calls, failures;
    Element returns;  // none: nothing
    char nogil;       // 0 keep the GIL, 1 release it, 2 by size
    bool keywords_only, openmp;
    bool on_device;   // it is a CudaKernel: its arrays are in a device's memory
    PyObject *weakrefs;
};

inline Function *as_function(PyObject *self) { return reinterpret_cast<Function *>(self); }
extern PyTypeObject *function_type;
PyTypeObject *make_function_type(PyObject *module);
bool set_policy(Function *function, PyObject *policy);
bool parse_tables(Function *function, PyObject *parameters, PyObject *slots);
void free_tables(Function *function);

// ---- view.cpp, foreign.cpp, dlpack.cpp: what an argument is ----
struct View {
    char *data;
    const Py_ssize_t *shape, *strides;  // strides in bytes
    int ndim;
    Element element;  // none: records, and what no kernel knows
    bool swapped, writeable, aligned;  // aligned: known to be
    PyObject *dtype;  // NumPy's, borrowed, for records; or nullptr
};

// What one call has borrowed from an object that is not a NumPy array.
struct Foreign {
    Foreign *next;
    PyObject *object;  // held while borrowed
    Py_buffer buffer;  // where buffer.obj is set
    void *managed;     // of DLPack, with its deleter; or nullptr
    void (*deleter)(void *);
    Py_ssize_t *sizes;  // shape, then strides in bytes, where the object does not hold them so; or nullptr
};

void view_array(PyObject *array, View &out);
bool exports_array(PyObject *object);  // whether view_foreign() would try
// Fills the view of an object by the buffer protocol or by DLPack and links what was borrowed to `list`.
bool view_foreign(const Function *function, Py_ssize_t parameter, PyObject *argument, View &out, Foreign *&list);
bool view_dlpack(const Function *function, Py_ssize_t parameter, PyObject *argument, View &out, Foreign *foreign);
bool has_dlpack(PyObject *argument);
// A new link of the list that keeps the object; nullptr with an exception.
Foreign *add_foreign(PyObject *object, Foreign *&list);
bool make_sizes(int ndim, Foreign *foreign);
// The strides of a C-contiguous array whose shape is in foreign->sizes.
void pack_strides(int ndim, Py_ssize_t itemsize, Foreign *foreign);
// Gives everything back; an exception that is set stays.
void release_foreign(Foreign *list);

// ---- layout.cpp: an array against its row ----
struct Extent {
    Py_ssize_t value;
    Py_ssize_t parameter;  // where it was seen first; -1: not seen yet
};

// An extent as the kernel counts it.
inline Py_ssize_t inner_extent(const View &view, const Axis *axes, int axis) {
    Py_ssize_t inner = view.shape[axis] - 2 * axes[axis].margin;
    return inner > 0 ? inner : 0;
}

bool check_array(const Function *function, Py_ssize_t parameter, PyObject *argument, const View &view,
                 Extent *extents);
// Only that the records have the fields; looks at no more of the view than its dtype.
bool check_records(const Function *function, Py_ssize_t parameter, PyObject *argument, const View &view);

// ---- refuse.cpp: the words of what is refused; all `bool` ones return false with an exception set ----
struct Refused {
    const Function *function;
    Py_ssize_t parameter;
    PyObject *argument;
    const View *view;  // or nullptr
};

// "a float64 array", "a read-only float64 memoryview"
PyObject *got_text(const Refused &what, const char *adjective);
// "<kernel>() argument '<name>': <problem>". Takes over both texts; either may be nullptr with an exception set.
bool refuse(Fault fault, const Refused &what, PyObject *got, PyObject *problem);
// "expected float64[:, :], got a float32 array", with more behind it; `remedy` may have up to two `%U` for the name.
bool refuse_unlike(Fault fault, const Refused &what, PyObject *stolen_got, const char *remedy);
bool refuse_object(const Refused &what);
bool refuse_element(const Refused &what);
bool refuse_field(const Refused &what, const Field &field);
bool refuse_rank(const Refused &what);
bool refuse_extent(const Refused &what, int axis, const Extent *seen);
bool refuse_stride(const Refused &what, int axis, const Extent *seen);
// `adjective` is for "a <...> float64 array"; the texts may have up to two `%U` for the argument's name.
bool refuse_value(Fault fault, const Refused &what, const char *adjective, const char *for_read,
                  const char *for_written);
bool refuse_slot(const Refused &what, const Slot &slot, Py_ssize_t value);
bool refuse_overlap(const Refused &what, Py_ssize_t other, bool decided);
// Wraps the exception that is set (the cause), unless it is a request to stop.
bool refuse_export(const Refused &what, const char *how);

// ---- overlap.cpp: do two arrays share memory? ----
struct Region {
    const char *data;
    const Py_ssize_t *shape, *strides;
    int ndim;
    Py_ssize_t itemsize;
};
enum class Overlap { no, yes, unknown };
Overlap find_overlap(const Region &a, const Region &b);

// ---- scalar.cpp: numbers into slots and back ----
bool prepare_scalar(Parameter &parameter, Element element);
bool read_scalar(const Function *function, Py_ssize_t parameter, PyObject *argument, rk_slot &out);
PyObject *make_result(Element element, const rk_slot &slot);

// ---- keywords.cpp, invoke.cpp, failure.cpp: the call ----
PyObject *function_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames);
bool bind_keywords_only(const Signature &signature, PyObject *const *args, Py_ssize_t positional, PyObject *kwnames,
                        PyObject **out);
void describe_exception(rk_error *error);  // the `describe` of a rk_call
void raise_failure(const Function *function, int status, const rk_error &error);

// ---- forked.cpp: OpenMP after a fork ----
bool watch_forks();
bool enter_openmp(const Function *function);

// ---- library.cpp, image.cpp: loaded code ----
extern PyTypeObject *library_type;
PyTypeObject *make_library_type(PyObject *module);
void *library_symbol(PyObject *library, const char *symbol);  // nullptr with OSError set
// A shared object from memory, private to this process; nullptr with an exception set.
void *open_image(const char *name, const void *data, size_t size);
void *open_file(const char *name, const char *path);
void close_image(void *handle);
void *find_symbol(void *handle, const char *symbol);
bool hold_library(const char *name);

}  // namespace rekernel
