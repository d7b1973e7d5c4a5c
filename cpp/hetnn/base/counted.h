// How messages count.
#pragma once

#include <string>
#include <string_view>

#include "hetnn/base/error.h"

namespace hetnn {

/// "1 input", "2 inputs".
template <typename Number>
std::string counted(Number number, std::string_view what) {
  return text(number, " ", what, number == 1 ? "" : "s");
}

}  // namespace hetnn
