// The loops of the microkernel of bf16, over whatever multiplies pairs. Each file that includes this names its own
// functions' instructions, HETNN_UNIT_ATTR, and has a Unit:
//   kLanes, Sums, Words    lanes of a vector of sums, and one of pairs, a word of 32 bits each
//   Line(at)               pairs of columns as they are packed
//   Spread(word)           one pair for all columns
//   Multiply(sums, line, spread), Biased(sums, bias), Bounded(sums, low, high)
//   Load(from, count), Add(sums, sums), Store(sums, out, count)    of values of bf16, kLanes at most
//   AddPairs(out, addend, low, high)    to 2 kLanes of them at once; where there is a quick way
//
// No guard: its functions are of whoever includes it.

template <typename Unit, int kRows, int kPanels>
HETNN_UNIT_ATTR void MultiplyBrains(const BrainTile& t) {
  constexpr int kOfPanel = static_cast<int>(kPanel) / Unit::kLanes, kVectors = kPanels * kOfPanel;
  typename Unit::Sums sums[kRows][kVectors];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) sums[r][v] = Unit::Zero();
  }
  const std::byte* line = t.panel;
  const std::byte* prefetch = t.prefetch;
  for (int64_t tap = 0; tap < t.taps; ++tap) {
    const std::byte* const* rows = t.rows + tap * t.rows_stride;
    const std::byte* at[kRows];
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) at[r] = rows[r] + t.row_offset_bytes;
    const auto multiply = [&](int64_t k, auto bytes) HETNN_UNIT_ATTR {
      typename Unit::Words weights[kVectors];
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v)
        weights[v] = Unit::Line(line + v / kOfPanel * t.panel_stride + v % kOfPanel * Unit::kLanes * 4);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        uint32_t word = 0;
        __builtin_memcpy(&word, at[r] + k * 2, decltype(bytes)::value);
        const auto pair = Unit::Spread(word);
#pragma GCC unroll 16
        for (int v = 0; v < kVectors; ++v) sums[r][v] = Unit::Multiply(sums[r][v], weights[v], pair);
      }
      line += kPanel * 4;
      __builtin_prefetch(prefetch, 0, 2);
      prefetch += t.prefetch_step_bytes;
    };
    for (int64_t k = 0; k + 1 < t.k; k += 2) multiply(k, std::integral_constant<size_t, 4>());
    // Behind the last element of an odd number stands nothing that may be read.
    if (t.k % 2 != 0) multiply(t.k - 1, std::integral_constant<size_t, 2>());
  }
  // Kept here: stores might change what the tile says.
  const float *const bias = t.bias, low = t.low, high = t.high;
  const int64_t cols = t.cols, ld_out = t.ld_out;
  uint16_t* out = t.out;
  const auto finish = [&](auto whole) HETNN_UNIT_ATTR {
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r, out += ld_out) {
#pragma GCC unroll 16
      for (int v = 0; v < kVectors; ++v) {
        const int64_t col = static_cast<int64_t>(v) * Unit::kLanes;
        if (!decltype(whole)::value && col >= cols) break;
        const auto sum = Unit::Bounded(Unit::Biased(sums[r][v], bias + col), low, high);
        Unit::Store(sum, out + col, decltype(whole)::value ? Unit::kLanes : cols - col);
      }
    }
  };
  if (cols >= static_cast<int64_t>(kVectors) * Unit::kLanes) {
    finish(std::true_type());
  } else {
    finish(std::false_type());
  }
}

template <typename Unit>
HETNN_UNIT_ATTR void AddBrains(const BrainSum& s) {
  const int64_t cols = s.cols;
  const float low = s.low, high = s.high;
  for (int64_t r = 0; r < s.rows; ++r) {
    uint16_t* const out = s.out + r * s.ld_out;
    const uint16_t* const addend = s.addend + r * s.ld_addend;
    const auto add = [&](int64_t col, int64_t count) HETNN_UNIT_ATTR {
      const auto sum = Unit::Add(Unit::Load(out + col, count), Unit::Load(addend + col, count));
      Unit::Store(Unit::Bounded(sum, low, high), out + col, count);
    };
    int64_t col = 0;
    if constexpr (requires { &Unit::AddPairs; }) {
      for (; col + 2 * Unit::kLanes <= cols; col += 2 * Unit::kLanes)
        Unit::AddPairs(out + col, addend + col, low, high);
    }
    for (; col < cols; col += Unit::kLanes) add(col, cols - col);
  }
}

template <typename Unit, int kPanels, int... kRow>
constexpr void FillBrains(BrainMicroTable& table, std::integer_sequence<int, kRow...>) {
  table.add = &AddBrains<Unit>;
  table.max_rows[kPanels] = static_cast<int>(sizeof...(kRow));
  ((table.run[kPanels][kRow + 1] = &MultiplyBrains<Unit, kRow + 1, kPanels>), ...);
}
