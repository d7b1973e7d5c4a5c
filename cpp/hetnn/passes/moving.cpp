// Channels in another order, joined channels that are joined further, sums between two layouts, and layers of which one
// value is the whole.
#include "hetnn/passes/moving.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "hetnn/passes/apply_rules.h"

namespace hetnn::passes {
namespace {

constexpr std::string_view kBits = "bit for bit";

bool is_channel_axis(const ir::Node& node) {
  const Dim axis = node.integer("axis");
  return axis == Dim(1) || axis == Dim(1 - static_cast<int64_t>(node.output()->rank()));
}

// Which channel of x each channel of reshape(permute(reshape(x))) is, where nothing else changes places.
std::optional<std::vector<int64_t>> order_of_channels(const Match& m) {
  const Shape& x = m.value("x")->shape();
  const Shape& split = m.node("split")->output()->shape();
  const std::vector<size_t> perm = order_of_axes(*m.node("turn"));
  if (x.size() < 3 || m.root()->output()->shape() != x || !x[1].is_static() || split.empty()) return std::nullopt;
  const bool with_images = perm[0] == 0 && split[0] == x[0];
  if (!with_images && x[0] != Dim(1)) return std::nullopt;
  const size_t begin = with_images ? 1 : 0;
  size_t end = begin;
  int64_t channels = 1;
  for (; end < split.size() && channels < x[1].value(); ++end) {
    if (!split[end].is_static()) return std::nullopt;
    channels *= split[end].value();
  }
  if (channels != x[1].value()) return std::nullopt;
  for (size_t k = end; k < perm.size(); ++k)
    if (perm[k] != k) return std::nullopt;
  std::vector<int64_t> strides(split.size(), 1);
  for (size_t k = end - 1; k-- > begin;) strides[k] = strides[k + 1] * split[k + 1].value();
  std::vector<int64_t> order = {0};
  for (size_t k = begin; k < end; ++k) {
    const size_t from = perm[k];
    std::vector<int64_t> finer;
    for (const int64_t at : order)
      for (int64_t step = 0; step < split[from].value(); ++step) finer.push_back(at + step * strides[from]);
    order = std::move(finer);
  }
  return order;
}

Tensor indices(std::span<const int64_t> values) {
  return Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, values);
}

Rule shuffle_as_gather() {
  return {
      .name = "shuffle_as_gather",
      .equation = "reshape(permute(reshape(x))) = gather(x, order; axis = 1)",
      .pattern = op("reshape", {op("permute", {op("reshape", {any("x")}, "split")}, "turn")}),
      .guards = {{"the channels alone change places, and their number is fixed",
                  [](const Match& m) { return order_of_channels(m).has_value(); }}},
      .exactness = kBits,
      .rewrite = [](const Match& m, Build& build) {
        return build.op("gather", {m.value("x"), build.constant(indices(*order_of_channels(m)))}, {{"axis", Dim(1)}});
      }};
}

bool picks_channels(const Match& m) {
  const ir::Node& gather = *m.node("order");
  return is_channel_axis(gather) && m.tensor("i")->shape().size() == 1 && m.tensor("i")->dtype() == DType::i64;
}

bool is_cut_only(const Match& m) {
  const auto& uses = m.node("order")->output()->uses();
  return std::ranges::all_of(uses, [](const ir::Use& use) {
    return use.node->op().name == "slice" && is_channel_axis(*use.node) && use.node->integer("step") == Dim(1) &&
           use.node->integer("start").is_static() && use.node->output()->shape()[1].is_static();
  });
}

Rule slice_of_gather() {
  return {.name = "slice_of_gather",
          .equation = "gather(x, i; axis = 1)[:, a:b] = gather(x, i[a:b]; axis = 1)",
          .pattern = op("slice", {op("gather", {any("x"), constant("i")}, "order")}),
          .guards = {{"i are channels", picks_channels},
                     {"whoever reads them reads fixed ranges of channels", is_cut_only}},
          .exactness = kBits,
          .rewrite = [](const Match& m, Build& build) {
            const std::span<const int64_t> all = m.tensor("i")->values<int64_t>();
            const auto count = static_cast<int64_t>(all.size());
            const int64_t start = m.root()->integer("start").value();
            const int64_t begin = std::clamp<int64_t>(start < 0 ? start + count : start, 0, count);
            const auto some =
                all.subspan(static_cast<size_t>(begin), static_cast<size_t>(m.root()->output()->shape()[1].value()));
            return build.op("gather", {m.value("x"), build.constant(indices(some))}, m.node("order")->attrs());
          }};
}

// The node that joins the most of the first inputs of another, which stands behind it.
const ir::Node* joined_before(const Match& m) {
  const ir::Node& root = *m.root();
  const ir::Node* found = nullptr;
  if (root.inputs().empty()) return found;
  for (const ir::Use& use : root.input(0)->uses()) {
    const ir::Node& other = *use.node;
    const size_t count = other.inputs().size();
    if (use.index != 0 || other.op().name != "concat" || count < 2 || count >= root.inputs().size() ||
        other.subgraph != root.subgraph || other.integer("axis") != root.integer("axis") ||
        !std::equal(other.inputs().begin(), other.inputs().end(), root.inputs().begin()))
      continue;
    if (!found || count > found->inputs().size()) found = &other;
  }
  return found;
}

bool stands_before(const ir::Graph& graph, const ir::Node& first, const ir::Node& second) {
  for (const ir::Node* node : graph.nodes()) {
    if (node == &first || node == &second) return node == &first;
  }
  return false;
}

// As where every layer reads all that stand before it: the whole of each then lies within the next.
Rule concat_of_joined() {
  return {
      .name = "concat_of_joined",
      .equation = "concat(x1, ..., xk, y...) = concat(concat(x1, ..., xk), y...)",
      .pattern = op("concat"),
      .guards = {{"another node joins the first inputs", [](const Match& m) { return joined_before(m) != nullptr; }}},
      .exactness = kBits,
      .rewrite = [](const Match& m, Build& build) -> ir::Value* {
        const ir::Node& first = *joined_before(m);
        if (!stands_before(build.graph(), first, *m.root())) return nullptr;
        std::vector<ir::Value*> inputs = m.root()->inputs();
        inputs.erase(inputs.begin(), inputs.begin() + static_cast<std::ptrdiff_t>(first.inputs().size()));
        inputs.insert(inputs.begin(), first.output());
        return build.like(*m.root(), inputs);
      }};
}

// 0, r - 1, 1, ..., r - 2: from channels last to channels first; rank 3 would be its own inverse.
std::vector<size_t> channels_first(size_t rank) {
  std::vector<size_t> out = {0, rank - 1};
  for (size_t axis = 1; axis + 1 < rank; ++axis) out.push_back(axis);
  return out;
}
std::vector<size_t> channels_last(size_t rank) {
  std::vector<size_t> out = {0};
  for (size_t axis = 2; axis < rank; ++axis) out.push_back(axis);
  out.push_back(1);
  return out;
}

bool turns(const ir::Node& node, const std::vector<size_t>& order) {
  return node.op().name == "permute" && order_of_axes(node) == order;
}

bool makes_channels_first(const Match& m) {
  const ir::Node& turn = *m.node("turn");
  const size_t rank = turn.output()->shape().size();
  return rank >= 4 && turns(turn, channels_first(rank)) && m.value("z")->type() == turn.output()->type();
}

// Others would have to turn the sum.
bool is_read_channels_last(const Match& m) {
  const ir::Value& sum = *m.root()->output();
  return std::ranges::any_of(sum.uses(), [&](const ir::Use& use) {
    return (use.node->op().name == "conv2d" && use.index == 0) || turns(*use.node, channels_last(sum.shape().size()));
  });
}

Rule sum_of_turned() {
  return {
      .name = "sum_of_turned",
      .equation = "permute(y) + z = permute(y + permute(z)), where permute(y) has the channels first that y has last",
      .pattern = op("add", {exclusive(op("permute", {any("y")}, "turn")), any("z")}),
      .guards = {{"y has its channels last, and z is of the type of the sum", makes_channels_first},
                 {"a convolution or a movement reads the sum with its channels last", is_read_channels_last}},
      .exactness = kBits,
      .rewrite = [](const Match& m, Build& build) {
        const size_t rank = m.root()->output()->shape().size();
        ir::Value* z = m.value("z");
        const bool turned = z->producer() && turns(*z->producer(), channels_first(rank));
        z = turned ? z->producer()->input(0) : build.op("permute", {z}, {{"perm", as_dims(channels_last(rank))}});
        return build.op("permute", {build.add(m.value("y"), z)}, {{"perm", as_dims(channels_first(rank))}});
      }};
}

constexpr int64_t kVector = 16;  // f32 in the widest instruction set

bool has_one_constant_tap(const ir::Node& conv) {
  return has_one_tap(conv) && conv.constant_input(1) && (!conv.input(2) || conv.constant_input(2));
}

// What stands behind in the same launch would have to read a part of it.
bool ends_launch(const ir::Node& conv) {
  return std::ranges::none_of(conv.output()->uses(),
                              [](const ir::Use& use) { return use.node->op().has(ops::Trait::elementwise); });
}

// Another pointwise convolution of the same value, where the two together fill fewer vectors than each by itself.
ir::Node* neighbour(const Match& m) {
  const ir::Node& root = *m.root();
  const auto vectors = [](int64_t channels) { return (channels + kVector - 1) / kVector; };
  for (const ir::Use& use : m.value("x")->uses()) {
    ir::Node& other = *use.node;
    if (&other == &root || use.index != 0 || other.op().name != "conv2d" || other.attrs() != root.attrs() ||
        other.subgraph != root.subgraph || !has_one_constant_tap(other) || !ends_launch(other) ||
        (other.input(2) != nullptr) != (root.input(2) != nullptr) || other.output()->dtype() != DType::f32)
      continue;
    const int64_t mine = root.output()->shape()[1].value(), its = other.output()->shape()[1].value();
    if (vectors(mine + its) < vectors(mine) + vectors(its)) return &other;
  }
  return nullptr;
}

Tensor one_behind_other(const Tensor& a, const Tensor& b) {
  std::vector<float> values(a.values<float>().begin(), a.values<float>().end());
  values.insert(values.end(), b.values<float>().begin(), b.values<float>().end());
  std::vector<int64_t> shape = a.shape();
  shape[0] += b.shape()[0];
  return Tensor::of<float>(shape, values);
}

// As the heads of a detector, of a few channels each.
Rule convolutions_as_one() {
  return {.name = "convolutions_as_one",
          .equation = "conv2d(x, w1, b1), conv2d(x, w2, b2) = the parts of conv2d(x, [w1; w2], [b1; b2])",
          .pattern = op("conv2d", {any("x"), constant("w")}),
          .guards = {{"the values are f32", [](const Match& m) { return m.root()->output()->dtype() == DType::f32; }},
                     {"the convolution is 1x1, of constants, and nothing elementwise reads it",
                      [](const Match& m) { return has_one_constant_tap(*m.root()) && ends_launch(*m.root()); }},
                     {"another one like it reads x, and the two fill fewer vectors of 16 channels than each by itself",
                      [](const Match& m) { return neighbour(m) != nullptr; }}},
          .exactness = kBits,
          .rewrite = [](const Match& m, Build& build) -> ir::Value* {
            const ir::Node &first = *m.root(), &second = *neighbour(m);
            if (!stands_before(build.graph(), first, second)) return nullptr;
            const auto joined = [&](size_t k) {
              return first.input(k)
                         ? build.constant(one_behind_other(*first.constant_input(k), *second.constant_input(k)))
                         : nullptr;
            };
            ir::Value* whole = build.op("conv2d", {m.value("x"), joined(1), joined(2)}, first.attrs());
            const int64_t mine = first.output()->shape()[1].value();
            build.also_replace(second.output(), build.op("slice", {whole}, {{"axis", Dim(1)}, {"start", Dim(mine)}}));
            return build.op("slice", {whole}, {{"axis", Dim(1)}, {"end", Dim(mine)}});
          }};
}

bool turns_a_matrix_of_values(const Match& m) {
  const ir::Value* w = m.value("w");
  return w->dtype() == DType::f32 && w->rank() == 2 && m.node("turn")->integers("perm")[0] != Dim(0) &&
         !(w->producer() && w->producer()->is_constant());
}

Rule turned_as_linear() {
  return {.name = "turned_as_linear",
          .equation = "x permute(w) = linear(x, w)",
          .pattern = op("matmul", {any("x"), op("permute", {any("w")}, "turn")}),
          .guards = {{"w is a matrix of f32, no constant, whose axes the permutation turns", turns_a_matrix_of_values}},
          .exactness = "bit for bit, up to the order of sums",
          .rewrite = [](const Match& m, Build& build) {
            return build.op("linear", {m.value("x"), m.value("w")});
          }};
}

}  // namespace

const RuleSet& moving() {
  static const RuleSet set = {"moving",
                              "Movements that are fewer where a device keeps the channels of a pixel together and lets "
                              "parts lie in the memory of their whole.",
                              {shuffle_as_gather(), slice_of_gather(), concat_of_joined(), sum_of_turned(),
                               convolutions_as_one(), turned_as_linear()}};
  return set;
}

void move_less(ir::Graph& graph) {
  apply_rules(graph, {&moving()},
              {.allow = nullptr, .accept = [](const Rule&, const Match& match, const std::vector<ir::Node*>& created) {
                 return stand_with(*match.root(), created);
               }});
}

}  // namespace hetnn::passes
