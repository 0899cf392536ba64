// NumPy's C API for the files that look into arrays. The build defines NPY_TARGET_VERSION (runs on NumPy 1.26 and
// 2.x), NPY_NO_DEPRECATED_API and one PY_ARRAY_UNIQUE_SYMBOL; only module.cpp fills that table of functions.
#pragma once

#include "common.hpp"

#ifndef REKERNEL_FILLS_NUMPY_TABLE
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>

namespace rekernel {

inline PyArrayObject *as_array(PyObject *array) { return reinterpret_cast<PyArrayObject *>(array); }

}  // namespace rekernel
