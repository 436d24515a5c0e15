// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/status.h"
#include "engine/checkpoints/checkpoint_store.h"

namespace heddle::cluster {

/// Checkpoints in a folder that all workers see. What is written lies beside its place under a hidden name
/// until it is whole and on the disk. Folders have mode 0700, files 0600.
std::unique_ptr<engine::CheckpointStore> FolderCheckpoints(const std::string& folder);

/// Checkpoints as objects of a bucket: "s3://BUCKET/PREFIX". Where that is and who asks stands in the
/// environment, as for other programs that speak S3: AWS_ENDPOINT_URL (default: that of the region),
/// AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN. kPermissionDenied without
/// credentials.
Result<std::unique_ptr<engine::CheckpointStore>> ObjectCheckpoints(const std::string& url);

/// The store at a location: the absolute path of a folder, or s3://BUCKET/PREFIX. kUsage for anything else.
Result<std::unique_ptr<engine::CheckpointStore>> OpenCheckpoints(const std::string& location);
/// The names of all objects of the store at a location that begin with "`folder`/", in no order.
Result<std::vector<std::string>> ListCheckpoints(const std::string& location, const std::string& folder);
Result<std::vector<std::string>> ListObjectCheckpoints(const std::string& url, const std::string& folder);
/// The folders of all jobs at a location (ExecutorCheckpoints), with the bytes of what is in them, parts of
/// objects that were not finished included. None where there is no such place yet.
Result<std::map<std::string, int64_t>> CheckpointFolders(const std::string& location);
Result<std::map<std::string, int64_t>> ObjectCheckpointFolders(const std::string& url);
/// Whether it is such a location.
Status CheckCheckpointLocation(const std::string& location);

}  // namespace heddle::cluster
