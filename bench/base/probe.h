// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace heddle::bench {

/// Runs body(begin, end) over [0, count) on `threads` threads, one contiguous range each, cut at multiples of
/// `grain`.
void OnThreads(int threads, int64_t count, int64_t grain,
               const std::function<void(int thread, int64_t begin, int64_t end)>& body);

/// A new folder for the files of a benchmark; stops the process where there can be none.
std::string MakeTemporaryFolder();

/// Milliseconds of one call.
double Time(const std::function<void()>& work);
/// Least of `rounds` calls after one to warm up.
double BestTime(int rounds, const std::function<void()>& work);

/// GB/s of summing `count` doubles once with `threads` threads: the limit of every one-pass operator. Take
/// the best of several.
double ReadBandwidth(const double* data, int64_t count, int threads);
/// GB/s of filling `count` doubles, 32-byte aligned, with ones by streaming stores: the limit of a large
/// output.
double WriteBandwidth(double* data, int64_t count, int threads);
/// GFLOP/s of independent fused multiply-adds in registers, widest vectors this build and machine have, for
/// about so many milliseconds: what the clock does in a short burst it does not do for long. Take the best of
/// several.
double FmaPeak(int threads, double milliseconds);

}  // namespace heddle::bench
