// A plan as an SVG document: the graph coloured by device, and the schedule below it.
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <sstream>

#include "hetnn/plan/partition/explain/explain.h"
#include "hetnn/plan/partition/strategies/instance.h"

namespace hetnn::plan {
namespace {

constexpr double kNodeWidth = 96, kNodeHeight = 26, kColumn = 132, kRow = 40, kMargin = 20;
constexpr double kScheduleWidth = 960, kLane = 44;
/// Larger graphs are drawn as their schedule only.
constexpr int32_t kMostNodes = 600;
constexpr size_t kMostLines = 3000;

size_t index(int32_t v) { return static_cast<size_t>(v); }

/// Eight colours that differ in hue and lightness; devices beyond take them again.
std::string colour_of(int32_t device) {
  constexpr const char* kColours[] = {"#8fa3b8", "#e0803a", "#4f9d69", "#7b6bc4",
                                      "#c2506b", "#3f9fb5", "#b59a2f", "#8a5a3c"};
  return kColours[index(device) % 8];
}

std::string escaped(const std::string& raw) {
  std::string result;
  for (const char c : raw) {
    if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '"') {
      result += "&quot;";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      result += ' ';  // XML 1.0 allows no control characters
    } else {
      result += c;
    }
  }
  return result;
}

std::string shortened(const std::string& id) {
  constexpr size_t kMost = 14;
  return id.size() <= kMost ? id : id.substr(0, kMost - 2) + "..";
}

class Picture {
 public:
  Picture(const Problem& problem, const PartitionResult& result) : p_(problem), r_(result) {
    out_ << std::fixed << std::setprecision(1);
  }

  std::string draw() {
    y_ = kMargin;
    legend();
    if (p_.size() <= kMostNodes) graph();
    schedule();
    std::ostringstream document;
    document << std::fixed << std::setprecision(0) << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << width_
             << "\" height=\"" << y_ + kMargin << "\" font-family=\"sans-serif\" font-size=\"11\">\n"
             << "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
             << out_.str() << "</svg>\n";
    return document.str();
  }

 private:
  void text(double x, double y, const std::string& words, const char* anchor = "start") {
    out_ << "<text x=\"" << x << "\" y=\"" << y << "\" text-anchor=\"" << anchor << "\">" << escaped(words)
         << "</text>\n";
  }
  void box(double x, double y, double w, double h, int32_t device, const std::string& title) {
    out_ << "<rect x=\"" << x << "\" y=\"" << y << "\" width=\"" << w << "\" height=\"" << h << "\" rx=\"4\" fill=\""
         << colour_of(device) << "\" fill-opacity=\"0.85\" stroke=\"#333\" "
         << "stroke-width=\"0.5\"><title>" << escaped(title) << "</title></rect>\n";
    width_ = std::max(width_, x + w + kMargin);
  }
  void line(double x1, double y1, double x2, double y2, bool crossing) {
    if (lines_++ >= kMostLines) return;
    out_ << "<line x1=\"" << x1 << "\" y1=\"" << y1 << "\" x2=\"" << x2 << "\" y2=\"" << y2 << "\" stroke=\""
         << (crossing ? "#c00" : "#999") << "\" stroke-width=\"" << (crossing ? 1.4 : 0.8) << "\"/>\n";
  }
  const std::string& device(int32_t d) const { return p_.devices[index(d)].name; }
  std::string op_of(int32_t v) const {
    return p_.ops.empty() || p_.ops[index(v)].empty() ? "" : " (" + p_.ops[index(v)] + ")";
  }
  std::string figure(double value, const char* unit) const {
    std::ostringstream words;
    words << std::fixed << std::setprecision(1) << value << ' ' << unit;
    return words.str();
  }

  void legend() {
    double x = kMargin;
    for (int32_t d = 0; d < p_.device_count(); ++d) {
      box(x, y_, 14, 14, d, device(d));
      text(x + 20, y_ + 11, device(d));
      x += 36 + 7.0 * static_cast<double>(device(d).size());
    }
    text(x + 10, y_ + 11,
         std::to_string(r_.subgraphs.size()) + " subgraphs, cost " + figure(r_.cost_us, "us") + ", makespan " +
             figure(r_.makespan_us, "us"));
    y_ += 34;
  }

