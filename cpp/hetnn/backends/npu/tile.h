// How a layer of the product engine is cut into tiles: what fits the scratchpad, and what of that takes least.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "hetnn/base/dtype.h"
#include "hetnn/npu/access.h"
#include "hetnn/npu/spec.h"
#include "hetnn/ops/window.h"

namespace hetnn::backends::scheduling {

using npu::kSumBytes;
/// Bytes of a factor between scales, multiplier and shift; of a table, an entry for each value of i8.
inline constexpr int64_t kFactorBytes = 8, kTableBytes = 256;

/// Where operands may begin in the scratchpad, and the first such place from `bytes` on.
inline constexpr int64_t kAlignment = 64;
/// Those of a result, an addend and their sum, behind a product's own.
inline constexpr int64_t kAddendFactorBytes = 3 * kFactorBytes;
constexpr int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// Input positions that output positions [first, first + count) of one axis read: those present, and the padding
/// before.
struct Span {
  int64_t begin, count, pad;
};
Span positions_read(const ops::WindowAxis& w, int64_t first, int64_t count, int64_t in_size);

/// Whether so many sums have room in the accumulators at once.
bool accumulates(const npu::Spec& spec, int64_t sums);

/// A layer of products: batch entries, output rows and columns, channels and filters of all groups.
struct ProductShape {
  DType dtype = DType::f32;
  ops::Window window = ops::Window(2);
  int64_t batch = 1, in_h = 1, in_w = 1, out_h = 1, out_w = 1;
  int64_t groups = 1, in_c = 1, out_c = 1;  // channels and filters in all
  bool biased = false, adds = false;
  bool is_rows = false;     // rows of one pixel, as of a linear layer: a tile of them may be laid out as any picture
  bool whole_sums = false;  // the instruction keeps no sums between passes
  bool weights_differ = false;  // each batch entry has its own
  // What lies in the scratchpad as a whole, so that it is not loaded or stored here.
  bool input_stays = false, output_stays = false, addend_stays = false, weights_stay = false;
};

/// All of a shape, so that equal ones are found again.
std::vector<int64_t> figures_of(const ProductShape& shape);

/// A tile of the output, and the input channels of one pass over it.
struct Tile {
  int64_t rows = 1, columns = 1, filters = 1, channels = 1;
  bool filters_inside = false;  // a piece of the input meets all filters in turn; else filters meet all pieces
  bool overlaps = false;        // transfers work beside the engine, on two buffers of each operand
};

/// Bytes of one buffer of each operand, and how many of each there are.
struct TileBuffers {
  int64_t weights = 0, bias = 0, factors = 0;  // where biases and factors begin, and `weights` where they end
  int64_t input = 0, output = 0, sums = 0;
  int64_t weight_buffers = 1, input_buffers = 1, output_buffers = 1;
  npu::ContentBytes contents() const {
    return {input * input_buffers + output * output_buffers, weights * weight_buffers, sums};
  }
};
TileBuffers buffers_of(const ProductShape& shape, const Tile& tile);

/// Rows and columns as which the engine computes so many rows of one pixel fastest.
struct Picture {
  int64_t rows, columns;
};
Picture picture_of(const npu::Spec& spec, const ProductShape& shape, int64_t count, int64_t filters, int64_t channels);

/// What a layer takes of the engines side by side, and what it moves.
struct TileCost {
  double dma_cycles = 0, engine_cycles = 0;
  double edge_cycles = 0;                    // of the first loads and the last store, which nothing of the layer hides
  double first_cycles = 0, last_cycles = 0;  // of the first loads, and of the last store
  double hidden_cycles = 0;                  // of the transfers' latency, where several are on their way
  double steps = 0;
};
/// The share of the edges that is taken for seen.
inline constexpr double kEdgesSeen = 0.5;
TileCost cost_of(const npu::Spec& spec, const ProductShape& shape, const Tile& tile);

/// Finds tiles for one machine, each once: networks have layers of one shape again and again. Callable from several
/// threads.
class BestTiles {
 public:
  struct Found {
    std::optional<Tile> tile;
    int64_t needed_bytes = 0;  // of the smallest tile
  };
  /// `spec` outlives it.
  explicit BestTiles(const npu::Spec& spec) : spec_(spec) {}

  /// The tile that takes least of those tried within `budget_bytes` of scratchpad; none where the smallest does not
  /// fit. Sums of floats are split only where nothing else fits, as their order decides the last bits. `packed`: its
  /// filters and channels are those of the tile, so that weights that are packed for it serve.
  Found find(const ProductShape& shape, int64_t budget_bytes, const Tile* packed = nullptr);

 private:
  const npu::Spec& spec_;
  std::mutex mutex_;
  std::map<std::vector<int64_t>, Found> found_;  // by all figures that are asked with
};

/// The tiles that take least of a layer by itself, the best first, of many more tried.
std::vector<Tile> good_tiles(const npu::Spec& spec, const ProductShape& shape, int64_t budget_bytes, size_t count);

/// Engine cycles of some rows of the result at full width, with all filters and channels.
int64_t cycles_of_rows(const npu::Spec& spec, const ProductShape& shape, int64_t rows);

}  // namespace hetnn::backends::scheduling
