// SPDX-License-Identifier: Apache-2.0
#include "cluster/language_server/language_server.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <thread>
#include <utility>

#include "cluster/language_server/answers.h"
#include "cluster/language_server/diagnostics_message.h"
#include "cluster/language_server/message_queue.h"
#include "cluster/language_server/message_stream.h"
#include "core/version.h"

namespace heddle::cluster {
namespace {

constexpr int kIncrementalSync = 2;
constexpr int kMostDepth = 200;

std::string Text(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Json Capabilities(compiler::TextLines::Units units) {
  return {{"positionEncoding", units == compiler::TextLines::Units::kUtf8 ? "utf-8" : "utf-16"},
          {"textDocumentSync", {{"openClose", true}, {"change", kIncrementalSync}, {"save", false}}},
          {"hoverProvider", true},
          {"completionProvider",
           {{"triggerCharacters", {"(", ",", ":", "\"", "'", "/", "$"}}, {"resolveProvider", true}}},
          {"signatureHelpProvider", {{"triggerCharacters", {"(", ","}}}},
          {"definitionProvider", true},
          {"referencesProvider", true},
          {"documentHighlightProvider", true},
          {"documentSymbolProvider", true},
          {"foldingRangeProvider", true},
          {"documentFormattingProvider", true},
          {"renameProvider", {{"prepareProvider", true}}}};
}

// A message as JSON, discarded where it is none; nullopt: it is nested more deeply than any of the protocol.
// Values are copied and written by functions that call themselves, which would overflow the stack.
std::optional<Json> ParseMessage(const std::string& body) {
  bool is_too_deep = false;
  Json json = Json::parse(
      body,
      [&](int depth, Json::parse_event_t, const Json&) {
        is_too_deep |= depth > kMostDepth;
        return !is_too_deep;
      },
      /*allow_exceptions=*/false);
  return is_too_deep ? std::nullopt : std::optional(std::move(json));
}

// Reads until the input ends, on a thread of its own: what cancels a request must not wait behind it.
void ReadMessages(int input, MessageQueue* queue) {
  MessageReader reader(input);
  std::string body;
  for (;;) {
    switch (reader.Read(&body)) {
      case MessageReader::Outcome::kEnd: return queue->Close();
      case MessageReader::Outcome::kNoMessage: queue->Push({{}, "a header without Content-Length"}); continue;
      case MessageReader::Outcome::kTooLong:
        queue->Push({{}, fmt::format("a message has at most {} bytes", MessageReader::kMostMessageBytes)});
        continue;
      case MessageReader::Outcome::kMessage: break;
    }
    std::optional<Json> json = ParseMessage(body);
    if (!json) {
      queue->Push({{}, fmt::format("a message is nested at most {} levels deep", kMostDepth)});
      continue;
    }
    const std::optional<std::string> method = FindText(*json, {"method"});
    if (method == "$/cancelRequest") {
      if (const Json* const id = FindMember(*json, {"params", "id"})) queue->Cancel(*id);
      continue;
    }
    const bool is_exit = method == "exit";
    queue->Push({*std::move(json), ""});
    if (is_exit) return queue->Close();
  }
}

class Server {
 public:
  Server(int output, MessageQueue* queue, LanguageServerSettings settings)
      : writer_(output),
        queue_(*queue),
        workspace_(std::move(settings)),
        checker_([this](const std::string& path, const OpenDocument& document,
                        const CheckedDocument& checked) { Publish(path, document, checked); }) {}

  int Run() {
    while (const std::optional<WaitingMessage> message = queue_.Pop()) {
      if (!message->error.empty()) {
        Fail(nullptr, ProtocolError::kInvalidRequest, message->error);
      } else if (message->json.is_discarded()) {
        Fail(nullptr, ProtocolError::kParseError, "the message is no JSON");
      } else {
        Handle(message->json);
      }
      if (exits_) break;
    }
    return is_shut_down_ && exits_ ? 0 : 1;
  }

 private:
  void Send(Json message) {
    message["jsonrpc"] = "2.0";
    writer_.Write(Text(message));
  }
  void Notify(std::string_view method, Json parameters) {
    Send({{"method", method}, {"params", std::move(parameters)}});
  }
  void Fail(const Json& id, ProtocolError error, const std::string& message) {
    Send({{"id", id}, {"error", {{"code", static_cast<int>(error)}, {"message", message}}}});
  }

  void Handle(const Json& message) {
    const std::optional<std::string> method = FindText(message, {"method"});
    const Json* const id = FindMember(message, {"id"});
    const Json* const given = FindMember(message, {"params"});
    const Json parameters = given != nullptr ? *given : Json::object();
    if (!method) {
      // What answers a request of ours has a result or an error; there are none.
      const bool is_answer =
          FindMember(message, {"result"}) != nullptr || FindMember(message, {"error"}) != nullptr;
      if (!is_answer) Fail(nullptr, ProtocolError::kInvalidRequest, "a request has a method");
      return;
    }
    if (id == nullptr) return HandleNotification(*method, parameters);
    if (!id->is_string() && !id->is_number_integer())
      return Fail(nullptr, ProtocolError::kInvalidRequest, "the id of a request is a number or a text");
    if (queue_.TakeCancelled(*id)) return Fail(*id, ProtocolError::kRequestCancelled, "cancelled");
    HandleRequest(*id, *method, parameters);
  }

  void HandleRequest(const Json& id, const std::string& method, const Json& parameters) {
    if (is_shut_down_) return Fail(id, ProtocolError::kInvalidRequest, "the server has been shut down");
    if (method == "initialize") return Initialize(id, parameters);
    if (!is_initialized_) return Fail(id, ProtocolError::kNotInitialized, "'initialize' comes first");
    if (method == "shutdown") {
      is_shut_down_ = true;
      return Send({{"id", id}, {"result", nullptr}});
    }
    for (const Method& known : Methods()) {
      if (known.name != method) continue;
      const std::function<bool()> others_wait = [this] { return !queue_.IsEmpty(); };
      const Result<Json> result = known.answer({workspace_, checker_, others_wait}, parameters);
      if (result.ok()) return Send({{"id", id}, {"result", *result}});
      const bool is_of_parameters = result.status().code() == StatusCode::kInvalidArgument;
      return Fail(id, is_of_parameters ? ProtocolError::kInvalidParams : ProtocolError::kRequestFailed,
                  result.status().message());
    }
    Fail(id, ProtocolError::kMethodNotFound, fmt::format("no method '{}'", method));
  }

  void Initialize(const Json& id, const Json& parameters) {
    if (is_initialized_) return Fail(id, ProtocolError::kInvalidRequest, "'initialize' comes once");
    is_initialized_ = true;
    if (const Json* const encodings =
            FindMember(parameters, {"capabilities", "general", "positionEncodings"});
        encodings != nullptr && encodings->is_array())
      for (const Json& encoding : *encodings)
        if (encoding == "utf-8") workspace_.units = compiler::TextLines::Units::kUtf8;
    const Json* const folders = FindMember(parameters, {"workspaceFolders"});
    std::optional<std::string> root;
    if (folders != nullptr && folders->is_array() && !folders->empty())
      root = FindText((*folders)[0], {"uri"});
    if (!root) root = FindText(parameters, {"rootUri"});
    if (!root) root = FindText(parameters, {"rootPath"});
    if (root && PathOf(*root).starts_with('/')) workspace_.SetRoot(PathOf(*root));
    if (const Json* const settings = FindMember(parameters, {"initializationOptions"}))
      workspace_.ReadSettings(*settings);
    Send({{"id", id},
          {"result",
           {{"capabilities", Capabilities(workspace_.units)},
            {"serverInfo", {{"name", "heddle"}, {"version", kVersion}}}}}});
  }

  void HandleNotification(const std::string& method, const Json& parameters) {
    if (method == "exit") exits_ = true;
    if (!is_initialized_ || is_shut_down_) return;
    if (method == "textDocument/didOpen") return Open(parameters);
    if (method == "textDocument/didChange") return Change(parameters);
    if (method == "textDocument/didClose") return Close(parameters);
    if (method == "workspace/didChangeWatchedFiles") return CheckAll();
    if (method == "workspace/didChangeConfiguration") {
      if (const Json* const settings = FindMember(parameters, {"settings", "heddle"}))
        workspace_.ReadSettings(*settings);
      CheckAll();
    }
  }

  void Open(const Json& parameters) {
    const std::optional<std::string> address = FindText(parameters, {"textDocument", "uri"});
    const std::optional<std::string> text = FindText(parameters, {"textDocument", "text"});
    if (!address || !text) return Complain("textDocument/didOpen without uri or text");
    const Json* const version = FindMember(parameters, {"textDocument", "version"});
    SetText(*address, version, *text);
  }

  void Change(const Json& parameters) {
    const std::optional<std::string> address = FindText(parameters, {"textDocument", "uri"});
    const OpenDocument* const document = address ? workspace_.Find(PathOf(*address)) : nullptr;
    const Json* const changes = FindMember(parameters, {"contentChanges"});
    if (document == nullptr || changes == nullptr || !changes->is_array())
      return Complain("textDocument/didChange without an open document or changes");
    std::string text = *document->text;
    for (const Json& change : *changes)
      if (!ApplyChange(change, workspace_.units, &text))
        return Complain("textDocument/didChange with a wrong change");
    SetText(*address, FindMember(parameters, {"textDocument", "version"}), std::move(text));
  }

  void SetText(const std::string& address, const Json* version, std::string text) {
    const bool has_version = version != nullptr && version->is_number_integer();
    {
      const std::lock_guard lock(mutex_);
      workspace_.Open(address, has_version ? version->get<int64_t>() : 0, std::move(text));
    }
    CheckAll(PathOf(address));
  }

  void Close(const Json& parameters) {
    const std::optional<std::string> address = FindText(parameters, {"textDocument", "uri"});
    if (!address || workspace_.Find(PathOf(*address)) == nullptr) return;
    {
      const std::lock_guard lock(mutex_);
      workspace_.Close(PathOf(*address));
      checker_.Forget(PathOf(*address));
      Notify("textDocument/publishDiagnostics", {{"uri", *address}, {"diagnostics", Json::array()}});
    }
    CheckAll();
  }

  // Others may source the script that has changed, which is checked first.
  void CheckAll(const std::string& changed = "") {
    const CheckSettings& settings = workspace_.settings().check;
    if (!changed.empty()) checker_.Check(workspace_.View(changed), workspace_.documents(), settings);
    for (const auto& [path, document] : workspace_.documents()) {
      if (path == changed) continue;
      compiler::ScriptViewPointer script = workspace_.View(path);
      if (changed.empty() || !script->file.imports.empty())
        checker_.Check(std::move(script), workspace_.documents(), settings);
    }
  }

  // On the checker's thread.
  void Publish(const std::string& path, const OpenDocument& document, const CheckedDocument& checked) {
    const std::lock_guard lock(mutex_);
    const OpenDocument* const now = workspace_.Find(path);
    if (now == nullptr || now->text != document.text) return;  // closed, or its next check follows
    Notify("textDocument/publishDiagnostics",
           DiagnosticsMessage(document, checked, workspace_.units,
                              [this](const std::string& other) { return workspace_.Address(other); }));
  }

  void Complain(const std::string& message) {
    constexpr int kLogError = 1;
    Notify("window/logMessage", {{"type", kLogError}, {"message", message}});
  }

  MessageWriter writer_;
  MessageQueue& queue_;
  std::mutex mutex_;  // held while the documents change, and while the checker's thread looks at them
  Workspace workspace_;
  bool is_initialized_ = false;
  bool is_shut_down_ = false;
  bool exits_ = false;
  Checker checker_;  // last: it ends before what it uses
};

}  // namespace

int ServeEditor(int input, int output, LanguageServerSettings settings) {
  MessageQueue queue;
  std::thread reader(ReadMessages, input, &queue);
  int code = 0;
  {
    Server server(output, &queue, std::move(settings));
    code = server.Run();
  }
  reader.join();
  return code;
}

}  // namespace heddle::cluster