  /// Columns by depth; within a column in the order of the problem.
  void graph() {
    std::vector<int32_t> cycle;
    const std::vector<int32_t> order = sort_graph(p_, cycle).node_of;
    std::vector<int32_t> depth(index(p_.size()), 0), row(index(p_.size()), 0), filled;
    for (const int32_t v : order) {
      for (int64_t i = p_.input_begin[index(v)]; i < p_.input_begin[index(v) + 1]; ++i)
        depth[index(v)] = std::max(depth[index(v)], depth[index(p_.inputs[static_cast<size_t>(i)])] + 1);
    }
    for (int32_t v = 0; v < p_.size(); ++v) {
      if (index(depth[index(v)]) >= filled.size()) filled.resize(index(depth[index(v)]) + 1, 0);
      row[index(v)] = filled[index(depth[index(v)])]++;
    }
    const auto x = [&](int32_t v) { return kMargin + depth[index(v)] * kColumn; };
    const auto y = [&](int32_t v) { return y_ + row[index(v)] * kRow; };
    for (int32_t v = 0; v < p_.size(); ++v) {
      for (int64_t i = p_.input_begin[index(v)]; i < p_.input_begin[index(v) + 1]; ++i) {
        const int32_t u = p_.inputs[static_cast<size_t>(i)];
        line(x(u) + kNodeWidth, y(u) + kNodeHeight / 2, x(v), y(v) + kNodeHeight / 2,
             r_.device_of[index(u)] != r_.device_of[index(v)]);
      }
    }
    double bottom = y_;
    for (int32_t v = 0; v < p_.size(); ++v) {
      const int32_t d = r_.device_of[index(v)];
      box(x(v), y(v), kNodeWidth, kNodeHeight, d,
          p_.ids[index(v)] + op_of(v) + " on " + device(d) + ", " + figure(p_.time_of(v, d), "us") + ", subgraph " +
              std::to_string(r_.subgraph_of[index(v)]));
      text(x(v) + kNodeWidth / 2, y(v) + 17, shortened(p_.ids[index(v)]), "middle");
      bottom = std::max(bottom, y(v) + kRow);
    }
    y_ = bottom + kMargin;
  }

  /// One lane a device; a box for every subgraph from its start to its end.
  void schedule() {
    const double scale = r_.makespan_us > 0 ? kScheduleWidth / r_.makespan_us : 0;
    const double left = kMargin + 60;
    const auto lane = [&](int32_t d) { return y_ + d * kLane; };
    width_ = std::max(width_, left + kScheduleWidth + kMargin);
    for (int32_t d = 0; d < p_.device_count(); ++d) text(kMargin, lane(d) + 19, device(d));
    for (size_t s = 0; s < r_.subgraphs.size(); ++s) {
      const PartitionSubgraph& g = r_.subgraphs[s];
      box(left + g.start_us * scale, lane(g.device), std::max(1.0, (g.finish_us - g.start_us) * scale), 30, g.device,
          "subgraph " + std::to_string(s) + ": " + std::to_string(r_.nodes[s].size()) + " nodes, " +
              figure(g.start_us, "us") + " to " + figure(g.finish_us, "us"));
    }
    for (size_t s = 0; s < r_.subgraphs.size(); ++s) {
      const PartitionSubgraph& g = r_.subgraphs[s];
      for (const int32_t u : r_.inputs[s]) {
        const PartitionSubgraph& from = r_.subgraphs[index(r_.subgraph_of[index(u)])];
        if (from.device == g.device) continue;
        const bool down = from.device < g.device;
        line(left + from.finish_us * scale, lane(from.device) + (down ? 30 : 0), left + g.start_us * scale,
             lane(g.device) + (down ? 0 : 30), true);
      }
    }
    y_ = lane(p_.device_count());
  }

  const Problem& p_;
  const PartitionResult& r_;
  std::ostringstream out_;
  double y_ = 0;
  double width_ = 400;
  size_t lines_ = 0;
};

}  // namespace

std::string plan_svg(const Problem& problem, const PartitionResult& result) { return Picture(problem, result).draw(); }

}  // namespace hetnn::plan
