// Strides, and copying along them.
#include "hetnn/ops/nest.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "hetnn/base/convert.h"
#include "hetnn/ops/op_def.h"

namespace hetnn::ops {
namespace {

// A square of this side stays in the first-level cache on both sides of a transposition.
constexpr int64_t kTile = 32;

// Two axes, of which `from` runs evenly along the first and `to` along the second.
template <typename U>
void transpose(const U* from, int64_t from_step, U* to, int64_t to_step, int64_t rows, int64_t columns) {
  for (int64_t r0 = 0; r0 < rows; r0 += kTile) {
    for (int64_t c0 = 0; c0 < columns; c0 += kTile) {
      const int64_t r1 = std::min(rows, r0 + kTile), c1 = std::min(columns, c0 + kTile);
      for (int64_t r = r0; r < r1; ++r)
        for (int64_t c = c0; c < c1; ++c) to[r * to_step + c] = from[r + c * from_step];
    }
  }
}

// Drops axes of one element and merges neighbours that every operand walks evenly.
void simplify(std::vector<int64_t>& shape, std::span<Strides> strides) {
  size_t kept = 0;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    if (shape[axis] == 1) continue;
    bool merges = kept > 0;
    for (const Strides& s : strides) merges = merges && s[kept - 1] == s[axis] * shape[axis];
    const size_t to = merges ? kept - 1 : kept++;
    shape[to] = merges ? shape[to] * shape[axis] : shape[axis];
    for (Strides& s : strides) s[to] = s[axis];
  }
  shape.resize(kept);
  for (Strides& s : strides) s.resize(kept);
}

// Few enough that those of all operands stay in the first-level cache.
constexpr int64_t kBlock = 512;

// A block of elements as they are kept, gathered, and converted.
struct Block {
  alignas(64) std::byte kept[kBlock * sizeof(uint64_t)];
  alignas(64) std::byte converted[kBlock * sizeof(uint64_t)];
};

// `count` elements, `step` apart, as a block of the type of `convert`, none where they have it: themselves where they
// lie as they are wanted.
const void* load(const std::byte* from, DType dtype, int64_t step, int64_t count,
                 const std::optional<ConvertElements>& convert, Block& block) {
  if (step != 1) {
    visit_width(dtype, [&](auto zero) {
      using U = decltype(zero);
      const auto* x = reinterpret_cast<const U*>(from);
      auto* to = reinterpret_cast<U*>(block.kept);
      for (int64_t k = 0; k < count; ++k) to[k] = x[k * step];
    });
    from = block.kept;
  }
  if (!convert) return from;
  (*convert)(from, block.converted, count);
  return block.converted;
}

}  // namespace

void detail::map_blocks(std::span<const View> inputs, const Result& y, DType in, DType out, MapBlock block,
                        const void* f) {
  const auto unless_same = [](DType from, DType to) {
    return from == to ? std::nullopt : std::optional(ConvertElements(from, to));
  };
  Block blocks[3];
  struct Body {
    std::span<const View> inputs;
    const Result& y;
    MapBlock block;
    const void* f;
    std::optional<ConvertElements> convert_in, convert_out;
    Block* blocks;
  } body{inputs, y, block, f, unless_same(inputs[0].dtype, in), unless_same(out, y.dtype), blocks};
  std::array<Strides, 3> strides = {strides_of(y.shape)};
  for (size_t k = 0; k < inputs.size(); ++k) strides[k + 1] = broadcast_strides(inputs[k].shape, y.shape);
  nest_rows(
      y.shape, std::span(strides).first(inputs.size() + 1),
      [](void* given, const int64_t* at, const int64_t* step, int64_t count) {
        Body& b = *static_cast<Body*>(given);
        for (int64_t begin = 0; begin < count; begin += kBlock) {
          const int64_t some = std::min(kBlock, count - begin);
          const void* operands[2] = {};
          for (size_t k = 0; k < b.inputs.size(); ++k) {
            const View& x = b.inputs[k];
            const int64_t first = at[k + 1] + begin * step[k + 1];
            operands[k] =
                load(x.data + first * dtype_bytes(x.dtype), x.dtype, step[k + 1], some, b.convert_in, b.blocks[k]);
          }
          std::byte* to = b.y.data + (at[0] + begin) * dtype_bytes(b.y.dtype);
          b.block(b.f, operands, b.convert_out ? b.blocks[2].converted : to, some);
          if (b.convert_out) (*b.convert_out)(b.blocks[2].converted, to, some);
        }
      },
      &body);
}

