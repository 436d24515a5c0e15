// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdio>
#include <string>
#include <vector>

#include "cluster/cli/verb.h"

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const int code = heddle::cluster::cli::Main(words);
  // Threads of libraries may still be about to end; their static objects must not go before them.
  std::fflush(nullptr);
  _exit(code);
}
