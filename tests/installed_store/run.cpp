// run_by_id STORE ID: runs the network on ones of [2] and prints its first output, or what is wrong.
#include <hetnn/store.hpp>

#include <iostream>

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    hetnn::Store store(argv[1]);
    float x[] = {1, 1};
    for (float value : store.run(argv[2], {hetnn::Tensor(x, {2})})[0].data<float>()) std::cout << value << "\n";
  } catch (const hetnn::InvalidModel& error) {
    std::cout << "InvalidModel: " << error.what() << "\n";
  }
}
