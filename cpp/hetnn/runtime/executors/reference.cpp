// Runs reference code, a graph as IR text, by an interpreter that the process provides: the runtime itself knows no
// operator.
#include "hetnn/base/error.h"
#include "hetnn/runtime/executor.h"
#include "hetnn/runtime/layout_copy.h"

namespace hetnn::runtime {
namespace {

constexpr int64_t kVersion = 1;

class ReferenceVisit final : public Visit {
 public:
  ReferenceVisit(const program::Subprogram& subprogram, std::string_view graph, const std::vector<BoundBuffer>& buffers)
      : subprogram_(subprogram), graph_(graph), buffers_(buffers) {}

  void upload(Addresses addresses) override {
    inputs_.clear();
    for (const int32_t id : subprogram_.inputs) {
      const BoundBuffer& buffer = buffers_[static_cast<size_t>(id)];
      std::byte* data = nullptr;
      inputs_.push_back(Tensor::zeros(buffer.view.dtype, buffer.shape, &data));
      copy_value(buffer.view.dtype, buffer.shape, addresses[static_cast<size_t>(id)], layout_of(buffer), data, {});
    }
  }

  void start(const Launch& launch, Event& done) override {
    if (!launch.interpreter || !*launch.interpreter) {
      throw Unsupported(
          text("subprogram '", subprogram_.name, "' is on the device '", subprogram_.device,
               "', which runs by the operators' meanings, and those are part of the compiler, which is not "
               "at hand. Compile for cpu, or load it where hetnn is installed whole."));
    }
    outputs_ = (*launch.interpreter)(graph_, inputs_);
    done.set();
  }

  void download(Addresses addresses) override {
    if (outputs_.size() != subprogram_.outputs.size())
      throw InvalidModel(text("subprogram '", subprogram_.name, "' has ", subprogram_.outputs.size(),
                              " outputs; the interpreter returned ", outputs_.size(), "."));
    for (size_t k = 0; k < outputs_.size(); ++k) {
      const auto id = static_cast<size_t>(subprogram_.outputs[k]);
      const BoundBuffer& buffer = buffers_[id];
      const Tensor& made = outputs_[k];
      if (made.dtype() != buffer.view.dtype || made.shape() != buffer.shape)
        throw InvalidModel(
            text("subprogram '", subprogram_.name, "': output ", k, " must be ", dtype_name(buffer.view.dtype),
                 to_string(Shape(buffer.shape.begin(), buffer.shape.end())), "; the interpreter returned ",
                 dtype_name(made.dtype()), to_string(Shape(made.shape().begin(), made.shape().end())), "."));
      copy_value(made.dtype(), buffer.shape, made.data(), {}, addresses[id], layout_of(buffer));
    }
  }

 private:
  static MapLayout layout_of(const BoundBuffer& buffer) { return {buffer.view.layout, buffer.view.pitch_elems}; }

  const program::Subprogram& subprogram_;
  const std::string_view graph_;
  const std::vector<BoundBuffer>& buffers_;
  std::vector<Tensor> inputs_, outputs_;
};

class ReferenceBound final : public BoundCode {
 public:
  ReferenceBound(const program::Subprogram& subprogram, std::string_view graph, const std::vector<BoundBuffer>& buffers)
      : subprogram_(subprogram), graph_(graph), buffers_(buffers) {}
  std::vector<Moment> moments() const override { return {{subprogram_.inputs, subprogram_.outputs}}; }
  std::unique_ptr<Visit> open(std::span<std::byte>) const override {
    return std::make_unique<ReferenceVisit>(subprogram_, graph_, buffers_);
  }

 private:
  const program::Subprogram& subprogram_;
  const std::string_view graph_;
  const std::vector<BoundBuffer>& buffers_;
};

class ReferenceExecutor final : public Executor {
 public:
  explicit ReferenceExecutor(const Load& load)
      : subprogram_(load.subprogram), graph_(load.subprogram.code.as_text(kVersion, load.called)) {}
  std::unique_ptr<const BoundCode> bind(const Sizes& sizes) const override {
    return std::make_unique<ReferenceBound>(subprogram_, graph_, sizes.buffers);
  }

 private:
  const program::Subprogram& subprogram_;
  const std::string_view graph_;
};

}  // namespace

std::unique_ptr<const Executor> load_reference(const Load& load) { return std::make_unique<ReferenceExecutor>(load); }

}  // namespace hetnn::runtime
