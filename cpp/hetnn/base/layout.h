// Physical layouts of a tensor; the logical order of dims is always the model's (channels first).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hetnn {

/// plain: dense row-major in logical order. nhwc: logical N,C,H,W stored as N,H,W,C with a pitch between pixels.
enum class Layout : uint8_t { plain, nhwc };

constexpr std::string_view layout_name(Layout layout) { return layout == Layout::plain ? "plain" : "nhwc"; }
constexpr std::optional<Layout> layout_from_name(std::string_view name) {
  if (name == "plain") return Layout::plain;
  if (name == "nhwc") return Layout::nhwc;
  return std::nullopt;
}

}  // namespace hetnn
