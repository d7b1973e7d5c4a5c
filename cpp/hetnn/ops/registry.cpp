// The list of all operators, from all_ops.inc.
#include "hetnn/ops/registry.h"

#include <mutex>

namespace hetnn::ops {

#define HETNN_OP(name) ir::OpDef define_##name();
#include "hetnn/ops/all_ops.inc"
#undef HETNN_OP

void register_all() {
  static std::once_flag once;
  std::call_once(once, [] {
    ir::OpTable& table = ir::OpTable::global();
#define HETNN_OP(name) table.add(define_##name());
#include "hetnn/ops/all_ops.inc"
#undef HETNN_OP
  });
}

}  // namespace hetnn::ops
