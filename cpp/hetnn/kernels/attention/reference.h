// The meaning of attention, as plain loops in double; for tests.
#pragma once

#include <cstdint>
#include <vector>

namespace hetnn::kernels::reference {

struct AttentionSizes {
  int64_t batch, heads, kv_heads, query_length, key_length, dim, value_dim;
  double scale;
  bool causal;
};

/// q [B,H,Lq,D], k [B,Hkv,Lk,D], v [B,Hkv,Lk,Dv]; mask [B,H,Lq,Lk] is added to the scores, or empty. -> [B,H,Lq,Dv]. A
/// row whose scores are all -inf gives zeros.
std::vector<double> attention(const AttentionSizes& s, const std::vector<double>& q, const std::vector<double>& k,
                              const std::vector<double>& v, const std::vector<double>& mask);

}  // namespace hetnn::kernels::reference
