// Reading JSON: limits and keys that stand twice are checked before a tree exists; the wording of what is wrong.
#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "hetnn/base/json_fields.h"
#include "hetnn/base/nearest_names.h"

namespace hetnn::json {
namespace {

// At most so many bytes, cut between characters.
std::string shortened(std::string text, size_t most = 60) {
  if (text.size() <= most) return text;
  size_t end = most - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "...";
}

std::string listed(const std::vector<std::string_view>& names) {
  std::string out;
  for (std::string_view name : names) out += text(out.empty() ? "" : ", ", name);
  return out;
}

// "did you mean 'near'? Known are ...", or only what is known.
std::string suggestion(std::string_view wrong, const std::vector<std::string_view>& known) {
  const std::vector<std::string_view> nearest = nearest_names(wrong, known, 1);
  const bool near = !nearest.empty() && edit_distance(wrong, nearest[0]) <= std::max<size_t>(2, wrong.size() / 3);
  return near ? text("did you mean '", nearest[0], "'? Known are ", listed(known)) : text("known are ", listed(known));
}

// Builds the tree from the parser's events, which need no stack of their own.
class Builder {
 public:
  Builder(const JsonFormat& format, std::string_view where, const Taker& taker)
      : format_(format), where_(where), taker_(taker) {}

  Json take() { return std::move(document_); }

  bool null() { return add(Json()); }
  bool boolean(bool value) { return add(Json(value)); }
  bool number_integer(Json::number_integer_t value) { return add(Json(value)); }
  bool number_unsigned(Json::number_unsigned_t value) { return add(Json(value)); }
  bool number_float(Json::number_float_t value, const std::string&) { return add(Json(value)); }
  bool string(std::string& value) {
    check_text(value);
    return add(Json(std::move(value)));
  }
  bool binary(Json::binary_t&) { return false; }  // no text makes one
  bool key(std::string& name) {
    check_text(name);
    Open& open = open_.back();
    const Json::object_t& object = *open.object;
    // Small objects are looked through; large ones keep a set.
    constexpr size_t kFew = 16;
    bool twice = false;
    if (object.size() < kFew) {
      twice = std::any_of(object.begin(), object.end(), [&](const auto& entry) { return entry.first == name; });
    } else {
      if (open.keys.empty()) {
        for (const auto& entry : object) open.keys.insert(entry.first);
      }
      twice = !open.keys.insert(name).second;
    }
    if (twice) fail(text("has the key '", shortened(name), "' twice"));
    open.key = std::move(name);
    return true;
  }
  bool start_object(size_t) { return start(Json::object()); }
  bool start_array(size_t) { return start(Json::array()); }
  bool end_object() { return end(); }
  bool end_array() { return end(); }
  bool parse_error(size_t, const std::string&, const nlohmann::json::exception& error) {
    const std::string_view what = error.what();
    const size_t name = what.find("] ");  // after "[json.exception.parse_error.101] "
    throw InvalidModel(text(
        where_, ": not JSON: ", shortened(std::string(what.substr(name == std::string_view::npos ? 0 : name + 2)), 200),
        ". Expected ", format_.what, "."));
  }

 private:
  struct Open {
    Json* value;
    Json::object_t* object;  // null for a list
    std::string key;         // of the entry that comes next
    std::unordered_set<std::string> keys;
    size_t taken;  // items of a list that are gone
  };

