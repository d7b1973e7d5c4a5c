// Calls that ask for something: a run ends in which it does not hold, so that they stay though nobody reads them.
#pragma once

#include <string_view>

#include "hetnn/ops/sizes.h"

namespace hetnn::ops {

/// The attribute by which such a call is known: what is asked for, in words.
inline constexpr std::string_view kDemand = "demand";
inline AttrDef demand(std::string_view doc) { return {kDemand, AttrKind::string, std::string(), doc}; }

/// Whether a call has an effect besides its outputs: it asks for something, or gives symbols their values.
inline bool demands(const Call& call) { return call.op->find_attr(kDemand) != nullptr; }
inline bool acts(const Call& call) { return demands(call) || !defined_symbols(call).empty(); }

}  // namespace hetnn::ops
