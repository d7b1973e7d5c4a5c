// Runs products of f32 rows with packed panels.
#include "hetnn/kernels/gemm/panels.h"

namespace hetnn::kernels {

PanelProduct::PanelProduct(const PanelShape& shape, EpiloguePlan epilogue)
    : shape_(shape),
      epilogue_(std::move(epilogue)),
      registers_(epilogue_.take_register_part(
          true, finish_functions() != nullptr ? RegisterFunctions::all : RegisterFunctions::none)),
      finish_(registers_.function ? finish_functions()[static_cast<size_t>(*registers_.function)] : nullptr),
      micro_(&micro_table(shape.weights)),
      half_(shape.weights == DType::f32 ? half_tiles() : nullptr),
      split_(shape, micro_->max_rows, micro_->panels_for(shape.rows, shape.panels_per_group())),
      lone_(shape.rows == 1 && (micro_->one_width || split_.strips() == 1)) {}

PanelRun PanelProduct::run_on(const std::byte* const* inputs, const std::byte* panels, const std::byte* bias,
                              std::byte* out, int64_t ld_out) const {
  PanelRun run;
  run.panels = reinterpret_cast<const float*>(panels);
  run.bias = reinterpret_cast<const float*>(bias);
  if (registers_.addend_input >= 0) run.addend = reinterpret_cast<const float*>(inputs[registers_.addend_input]);
  run.ld_addend = registers_.addend_pitch;
  run.out = reinterpret_cast<float*>(out);
  run.ld_out = ld_out;
  run.inputs = inputs;
  return run;
}

// What all tiles of a run have alike.
MicroTile PanelProduct::tile_of(const PanelRun& run, float* sums) const {
  MicroTile tile(sums);
  tile.taps = shape_.taps;
  tile.k = shape_.k;
  tile.panel_stride = shape_.panel_bytes() / 4;
  tile.ld_addend = run.ld_addend;
  tile.addend_scale = registers_.addend_scale;
  tile.ld_out = run.ld_out;
  tile.finish = finish_;
  tile.ld_operand = registers_.operand.row_stride;
  tile.operand_step = registers_.operand.col_step;
  tile.c0 = registers_.c0;
  tile.c1 = registers_.c1;
  tile.lo = registers_.lo;
  tile.hi = registers_.hi;
  return tile;
}

MicroFunction PanelProduct::function_of(const TilePlace& place) const {
  if (half_ != nullptr && place.cols + kHalfPanel <= place.panels * kPanel)
    if (const MicroFunction half = half_->of(place.panels, place.count)) return half;
  return micro_->run[place.panels][place.count];
}

void PanelProduct::run_tile(const PanelRun& run, const TilePlace& place, MicroTile& tile) const {
  tile.rows = place.rows;
  tile.rows_stride = place.rows_stride;
  tile.even_bytes = place.even_bytes;
  tile.row_offset = place.row_offset_bytes / 4;
  tile.cols = place.cols;
  tile.panel = run.panels + place.panel * tile.panel_stride;
  tile.bias = run.bias == nullptr ? nullptr : run.bias + place.col;
  tile.out = run.out + place.row * run.ld_out + place.col;
  tile.addend = run.addend == nullptr ? nullptr : run.addend + place.row * run.ld_addend + place.col;
  if (registers_.operand.input >= 0)
    tile.operand = reinterpret_cast<const float*>(run.inputs[registers_.operand.input]) +
                   (run.first_row + place.row) * tile.ld_operand + (tile.operand_step == 0 ? 0 : place.col);
  // Weights that are kept are near; what is added to the next rows comes in their place, of each tile its part.
  if (split_.keeps_weights() && run.addend != nullptr) {
    tile.prefetch = run.addend + (place.row + place.count) * run.ld_addend + place.col * place.count;
    tile.prefetch_step_bytes = place.count * place.cols * 4 / std::max<int64_t>(1, shape_.steps() * shape_.taps) + 1;
  } else {
    tile.prefetch = reinterpret_cast<const std::byte*>(run.panels) + place.fetch_begin_bytes;
    tile.prefetch_step_bytes = place.fetch_step_bytes;
  }
  (lone_ ? micro_->run_lone[place.panels] : function_of(place))(tile);
  if (!epilogue_.empty())
    epilogue_.apply(tile.out, run.ld_out, place.count, place.cols, run.first_row + place.row, place.col, run.inputs);
}

void PanelProduct::run(const PanelRun& run, int thread, int threads, std::byte* scratch) const {
  alignas(64) float sums[kMaxTileElems];
  MicroTile tile = tile_of(run, sums);
  split_.for_share(*run.source, thread, threads, scratch, [&](const TilePlace& place) { run_tile(run, place, tile); });
}

void PanelProduct::run_group(const PanelRun& run, Share rows, int thread, int threads, std::byte* scratch) const {
  alignas(64) float sums[kMaxTileElems];
  MicroTile tile = tile_of(run, sums);
  split_.for_tiles(*run.source, rows, share_of(split_.strips(), thread, threads), scratch,
                   [&](const TilePlace& place) { run_tile(run, place, tile); });
}

}  // namespace hetnn::kernels
