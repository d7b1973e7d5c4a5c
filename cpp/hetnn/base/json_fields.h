// JSON by tables of fields: a row names a member, its kind and range, and says what it means. Reading, writing, the
// schema and the wording of every message come from the row. For files named *_json.cpp only.
#pragma once

#include <array>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hetnn/base/dim.h"
#include "hetnn/base/dtype.h"
#include "hetnn/base/error.h"
#include "hetnn/base/json_limits.h"
#include "hetnn/base/layout.h"

namespace hetnn::json {

using Json = nlohmann::ordered_json;

/// Shown each finished value of the document's object (`item` false), and each item of a list directly below it; what
/// it takes (true) is dropped from the document, so that a long list need not be kept.
using Taker = std::function<bool(std::string_view key, bool item, const Json& value)>;

/// The document in `text`. InvalidModel, naming the place, for what is no JSON, a key that stands twice in one object,
/// and what exceeds the format's limits; `where` is what messages call the text.
Json parse(std::string_view text, const JsonFormat& format, std::string_view where, const Taker& taker = {});

/// A value in a document, which knows the way to it. Lives on the stack, no longer than the value and its parent.
class At {
 public:
  At(const Json& document, const JsonFormat& format, std::string_view where)
      : json(document), name_(where), kind_(format.what) {}

  const Json& json;

  At item(size_t index) const& { return item(index, json[index]); }
  At item(size_t index, const Json& value) const& { return {value, this, {}, {}, index}; }
  At child(std::string_view key, const Json& value) const& { return {value, this, {}, key, kNoIndex}; }
  /// The same value under a name of its own, "node 'conv1'", which stands in place of the path so far.
  At called(std::string_view kind, std::string_view name) const& { return {json, this, kind, name, kNoIndex}; }
  At item(size_t) const&& = delete;
  At item(size_t, const Json&) const&& = delete;
  At child(std::string_view, const Json&) const&& = delete;
  At called(std::string_view, std::string_view) const&& = delete;

  /// Throws InvalidModel: "<where>: <path> <message>.".
  [[noreturn]] void fail(const std::string& message) const;
  /// "must be <wanted>; found <the value>".
  [[noreturn]] void wrong(const std::string& wanted) const;
  /// "has the unknown <kind> 'name'; did you mean ...? Known are ...".
  [[noreturn]] void unknown(std::string_view kind, std::string_view name,
                            const std::vector<std::string_view>& known) const;

  /// Calls f(item) for the items of a list of at least `least`; `of` says what they are.
  template <typename F>
  void each_item(F f, size_t least = 0, std::string_view of = {}) const {
    demand_many(json.is_array(), "a list", least, of);
    for (size_t k = 0; k < json.size(); ++k) f(item(k));
  }
  /// Calls f(key, value) for the entries of an object of at least `least`.
  template <typename F>
  void each_entry(F f, size_t least = 0, std::string_view of = {}) const {
    demand_many(json.is_object(), "an object", least, of);
    for (const auto& [key, value] : json.get_ref<const Json::object_t&>()) f(key, child(key, value));
  }
  /// The value of each name, null where it is absent. Fails where the value is no object or has another key.
  void find(std::span<const std::string_view> names, std::span<const Json*> found) const;

 private:
  At(const Json& value, const At* parent, std::string_view kind, std::string_view name, size_t index)
      : json(value), parent_(parent), name_(name), kind_(kind), index_(index) {}
  void demand_many(bool holds, std::string_view kind, size_t least, std::string_view of) const;
  std::string path() const;

  static constexpr size_t kNoIndex = static_cast<size_t>(-1);
  const At* parent_ = nullptr;  // null for the document
  std::string_view name_;       // where, for the document; the key, for a child
  std::string_view kind_;       // of the document or of what has a name of its own
  size_t index_ = kNoIndex;     // of an item
};

/// How values of one type stand in JSON. A null that `write` returns is left out of its object.
template <typename V>
struct Convert {
  std::function<void(const At&, V&)> read;
  std::function<Json(const V&)> write;
  Json schema;

