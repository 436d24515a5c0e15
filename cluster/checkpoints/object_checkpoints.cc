// SPDX-License-Identifier: Apache-2.0
// Checkpoints as objects behind the REST interface of S3. libcurl speaks HTTP and signs (Signature Version
// 4).
#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "cluster/checkpoints/checkpoint_stores.h"
#include "ops/io/checksums/sha256.h"

namespace heddle::cluster {
namespace {

using engine::CheckpointStore;

// Larger objects are sent in parts; all but the last have to have 5 MiB at least.
constexpr size_t kPartBytes = size_t{16} << 20;
constexpr int kTries = 4;
constexpr std::chrono::milliseconds kFirstPause{200};
constexpr long kConnectMs = 10'000;
constexpr long kLeastBytesPerSecond = 1'000;  // Less for kStallSeconds is a connection that is dead.
constexpr long kStallSeconds = 30;
constexpr long kOkHttp = 200;
constexpr long kNotFoundHttp = 404;
constexpr long kNoSuchRangeHttp = 416;

std::string Environment(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const char* const value = std::getenv(name); value != nullptr && *value != '\0') return value;
  return "";
}

std::string Sha256Text(std::string_view bytes) {
  std::string text;
  for (const uint8_t byte : ops::Sha256({bytes})) text += fmt::format("{:02x}", byte);
  return text;
}

// As the signature wants it: all but unreserved characters.
std::string Encoded(std::string_view text, bool keeps_slashes) {
  std::string encoded;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    const bool is_plain = (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
                          (byte >= 'a' && byte <= 'z') || std::strchr("-._~", c) != nullptr ||
                          (keeps_slashes && c == '/');
    encoded += is_plain && c != '\0' ? std::string(1, c) : fmt::format("%{:02X}", byte);
  }
  return encoded;
}

// What stands in each <name>...</name> of a reply; the names that we look for hold no further elements.
std::vector<std::string> ElementsOf(std::string_view xml, std::string_view name) {
  std::vector<std::string> found;
  const std::string begin = fmt::format("<{}>", name), end = fmt::format("</{}>", name);
  for (size_t at = 0; (at = xml.find(begin, at)) != std::string_view::npos;) {
    at += begin.size();
    const size_t stop = xml.find(end, at);
    if (stop == std::string_view::npos) break;
    std::string text(xml.substr(at, stop - at));
    constexpr std::pair<const char*, const char*> kEntities[] = {
        {"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&apos;", "'"}, {"&amp;", "&"}};
    for (const auto& [entity, character] : kEntities)
      for (size_t i = 0; (i = text.find(entity, i)) != std::string::npos; ++i)
        text.replace(i, std::strlen(entity), character);
    found.push_back(std::move(text));
  }
  return found;
}

// A reply that lacks what it must have.
Status Unclear(const std::string& object) {
  return Unavailable("checkpoints: the server's reply about '{}' is not understood", object);
}

struct Place {
  std::string endpoint, bucket, prefix, region;
  std::string key, secret, session;
};

struct Request {
  const char* method = "GET";
  std::string object;                                      // Key within the bucket; "": the bucket.
  std::vector<std::pair<std::string, std::string>> query;  // In the order of their names.
  std::string_view body;
  std::string range;   // "0-99"
  std::span<char> to;  // Where the body of the reply goes; empty: Reply::body.
};

struct Reply {
  long code = 0;
  std::string body, etag;
  int64_t length = -1;
  size_t written = 0;  // To Request::to.
};

size_t TakeBody(char* data, size_t size, size_t count, void* user);
size_t TakeHeader(char* data, size_t size, size_t count, void* user);

// Asked by libcurl about once a second; not 0 ends the transfer.
int IsGivenUp(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return *static_cast<const std::atomic<bool>*>(user) ? 1 : 0;
}

// One connection, used by one thread at a time.
class Connection {
 public:
  explicit Connection(Place place) : place_(std::move(place)), curl_(curl_easy_init()) {}
  ~Connection() {
    if (curl_ != nullptr) curl_easy_cleanup(curl_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  const Place& place() const { return place_; }

  // Tried again while the server, or the way to it, fails.
  Result<Reply> Send(const Request& request) {
    const std::lock_guard lock(mutex_);
    std::chrono::milliseconds pause = kFirstPause;
    for (int tries = 1;; ++tries) {
      if (is_given_up_) return Cancelled("the checkpoint is not needed any more");
      Result<Reply> reply = SendOnce(request);
      const bool may_be_better = !reply.ok() || reply->code >= 500 || reply->code == 429;
      if (!may_be_better || tries == kTries) return reply.ok() ? Judge(request, *std::move(reply)) : reply;
      std::unique_lock waiting(pause_mutex_);
      given_up_.wait_for(waiting, pause, [this] { return is_given_up_.load(); });
      pause *= 4;
    }
  }

  void GiveUp() {
    {
      const std::lock_guard lock(pause_mutex_);
      is_given_up_ = true;
    }
    given_up_.notify_all();
  }

 private:
  Result<Reply> SendOnce(const Request& request) {
    HEDDLE_CHECK(curl_ != nullptr, "libcurl has memory for a handle");
    curl_easy_reset(curl_);
    std::string url = fmt::format("{}/{}", place_.endpoint, Encoded(place_.bucket, false));
    if (!request.object.empty()) url += "/" + Encoded(request.object, true);
    for (size_t i = 0; i < request.query.size(); ++i)
      url += fmt::format("{}{}={}", i == 0 ? "?" : "&", Encoded(request.query[i].first, false),
                         Encoded(request.query[i].second, false));
    const std::string user = fmt::format("{}:{}", place_.key, place_.secret);
    const std::string signing = fmt::format("aws:amz:{}:s3", place_.region);
    curl_slist* headers = nullptr;
    const auto add = [&](const std::string& header) { headers = curl_slist_append(headers, header.c_str()); };
    add(fmt::format("x-amz-content-sha256: {}", Sha256Text(request.body)));
    if (!place_.session.empty()) add(fmt::format("x-amz-security-token: {}", place_.session));
    if (!request.range.empty()) add(fmt::format("Range: bytes={}", request.range));
    Reply reply;
    std::pair<const Request*, Reply*> both(&request, &reply);
    curl_easy_setopt(curl_, CURLOPT_URL, url.c_str());
    curl_easy_setopt(curl_, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl_, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl_, CURLOPT_AWS_SIGV4, signing.c_str());
    curl_easy_setopt(curl_, CURLOPT_USERPWD, user.c_str());
    curl_easy_setopt(curl_, CURLOPT_CONNECTTIMEOUT_MS, kConnectMs);
    curl_easy_setopt(curl_, CURLOPT_LOW_SPEED_LIMIT, kLeastBytesPerSecond);
    curl_easy_setopt(curl_, CURLOPT_LOW_SPEED_TIME, kStallSeconds);
    curl_easy_setopt(curl_, CURLOPT_WRITEFUNCTION, TakeBody);
    curl_easy_setopt(curl_, CURLOPT_WRITEDATA, &both);
    curl_easy_setopt(curl_, CURLOPT_HEADERFUNCTION, TakeHeader);
    curl_easy_setopt(curl_, CURLOPT_HEADERDATA, &reply);
    curl_easy_setopt(curl_, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(curl_, CURLOPT_XFERINFOFUNCTION, IsGivenUp);
    curl_easy_setopt(curl_, CURLOPT_XFERINFODATA, &is_given_up_);
    const std::string_view method = request.method;
    if (method == "HEAD") curl_easy_setopt(curl_, CURLOPT_NOBODY, 1L);
    if (method == "PUT" || method == "POST") {
      add("Content-Type: application/octet-stream");
      curl_easy_setopt(curl_, CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
      curl_easy_setopt(curl_, CURLOPT_POSTFIELDS, request.body.empty() ? "" : request.body.data());
    }
    if (method != "GET" && method != "HEAD") curl_easy_setopt(curl_, CURLOPT_CUSTOMREQUEST, request.method);
    curl_easy_setopt(curl_, CURLOPT_HTTPHEADER, headers);
    const CURLcode result = curl_easy_perform(curl_);
    curl_easy_getinfo(curl_, CURLINFO_RESPONSE_CODE, &reply.code);
    curl_slist_free_all(headers);
    if (result != CURLE_OK)
      return Unavailable("checkpoints: cannot reach '{}': {}", place_.endpoint, curl_easy_strerror(result));
    return reply;
  }

  Result<Reply> Judge(const Request& request, Reply reply) const {
    // Whoever does not know of ranges sends all of the object.
    const bool is_whole = !request.range.empty() && reply.code == kOkHttp;
    if (is_whole)
      return Unavailable("checkpoints: the server sends '{}' from its beginning, not bytes {}",
                         request.object, request.range);
    if (reply.code >= 200 && reply.code < 300) return reply;
    const std::vector<std::string> codes = ElementsOf(reply.body, "Code"),
                                   texts = ElementsOf(reply.body, "Message");
    const std::string why =
        fmt::format("{} s3://{}/{}: HTTP {}{}{}{}{}", request.method, place_.bucket, request.object,
                    reply.code, codes.empty() ? "" : " ", codes.empty() ? "" : codes[0],
                    texts.empty() ? "" : ": ", texts.empty() ? "" : texts[0]);
    if (reply.code == kNoSuchRangeHttp) return DataLoss("checkpoints: {}", why);
    if (reply.code == kNotFoundHttp) return NotFound("checkpoints: {}", why);
    if (reply.code == 401 || reply.code == 403) return PermissionDenied("checkpoints: {}", why);
    return Unavailable("checkpoints: {}", why);
  }

  const Place place_;
  std::mutex mutex_;
  CURL* const curl_;
  std::mutex pause_mutex_;
  std::condition_variable given_up_;
  std::atomic<bool> is_given_up_ = false;
};

size_t TakeBody(char* data, size_t size, size_t count, void* user) {
  const auto& [request, reply] = *static_cast<std::pair<const Request*, Reply*>*>(user);
  const size_t bytes = size * count;
  constexpr size_t kMostBody = size_t{64} << 20;
  if (request->to.empty()) {
    if (reply->body.size() + bytes > kMostBody) return 0;
    reply->body.append(data, bytes);
    return bytes;
  }
  if (bytes > request->to.size() - reply->written) {  // An error is told, and may be longer than the range.
    reply->body.append(data, std::min<size_t>(bytes, 4096));
    return bytes;
  }
  std::memcpy(request->to.data() + reply->written, data, bytes);
  reply->written += bytes;
  if (reply->body.size() < 4096) reply->body.append(data, std::min<size_t>(bytes, 4096));
  return bytes;
}

size_t TakeHeader(char* data, size_t size, size_t count, void* user) {
  auto* const reply = static_cast<Reply*>(user);
  std::string_view line(data, size * count);
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return size * count;
  std::string name(line.substr(0, colon));
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  std::string_view value = line.substr(colon + 1);
  while (!value.empty() && value.front() == ' ') value.remove_prefix(1);
  if (name == "etag") reply->etag = value;
  if (name == "content-length") std::from_chars(value.data(), value.data() + value.size(), reply->length);
  return size * count;
}

class ObjectWriter : public CheckpointStore::Writer {
 public:
  ObjectWriter(std::shared_ptr<Connection> connection, std::string object)
      : connection_(std::move(connection)), object_(std::move(object)) {}
  ~ObjectWriter() override {
    if (!upload_.empty() && !is_finished_)  // Best effort: buckets drop what is not completed by their rules.
      (void)connection_->Send({.method = "DELETE", .object = object_, .query = {{"uploadId", upload_}}});
  }

  Status Append(std::string_view bytes) override {
    while (!bytes.empty()) {
      const size_t some = std::min(bytes.size(), kPartBytes - buffer_.size());
      buffer_.append(bytes.substr(0, some));
      bytes.remove_prefix(some);
      if (buffer_.size() == kPartBytes) HEDDLE_RETURN_IF_ERROR(SendPart());
    }
    return OkStatus();
  }
  Status Finish() override {
    if (upload_.empty()) {
      HEDDLE_RETURN_IF_ERROR(
          connection_->Send({.method = "PUT", .object = object_, .body = buffer_}).status());
      is_finished_ = true;
      return OkStatus();
    }
    if (!buffer_.empty()) HEDDLE_RETURN_IF_ERROR(SendPart());
    std::string parts = "<CompleteMultipartUpload>";
    for (size_t i = 0; i < etags_.size(); ++i)
      parts += fmt::format("<Part><PartNumber>{}</PartNumber><ETag>{}</ETag></Part>", i + 1, etags_[i]);
    parts += "</CompleteMultipartUpload>";
    HEDDLE_ASSIGN_OR_RETURN(
        const Reply reply,
        connection_->Send(
            {.method = "POST", .object = object_, .query = {{"uploadId", upload_}}, .body = parts}));
    // This reply may begin with 200 and tell an error all the same.
    if (ElementsOf(reply.body, "ETag").empty()) return Unclear(object_);
    is_finished_ = true;
    return OkStatus();
  }

 private:
  Status SendPart() {
    if (upload_.empty()) {
      HEDDLE_ASSIGN_OR_RETURN(
          const Reply begun,
          connection_->Send({.method = "POST", .object = object_, .query = {{"uploads", ""}}}));
      const std::vector<std::string> ids = ElementsOf(begun.body, "UploadId");
      if (ids.empty()) return Unclear(object_);
      upload_ = ids[0];
    }
    HEDDLE_ASSIGN_OR_RETURN(const Reply sent,
                            connection_->Send({.method = "PUT",
                                               .object = object_,
                                               .query = {{"partNumber", std::to_string(etags_.size() + 1)},
                                                         {"uploadId", upload_}},
                                               .body = buffer_}));
    etags_.push_back(sent.etag);
    buffer_.clear();
    return OkStatus();
  }

  const std::shared_ptr<Connection> connection_;
  const std::string object_;
  std::string buffer_, upload_;
  std::vector<std::string> etags_;
  bool is_finished_ = false;
};

class ObjectStore : public CheckpointStore {
 public:
  explicit ObjectStore(Place place) : connection_(std::make_shared<Connection>(std::move(place))) {}

  Result<std::unique_ptr<Writer>> Create(const std::string& name) override {
    return std::unique_ptr<Writer>(std::make_unique<ObjectWriter>(connection_, KeyOf(name)));
  }
  Result<int64_t> SizeOf(const std::string& name) override {
    HEDDLE_ASSIGN_OR_RETURN(const Reply reply, connection_->Send({.method = "HEAD", .object = KeyOf(name)}));
    if (reply.length < 0) return Unclear(name);
    return reply.length;
  }
  Status Read(const std::string& name, int64_t offset, std::span<char> to) override {
    if (to.empty()) return OkStatus();
    const Result<Reply> reply = connection_->Send(
        {.object = KeyOf(name),
         .range = fmt::format("{}-{}", offset, offset + static_cast<int64_t>(to.size()) - 1),
         .to = to});
    const bool has_nothing = reply.status().code() == StatusCode::kDataLoss;
    if (has_nothing || (reply.ok() && reply->written != to.size()))
      return DataLoss("checkpoints: '{}' is shorter than it was", name);
    return reply.status();
  }
  Result<std::vector<std::string>> List(const std::string& folder) {
    std::vector<std::string> names;
    for (std::string last;;) {
      HEDDLE_ASSIGN_OR_RETURN(const std::vector<Object> objects, ObjectsBehind(KeyOf(folder) + "/", last));
      if (objects.empty()) return names;
      for (const Object& object : objects) names.push_back(object.key.substr(KeyOf("").size()));
      last = objects.back().key;
    }
  }
  Result<std::map<std::string, int64_t>> Folders() {
    std::map<std::string, int64_t> folders;
    const std::string prefix = KeyOf("");
    for (std::string last;;) {
      HEDDLE_ASSIGN_OR_RETURN(const std::vector<Object> objects, ObjectsBehind(prefix, last));
      if (objects.empty()) return folders;
      for (const Object& object : objects) {
        const std::string name = object.key.substr(prefix.size());
        if (const size_t end = name.find('/'); end != std::string::npos)
          folders[name.substr(0, end)] += object.bytes;
      }
      last = objects.back().key;
    }
  }
  Status RemoveAll(const std::string& folder) override {
    for (std::string last;;) {  // A list may still show what is gone.
      HEDDLE_ASSIGN_OR_RETURN(const std::vector<Object> objects, ObjectsBehind(KeyOf(folder) + "/", last));
      if (objects.empty()) return OkStatus();
      for (const Object& object : objects) {
        const Status removed = connection_->Send({.method = "DELETE", .object = object.key}).status();
        if (!removed.ok() && removed.code() != StatusCode::kNotFound) return removed;
      }
      last = objects.back().key;
    }
  }
  void GiveUp() override { connection_->GiveUp(); }

 private:
  struct Object {
    std::string key;
    int64_t bytes = 0;
  };
  // Some of those whose keys begin with the prefix, in order, from behind `last` on.
  Result<std::vector<Object>> ObjectsBehind(const std::string& prefix, const std::string& last) {
    HEDDLE_ASSIGN_OR_RETURN(
        const Reply reply,
        connection_->Send({.query = {{"list-type", "2"}, {"prefix", prefix}, {"start-after", last}}}));
    const std::vector<std::string> keys = ElementsOf(reply.body, "Key"),
                                   sizes = ElementsOf(reply.body, "Size");
    if (keys.size() != sizes.size()) return Unclear(prefix);
    std::vector<Object> objects;
    for (size_t i = 0; i < keys.size(); ++i) {
      Object& object = objects.emplace_back();
      object.key = keys[i];
      std::from_chars(sizes[i].data(), sizes[i].data() + sizes[i].size(), object.bytes);
    }
    return objects;
  }
  std::string KeyOf(const std::string& name) const {
    const std::string& prefix = connection_->place().prefix;
    return prefix.empty() ? name : prefix + "/" + name;
  }

  const std::shared_ptr<Connection> connection_;
};

Result<std::unique_ptr<ObjectStore>> OpenObjects(const std::string& url) {
  static const CURLcode begun = curl_global_init(CURL_GLOBAL_DEFAULT);
  HEDDLE_CHECK(begun == CURLE_OK, "libcurl can begin");
  constexpr std::string_view kScheme = "s3://";
  const std::string rest = url.substr(kScheme.size());
  Place place;
  place.bucket = rest.substr(0, rest.find('/'));
  if (place.bucket.size() < rest.size()) place.prefix = rest.substr(place.bucket.size() + 1);
  while (place.prefix.ends_with("/")) place.prefix.pop_back();
  place.region = Environment({"AWS_REGION", "AWS_DEFAULT_REGION"});
  if (place.region.empty()) place.region = "us-east-1";
  place.endpoint = Environment({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"});
  if (place.endpoint.empty()) place.endpoint = fmt::format("https://s3.{}.amazonaws.com", place.region);
  while (place.endpoint.ends_with("/")) place.endpoint.pop_back();
  place.key = Environment({"AWS_ACCESS_KEY_ID"});
  place.secret = Environment({"AWS_SECRET_ACCESS_KEY"});
  place.session = Environment({"AWS_SESSION_TOKEN"});
  if (place.key.empty() || place.secret.empty())
    return PermissionDenied("checkpoints: '{}' needs credentials", url)
        .WithNote("start the worker with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in its environment");
  return std::make_unique<ObjectStore>(std::move(place));
}

}  // namespace

Result<std::unique_ptr<CheckpointStore>> ObjectCheckpoints(const std::string& url) {
  HEDDLE_ASSIGN_OR_RETURN(std::unique_ptr<ObjectStore> store, OpenObjects(url));
  return std::unique_ptr<CheckpointStore>(std::move(store));
}

Result<std::vector<std::string>> ListObjectCheckpoints(const std::string& url, const std::string& folder) {
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<ObjectStore> store, OpenObjects(url));
  return store->List(folder);
}

Result<std::map<std::string, int64_t>> ObjectCheckpointFolders(const std::string& url) {
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<ObjectStore> store, OpenObjects(url));
  return store->Folders();
}

}  // namespace heddle::cluster
