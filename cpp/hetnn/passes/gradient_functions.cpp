// What the functions of sizes in gradient rules give.
#include "hetnn/passes/gradient_functions.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace hetnn::passes {

size_t place_of(const Dim& axis, size_t rank) {
  const int64_t at = axis.value();
  return static_cast<size_t>(at < 0 ? at + static_cast<int64_t>(rank) : at);
}

const ir::Value* value_in(const Item& item) {
  if (const auto* node = std::get_if<ir::Node*>(&item)) return (*node)->output();
  const auto* value = std::get_if<ir::Value*>(&item);
  return value ? *value : nullptr;
}

std::optional<double> real_in(const Item& item) {
  if (const auto* real = std::get_if<double>(&item)) return *real;
  if (const auto* dim = std::get_if<Dim>(&item); dim && dim->is_static()) return static_cast<double>(dim->value());
  return std::nullopt;
}

Dims listed(const Item& item) {
  if (const auto* list = std::get_if<Dims>(&item)) return *list;
  return {std::get<Dim>(item)};
}

namespace {

Dims axes_within(const Dims& axes, size_t rank) {
  Dims out;
  for (size_t k = 0; k < (axes.empty() ? rank : axes.size()); ++k)
    out.emplace_back(static_cast<int64_t>(axes.empty() ? k : place_of(axes[k], rank)));
  return out;
}

// Functions of sizes: of what is known when a graph is made.
const std::map<std::string_view, SizeFunction>& functions() {
  static const std::map<std::string_view, SizeFunction> table = {
      {"shape", [](const Arguments& in) -> Item { return value_in(in[0])->shape(); }},
      {"rank", [](const Arguments& in) -> Item { return Dim(value_in(in[0])->rank()); }},
      {"count", [](const Arguments& in) -> Item { return elements(value_in(in[0])->shape()); }},
      {"dtype", [](const Arguments& in) -> Item { return value_in(in[0])->dtype(); }},
      {"is_empty",
       [](const Arguments& in) -> Item {
         const auto* reals = std::get_if<std::vector<double>>(&in[0]);
         return reals ? reals->empty() : std::get<Dims>(in[0]).empty();
       }},
      {"is_fixed", [](const Arguments& in) -> Item { return is_static(std::get<Dims>(in[0])); }},
      {"is_given", [](const Arguments& in) -> Item { return !is<Absent>(in[0]); }},
      {"not", [](const Arguments& in) -> Item { return !std::get<bool>(in[0]); }},
      {"root", [](const Arguments& in) -> Item { return std::sqrt(real_in(in[0]).value()); }},
      {"max", [](const Arguments& in) -> Item { return max(std::get<Dim>(in[0]), std::get<Dim>(in[1])); }},
      {"product", [](const Arguments& in) -> Item { return elements(std::get<Dims>(in[0])); }},
      // size(x, axis)
      {"size",
       [](const Arguments& in) -> Item {
         const Shape& shape = value_in(in[0])->shape();
         return shape[place_of(std::get<Dim>(in[1]), shape.size())];
       }},
      // given(list, other): the list, or the other where it is empty
      {"given", [](const Arguments& in) -> Item { return std::get<Dims>(in[0]).empty() ? in[1] : in[0]; }},
      // over(x, axes): the axes from the front; all of x's where none are named
      {"over",
       [](const Arguments& in) -> Item {
         return axes_within(std::get<Dims>(in[1]), static_cast<size_t>(value_in(in[0])->rank()));
       }},
      // others(x, axes): those of x that are not among them
      {"others",
       [](const Arguments& in) -> Item {
         const auto rank = static_cast<size_t>(value_in(in[0])->rank());
         const Dims axes = axes_within(std::get<Dims>(in[1]), rank);
         Dims out;
         for (size_t k = 0; k < rank; ++k)
           if (std::ranges::find(axes, Dim(static_cast<int64_t>(k))) == axes.end())
             out.emplace_back(static_cast<int64_t>(k));
         return out;
       }},
      // range(from, to)
      {"range",
       [](const Arguments& in) -> Item {
         Dims out;
         for (int64_t k = std::get<Dim>(in[0]).value(); k < std::get<Dim>(in[1]).value(); ++k) out.emplace_back(k);
         return out;
       }},
      // repeat(number, times)
      {"repeat",
       [](const Arguments& in) -> Item {
         return Dims(static_cast<size_t>(std::get<Dim>(in[1]).value()), std::get<Dim>(in[0]));
       }},
      {"join",
       [](const Arguments& in) -> Item {
         Dims out;
         for (const Item& each : in) std::ranges::copy(listed(each), std::back_inserter(out));
         return out;
       }},
      // with(list, places, number): the list with another number at these places
      {"with",
       [](const Arguments& in) -> Item {
         Dims out = std::get<Dims>(in[0]);
         for (const Dim& at : listed(in[1])) out[place_of(at, out.size())] = std::get<Dim>(in[2]);
         return out;
       }},
      // pick(list, places)
      {"pick",
       [](const Arguments& in) -> Item {
         const Dims& list = std::get<Dims>(in[0]);
         Dims out;
         for (const Dim& at : listed(in[1])) out.push_back(list[place_of(at, list.size())]);
         return out;
       }},
      // inverse(order): the permutation that undoes one
      {"inverse",
       [](const Arguments& in) -> Item {
         const Dims& order = std::get<Dims>(in[0]);
         Dims out(order.size());
         for (size_t k = 0; k < order.size(); ++k) out[place_of(order[k], order.size())] = Dim(static_cast<int64_t>(k));
         return out;
       }},
      // swapped(x): the order of axes that exchanges the last two
      {"swapped",
       [](const Arguments& in) -> Item {
         Dims out = axes_within({}, static_cast<size_t>(value_in(in[0])->rank()));
         std::swap(out[out.size() - 1], out[out.size() - 2]);
         return out;
       }},
      // borders(padding): of an image's padding by height and width, or by top, left, bottom and right, these four
      {"borders",
       [](const Arguments& in) -> Item {
         Dims out = std::get<Dims>(in[0]);
         if (out.size() == 1) out.push_back(out[0]);
         if (out.size() == 2) out.insert(out.end(), {out[0], out[1]});
         return out;
       }},
      // from_front(index, size): a bound that may count from the back or lie outside, as slices take it
      {"from_front",
       [](const Arguments& in) -> Item {
         const Dim &at = std::get<Dim>(in[0]), &size = std::get<Dim>(in[1]);
         if (!at.is_static()) return at;
         const Dim from = at.value() < 0 ? size + at : at;
         return max(Dim(0), min(from, size));
       }},
      // beside(x, axis, before, behind): what pads one axis
      {"beside",
       [](const Arguments& in) -> Item {
         const auto rank = static_cast<size_t>(value_in(in[0])->rank());
         Dims out(2 * rank, 0);
         const size_t axis = place_of(std::get<Dim>(in[1]), rank);
         out[axis] = std::get<Dim>(in[2]);
         out[axis + rank] = std::get<Dim>(in[3]);
         return out;
       }},
      // last_padded(padding): the last axis that has some; -1: none
      {"last_padded",
       [](const Arguments& in) -> Item {
         const Dims& padding = std::get<Dims>(in[0]);
         const size_t rank = padding.size() / 2;
         for (size_t k = rank; k-- > 0;)
           if (padding[k] != Dim(0) || padding[k + rank] != Dim(0)) return Dim(static_cast<int64_t>(k));
         return Dim(-1);
       }},
  };
  return table;
}

}  // namespace

SizeFunction size_function(std::string_view name) {
  const auto found = functions().find(name);
  return found == functions().end() ? nullptr : found->second;
}

}  // namespace hetnn::passes
