// What the files of CUDA kernels share. There is no CUDA header: the few functions of the driver are declared here.
//
// Invariant: no object of a call is kept after it, and nothing is looked up by an object's identity. A launch neither
// waits for the device nor allocates on it.
#pragma once

#include "function.hpp"
#include "room.hpp"

namespace rekernel {

// A reference that goes with its block.
struct Owned {
    PyObject *object;
    explicit Owned(PyObject *stolen) : object(stolen) {}
    ~Owned() { Py_XDECREF(object); }
    Owned(const Owned &) = delete;
    Owned &operator=(const Owned &) = delete;
    explicit operator bool() const { return object != nullptr; }
};

// ---- cuda_driver.cpp: libcuda, and what it was asked to do last ----
struct Geometry {
    unsigned grid[3], block[3];
    unsigned shared;  // bytes

    bool is_empty() const { return grid[0] == 0 || grid[1] == 0 || grid[2] == 0; }
};

// One launch as messages tell it.
struct Launched {
    PyObject *kernel_id, *name;  // kernel_id may be nullptr
    long version;
    int device;
    Geometry geometry;
    void *stream;
};

// CUDA's types: CUresult and CUdevice are int; contexts, streams, functions and events are pointers.
struct DriverCalls {
    int (*launch)(void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                  unsigned block_z, unsigned shared, void *stream, void **parameters, void **extra);
    int (*get_context)(void **context);
    int (*push_context)(void *context);
    int (*pop_context)(void **context);
    // These may be missing.
    int (*is_capturing)(void *stream, int *status);
    int (*make_event)(void **event, unsigned flags);
    int (*record_event)(void *event, void *stream);
    int (*wait_event)(void *stream, void *event, unsigned flags);
    int (*destroy_event)(void *event);
    int (*pointer_attribute)(void *out, int attribute, unsigned long long pointer);
    int (*current_device)(int *device);
    int (*set_attribute)(void *function, int attribute, int value);
    int (*error_name)(int code, const char **name);
    int (*error_text)(int code, const char **text);
};

constexpr unsigned long long remembered = 16;  // launches

struct CudaDriver {
    PyObject_HEAD
    DriverCalls calls;
    Launched last[remembered];  // a ring
    unsigned long long launched;
    PyObject *dead;  // device -> message; nullptr while there is none
    PyObject *path;
    PyObject *weakrefs;
};

inline CudaDriver *as_driver(PyObject *self) { return reinterpret_cast<CudaDriver *>(self); }
extern PyTypeObject *driver_type;
PyTypeObject *make_driver_type(PyObject *module);
void remember_launch(CudaDriver *driver, const Launched &launch);
PyObject *extents_tuple(const unsigned *extents);

// ---- cuda_failure.cpp: what went wrong ----
// Why the device is dead, borrowed; nullptr without an exception where it is not.
PyObject *find_dead(const CudaDriver *driver, int device);
// False with `errors` raised where the device is dead.
bool check_alive(CudaDriver *driver, int device, PyObject *errors);
// "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)", with the last launches where it may be the
// fault of any of them; from then on the device is dead. `what` begins the message.
PyObject *tell_failure(CudaDriver *driver, int device, int code, PyObject *what);
// "step(): the launch with grid (4, 1, 1), block (256, 1, 1) failed", and what may help.
PyObject *failure_text(const Function *function, const Geometry &geometry, int code);
PyObject *geometry_text(const Geometry &geometry);  // "grid (4, 1, 1), block (256, 1, 1)"

// ---- cuda_kernel.cpp: the type ----
// A kernel on one device, once it is loaded there.
struct OnDevice {
    int device;
    void *function, *context;
    PyObject *captured;  // to be called when a launch is first captured into a graph; or nullptr
};

// Which slots make one parameter of the kernel.
struct Packed {
    Py_ssize_t first, count;
};

struct CudaKernel {
    Function function;  // its tables, and what any kernel has; it has no entry and no library
    PyObject *driver, *resolve, *errors;
    PyObject *grid, *checked;  // or nullptr
    PyObject *grids;           // what `grid` has answered, by values
    OnDevice *devices;
    Py_ssize_t device_count;
    Packed *packed;
    Py_ssize_t packed_count;
    long version;
};

inline CudaKernel *as_cuda_kernel(PyObject *self) { return reinterpret_cast<CudaKernel *>(self); }
extern PyTypeObject *cuda_kernel_type;
PyTypeObject *make_cuda_kernel_type(PyObject *module);
// Where the kernel is on a device: an index into `devices`, loaded now if need be; -1 with an exception.
Py_ssize_t find_on_device(CudaKernel *kernel, int device);

// ---- cuda_launch.cpp, cuda_brackets.cpp, cuda_grid.cpp: what stands in the brackets ----
struct Place {
    Geometry geometry;
    bool has_stream;
    void *stream;
};

extern PyTypeObject *launch_type;
PyTypeObject *make_launch_type(PyObject *module);
PyObject *make_launch(PyObject *target, PyObject *index);  // target[index]
bool read_geometry(PyObject *name, PyObject *grid, PyObject *block, PyObject *shared, Geometry &out);
// What `target[...]` stands for: grid, block, and stream and shared bytes, which may be nullptr. New references.
struct Brackets {
    PyObject *grid, *block, *stream, *shared;
};
bool read_brackets(PyObject *name, PyObject *index, Brackets &out);

// ---- handle.cpp, overloads.cpp: launching through them ----
PyObject *launch_handle(PyObject *handle, const Place &place, PyObject *const *args, size_t nargsf, PyObject *kwnames);
PyObject *name_of_handle(PyObject *handle);  // borrowed
PyObject *launch_overloads(PyObject *overloads, const Place &place, PyObject *const *args, size_t nargsf,
                           PyObject *kwnames);
bool can_launch(PyObject *target);
PyObject *launch_target(PyObject *target, const Place &place, PyObject *const *args, size_t nargsf, PyObject *kwnames);
PyObject *name_of_target(PyObject *target);  // borrowed

// ---- cuda_grid.cpp: grids that kernels compute themselves ----
bool find_grid(CudaKernel *kernel, PyObject *stolen_shapes, PyObject *stolen_scalars, Geometry &out);

// ---- cuda_call.cpp: the call ----
PyObject *launch_kernel(PyObject *kernel, const Place *place, PyObject *const *args, size_t nargsf, PyObject *kwnames);

// ---- cuda_arrays.cpp: arrays on a device ----
// Memory for shapes and strides of one call's arrays: a little here, more on the heap.
struct Sizes {
    Py_ssize_t stack[96];
    int used = 0;
};

// What the arrays of a call tell together.
struct Sight {
    const CudaDriver *driver;
    int device = -1;            // not known yet
    Py_ssize_t parameter = -1;  // the first array that is known to be there
    bool has_cupy = false, has_torch = false;
    void **producers;  // streams to wait for; room for one of each array, and one more
    Py_ssize_t producer_count = 0;
};

// Fills the view and `sight`. A DLPack tensor is only noted, with `out.ndim` -1, because its owner wants to know the
// stream first.
bool view_on_device(const Refused &refused, View &out, Sight &sight, Sizes &sizes, Foreign *&list);
bool note_device(const Refused &refused, int device, Sight &sight);
void note_producer(Sight &sight, void *stream);
Py_ssize_t *take_sizes(Sizes &sizes, int ndim, Foreign *&list);  // room for shape and strides
bool read_sizes(PyObject *numbers, Py_ssize_t *out, int ndim);
// A NumPy dtype. One that no kernel knows, or of records, is kept for as long as the view.
bool set_dtype(PyObject *stolen_dtype, View &out, Foreign *&list);

// ---- cuda_interface.cpp: __cuda_array_interface__ ----
// A new reference to the dict; nullptr without an exception where the object has none.
PyObject *cuda_interface(PyObject *argument);
bool view_interface(const Refused &refused, PyObject *stolen_interface, View &out, Sight &sight, Sizes &sizes,
                    Foreign *&list);

// ---- dlpack.cpp ----
// Notes the device only.
bool sight_dlpack(const Refused &refused, Sight &sight);
// `stream` as DLPack numbers it, a borrowed int.
bool view_dlpack_on_device(const Refused &refused, PyObject *stream, View &out, Foreign *&list);

// ---- cuda_libraries.cpp: CuPy and PyTorch, where they are loaded ----
bool is_cupy(PyTypeObject *type);
bool is_torch(PyTypeObject *type);
Element element_of_torch(PyObject *dtype);
// The current stream of the library there, or its current device. False with an exception.
bool cupy_stream(int device, void *&out);
bool torch_stream(int device, void *&out, bool &known);
bool cupy_device(const DriverCalls &calls, int &out);

// ---- cuda_streams.cpp ----
bool read_stream(PyObject *name, PyObject *object, void *&out);
bool choose_stream(int device, Sight &sight, void *&out);
bool wait_for_producers(const DriverCalls &calls, const Sight &sight, void *stream, int &code);
bool is_captured(const DriverCalls &calls, void *stream);

// ---- cuda_refuse.cpp: words; all return false with an exception set ----
bool refuse_host(const Refused &refused);
bool refuse_mixed(const Refused &refused, int device, const Sight &sight);
bool refuse_gradient(const Refused &refused);
bool refuse_lazy(const Refused &refused, const char *bit);
PyObject *raise_no_brackets(const Function *function, PyObject *const *args, Py_ssize_t positional);

}  // namespace rekernel