  V value(const At& at) const {
    V out{};
    read(at, out);
    return out;
  }
};

/// A range of numbers, both ends included unless `above`.
struct Range {
  double least = -std::numeric_limits<double>::infinity();
  double most = std::numeric_limits<double>::infinity();
  bool above = false;  // the least itself is out
};

bool read_truth(const At& at);
double read_number(const At& at, const Range& range);
int64_t read_integer(const At& at, int64_t least, int64_t most);
/// Any text; `least_bytes` 1: one that is not empty.
const std::string& read_text(const At& at, size_t least_bytes);

Convert<bool> truth();
Convert<double> number(Range range = {});
Convert<std::string> any_text();
/// A text that is not empty.
Convert<std::string> word();
Convert<DType> dtype();
/// An integer, or a text with an expression of symbols.
Convert<Dim> dim();
Convert<Shape> shape();
Convert<Layout> layout();
/// Any number; what JSON has none for stands as the text nan, inf or -inf.
Convert<double> real();
/// Any value, kept as its text; "null" is left out.
Convert<std::string> any_value();
/// The path of a file or folder.
Convert<std::string> path();
Json integer_schema(int64_t least, int64_t most);

template <typename V = int64_t>
Convert<V> integer(int64_t least = std::numeric_limits<V>::min(), int64_t most = std::numeric_limits<V>::max()) {
  return {[=](const At& at, V& into) { into = static_cast<V>(read_integer(at, least, most)); },
          [](const V& from) { return Json(from); }, integer_schema(least, most)};
}

/// Positions of something, or -1.
Convert<int32_t> index();
Convert<std::vector<int32_t>> indices();

/// One of some names. `read_choice` returns the index among them.
size_t read_choice(const At& at, const std::vector<std::string_view>& names);
template <typename E>
Convert<E> one_of(std::vector<std::pair<std::string_view, E>> choices) {
  std::vector<std::string_view> names;
  names.reserve(choices.size());
  for (const auto& [name, value] : choices) names.push_back(name);
  return {[=](const At& at, E& into) { into = choices[read_choice(at, names)].second; },
          [=](const E& from) {
            for (const auto& [name, value] : choices) {
              if (value == from) return Json(name);
            }
            return Json();
          },
          {{"enum", names}}};
}

template <typename V>
Convert<std::vector<V>> list_of(Convert<V> items, size_t least = 0, std::string_view of = {}) {
  Json schema = {{"type", "array"}, {"items", items.schema}};
  if (least > 0) schema["minItems"] = least;
  return {[=](const At& at, std::vector<V>& into) {
            into.clear();
            at.each_item([&](const At& item) { items.read(item, into.emplace_back()); }, least, of);
          },
          [=](const std::vector<V>& from) {
            Json out = Json::array();
            for (const V& item : from) out.push_back(items.write(item));
            return out;
          },
          std::move(schema)};
}

/// A list of one stands as its item alone.
template <typename V>
Convert<std::vector<V>> one_or_more(Convert<V> items) {
  Convert<std::vector<V>> list = list_of(items, 1, "items");
  Json schema = {{"anyOf", {items.schema, list.schema}}};
  return {[=](const At& at, std::vector<V>& into) {
            if (at.json.is_array()) return list.read(at, into);
            into.clear();
            items.read(at, into.emplace_back());
          },
          [=](const std::vector<V>& from) { return from.size() == 1 ? items.write(from[0]) : list.write(from); },
          std::move(schema)};
}

/// Null where there is none.
template <typename V>
Convert<std::optional<V>> maybe(Convert<V> some) {
  Json schema = {{"anyOf", {some.schema, {{"type", "null"}}}}};
  return {[read = some.read](const At& at, std::optional<V>& into) {
            into.reset();
            if (!at.json.is_null()) read(at, into.emplace());
          },
          [write = some.write](const std::optional<V>& from) { return from ? write(*from) : Json(); },
          std::move(schema)};
}

/// An object with keys of its own: a map from texts.
template <typename Map>
Convert<Map> map_of(Convert<typename Map::mapped_type> values, size_t least = 0, std::string_view of = {}) {
  Json schema = {{"type", "object"}, {"additionalProperties", values.schema}};
  if (least > 0) schema["minProperties"] = least;
  return {[=](const At& at, Map& into) {
            at.each_entry([&](const std::string& key, const At& entry) { values.read(entry, into[key]); }, least, of);
          },
          [=](const Map& from) {
            Json out = Json::object();
            for (const auto& [key, value] : from) out[key] = values.write(value);
            return out;
          },
          std::move(schema)};
}

/// Left out where it is empty.
template <typename V>
Convert<V> unless_empty(Convert<V> convert) {
  convert.write = [write = convert.write](const V& from) { return from.empty() ? Json() : write(from); };
  return convert;
}

/// Whether a key must be there; where it need not, the member keeps its default. `nullable`: null is as if absent;
/// `or_null`: it must be there, and null is written where there is nothing.
enum class Presence : uint8_t { required, optional, nullable, or_null };
constexpr bool is_demanded(Presence presence) {
  return presence == Presence::required || presence == Presence::or_null;
}

/// One row of a table for objects of any type: where in an object its value lies, and how it is converted.
class Row {
 public:
  template <typename V>
  Row(std::string_view key, std::string_view sentence, Presence present, Convert<V> convert, ptrdiff_t offset)
      : name(key),
        doc(sentence),
        presence(present),
        schema(std::move(convert.schema)),
        convert_(std::make_shared<const Convert<V>>(std::move(convert))),
        offset_(offset),
        read_([](const void* as, const At& at, void* into) {
          static_cast<const Convert<V>*>(as)->read(at, *static_cast<V*>(into));
        }),
        write_([](const void* as, const void* from) {
          return static_cast<const Convert<V>*>(as)->write(*static_cast<const V*>(from));
        }) {}

