// SPDX-License-Identifier: Apache-2.0
#include "ops/io/files/changed_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>

#include "core/environment/descriptor.h"

namespace heddle::ops {

void NoteChangedFile(const std::string& path) {
  static const char* const listener = std::getenv(kChangedFilesVariable);
  if (listener == nullptr) return;
  const Descriptor file(open(listener, O_WRONLY | O_APPEND | O_CLOEXEC));
  const std::string line = path + "\n";
  // One write appends as a whole. What cannot be noted is missed by the listener alone.
  if (file.ok() && write(file.get(), line.data(), line.size()) < 0) return;
}

}  // namespace heddle::ops
