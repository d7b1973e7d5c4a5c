// Which fan-in (inputs per pass) suits an n-ary layer on this machine.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "hetnn/kernels/kernel.h"

namespace hetnn::kernels {

inline constexpr int kMaxNaryInputs = 100;
/// Used when the parameter `fan_in` is 0.
inline constexpr int kDefaultFanIn = 8;

/// What of an n-ary layer decides its best fan-in.
struct NaryLayer {
  std::string op = "add";
  bool weighted = false;  // coefficients other than 0, 1 and -1
  int inputs = 0;
  int64_t elems = 0;
  int threads = 1;
};

/// The most elements of a tile, and those of a layer's tiles: fewer where there would be too few tiles for many
/// threads.
inline constexpr int64_t kLongTileElems = 16384;
int64_t nary_tile_elems(int64_t elems);

/// Times the layer with fan-ins from 2 to 16 within about budget_us microseconds and returns the fastest; of those that
/// the times do not tell apart the most usual one. Of fan-ins that lead to as many passes only the one with the most
/// even passes is tried. Operands of small layers lie beyond the nearer caches, those of larger ones, of which a run
/// computes a stretch, beyond all.
int fastest_fan_in(const NaryLayer& layer, double budget_us = 38000);

/// The sum of f16, bf16 or i8 values that a call of `nary` is; other types and operations, and steps behind it, are
/// refused.
Refusal serves_narrow_nary(const KernelCall& call);
std::unique_ptr<Kernel> make_narrow_nary(const KernelCall& call, int inputs);

/// How many inputs of a call of `nary` are the layer's own: the operands of its epilogue stand behind them.
int nary_inputs(const KernelCall& call);

/// The parameter `fan_in` for layers of that kind, number of inputs and size (to a factor of two): as measured in this
/// process or learnt, else measured now. Thread-safe.
ops::Attrs tuned_fan_in(const NaryLayer& layer);

/// The parameter `fan_in` for a call of `nary` that `threads` threads run, as tuned_fan_in says.
ops::Attrs tune_nary(const KernelCall& call, int threads);

/// What has been measured or learnt, by the name of the layer ("add 8 x 2^20 by 2" threads). Thread-safe.
std::map<std::string, int> known_fan_ins();
/// Takes over what another process measured on this machine. InvalidModel for a fan-in outside [2, 16].
void learn_fan_ins(const std::map<std::string, int>& fan_ins);

}  // namespace hetnn::kernels