  std::string_view name;
  std::string_view doc;
  Presence presence;
  Json schema;

  void read(const At& at, void* owner) const { read_(convert_.get(), at, static_cast<std::byte*>(owner) + offset_); }
  Json write(const void* owner) const { return write_(convert_.get(), static_cast<const std::byte*>(owner) + offset_); }

 private:
  std::shared_ptr<const void> convert_;
  ptrdiff_t offset_;
  void (*read_)(const void* as, const At& at, void* into);
  Json (*write_)(const void* as, const void* from);
};

/// The table of an object. Rows are read in their order, whatever the order of the keys.
class Rows {
 public:
  explicit Rows(std::vector<Row> rows);

  void read(const At& at, void* into) const;
  Json write(const void* from) const;
  Json schema() const;
  const std::vector<Row>& list() const { return rows_; }

 private:
  std::vector<Row> rows_;
  std::vector<std::string_view> names_;
};

/// One row: a key of the objects that hold a T.
template <typename T>
struct Field {
  Row row;

  template <typename V, typename Owner>
  Field(std::string_view key, V Owner::*member, Convert<V> as, std::string_view sentence,
        Presence present = Presence::required)
      : row(key, sentence, present, as, offset_of(member)) {
    if (is_demanded(present)) return;
    if (Json preset = as.write(defaults().*member); !preset.is_null()) row.schema["default"] = std::move(preset);
  }
  /// A key that stands for no member of its own.
  Field(std::string_view key, Convert<T> whole, std::string_view sentence, Presence present = Presence::required)
      : row(key, sentence, present, std::move(whole), 0) {}
  Field(const Row& of_another_table) : row(of_another_table) {}  // NOLINT(google-explicit-constructor): rows are listed

 private:
  // On the heap, where GCC 12 does not warn falsely about members of `T{}`.
  static const T& defaults() {
    static const auto made = std::make_unique<const T>();
    return *made;
  }
  template <typename V, typename Owner>
  static ptrdiff_t offset_of(V Owner::*member) {
    return reinterpret_cast<const std::byte*>(&(defaults().*member)) - reinterpret_cast<const std::byte*>(&defaults());
  }
};

/// The table of Ts.
template <typename T>
class Fields {
 public:
  Fields(std::initializer_list<Field<T>> rows)
      : rows_([&] {
          std::vector<Row> out;
          for (const Field<T>& field : rows) out.push_back(field.row);
          return out;
        }()) {}

  void read(const At& at, T& into) const { rows_.read(at, &into); }
  T value(const At& at) const {
    T out{};
    read(at, out);
    return out;
  }
  Json write(const T& from) const { return rows_.write(&from); }
  Json schema() const { return rows_.schema(); }
  const std::vector<Row>& rows() const { return rows_.list(); }

 private:
  Rows rows_;
};

/// An object by its table.
template <typename T>
Convert<T> object(const Fields<T>& (*fields)()) {
  return {[=](const At& at, T& into) { fields().read(at, into); }, [=](const T& from) { return fields().write(from); },
          fields().schema()};
}

/// A key whose value is always the same, the version of a format.
template <typename T>
Convert<T> constant(Json value) {
  return {[=](const At& at, T&) {
            if (at.json != value) at.wrong(value.dump());
          },
          [=](const T&) { return value; },
          {{"const", value}}};
}

/// Fails unless the value is as the schema says, of which `type`, `required`, `properties`, `additionalProperties`,
/// `items`, `enum` and a `$ref` to the whole are understood.
void check_schema(const At& at, const Json& schema);

/// As bytes of UTF-8, in one line; what is none in texts is replaced.
std::string to_text(const Json& json);

/// The text of a table's JSON schema (draft 2020-12).
std::string schema_text(std::string_view title, Json schema);

}  // namespace hetnn::json
