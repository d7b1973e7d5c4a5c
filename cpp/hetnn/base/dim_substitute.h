// Expressions in the place of symbols.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "hetnn/base/dim.h"

namespace hetnn {

/// `dim` with these values for its symbols, in canonical form; symbols without one stay.
Dim substitute(const Dim& dim, const std::map<std::string, Dim, std::less<>>& values);

}  // namespace hetnn
