// Reads and checks the sizes of a matmul.
#include "hetnn/kernels/gemm/matmul_geometry.h"

#include <algorithm>

#include "hetnn/base/error.h"
#include "hetnn/kernels/query/terms.h"

namespace hetnn::kernels {

Refusal serves_matrices(std::string_view kernel, const KernelCall& call) {
  const TensorView &a = call.inputs[0], &b = call.inputs[1];
  return Terms(kernel, call)
      .plain()
      .of(a.dtype, 2)
      .hold(a.rank > 0 && b.rank > 0, "takes operands of one axis or more; got ", view_text(a), " and ", view_text(b));
}

MatmulGeometry matmul_geometry(const KernelCall& call) {
  const TensorView& a = call.inputs[0];
  const TensorView& b = call.inputs[1];
  MatmulGeometry g;
  g.transpose_a = a.rank >= 2 && call.params.integer("transpose_a", 0) != 0;
  g.transpose_b = b.rank >= 2 && call.params.integer("transpose_b", 0) != 0;
  const auto dim = [](const TensorView& view, int from_end) {
    return view.dims[static_cast<size_t>(view.rank - from_end)];
  };
  int64_t ka = 0, kb = 0;
  if (a.rank == 1) {
    ka = a.dims[0];
  } else {
    g.m = dim(a, g.transpose_a ? 1 : 2);
    ka = dim(a, g.transpose_a ? 2 : 1);
  }
  if (b.rank == 1) {
    kb = b.dims[0];
  } else {
    g.n = dim(b, g.transpose_b ? 2 : 1);
    kb = dim(b, g.transpose_b ? 1 : 2);
  }
  HETNN_ASSERT(ka == kb, view_text(a), " and ", view_text(b));
  g.k = ka;
  const int a_batch = std::max(0, a.rank - 2), b_batch = std::max(0, b.rank - 2);
  const int batch_rank = std::max(a_batch, b_batch);
  std::vector<int64_t> dims, a_strides, b_strides;
  int64_t a_step = g.m * g.k, b_step = g.n * g.k, count = 1;
  bool joins = a.rank >= 2 && !g.transpose_a;  // matrices of a that lie side by side and meet one of b are one
  for (int axis = batch_rank - 1; axis >= 0; --axis) {
    const int ia = axis - (batch_rank - a_batch), ib = axis - (batch_rank - b_batch);
    const int64_t da = ia >= 0 ? a.dims[static_cast<size_t>(ia)] : 1;
    const int64_t db = ib >= 0 ? b.dims[static_cast<size_t>(ib)] : 1;
    joins &= db == 1 && ia >= 0;
    if (joins) {
      g.m *= da;
      a_step *= da;
      continue;
    }
    dims.insert(dims.begin(), da == 1 ? db : da);
    a_strides.insert(a_strides.begin(), da == 1 ? 0 : a_step);
    b_strides.insert(b_strides.begin(), db == 1 ? 0 : b_step);
    a_step *= da;
    b_step *= db;
    count *= dims.front();
  }
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, a_offset = 0, b_offset = 0;
    for (size_t at = dims.size(); at-- > 0;) {
      a_offset += rest % dims[at] * a_strides[at];
      b_offset += rest % dims[at] * b_strides[at];
      rest /= dims[at];
    }
    g.a_offsets.push_back(a_offset);
    g.b_offsets.push_back(b_offset);
  }
  HETNN_ASSERT(call.outputs[0].elems() == count * g.m * g.n, view_text(call.outputs[0]));
  return g;
}

}  // namespace hetnn::kernels
