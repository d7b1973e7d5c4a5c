// Sizes between Python and C++: an int where one is known, else a _core.Dim.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/typing.h>

#include "hetnn/base/dim.h"

namespace hetnn {

using Size = pybind11::typing::Union<pybind11::int_, Dim>;

Size size_of(const Dim& dim);
/// Of an int, a Dim or the text of an expression. Throws InvalidModel for anything else, and beyond 64 bits.
Dim dim_of(const pybind11::handle& object);

}  // namespace hetnn
