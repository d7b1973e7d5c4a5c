// The null device: planned, but not to be run.
#include "hetnn/base/error.h"
#include "hetnn/runtime/executor.h"

namespace hetnn::runtime {
namespace {

class NullCode final : public BoundCode, public Executor {
 public:
  explicit NullCode(const program::Subprogram& subprogram) : subprogram_(subprogram) {}
  std::unique_ptr<const BoundCode> bind(const Sizes&) const override { return std::make_unique<NullCode>(subprogram_); }
  bool one_at_a_time() const override { return false; }
  std::vector<Moment> moments() const override { return {{subprogram_.inputs, subprogram_.outputs}}; }
  std::unique_ptr<Visit> open(std::span<const int64_t>) const override {
    throw Unsupported(text("subprogram '", subprogram_.name, "' is on the device '", subprogram_.device,
                           "', which plans and runs nothing. Compile for a target whose devices run."));
  }

 private:
  const program::Subprogram& subprogram_;
};

}  // namespace

std::unique_ptr<const Executor> load_null(const Load& load) { return std::make_unique<NullCode>(load.subprogram); }

}  // namespace hetnn::runtime
