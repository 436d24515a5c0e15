// SPDX-License-Identifier: Apache-2.0
// The life of `heddle lsp` and what it answers to messages that are wrong.
#include "tests/editor/editor_client.h"

namespace heddle {
namespace {

using testing_support::EditorClient;
using testing_support::Json;
using testing_support::TemporaryFolder;

constexpr const char* kScript = "file:///tmp/none/a.dml";

class ProtocolTest : public testing::Test {
 protected:
  int CodeOf(const Json& answer) { return answer.contains("error") ? answer["error"]["code"].get<int>() : 0; }
  TemporaryFolder folder_;
  EditorClient editor_{folder_.path()};
};

TEST_F(ProtocolTest, ASessionBeginsAndEnds) {
  const Json result = editor_.Initialize("file://" + folder_.path());
  EXPECT_EQ(result["serverInfo"]["name"], "heddle");
  EXPECT_EQ(result["capabilities"]["positionEncoding"], "utf-16");
  EXPECT_EQ(editor_.Request("shutdown", Json::object())["result"], nullptr);
  const Json late = editor_.Request("textDocument/hover", EditorClient::At(kScript, 0, 0));
  EXPECT_EQ(CodeOf(late), -32600);
  EXPECT_EQ(late["error"]["message"], "the server has been shut down");
  editor_.Notify("exit", Json::object());
  EXPECT_EQ(editor_.WaitForEnd(), 0);
}

TEST_F(ProtocolTest, WithoutShutdownTheExitCodeIsOne) {
  editor_.Initialize("file://" + folder_.path());
  editor_.Notify("exit", Json::object());
  EXPECT_EQ(editor_.WaitForEnd(), 1);
}

TEST_F(ProtocolTest, AnEditorThatIsGoneEndsIt) {
  editor_.Initialize("file://" + folder_.path());
  editor_.Open(kScript, "x = rand(rows=10, cols=10)\nprint(sum(x))\n");
  editor_.CloseInput();
  EXPECT_EQ(editor_.WaitForEnd(), 1);
}

TEST_F(ProtocolTest, InitializeComesFirstAndOnce) {
  const Json early = editor_.Request("textDocument/hover", EditorClient::At(kScript, 0, 0));
  EXPECT_EQ(CodeOf(early), -32002);
  EXPECT_EQ(early["error"]["message"], "'initialize' comes first");
  editor_.Initialize("file://" + folder_.path());
  const Json again = editor_.Request("initialize", Json::object());
  EXPECT_EQ(CodeOf(again), -32600);
  EXPECT_EQ(again["error"]["message"], "'initialize' comes once");
}

TEST_F(ProtocolTest, WrongMessagesAreAnsweredAndTheSessionGoesOn) {
  editor_.Initialize("file://" + folder_.path());
  std::string message;
  const auto answer_to = [&](const std::string& body) {
    editor_.Send(body);
    const Json answer = editor_.Answer(nullptr);
    message = answer["error"]["message"];
    return CodeOf(answer);
  };
  EXPECT_EQ(answer_to("{\"jsonrpc\": \"2.0\", "), -32700);
  EXPECT_EQ(message, "the message is no JSON");
  EXPECT_EQ(answer_to(""), -32700);
  EXPECT_EQ(answer_to("\xff\xfe\x00{"), -32700);
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  EXPECT_EQ(answer_to(deep), -32600);
  EXPECT_EQ(message, "a message is nested at most 200 levels deep");
  EXPECT_EQ(answer_to("{\"id\": 1, \"method\": \"textDocument/hover\", \"params\": " + deep + "}"), -32600);
  EXPECT_EQ(answer_to("[]"), -32600);
  EXPECT_EQ(answer_to("17"), -32600);
  EXPECT_EQ(answer_to("{\"id\": 5}"), -32600);
  EXPECT_EQ(message, "a request has a method");
  EXPECT_EQ(answer_to("{\"id\": {}, \"method\": \"shutdown\"}"), -32600);
  EXPECT_EQ(message, "the id of a request is a number or a text");
  editor_.Write("no header at all\r\n");
  EXPECT_EQ(CodeOf(editor_.Answer(nullptr)), -32600);
  editor_.Write("Content-Length: many\r\n\r\n");
  EXPECT_EQ(CodeOf(editor_.Answer(nullptr)), -32600);
  EXPECT_EQ(CodeOf(editor_.Request("textDocument/makeCoffee", Json::object())), -32601);
  EXPECT_EQ(CodeOf(editor_.Request("textDocument/hover", Json::array())), -32602);
  EXPECT_EQ(CodeOf(editor_.Request("textDocument/hover", EditorClient::At(kScript, 0, 0))),
            -32602);  // not open
  editor_.Notify("textDocument/didOpen", {{"textDocument", 3}});
  editor_.Notify("textDocument/didChange", {{"contentChanges", "x"}});
  editor_.Notify("$/unknown", 5);
  EXPECT_TRUE(editor_.Request("shutdown", Json::object()).contains("result"));
}

// The body of a message whose header was wrong has no line end: the header of the next one follows it.
TEST_F(ProtocolTest, BehindAMessageWithoutALengthOthersAreRead) {
  editor_.Initialize("file://" + folder_.path());
  for (const size_t size : {10u, 4080u, 4096u, 4120u, 4170u, 9000u}) {
    editor_.Write("Content-Size: 17\r\n\r\n{\"method\": \"" + std::string(size, 'x') + "\"}");
    EXPECT_EQ(CodeOf(editor_.Request("textDocument/hover", Json::object())), -32602) << size;
  }
}

TEST_F(ProtocolTest, WhatIsMissingInARequestIsNamed) {
  editor_.Initialize("file://" + folder_.path());
  editor_.Open(kScript, "x = 1\n");
  const auto message_of = [&](const std::string& method, const Json& parameters) {
    return editor_.Request(method, parameters)["error"]["message"].get<std::string>();
  };
  EXPECT_EQ(message_of("textDocument/hover", Json::object()), "textDocument.uri is missing");
  EXPECT_EQ(message_of("textDocument/hover", {{"textDocument", {{"uri", kScript}}}}), "position is missing");
  EXPECT_EQ(message_of("textDocument/hover", EditorClient::At("file:///other.dml", 0, 0)),
            "the document is not open: file:///other.dml");
  EXPECT_EQ(message_of("textDocument/rename", EditorClient::At(kScript, 0, 0)), "newName is missing");
  Json renamed = EditorClient::At(kScript, 0, 0);
  renamed["newName"] = "";
  EXPECT_EQ(message_of("textDocument/rename", renamed), "the new name is empty");
  EXPECT_EQ(message_of("completionItem/resolve", Json::object()), "label is missing");
}

TEST_F(ProtocolTest, AHugeMessageIsPassedOver) {
  editor_.Initialize("file://" + folder_.path());
  const size_t length = (size_t{256} << 20) + 1;
  editor_.Write("Content-Length: " + std::to_string(length) + "\r\n\r\n");
  const std::string block(1 << 20, 'x');
  for (size_t sent = 0; sent < length;) {
    const size_t count = std::min(block.size(), length - sent);
    editor_.Write(block.substr(0, count));
    sent += count;
  }
  EXPECT_EQ(editor_.Answer(nullptr)["error"]["message"], "a message has at most 268435456 bytes");
  EXPECT_TRUE(editor_.Request("shutdown", Json::object()).contains("result"));
}

TEST_F(ProtocolTest, RequestsAreCancelledBeforeTheirTurn) {
  editor_.Initialize("file://" + folder_.path());
  std::string text;
  for (int i = 0; i < 3000; ++i)
    text += "x" + std::to_string(i) + " = rand(rows=10, cols=10) + " + std::to_string(i) + "\n";
  editor_.Open(kScript, text);
  // All in one write: the reader has them before the first is answered.
  std::string messages;
  const auto add = [&](const Json& message) {
    const std::string body = message.dump();
    messages += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  };
  for (int id = 100; id < 140; ++id)
    add({{"id", id},
         {"method", "textDocument/documentSymbol"},
         {"params", {{"textDocument", {{"uri", kScript}}}}}});
  add({{"method", "$/cancelRequest"}, {"params", {{"id", 139}}}});
  editor_.Write(messages);
  for (int id = 100; id < 139; ++id) EXPECT_TRUE(editor_.Answer(id).contains("result"));
  EXPECT_EQ(CodeOf(editor_.Answer(139)), -32800);
}

TEST_F(ProtocolTest, PlacesAreCountedInTheUnitsThatWereAgreedOn) {
  // A letter of two bytes and one unit, and one of four bytes and two units.
  const std::string text = "s = \"\xC3\xA4\xF0\x9D\x84\x9E\" + missing\n";
  editor_.Initialize("file://" + folder_.path());
  editor_.Open(kScript, text);
  EXPECT_EQ(editor_.Diagnostics(kScript, 1)[0]["range"]["start"]["character"], 12);

  EditorClient other(folder_.path());
  const Json result = other.Initialize("file://" + folder_.path(),
                                       {{"general", {{"positionEncodings", {"utf-8", "utf-16"}}}}});
  EXPECT_EQ(result["capabilities"]["positionEncoding"], "utf-8");
  other.Open(kScript, text);
  EXPECT_EQ(other.Diagnostics(kScript, 1)[0]["range"]["start"]["character"], 15);
}

}  // namespace
}  // namespace heddle