void detail::nest_rows(std::span<const int64_t> shape, std::span<Strides> strides, Row row, void* body) {
  std::vector<int64_t> dims(shape.begin(), shape.end());
  for (int64_t dim : dims) {
    if (dim == 0) return;
  }
  simplify(dims, strides);
  const int64_t columns = dims.empty() ? 1 : dims.back();
  std::vector<int64_t> at(strides.size(), 0), step(strides.size(), 0);
  if (!dims.empty()) {
    for (size_t k = 0; k < strides.size(); ++k) step[k] = strides[k].back();
    dims.pop_back();
  }
  std::vector<int64_t> index(dims.size(), 0);
  for (;;) {
    row(body, at.data(), step.data(), columns);
    size_t axis = dims.size();
    while (axis > 0) {
      --axis;
      for (size_t k = 0; k < strides.size(); ++k) at[k] += strides[k][axis];
      if (++index[axis] < dims[axis]) break;
      for (size_t k = 0; k < strides.size(); ++k) at[k] -= strides[k][axis] * dims[axis];
      index[axis] = 0;
      if (axis == 0) return;
    }
    if (dims.empty()) return;
  }
}

Strides seen_strides(const Call& call, std::span<const int64_t> shape) {
  const Strides dense = strides_of(shape);
  return evaluate(*call.op->seen(call, Shape(dense.begin(), dense.end())), {});
}

Strides broadcast_strides(std::span<const int64_t> from, std::span<const int64_t> to) {
  const Strides strides = strides_of(from);
  Strides out(to.size(), 0);
  const size_t offset = to.size() - from.size();
  for (size_t k = 0; k < from.size(); ++k) out[offset + k] = from[k] == 1 ? 0 : strides[k];
  return out;
}

void copy(const View& x, const Result& y) {
  const int64_t bytes = x.elems() * dtype_bytes(x.dtype);
  if (bytes > 0) std::memcpy(y.data, x.data, static_cast<size_t>(bytes));
}

void copy_strided(const View& x, int64_t first, const Strides& strides, const Result& y) {
  if (y.elems() == 0) return;
  visit_width(x.dtype, [&](auto zero) {
    using U = decltype(zero);
    const U* from = reinterpret_cast<const U*>(x.data) + first;
    auto* to = reinterpret_cast<U*>(y.data);
    std::vector<int64_t> dims = y.shape;
    std::array<Strides, 2> walk = {strides_of(y.shape), strides};
    simplify(dims, walk);
    const auto even = std::find(walk[1].begin(), walk[1].end(), 1);
    if (even == walk[1].end() || even == walk[1].end() - 1) {
      nest<2>(dims, walk, [=](int64_t at, int64_t source) { to[at] = from[source]; });
      return;
    }
    // The last axis of y is not x's: both are walked evenly only in squares of the two.
    const auto axis = static_cast<size_t>(even - walk[1].begin());
    const int64_t rows = dims[axis], columns = dims.back();
    const int64_t to_step = walk[0][axis], from_step = walk[1].back();
    dims[axis] = 1;
    dims.back() = 1;
    nest<2>(dims, walk,
            [=](int64_t at, int64_t source) { transpose(from + source, from_step, to + at, to_step, rows, columns); });
  });
}

}  // namespace hetnn::ops
