// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "cluster/cli/verb.h"

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  return heddle::cluster::cli::Main(words);
}
