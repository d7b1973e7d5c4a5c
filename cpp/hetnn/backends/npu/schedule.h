// A schedule: where values lie and in which steps layers are computed. Everything that a run of the NPU is follows from
// a network and its schedule.
//
// Layers are computed in groups, one after another. A group of one layer may be *tiled*: cut along rows, columns,
// filters and channels. Layers of a *cascade* advance together, some rows of the last layer's result a step; what one
// hands to the next lies in a ring of rows. Between groups a storage lies in the scratchpad or in DRAM.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hetnn/backends/npu/network.h"
#include "hetnn/backends/npu/tile.h"

namespace hetnn::backends::scheduling {

/// Where a storage lies between the groups that use it.
struct Home {
  bool in_scratchpad = false;
  int64_t offset_bytes = 0;  // in the arena or the scratchpad; of constants unused
};

/// Whether a value lies in the scratchpad between groups.
inline bool is_home(const Network& network, const std::vector<Home>& homes, const ir::Value& value) {
  return homes[network.frame(value).storage].in_scratchpad;
}

/// More layers than these are not searched: every one is a group of its own, with the scratchpad for itself.
inline constexpr size_t kMostLayersSearched = 1500;

/// What a piece of the scratchpad is for while a group runs.
enum class Use : uint8_t { parameters, ring, input, output, sums, moved };
std::string_view use_name(Use use);

struct Buffer {
  Use use = Use::parameters;
  size_t of = 0;              // a layer; of rings a frame
  int64_t bytes = 0;          // of one
  int64_t depth = 1;          // how many: two let transfers work beside the engine; of a ring rows
  int64_t offset_bytes = -1;  // below 0: wherever there is room
  int64_t total_bytes() const { return bytes * depth; }
};

struct Group {
  size_t first = 0, count = 1;  // layers
  int64_t rows = 0;             // of a cascade: of the last layer's result, a step; 0: tiled or moved
  int64_t ahead = 1;            // of a cascade: steps by which loads go before and stores behind
  Tile tile = {};
  std::vector<Buffer> buffers = {};

  const Buffer* find(Use use, size_t of) const;
};

struct Schedule {
  std::vector<Home> homes;  // of the network's storages
  std::vector<Group> groups;
  int64_t arena_bytes = 0;
};

/// A step of a cascade, for one batch entry.
struct Event {
  enum class Kind : uint8_t { load, compute, store };
  Kind kind = Kind::compute;
  size_t layer = 0;                  // of compute and store
  const ir::Value* value = nullptr;  // that is loaded or stored
  int64_t first = 0, count = 0;      // rows of the value or of the layer's result
};

/// The steps of a cascade in their order, and for each frame that is not at home in the scratchpad the rows that its
/// ring must hold. `most_steps`: only the first so many, to estimate.
struct Stripes {
  std::vector<Event> events;
  std::map<size_t, int64_t> ring_rows;
};
Stripes stripes_of(const Network& network, const std::vector<Home>& homes, const Group& group,
                   int64_t most_steps = 1 << 30);

/// The group's buffers, without places. Of a tiled group those of its tile.
std::vector<Buffer> buffers_of(const Network& network, const std::vector<Home>& homes, const Group& group);

/// The shape of a layer of products with what `homes` say of its operands.
ProductShape shape_at_home(const Network& network, const std::vector<Home>& homes, const Layer& layer);

/// Whether a storage is only used inside the group, or leaves it.
bool is_inside(const Storage& storage, const Group& group);

/// Why the group cannot be computed as it says, about its last layer where it is a cascade; nothing where it can.
std::string why_no_group(const Network& network, const Group& group);

/// Whether a storage may lie in the scratchpad between groups: not where it is read as weights from another one.
bool may_stay(const npu::Spec& spec, const Network& network, size_t storage);

/// Gives every storage that is not at home in the scratchpad its place in DRAM.
void place_arena(const npu::Spec& spec, const Network& network, Schedule& schedule);

/// What lies in the buffer, which says in which scratchpad it is.
npu::Content content_of(const Network& network, const Buffer& buffer);
npu::ContentBytes bytes_of(const Network& network, const std::vector<Buffer>& buffers);

/// Gives every storage and buffer its place. Where a scratchpad is too small, the layers for which it is; else none.
std::vector<size_t> place(const npu::Spec& spec, const Network& network, Schedule& schedule);

}  // namespace hetnn::backends::scheduling
