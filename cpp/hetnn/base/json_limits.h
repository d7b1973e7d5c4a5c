// The kinds of JSON that hetnn reads and how much each may hold: one table, which readers check while they read and the
// docs show.
#pragma once

#include <cstdint>
#include <string_view>

namespace hetnn {

/// One kind of document. A text beyond a limit is refused before a tree of it exists.
struct JsonFormat {
  std::string_view name;   // in the docs
  std::string_view what;   // in messages
  int64_t max_depth;       // lists and objects within each other
  int64_t max_values;      // numbers, texts, booleans, nulls, lists and objects, all together
  int64_t max_text_bytes;  // of one text or key
};

inline constexpr JsonFormat kNpuSheetJson = {"NPU data sheet", "the data sheet of an NPU", 8, 100'000, 1 << 16};
inline constexpr JsonFormat kCpuSheetJson = {"CPU data sheet", "the data sheet of a CPU", 8, 10'000, 1 << 16};
inline constexpr JsonFormat kTargetJson = {"target", "the target", 16, 1'000'000, 1 << 16};
inline constexpr JsonFormat kOptionsJson = {"options", "the set of options", 16, 10'000'000, 1 << 20};
inline constexpr JsonFormat kStrategyJson = {"strategy options", "the set of options", 4, 1'000, 1 << 12};
inline constexpr JsonFormat kProblemJson = {"planning problem", "the problem", 8, 1'000'000'000, 1 << 20};

// Of an executable. Its header holds the next four as texts.
inline constexpr JsonFormat kHeaderJson = {"executable's header", "the header of an executable", 4, 64, 1 << 30};
inline constexpr JsonFormat kProgramJson = {"executable's program", "the program", 128, 20'000'000, 1 << 16};
inline constexpr JsonFormat kPiecesJson = {"program.json of hetnn unpack", "the program", 144, 50'000'000, 1 << 24};
inline constexpr JsonFormat kReportJson = {"executable's report", "the report", 16, 20'000'000, 1 << 24};
inline constexpr JsonFormat kCpuCodeJson = {"code of a CPU", "the code", 8, 20'000'000, 1 << 16};
inline constexpr JsonFormat kNpuCodeJson = {"code of an NPU", "the code", 8, 20'000'000, 1 << 28};

// Of an HTTP request to a server, without the raw tensors behind it.
inline constexpr JsonFormat kInferenceJson = {"inference", "an inference", 72, 1 << 26, 1 << 20};

inline constexpr const JsonFormat* kJsonFormats[] = {
    &kNpuSheetJson, &kCpuSheetJson, &kTargetJson, &kOptionsJson, &kStrategyJson, &kProblemJson,  &kHeaderJson,
    &kProgramJson,  &kPiecesJson,   &kReportJson, &kCpuCodeJson, &kNpuCodeJson,  &kInferenceJson};

}  // namespace hetnn
