// Makes the operators of all_ops.inc known to ir::OpTable.
#pragma once

#include "hetnn/ir/op_def.h"

namespace hetnn::ops {

/// Fills ir::OpTable::global() once; later calls do nothing. Thread-safe.
void register_all();

}  // namespace hetnn::ops