  [[noreturn]] void fail(const std::string& message) const {
    std::string path;
    for (size_t k = 0; k + 1 < open_.size(); ++k) {
      const Json& value = *open_[k].value;
      if (open_[k].object) {
        path += text(path.empty() ? "" : ".", shortened(open_[k].object->back().first));
      } else {
        path += text("[", value.size() + open_[k].taken - 1, "]");
      }
    }
    throw InvalidModel(text(where_, ": ", path.empty() ? format_.what : path, " ", message, "."));
  }
  void check_text(const std::string& value) const {
    if (static_cast<int64_t>(value.size()) <= format_.max_text_bytes) return;
    fail(text("holds a text of ", value.size(), " bytes; at most ", format_.max_text_bytes, " are expected"));
  }
  Json* place(Json&& value) {
    if (++values_ > format_.max_values) fail(text("holds more than ", format_.max_values, " values"));
    if (open_.empty()) return &(document_ = std::move(value));
    Open& open = open_.back();
    if (!open.object) {
      open.value->push_back(std::move(value));
      return &open.value->back();
    }
    return &entries(*open.object).emplace_back(std::move(open.key), std::move(value)).second;
  }
  // The vector below an object, since keys are known to differ.
  static std::vector<Json::object_t::value_type, Json::object_t::allocator_type>& entries(Json::object_t& object) {
    return object;
  }
  bool add(Json&& value) {
    place(std::move(value));
    offer();
    return true;
  }
  bool start(Json&& value) {
    if (static_cast<int64_t>(open_.size()) >= format_.max_depth)
      fail(text("is nested too deep; at most ", format_.max_depth, " levels are expected"));
    Json* placed = place(std::move(value));
    auto* object = placed->get_ptr<Json::object_t*>();
    if (object) entries(*object).reserve(8);  // growing would copy all entries, whose keys are constant
    open_.push_back({placed, object, {}, {}, 0});
    return true;
  }
  bool end() {
    open_.pop_back();
    offer();
    return true;
  }
  // The destructor moves all that is inside to a list of its own first, since it knows no limit on the depth.
  static void empty(Json& value) {
    if (auto* object = value.get_ptr<Json::object_t*>()) {
      for (auto& entry : *object) empty(entry.second);
      entries(*object).clear();
    } else if (auto* list = value.get_ptr<Json::array_t*>()) {
      for (Json& item : *list) empty(item);
      list->clear();
    }
  }
  // Shows the value just finished to the taker.
  void offer() {
    if (!taker_ || open_.empty() || open_.size() > 2 || !open_[0].object) return;
    auto& [key, value] = open_[0].object->back();
    if (open_.size() == 1) {
      if (taker_(key, false, value)) value = nullptr;
    } else if (!open_[1].object && taker_(key, true, value.back())) {
      empty(value.back());
      value.get_ref<Json::array_t&>().pop_back();
      ++open_[1].taken;
    }
  }

  const JsonFormat& format_;
  std::string_view where_;
  const Taker& taker_;
  Json document_;
  std::vector<Open> open_;
  int64_t values_ = 0;
};

std::string described(const Range& range) {
  const bool least = std::isfinite(range.least), most = std::isfinite(range.most);
  if (range.above) return text("a finite number above ", range.least);
  if (least && most) return text("a number in [", range.least, ", ", range.most, "]");
  if (least) return text("a finite number of at least ", range.least);
  return "a finite number";
}

}  // namespace

Json parse(std::string_view text, const JsonFormat& format, std::string_view where, const Taker& taker) {
  Builder builder(format, where, taker);
  Json::sax_parse(text.begin(), text.end(), &builder);
  return builder.take();
}

std::string At::path() const {
  if (!parent_) return std::string(kind_);
  if (!kind_.empty()) return text(kind_, " '", shortened(std::string(name_)), "'");
  const bool named = !parent_->kind_.empty() && parent_->parent_;
  const std::string before = parent_->parent_ ? parent_->path() + (named ? ": " : "") : "";
  if (index_ != kNoIndex) return text(before, "[", index_, "]");
  return text(before, before.empty() || named ? "" : ".", shortened(std::string(name_)));
}

void At::fail(const std::string& message) const {
  const At* document = this;
  while (document->parent_) document = document->parent_;
  throw InvalidModel(text(document->name_, ": ", path(), " ", message, "."));
}

void At::wrong(const std::string& wanted) const {
  fail(text("must be ", wanted, "; found ", shortened(json.dump(-1, ' ', false, Json::error_handler_t::replace))));
}

void At::unknown(std::string_view kind, std::string_view name, const std::vector<std::string_view>& known) const {
  fail(text("has the unknown ", kind, " '", shortened(std::string(name)), "'; ", suggestion(name, known)));
}

void At::demand_many(bool holds, std::string_view kind, size_t least, std::string_view of) const {
  if (holds && json.size() >= least) return;
  wrong(text(kind, of.empty() ? "" : " of ", of, least > 0 ? " that is not empty" : ""));
}

void At::find(std::span<const std::string_view> names, std::span<const Json*> found) const {
  if (!json.is_object()) wrong("an object");
  std::fill(found.begin(), found.end(), nullptr);
  size_t row = 0;  // keys mostly stand in the order of the table
  for (const auto& [key, value] : json.get_ref<const Json::object_t&>()) {
    size_t tried = 0;
    while (tried < names.size() && names[row] != key) ++tried, row = row + 1 < names.size() ? row + 1 : 0;
    if (tried == names.size()) unknown("key", key, {names.begin(), names.end()});
    found[row] = &value;
  }
}

bool read_truth(const At& at) {
  if (!at.json.is_boolean()) at.wrong("true or false");
  return at.json.get<bool>();
}

double read_number(const At& at, const Range& range) {
  if (!at.json.is_number()) at.wrong(described(range));
  const auto value = at.json.get<double>();
  const bool within = value >= range.least && value <= range.most && !(range.above && value == range.least);
  if (!std::isfinite(value) || !within) at.wrong(described(range));
  return value;
}

int64_t read_integer(const At& at, int64_t least, int64_t most) {
  const bool fits = at.json.is_number_integer() &&
                    !(at.json.is_number_unsigned() && at.json.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX));
  const int64_t value = fits ? at.json.get<int64_t>() : 0;
  if (fits && value >= least && value <= most) return value;
  if (most < INT64_MAX) at.wrong(text("an integer in [", least, ", ", most, "]"));
  at.wrong(least > INT64_MIN ? text("an integer of at least ", least) : "an integer");
}

