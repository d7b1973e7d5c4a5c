// Reads JSON strictly: every key known, every value of its type, and messages that name the path.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "hetnn/base/dim.h"
#include "hetnn/base/dtype.h"
#include "hetnn/base/error.h"
#include "hetnn/base/layout.h"

namespace hetnn {

/// InvalidModel when the text is no JSON.
inline nlohmann::ordered_json parse_json(std::string_view json, const std::string& called) {
  try {
    return nlohmann::ordered_json::parse(json);
  } catch (const nlohmann::ordered_json::exception& error) {
    throw InvalidModel(text(called, " is no JSON: ", error.what(), ". The file is damaged."));
  }
}

/// Reads values by key, and keeps the path to them for messages. For files of hetnn itself.
class JsonReader {
 public:
  JsonReader(const nlohmann::ordered_json& json, std::string path) : json_(json), path_(std::move(path)) {}

  JsonReader operator[](const char* key) const {
    if (!json_.is_object()) wrong("an object");
    auto at = json_.find(key);
    if (at == json_.end())
      throw InvalidModel(text(path_, ": key '", key, "' is missing. The file is damaged or of another version."));
    return {*at, text(path_, ".", key)};
  }
  // Refuses keys besides these, which all must be there.
  const JsonReader& only(std::initializer_list<std::string_view> keys) const {
    if (!json_.is_object()) wrong("an object");
    for (const auto& [key, value] : json_.items()) {
      if (std::find(keys.begin(), keys.end(), key) == keys.end())
        throw InvalidModel(text(path_, ": key '", key, "' is unknown. The file is damaged or of another version."));
    }
    return *this;
  }
  bool has(const char* key) const { return json_.is_object() && json_.contains(key); }
  template <typename F>
  auto map(F f) const {
    if (!json_.is_array()) wrong("a list");
    std::vector<decltype(f(*this))> out;
    for (size_t k = 0; k < json_.size(); ++k) out.push_back(f(JsonReader(json_[k], text(path_, "[", k, "]"))));
    return out;
  }
  template <typename F>
  void each(F f) const {
    if (!json_.is_object()) wrong("an object");
    for (const auto& [key, value] : json_.items()) f(key, JsonReader(value, text(path_, ".", key)));
  }
  int64_t integer() const {
    if (!json_.is_number_integer()) wrong("an integer");
    return json_.get<int64_t>();
  }
  int32_t id() const {
    const int64_t value = integer();
    if (value < -1 || value > INT32_MAX) wrong("an index");
    return static_cast<int32_t>(value);
  }
  bool boolean() const {
    if (!json_.is_boolean()) wrong("true or false");
    return json_.get<bool>();
  }
  double real() const {
    if (json_.is_string()) {
      const auto name = json_.get<std::string>();
      if (name == "nan") return std::numeric_limits<double>::quiet_NaN();
      if (name == "inf") return std::numeric_limits<double>::infinity();
      if (name == "-inf") return -std::numeric_limits<double>::infinity();
    }
    if (!json_.is_number()) wrong("a number");
    return json_.get<double>();
  }
  std::string string() const {
    if (!json_.is_string()) wrong("a text");
    return json_.get<std::string>();
  }
  Dim dim() const {
    if (json_.is_string()) return Dim::parse(json_.get_ref<const std::string&>());
    return integer();
  }
  std::vector<int32_t> ids() const {
    return map([](const JsonReader& r) { return r.id(); });
  }
  Shape shape() const {
    return map([](const JsonReader& r) { return r.dim(); });
  }
  DType dtype() const {
    auto found = dtype_from_name(string());
    if (!found) wrong("an element type");
    return *found;
  }
  Layout layout() const {
    auto found = layout_from_name(string());
    if (!found) wrong("plain or nhwc");
    return *found;
  }
  bool is_list() const { return json_.is_array(); }
  bool is_text() const { return json_.is_string(); }
  bool is_null() const { return json_.is_null(); }
  [[noreturn]] void wrong(std::string_view wanted) const {
    throw InvalidModel(text(path_, ": expected ", wanted, "; got ",
                            json_.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).substr(0, 60),
                            ". The file is damaged or of another version."));
  }

 private:
  const nlohmann::ordered_json& json_;
  std::string path_;
};

}  // namespace hetnn
