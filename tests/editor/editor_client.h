// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <deque>
#include <nlohmann/json.hpp>
#include <optional>

#include "tests/support/process.h"

namespace heddle::testing_support {

using Json = nlohmann::json;

/// `heddle lsp` with an editor at the other end of its pipes.
class EditorClient {
 public:
  static constexpr int kPatienceMs = 60'000 * kPatience;

  explicit EditorClient(const std::string& directory, const std::vector<std::string>& options = {}) {
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) return;
    child_ = fork();
    if (child_ == 0) {
      if (chdir(directory.c_str()) != 0) _exit(126);
      dup2(in[0], 0);
      dup2(out[1], 1);
      std::vector<std::string> words = {HEDDLE_BINARY_DIR "/heddle", "lsp"};
      words.insert(words.end(), options.begin(), options.end());
      std::vector<char*> arguments;
      for (std::string& word : words) arguments.push_back(word.data());
      arguments.push_back(nullptr);
      execv(arguments[0], arguments.data());
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    input_ = in[1];
    output_ = out[0];
  }
  ~EditorClient() {
    CloseInput();
    if (child_ > 0) {
      kill(child_, SIGKILL);
      waitpid(child_, nullptr, 0);
    }
    close(output_);
  }

  void Write(const std::string& bytes) const {
    for (size_t at = 0; at < bytes.size();) {
      const ssize_t written = write(input_, bytes.data() + at, bytes.size() - at);
      if (written <= 0) return;
      at += static_cast<size_t>(written);
    }
  }
  void Send(const std::string& body) const {
    Write("Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
  }
  void Send(const Json& message) const { Send(message.dump()); }
  void CloseInput() {
    if (input_ >= 0) close(input_);
    input_ = -1;
  }

  /// The next message; null when the output has ended. What is no message of the protocol fails the test.
  Json Read() {
    size_t end;
    while ((end = buffer_.find("\r\n\r\n")) == std::string::npos)
      if (!Fill()) return nullptr;
    const std::string head = buffer_.substr(0, end);
    EXPECT_TRUE(head.starts_with("Content-Length: ")) << head;
    const size_t length = std::stoul(head.substr(head.find(' ')));
    while (buffer_.size() < end + 4 + length)
      if (!Fill()) return nullptr;
    const Json message = Json::parse(buffer_.substr(end + 4, length));
    EXPECT_EQ(message["jsonrpc"], "2.0");
    buffer_.erase(0, end + 4 + length);
    return message;
  }

  /// The whole answer; what is notified meanwhile waits for Notified().
  Json Request(const std::string& method, const Json& parameters) {
    Send(Json{{"jsonrpc", "2.0"}, {"id", ++last_id_}, {"method", method}, {"params", parameters}});
    return Answer(last_id_);
  }
  Json Answer(const Json& id) {
    for (;;) {
      Json message = Read();
      if (message.is_null() || (message.contains("id") && message["id"] == id)) return message;
      notified_.push_back(std::move(message));
    }
  }
  Json Result(const std::string& method, const Json& parameters) {
    const Json answer = Request(method, parameters);
    EXPECT_TRUE(answer.contains("result")) << method << ": " << answer;
    return answer.contains("result") ? answer["result"] : Json();
  }
  void Notify(const std::string& method, const Json& parameters) const {
    Send(Json{{"jsonrpc", "2.0"}, {"method", method}, {"params", parameters}});
  }
  /// The diagnostics of a version of a document.
  Json Diagnostics(const std::string& address, int version) {
    const auto is_wanted = [&](const Json& message) {
      return message.value("method", "") == "textDocument/publishDiagnostics" &&
             message["params"]["uri"] == address && message["params"].value("version", 0) == version;
    };
    for (;;) {
      const auto found = std::find_if(notified_.begin(), notified_.end(), is_wanted);
      if (found != notified_.end()) {
        Json diagnostics = (*found)["params"]["diagnostics"];
        notified_.erase(found);
        return diagnostics;
      }
      Json message = Read();
      if (message.is_null()) return message;
      notified_.push_back(std::move(message));
    }
  }

  Json Initialize(const std::string& root, const Json& capabilities = Json::object()) {
    Json result =
        Result("initialize", {{"processId", nullptr}, {"rootUri", root}, {"capabilities", capabilities}});
    Notify("initialized", Json::object());
    return result;
  }
  void Open(const std::string& address, const std::string& text, int version = 1) const {
    Notify(
        "textDocument/didOpen",
        {{"textDocument", {{"uri", address}, {"languageId", "dml"}, {"version", version}, {"text", text}}}});
  }
  void Change(const std::string& address, const std::string& text, int version) const {
    Notify("textDocument/didChange", {{"textDocument", {{"uri", address}, {"version", version}}},
                                      {"contentChanges", Json::array({{{"text", text}}})}});
  }
  static Json At(const std::string& address, int line, int character) {
    return {{"textDocument", {{"uri", address}}}, {"position", {{"line", line}, {"character", character}}}};
  }

  /// Processor time of the process so far, all threads.
  double ProcessorMilliseconds() const {
    clockid_t clock;
    timespec time{};
    EXPECT_EQ(clock_getcpuclockid(child_, &clock), 0);
    EXPECT_EQ(clock_gettime(clock, &time), 0);
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) / 1e6;
  }

  /// Waits for the end of the process; its exit code, 128 + signal when it was killed.
  int WaitForEnd() {
    int status = 0;
    if (waitpid(child_, &status, 0) != child_) return -1;
    child_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  bool Fill() {
    pollfd ready{output_, POLLIN, 0};
    if (poll(&ready, 1, kPatienceMs) <= 0) {
      ADD_FAILURE() << "no answer";
      return false;
    }
    char block[1 << 14];
    const ssize_t got = read(output_, block, sizeof block);
    if (got <= 0) return false;
    buffer_.append(block, static_cast<size_t>(got));
    return true;
  }

  pid_t child_ = -1;
  int input_ = -1;
  int output_ = -1;
  int last_id_ = 0;
  std::string buffer_;
  std::deque<Json> notified_;
};

}  // namespace heddle::testing_support
