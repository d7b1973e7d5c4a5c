// Products by tiles. 0 to 3 are sums, [piece][panel]; 4 and 6 are rows and weights, 5 and 7 those of the rest.
// The processor renames tiles: one name for all rows and one for all weights holds nothing up.
#include "hetnn/kernels/gemm/amx_micro.h"

#include "hetnn/base/error.h"

#if defined(__x86_64__)
#include <immintrin.h>

#define HETNN_AMX __attribute__((target("amx-tile,amx-int8,amx-bf16")))

namespace hetnn::kernels {
namespace {

// As ldtilecfg reads it.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

// The numbers of tiles stand in the instructions, so that they are no parameters of a function. Where either piece has
// a tile of its own, neither is read twice.
#define HETNN_MULTIPLY_TILE(SUMS, ROWS, WEIGHTS) \
  if constexpr (kBrains) {                       \
    _tile_dpbf16ps(SUMS, ROWS, WEIGHTS);         \
  } else {                                       \
    _tile_dpbssd(SUMS, ROWS, WEIGHTS);           \
  }
#define HETNN_MULTIPLY_TILES(ROWS, SECOND_ROWS, WEIGHTS, SECOND_WEIGHTS)     \
  _tile_loadd(WEIGHTS, weights, 64);                                         \
  _tile_loadd(ROWS, first, step);                                            \
  HETNN_MULTIPLY_TILE(0, ROWS, WEIGHTS);                                     \
  if constexpr (kPieces == 2) {                                              \
    _tile_loadd(SECOND_ROWS, second, step);                                  \
    HETNN_MULTIPLY_TILE(2, SECOND_ROWS, WEIGHTS);                            \
  }                                                                          \
  b.meanwhile(b.what);                                                       \
  if constexpr (kPanels == 2) {                                              \
    _tile_loadd(SECOND_WEIGHTS, weights + b.panel_stride, 64);               \
    if constexpr (kPieces == 2) {                                            \
      HETNN_MULTIPLY_TILE(3, SECOND_ROWS, SECOND_WEIGHTS);                   \
      if constexpr ((ROWS) == (SECOND_ROWS)) _tile_loadd(ROWS, first, step); \
    }                                                                        \
    HETNN_MULTIPLY_TILE(1, ROWS, SECOND_WEIGHTS);                            \
  }                                                                          \
  b.meanwhile(b.what);                                                       \
  for (int64_t line = 0; line < b.prefetch_lines; ++line, prefetch += 64) __builtin_prefetch(prefetch, 0, 2)

template <bool kBrains, int kPieces, int kPanels, bool kRest>
HETNN_AMX void Multiply(const TileBlock& b) {
  const std::byte* weights = b.panel;
  const std::byte* prefetch = b.prefetch;
  const int64_t step = b.step_bytes;
  const void* second_base = static_cast<const std::byte*>(b.base) + kPanel * 4;
  // Rows that are no bytes apart: each is the same.
  _tile_loadd(0, b.base, 0);
  if constexpr (kPanels == 2) _tile_loadd(1, second_base, 0);
  if constexpr (kPieces == 2) _tile_loadd(2, b.base, 0);
  if constexpr (kPieces == 2 && kPanels == 2) _tile_loadd(3, second_base, 0);
  for (int64_t tap = 0; tap < b.tap_count; ++tap) {
    const std::byte* first = b.pieces[0] + b.taps[tap];
    const std::byte* second = b.pieces[kPieces - 1] + b.taps[tap];
    for (int64_t k = 0; k < b.wholes; ++k) {
      if constexpr (kRest) {
        HETNN_MULTIPLY_TILES(4, 4, 6, 6);
      } else {
        HETNN_MULTIPLY_TILES(4, 5, 6, 7);
      }
      first += kTileBytes;
      second += kTileBytes;
      weights += kTileBytes * 16;
    }
    if constexpr (kRest) {
      HETNN_MULTIPLY_TILES(5, 5, 7, 7);
      weights += b.rest * 16;
    }
  }
}

template <int kPieces, int kPanels>
HETNN_AMX void Store(void* sums, int64_t second_row) {
  constexpr int64_t kLine = kTileCols * 4;
  auto* to = static_cast<std::byte*>(sums);
  _tile_stored(0, to, kLine);
  if constexpr (kPanels == 2) _tile_stored(1, to + kPanel * 4, kLine);
  to += second_row * kLine;
  if constexpr (kPieces == 2) _tile_stored(2, to, kLine);
  if constexpr (kPieces == 2 && kPanels == 2) _tile_stored(3, to + kPanel * 4, kLine);
}

template <bool kBrains, int kPieces, int kPanels>
constexpr TileFunctions kOf = {&Multiply<kBrains, kPieces, kPanels, false>, &Multiply<kBrains, kPieces, kPanels, true>,
                               &Store<kPieces, kPanels>};

template <bool kBrains>
const TileFunctions& functions_of(int pieces, int panels) {
  static constexpr TileFunctions kAll[2][2] = {{kOf<kBrains, 1, 1>, kOf<kBrains, 1, 2>},
                                               {kOf<kBrains, 2, 1>, kOf<kBrains, 2, 2>}};
  return kAll[pieces - 1][panels - 1];
}

HETNN_AMX void Release() { _tile_release(); }

}  // namespace

const TileFunctions& integer_tiles(int pieces, int panels) { return functions_of<false>(pieces, panels); }
const TileFunctions& brain_tiles(int pieces, int panels) { return functions_of<true>(pieces, panels); }

TileState::TileState(int64_t rows, int64_t rest) {
  TileConfig config;
  const auto set = [&](int tile, int64_t tile_rows, int64_t bytes) {
    config.rows[tile] = static_cast<uint8_t>(tile_rows);
    config.row_bytes[tile] = static_cast<uint16_t>(bytes);
  };
  for (int tile = 0; tile < 4; ++tile) set(tile, rows, kPanel * 4);
  const int64_t second = rest > 0 ? rest : kTileBytes;
  set(4, rows, kTileBytes);
  set(5, rows, second);
  set(6, kTileBytes / 4, kPanel * 4);
  set(7, second / 4, kPanel * 4);
  // Compilers' own function says that it reads a pointer's worth of it.
  __asm__ volatile("ldtilecfg %0" : : "m"(config));
}

TileState::~TileState() { Release(); }

}  // namespace hetnn::kernels

#else

namespace hetnn::kernels {

const TileFunctions& integer_tiles(int, int) { HETNN_ASSERT(false, "no processor of this kind has tiles"); }
const TileFunctions& brain_tiles(int, int) { HETNN_ASSERT(false, "no processor of this kind has tiles"); }
TileState::TileState(int64_t, int64_t) { HETNN_ASSERT(false, "no processor of this kind has tiles"); }
TileState::~TileState() = default;

}  // namespace hetnn::kernels

#endif