const std::string& read_text(const At& at, size_t least_bytes) {
  const auto* found = at.json.get_ptr<const std::string*>();
  if (!found || found->size() < least_bytes) at.wrong(least_bytes > 0 ? "a text that is not empty" : "a text");
  return *found;
}

size_t read_choice(const At& at, const std::vector<std::string_view>& names) {
  const auto* found = at.json.get_ptr<const std::string*>();
  for (size_t k = 0; found && k < names.size(); ++k) {
    if (*found == names[k]) return k;
  }
  at.wrong(text("one of ", listed(names)));
}

Convert<bool> truth() {
  return {[](const At& at, bool& into) { into = read_truth(at); },
          [](const bool& from) { return Json(from); },
          {{"type", "boolean"}}};
}

Convert<double> number(Range range) {
  Json schema = {{"type", "number"}};
  if (std::isfinite(range.least)) schema[range.above ? "exclusiveMinimum" : "minimum"] = range.least;
  if (std::isfinite(range.most)) schema["maximum"] = range.most;
  return {[=](const At& at, double& into) { into = read_number(at, range); },
          [](const double& from) { return Json(from); }, std::move(schema)};
}

Json integer_schema(int64_t least, int64_t most) {
  Json schema = {{"type", "integer"}};
  if (least > INT64_MIN) schema["minimum"] = least;
  if (most < INT64_MAX) schema["maximum"] = most;
  return schema;
}

Convert<std::string> any_text() {
  return {[](const At& at, std::string& into) { into = read_text(at, 0); },
          [](const std::string& from) { return Json(from); },
          {{"type", "string"}}};
}

Convert<std::string> word() {
  return {[](const At& at, std::string& into) { into = read_text(at, 1); },
          [](const std::string& from) { return Json(from); },
          {{"type", "string"}, {"minLength", 1}}};
}

Convert<std::string> path() {
  Convert<std::string> out = word();
  out.schema["format"] = "path";
  return out;
}

Convert<std::string> any_value() {
  return {[](const At& at, std::string& into) { into = at.json.dump(); },
          [](const std::string& from) { return from.empty() ? Json() : Json::parse(from); }, Json::object()};
}

Convert<DType> dtype() {
  std::vector<std::string_view> names;
  for (DType each : kAllDTypes) names.push_back(dtype_name(each));
  return {[=](const At& at, DType& into) { into = kAllDTypes[read_choice(at, names)]; },
          [](const DType& from) { return Json(dtype_name(from)); },
          {{"enum", names}}};
}

Convert<Dim> dim() {
  return {[](const At& at, Dim& into) {
            if (!at.json.is_string()) {
              into = read_integer(at, INT64_MIN, INT64_MAX);
              return;
            }
            try {
              into = Dim::parse(at.json.get_ref<const std::string&>());
            } catch (const InvalidModel& error) {
              at.wrong(text("a size (", error.what(), ")"));
            }
          },
          [](const Dim& from) { return from.is_static() ? Json(from.value()) : Json(from.to_string()); },
          {{"type", {"integer", "string"}}}};
}

Convert<Shape> shape() { return list_of(dim()); }

Convert<Layout> layout() { return one_of<Layout>({{"plain", Layout::plain}, {"nhwc", Layout::nhwc}}); }

