// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace heddle::bench {

/// `heddle-bench memory-stage STAGE FILE THREADS`: one part of what a script does with a file larger than
/// memory, alone, in a process of its own that a control group limits. Prints its seconds.
///
/// read:    the bytes of the file, its blocks of a megabyte one behind the other, by THREADS threads.
/// decode:  its rows by the reader that read() has, panel by panel; they are dropped.
/// compute: the function of bench/scripts/memory/pipeline.dml of as many cells as the file has, in memory.
/// write:   as many bytes as the file has doubles, to FILE.written, until the disk has them; it is removed
///          then.
int RunMemoryStage(const std::vector<std::string>& words);

}  // namespace heddle::bench
