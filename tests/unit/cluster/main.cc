// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

#include "cluster/compiling/compile_script.h"
#include "cluster/executor/executor.h"

// The tests start this very program as executor processes and as one that compiles.
int main(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == "executor")
    return heddle::cluster::RunExecutor(std::atoi(argv[3]));
  if (argc == 4 && std::string_view(argv[1]) == "compiler")
    return heddle::cluster::RunCompiler(std::atoi(argv[3]));
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
