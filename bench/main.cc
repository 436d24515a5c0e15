// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "bench/operators.h"

int main(int argc, char** argv) {
  using heddle::bench::BenchOptions;
  BenchOptions options;
  options.threads = static_cast<int>(std::thread::hardware_concurrency());
  std::string name;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--json") options.json = true;
    else if (word == "--threads" && i + 1 < argc) options.threads = std::max(1, std::atoi(argv[++i]));
    else if (word == "--cells" && i + 1 < argc) options.cells = std::atoll(argv[++i]);
    else if (word == "--only" && i + 1 < argc) options.only = argv[++i];
    else if (word[0] != '-' && name.empty()) name = word;
    else name = "?";
  }
  if (name == "operators") return heddle::bench::RunOperators(options);
  std::fputs("usage: heddle-bench operators [--json] [--threads N] [--cells N] [--only TEXT]\n", stderr);
  return 2;
}
