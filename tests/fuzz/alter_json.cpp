// Alters one value of a JSON text: what a mutator of bytes seldom does without breaking it.
#include <iterator>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "fuzz.h"

namespace hetnn::fuzz {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kNumbers[] = {0,         1,         -1,        2,         3,         7,         8,
                                64,        127,       128,       255,       256,       1000,      4096,
                                65535,     65536,     INT32_MAX, 1LL << 31, 1LL << 32, 1LL << 40, 1LL << 47,
                                1LL << 48, 1LL << 50, 1LL << 60, 1LL << 62, INT64_MAX, INT32_MIN, INT64_MIN};
constexpr const char* kTexts[] = {"",
                                  "n",
                                  "x",
                                  "n*n",
                                  "n + 1",
                                  "n*4611686018427387904",
                                  "floordiv(n, 0)",
                                  "mod(n, -1)",
                                  "max(n, 3)",
                                  "cpu",
                                  "nan",
                                  "inf",
                                  "-inf",
                                  "f32",
                                  "f16",
                                  "i8",
                                  "i64",
                                  "bool",
                                  "nhwc",
                                  "plain",
                                  "arena",
                                  "input",
                                  "output",
                                  "constant",
                                  "npu",
                                  "relu",
                                  "conv2d"};

class Alterer {
 public:
  explicit Alterer(unsigned seed) : random_(seed) {}

  void alter(Json& document) {
    collect(document);
    Json& value = *all_[below(all_.size())];
    // A sheet stands as a text within the code.
    if (value.is_string() && value.get_ref<const std::string&>().starts_with('{') && below(10) != 0) {
      if (Json inner = Json::parse(value.get<std::string>(), nullptr, false); !inner.is_discarded()) {
        Alterer(random_()).alter(inner);
        value = inner.dump();
        return;
      }
    }
    Json made = below(4) == 0 ? *all_[below(all_.size())] : other(value);
    value = std::move(made);
  }

 private:
  size_t below(size_t count) { return std::uniform_int_distribution<size_t>(0, count - 1)(random_); }
  void collect(Json& value) {
    all_.push_back(&value);
    if (value.is_structured()) {
      for (Json& each : value) collect(each);
    }
  }

  Json other(const Json& value) {
    if (value.is_boolean() && below(4) != 0) return !value.get<bool>();
    if (value.is_number_integer() && below(8) != 0) {
      const int64_t old = value.get<int64_t>();
      if (below(2) == 0 && old > -(1LL << 60) && old < 1LL << 60) {
        const int64_t near[] = {old + 1, old - 1, old * 2, old / 2, -old, old + 64};
        return near[below(std::size(near))];
      }
      return kNumbers[below(std::size(kNumbers))];
    }
    if (value.is_number_float() && below(8) != 0) {
      const double near[] = {0.0, -1.0, 1e308, 1e-308, value.get<double>() * 2, -value.get<double>()};
      return near[below(std::size(near))];
    }
    if (value.is_array() && !value.empty() && below(8) != 0) {
      Json out = value;
      const size_t at = below(out.size());
      switch (below(4)) {
        case 0:
          out.erase(at);
          break;
        case 1:
          out.push_back(Json(out[at]));
          break;
        case 2:
          std::swap(out[at], out[below(out.size())]);
          break;
        default:
          out.push_back(kNumbers[below(std::size(kNumbers))]);
      }
      return out;
    }
    if (value.is_object() && !value.empty() && below(8) != 0) {
      Json out = value;
      const auto entry = std::next(out.begin(), static_cast<std::ptrdiff_t>(below(out.size())));
      if (below(2) == 0) {
        out.erase(entry);
      } else {
        out[kTexts[below(std::size(kTexts))]] = Json(entry.value());
      }
      return out;
    }
    switch (below(6)) {
      case 0:
        return kNumbers[below(std::size(kNumbers))];
      case 1:
        return kTexts[below(std::size(kTexts))];
      case 2:
        return nullptr;
      case 3:
        return Json::array();
      case 4:
        return Json::object();
      default:
        return 1.5;
    }
  }

  std::minstd_rand random_;
  std::vector<Json*> all_;
};

}  // namespace

std::string alter_json(std::string_view text, unsigned seed) {
  Json document = Json::parse(text, nullptr, false);
  if (document.is_discarded()) return std::string(text);
  Alterer(seed).alter(document);
  return document.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace hetnn::fuzz
