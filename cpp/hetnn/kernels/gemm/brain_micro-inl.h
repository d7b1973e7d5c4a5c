// The loops of the microkernel of bf16, over whatever multiplies pairs. Each file that includes this names its own
// functions' instructions, HETNN_UNIT_ATTR, and has a Unit:
//   kLanes, Sums, Words    lanes of a vector of sums, and one of pairs, a word of 32 bits each
//   Line(at)               pairs of columns as they are packed
//   Spread(word)           one pair for all columns
//   Multiply(sums, line, spread), Biased(sums, bias), Bounded(sums, low, high)
//   Load(from, count), Add(sums, sums), Store(sums, out, count)    of values of bf16
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
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 16
    for (int v = 0; v < kVectors; ++v) {
      const int64_t col = static_cast<int64_t>(v) * Unit::kLanes;
      if (col >= t.cols) break;
      const auto sum = t.bias == nullptr ? sums[r][v] : Unit::Biased(sums[r][v], t.bias + col);
      Unit::Store(Unit::Bounded(sum, t.low, t.high), t.out + r * t.ld_out + col, t.cols - col);
    }
  }
}

template <typename Unit>
HETNN_UNIT_ATTR void AddBrains(const BrainSum& s) {
  for (int64_t r = 0; r < s.rows; ++r) {
    uint16_t* const out = s.out + r * s.ld_out;
    const uint16_t* const addend = s.addend + r * s.ld_addend;
    for (int64_t c = 0; c < s.cols; c += Unit::kLanes) {
      const int64_t count = s.cols - c;
      const auto sum = Unit::Add(Unit::Load(out + c, count), Unit::Load(addend + c, count));
      Unit::Store(Unit::Bounded(sum, s.low, s.high), out + c, count);
    }
  }
}

template <typename Unit, int kPanels, int... kRow>
constexpr void FillBrains(BrainMicroTable& table, std::integer_sequence<int, kRow...>) {
  table.add = &AddBrains<Unit>;
  table.max_rows[kPanels] = static_cast<int>(sizeof...(kRow));
  ((table.run[kPanels][kRow + 1] = &MultiplyBrains<Unit, kRow + 1, kPanels>), ...);
}
