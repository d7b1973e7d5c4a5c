// service_cpp FILE.hetnn STEPS OUTPUT INPUT…: as service_c, with the C++ interface.
#include <cstdint>
#include <fstream>
#include <hetnn/hetnn.hpp>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace {

struct Input {
  std::vector<int64_t> shape;
  hetnn_dtype dtype;
  std::ifstream file;
  std::vector<std::byte> values;

  hetnn::Tensor next() {
    file.read(reinterpret_cast<char*>(values.data()), static_cast<std::streamsize>(values.size()));
    if (!file) throw hetnn::InvalidModel("an input is too short");
    if (dtype == HETNN_I64) return hetnn::Tensor(reinterpret_cast<int64_t*>(values.data()), shape);
    return hetnn::Tensor(reinterpret_cast<float*>(values.data()), shape);
  }
};

Input open(const std::string& text, hetnn_dtype dtype) {
  const size_t colon = text.find(':');
  Input out{{}, dtype, std::ifstream(text.substr(colon + 1), std::ios::binary), {}};
  std::istringstream dims(text.substr(0, colon));
  size_t bytes = dtype == HETNN_I64 ? 8 : 4;
  for (std::string dim; std::getline(dims, dim, ',');) {
    out.shape.push_back(std::stoll(dim));
    bytes *= static_cast<size_t>(out.shape.back());
  }
  out.values.resize(bytes);
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 5) return 2;
  try {
    hetnn::Executable executable = hetnn::Executable::load(argv[1]);
    hetnn::Session session = executable.session();
    std::vector<Input> inputs;
    for (int k = 4; k < argc; ++k)
      inputs.push_back(open(argv[k], executable.inputs().at(static_cast<size_t>(k - 4)).dtype));
    std::ofstream to(argv[3], std::ios::binary);
    for (int step = 0; step < std::stoi(argv[2]); ++step) {
      std::vector<hetnn::Tensor> given;
      for (Input& input : inputs) given.push_back(input.next());
      for (const hetnn::Tensor& output : executable.run(given, &session)) {
        const auto bytes = output.bytes();
        to.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
      }
    }
    return 0;
  } catch (const hetnn::Error& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
