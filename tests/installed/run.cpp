// run_cpp FILE.hetnn: as run_c, with the C++ interface; also in the background, and with errors as exceptions.
#include <cstdio>
#include <cstring>
#include <hetnn/hetnn.hpp>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  try {
    hetnn::Executable executable = hetnn::Executable::load(argv[1], {.threads = 1});
    const hetnn::Port port = executable.inputs().at(0);
    size_t count = 1;
    for (const int64_t dim : port.shape) count *= static_cast<size_t>(dim);
    std::vector<float> x(count);
    for (size_t k = 0; k < count; ++k) x[k] = static_cast<float>(k) / 8;
    const std::vector<hetnn::Tensor> inputs = {hetnn::Tensor(x.data(), port.shape)};

    const std::vector<hetnn::Tensor> now = executable.run(inputs);
    const std::vector<hetnn::Tensor> later = executable.run_async(inputs).get();
    for (size_t k = 0; k < now.size(); ++k) {
      const auto a = now[k].bytes(), b = later.at(k).bytes();
      if (a.size() != b.size() || std::memcmp(a.data(), b.data(), a.size()) != 0) return 3;
      for (const float value : now[k].data<float>()) std::printf("%.9g\n", value);
    }
    try {
      executable.run({});
      return 4;
    } catch (const hetnn::InvalidModel&) {
    }
    return 0;
  } catch (const hetnn::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
