// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "cluster/cli/verb.h"
#include "core/memory/counted_heap.h"

namespace {

// A standard stream that the caller closed would be given to the next file that is opened. Its stand-in fails
// when used. Runs before libraries are initialized, some of which open files; hence bare system calls and no
// sanitizer.
__attribute__((no_sanitize("address,thread,undefined"))) void OpenStandardStreams() {
  for (int number = 0; number < 3; ++number)
    if (syscall(SYS_fcntl, number, F_GETFD) < 0)
      (void)!syscall(SYS_openat, AT_FDCWD, "/dev/null", number == 0 ? O_WRONLY : O_RDONLY);
}

[[gnu::section(".preinit_array"), gnu::used]] void (*const kOpenStandardStreams)() = OpenStandardStreams;

}  // namespace

int main(int argc, char** argv) {
  heddle::PrepareHeap();
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);  // we tell what is wrong ourselves
  const std::vector<std::string> words(argv + 1, argv + argc);
  const int code = heddle::cluster::cli::Main(words);
  // Threads of libraries may still be about to end; their static objects must not go before them.
  std::fflush(nullptr);
  _exit(code);
}
