// Physical layouts of a tensor; the logical order of dims is always the model's (channels first).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace hetnn {

/// plain: dense row-major in logical order. nhwc: logical N,C,H,W stored as N,H,W,C with a pitch between pixels.
/// strided: a stride for each axis, as of a value that lies in another.
enum class Layout : uint8_t { plain, nhwc, strided };

inline constexpr std::pair<std::string_view, Layout> kLayouts[] = {
    {"plain", Layout::plain}, {"nhwc", Layout::nhwc}, {"strided", Layout::strided}};

constexpr std::string_view layout_name(Layout layout) { return kLayouts[static_cast<size_t>(layout)].first; }
constexpr std::optional<Layout> layout_from_name(std::string_view name) {
  for (const auto& [known, layout] : kLayouts)
    if (known == name) return layout;
  return std::nullopt;
}

}  // namespace hetnn
