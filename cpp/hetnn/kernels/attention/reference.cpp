// Plain loops for attention.
#include "hetnn/kernels/attention/reference.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hetnn::kernels::reference {

std::vector<double> attention(const AttentionSizes& s, const std::vector<double>& q, const std::vector<double>& k,
                              const std::vector<double>& v, const std::vector<double>& mask) {
  constexpr double kNone = -std::numeric_limits<double>::infinity();
  std::vector<double> y(static_cast<size_t>(s.batch * s.heads * s.query_length * s.value_dim));
  for (int64_t bh = 0; bh < s.batch * s.heads; ++bh) {
    const int64_t kv = bh / s.heads * s.kv_heads + bh % s.heads / (s.heads / s.kv_heads);
    for (int64_t i = 0; i < s.query_length; ++i) {
      std::vector<double> scores(static_cast<size_t>(s.key_length));
      double max = kNone, sum = 0;
      for (int64_t j = 0; j < s.key_length; ++j) {
        double score = 0;
        for (int64_t d = 0; d < s.dim; ++d)
          score += q[static_cast<size_t>((bh * s.query_length + i) * s.dim + d)] *
                   k[static_cast<size_t>((kv * s.key_length + j) * s.dim + d)];
        score *= s.scale;
        if (!mask.empty()) score += mask[static_cast<size_t>((bh * s.query_length + i) * s.key_length + j)];
        if (s.causal && j > i) score = kNone;
        scores[static_cast<size_t>(j)] = score;
        max = std::max(max, score);
      }
      if (max == kNone) continue;
      for (double& score : scores) sum += score = std::exp(score - max);
      for (int64_t j = 0; j < s.key_length; ++j)
        for (int64_t d = 0; d < s.value_dim; ++d)
          y[static_cast<size_t>((bh * s.query_length + i) * s.value_dim + d)] +=
              scores[static_cast<size_t>(j)] / sum * v[static_cast<size_t>((kv * s.key_length + j) * s.value_dim + d)];
    }
  }
  return y;
}

}  // namespace hetnn::kernels::reference