Convert<double> real() {
  constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();
  return {[=](const At& at, double& into) {
            if (at.json.is_string()) {
              into = std::array{kInf, -kInf, kNan}[read_choice(at, {"inf", "-inf", "nan"})];
            } else {
              into = read_number(at, {});
            }
          },
          [](const double& from) {
            return std::isfinite(from) ? Json(from) : Json(std::isnan(from) ? "nan" : from > 0 ? "inf" : "-inf");
          },
          {{"type", {"number", "string"}}}};
}

Convert<int32_t> index() { return integer<int32_t>(-1, INT32_MAX); }
Convert<std::vector<int32_t>> indices() { return list_of(index()); }

namespace {

bool is_of(const Json& value, std::string_view type) {
  return type == "object"    ? value.is_object()
         : type == "array"   ? value.is_array()
         : type == "string"  ? value.is_string()
         : type == "integer" ? value.is_number_integer()
         : type == "number"  ? value.is_number()
         : type == "boolean" ? value.is_boolean()
                             : value.is_null();
}

}  // namespace

namespace {
void check_against(const At& at, const Json& schema, const Json& whole) {
  if (schema.value("$ref", "") == "#") return check_against(at, whole, whole);
  if (const auto type = schema.find("type"); type != schema.end()) {
    const Json types = type->is_array() ? *type : Json::array({*type});
    if (std::none_of(types.begin(), types.end(),
                     [&](const Json& each) { return is_of(at.json, each.get<std::string>()); }))
      at.wrong(text("of type ", type->dump()));
  }
  if (const auto choices = schema.find("enum"); choices != schema.end()) {
    if (std::find(choices->begin(), choices->end(), at.json) == choices->end())
      at.wrong(text("one of ", choices->dump()));
  }
  if (at.json.is_array() && schema.contains("items"))
    at.each_item([&](const At& item) { check_against(item, schema["items"], whole); });
  if (!at.json.is_object()) return;
  for (const Json& key : schema.value("required", Json::array())) {
    if (!at.json.contains(key)) at.fail(text("lacks ", key.dump()));
  }
  const Json none = Json::object();
  const Json& properties = schema.contains("properties") ? schema["properties"] : none;
  const Json& others = schema.contains("additionalProperties") ? schema["additionalProperties"] : none;
  at.each_entry([&](const std::string& key, const At& entry) {
    if (const auto own = properties.find(key); own != properties.end()) {
      check_against(entry, *own, whole);
    } else if (others.is_object()) {
      check_against(entry, others, whole);
    } else if (others == false) {
      at.fail(text("has the unknown key '", shortened(key), "'"));
    }
  });
}

}  // namespace

void check_schema(const At& at, const Json& schema) { check_against(at, schema, schema); }

std::string to_text(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

std::string schema_text(std::string_view title, Json schema) {
  Json out = {{"$schema", "https://json-schema.org/draft/2020-12/schema"}, {"title", title}};
  out.update(schema);
  return out.dump(2) + "\n";
}

namespace {
constexpr size_t kMostRows = 64;
}  // namespace

Rows::Rows(std::vector<Row> rows) : rows_(std::move(rows)) {
  for (const Row& row : rows_) names_.push_back(row.name);
  HETNN_ASSERT(rows_.size() <= kMostRows);
}

void Rows::read(const At& at, void* into) const {
  std::array<const Json*, kMostRows> found;
  at.find(names_, std::span(found).first(names_.size()));
  for (size_t k = 0; k < rows_.size(); ++k) {
    const Row& row = rows_[k];
    if (found[k] && !(row.presence == Presence::nullable && found[k]->is_null())) {
      row.read(at.child(row.name, *found[k]), into);
    } else if (is_demanded(row.presence)) {
      at.fail(text("lacks '", row.name, "', ", row.doc));
    }
  }
}

Json Rows::write(const void* from) const {
  Json out = Json::object();
  for (const Row& row : rows_) {
    if (Json value = row.write(from); !value.is_null() || row.presence == Presence::or_null)
      out[std::string(row.name)] = std::move(value);
  }
  return out;
}

Json Rows::schema() const {
  Json properties = Json::object(), required = Json::array();
  for (const Row& row : rows_) {
    Json& property = properties[std::string(row.name)] = row.schema;
    property["description"] = row.doc;
    if (is_demanded(row.presence)) required.push_back(row.name);
  }
  Json out = {{"type", "object"}, {"properties", std::move(properties)}, {"additionalProperties", false}};
  if (!required.empty()) out["required"] = std::move(required);
  return out;
}

}  // namespace hetnn::json
