// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cluster/placement/membership.h"

// On which device a job of several workers computes (docs/devices.md, "On a cluster").
namespace heddle::cluster {

/// Of the option `devices` of a job the device: "opencl:0" of "opencl:0/cost", "auto" of itself, "" of "cpu".
std::string DeviceIn(std::string_view devices);

/// Whether executors of the worker may use the device: "auto" is any, "" is none and offered by all.
bool Offers(const WorkerDescription& worker, std::string_view device);

/// The option `devices` of all ranks of a job on these workers, by rank: the one that the job was submitted
/// with, or, of "auto", the first device that one of them offers, by cost; "cpu" where none offers what it
/// asks for. Plans name one device for all ranks, and rank 0 makes them.
std::string DevicesOn(const std::vector<const WorkerDescription*>& workers, const std::string& devices);

/// Which of these workers do not offer the device of the job, in a line for people; "" where all do.
std::string NoteOnDevices(const std::vector<const WorkerDescription*>& workers, const std::string& devices);

}  // namespace heddle::cluster
