// SPDX-License-Identifier: Apache-2.0
// What an editor sees of scripts: diagnostics, values, names, completion, formatting.
#include "tests/editor/editor_client.h"

namespace heddle {
namespace {

using testing_support::EditorClient;
using testing_support::Json;
using testing_support::TemporaryFolder;
using testing_support::WriteText;

class SessionTest : public testing::Test {
 protected:
  SessionTest() { editor_.Initialize("file://" + folder_.path()); }
  std::string Address(const std::string& name) const { return "file://" + folder_.path() + "/" + name; }
  std::string Hover(const std::string& address, int line, int character) {
    const Json result = editor_.Result("textDocument/hover", EditorClient::At(address, line, character));
    return result.is_null() ? "" : result["contents"]["value"].get<std::string>();
  }
  std::vector<std::string> Words(const std::string& address, int line, int character) {
    std::vector<std::string> words;
    const Json result = editor_.Result("textDocument/completion", EditorClient::At(address, line, character));
    for (const Json& item : result["items"]) words.push_back(item["label"]);
    return words;
  }

  TemporaryFolder folder_;
  EditorClient editor_{folder_.path()};
};

using Strings = std::vector<std::string>;

TEST_F(SessionTest, DiagnosticsFollowWhatIsTyped) {
  const std::string script = Address("a.dml");
  editor_.Open(script, "X = rand(rows=10, cols=3)\nY = X %*% X\nprint(sum(Y) + zz)\n");
  const Json first = editor_.Diagnostics(script, 1);
  ASSERT_EQ(first.size(), 2u) << first;
  EXPECT_EQ(first[0]["severity"], 1);
  EXPECT_EQ(first[0]["range"]["start"], Json({{"line", 1}, {"character", 6}})) << first;
  EXPECT_EQ(first[1]["message"], "undefined variable 'zz'");
  editor_.Notify(
      "textDocument/didChange",
      {{"textDocument", {{"uri", script}, {"version", 2}}},
       {"contentChanges",
        {{{"range", {{"start", {{"line", 1}, {"character", 4}}}, {"end", {{"line", 1}, {"character", 5}}}}},
          {"text", "t(X)"}},
         {{"range", {{"start", {{"line", 2}, {"character", 15}}}, {"end", {{"line", 2}, {"character", 17}}}}},
          {"text", "1"}}}}});
  EXPECT_EQ(editor_.Diagnostics(script, 2), Json::array());
}

TEST_F(SessionTest, WarningsAreToldToo) {
  const std::string script = Address("a.dml");
  editor_.Open(script, "print(1).\n");
  const Json found = editor_.Diagnostics(script, 1);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0]["severity"], 2);
  EXPECT_EQ(found[0]["message"], "this '.' means nothing and is left out");
}

TEST_F(SessionTest, ArgumentsThatNobodyGivesAreNoErrors) {
  const std::string script = Address("a.dml");
  editor_.Open(script, "X = read($X)\nprint(sum(X) * $factor)\n");
  EXPECT_EQ(editor_.Diagnostics(script, 1), Json::array());
}

TEST_F(SessionTest, TextsOfTheEditorCountOverFiles) {
  WriteText(folder_.path() + "/lib.dml", "f = function(double a) return (double b) { b = a }\n");
  const std::string script = Address("a.dml");
  editor_.Open(script, "source(\"lib.dml\") as lib\nprint(lib::g(1))\n");
  EXPECT_EQ(editor_.Diagnostics(script, 1).size(), 1u);
  editor_.Open(Address("lib.dml"), "g = function(double a) return (double b) { b = a }\n");
  EXPECT_EQ(editor_.Diagnostics(script, 1), Json::array());
  // Errors of a sourced text are shown where it is sourced.
  editor_.Change(Address("lib.dml"), "g = function(double a) return (double b) { b = a + }\n", 2);
  const Json found = editor_.Diagnostics(script, 1);
  ASSERT_EQ(found.size(), 1u) << found;
  EXPECT_EQ(found[0]["range"]["start"]["line"], 0);
  EXPECT_EQ(found[0]["message"], "lib.dml:1:52: expected an expression, found '}'");
  EXPECT_EQ(found[0]["relatedInformation"][0]["location"]["uri"], Address("lib.dml"));
  editor_.Notify("textDocument/didClose", {{"textDocument", {{"uri", Address("lib.dml")}}}});
  EXPECT_EQ(editor_.Diagnostics(script, 1).size(), 1u);
}

TEST_F(SessionTest, HoverTellsTypeShapeFormatBytesAndPlace) {
  const std::string script = Address("a.dml");
  editor_.Open(
      script,
      "X = rand(rows=2000000, cols=10, seed=1)\nw = t(X) %*% X\nS = rand(rows=100, cols=100, sparsity=0.01)\n"
      "n = nrow(X)\nB = lm(X, X[,1], verbose=FALSE)\nprint(sum(w) + n + sum(S) + sum(B))\n");
  EXPECT_EQ(Hover(script, 0, 0),
            "```dml\nX: matrix 2000000x10\n```\n```text\ndense\n160,000,000 bytes (152.6 MiB)\n"
            "place: on a cluster by rows on all workers\n```");
  EXPECT_EQ(Hover(script, 1, 0),
            "```dml\nw: matrix 10x10\n```\n```text\ndense\n800 bytes\n"
            "place: on a cluster whole on one worker, as it has less than 8,388,608 bytes (8.0 MiB)\n```");
  EXPECT_EQ(Hover(script, 2, 0),
            "```dml\nS: matrix 100x100\n```\n```text\n"
            "sparse (CSR): memory grows with the non-zeros, 12 bytes each and 800 bytes for the rows\n```");
  EXPECT_EQ(Hover(script, 3, 0), "```dml\nn: integer\n```");
  EXPECT_TRUE(Hover(script, 4, 0).starts_with("```dml\nB: matrix")) << Hover(script, 4, 0);
  EXPECT_NE(Hover(script, 4, 4).find("linear regression"), std::string::npos);
  EXPECT_NE(Hover(script, 4, 20).find("print how well the model fits"), std::string::npos);
  EXPECT_NE(Hover(script, 0, 5).find("rand"), std::string::npos);
  EXPECT_EQ(Hover(script, 0, 3), "");
}

TEST_F(SessionTest, HoverKeepsWhatWasKnownWhileTheTextHasErrors) {
  const std::string script = Address("a.dml");
  editor_.Open(script, "X = rand(rows=20, cols=10)\nprint(sum(X))\n");
  EXPECT_NE(Hover(script, 0, 0).find("matrix 20x10"), std::string::npos);
  editor_.Change(script, "X = rand(rows=20, cols=10)\nprint(sum(X)\n", 2);
  EXPECT_NE(Hover(script, 0, 0).find("as of the last text without errors"), std::string::npos);
  // Where all of it parses, values are known beside other errors.
  editor_.Change(script, "X = rand(rows=30, cols=10)\nprint(sum(X) + zz)\n", 3);
  EXPECT_NE(Hover(script, 0, 0).find("matrix 30x10"), std::string::npos);
}

TEST_F(SessionTest, CompletionAlsoOfWhatDoesNotParse) {
  WriteText(folder_.path() + "/lib/tools.dml", "clean = function(double a) return (double b) { b = a }\n");
  WriteText(folder_.path() + "/data.csv", "1,2\n");
  const std::string script = Address("a.dml");
  const std::string head =
      "source(\"lib/tools.dml\") as tools\nf = function(Matrix[Double] input, Double scale = 2)\n"
      "    return (Matrix[Double] output) {\n  halfway = input * scale\n  output = ha\n}\nlength_of_x = 3\n";
  editor_.Open(script, head);
  EXPECT_EQ(Words(script, 4, 13), Strings({"halfway"}));
  int version = 1;
  const auto words_behind = [&](const std::string& line) {
    editor_.Change(script, head + "m = 5\n" + line, ++version);
    return Words(script, 8, static_cast<int>(line.size()));
  };
  EXPECT_EQ(words_behind("y = le")[0], "length_of_x");
  EXPECT_EQ(words_behind("z = tools::"), Strings({"clean"}));
  EXPECT_EQ(words_behind("q = f(inp")[0], "input=");
  EXPECT_EQ(words_behind("r = lmPredict(")[0], "B=");
  EXPECT_EQ(words_behind("X = read(\"da"), Strings({"data.csv"}));
  EXPECT_EQ(words_behind("W = read(\"lib/"), Strings({"lib/tools.dml"}));
  EXPECT_EQ(words_behind("print(\"da"), Strings());
  EXPECT_EQ(words_behind("n = rand(rows=3, co")[0], "cols=");
  EXPECT_EQ(words_behind("n = 3 # ha"), Strings());
  const Json own = {{"label", "sum"}, {"kind", 3}, {"detail", "function"}};
  EXPECT_EQ(editor_.Result("completionItem/resolve", own), own);
  const Json resolved =
      editor_.Result("completionItem/resolve", {{"label", "lm"}, {"kind", 3}, {"detail", "library"}});
  EXPECT_NE(resolved["documentation"]["value"].get<std::string>().find("linear regression"),
            std::string::npos);
}

TEST_F(SessionTest, SignaturesFollowTheArguments) {
  const std::string script = Address("a.dml");
  editor_.Open(script,
               "f = function(Double a, Double b = 2) return (Double c) { c = a + b }\nx = f(1, b=\ny = lm(");
  Json help = editor_.Result("textDocument/signatureHelp", EditorClient::At(script, 1, 11));
  EXPECT_EQ(help["signatures"][0]["label"], "c = f(a, b=2)");
  EXPECT_EQ(help["activeParameter"], 1);
  help = editor_.Result("textDocument/signatureHelp", EditorClient::At(script, 2, 7));
  EXPECT_EQ(help["activeParameter"], 0);
  EXPECT_EQ(editor_.Result("textDocument/signatureHelp", EditorClient::At(script, 0, 0)), nullptr);
}

TEST_F(SessionTest, DefinitionsAcrossFilesAndInTheLibrary) {
  WriteText(folder_.path() + "/lib.dml",
            "# first line\nf = function(double a) return (double b) { b = a }\n");
  const std::string script = Address("a.dml");
  editor_.Open(
      script, "source(\"lib.dml\") as lib\nx = lib::f(2)\ny = x\nB = lm(matrix(y, 2, 1), matrix(y, 2, 1))\n");
  Json places = editor_.Result("textDocument/definition", EditorClient::At(script, 1, 9));
  ASSERT_EQ(places.size(), 1u);
  EXPECT_EQ(places[0]["uri"], Address("lib.dml"));
  EXPECT_EQ(places[0]["range"]["start"], Json({{"line", 1}, {"character", 0}}));
  places = editor_.Result("textDocument/definition", EditorClient::At(script, 2, 4));
  EXPECT_EQ(places[0]["range"]["start"], Json({{"line", 1}, {"character", 0}}));
  places = editor_.Result("textDocument/definition", EditorClient::At(script, 3, 4));
  ASSERT_EQ(places.size(), 1u);
  const std::string address = places[0]["uri"];
  EXPECT_TRUE(address.ends_with("/regression/lm.dml")) << address;
  EXPECT_TRUE(std::filesystem::exists(address.substr(7)));
}

TEST_F(SessionTest, RenameAndReferencesReachOtherFiles) {
  WriteText(folder_.path() + "/lib.dml", "f = function(double a) return (double b) { b = a * a }\ng = 1\n");
  const std::string script = Address("a.dml");
  editor_.Open(script, "source(\"lib.dml\") as lib\nx = lib::f(a=2)\nf = 3\nprint(x + f)\n");
  Json asked = EditorClient::At(script, 1, 9);
  asked["context"] = {{"includeDeclaration", true}};
  EXPECT_EQ(editor_.Result("textDocument/references", asked).size(), 2u);
  asked["newName"] = "square";
  Json changes = editor_.Result("textDocument/rename", asked)["changes"];
  EXPECT_EQ(changes[script].size(), 1u) << changes;
  EXPECT_EQ(changes[script][0]["range"]["start"], Json({{"line", 1}, {"character", 9}}));
  EXPECT_EQ(changes[Address("lib.dml")].size(), 1u);
  asked = EditorClient::At(script, 1, 11);
  asked["newName"] = "number";
  changes = editor_.Result("textDocument/rename", asked)["changes"];
  EXPECT_EQ(changes[Address("lib.dml")].size(), 3u) << changes;
  EXPECT_EQ(changes[script].size(), 1u);
  EXPECT_EQ(editor_.Result("textDocument/prepareRename", EditorClient::At(script, 1, 0))["placeholder"], "x");
  EXPECT_EQ(editor_.Result("textDocument/documentHighlight", EditorClient::At(script, 1, 0)).size(), 2u);
}

TEST_F(SessionTest, SymbolsFoldsAndFormatting) {
  const std::string script = Address("a.dml");
  editor_.Open(script, "# one\n# two\nf=function(double a)return(double b){\nb=a\n}\nx=f(1)\ny=2\n");
  const Json symbols = editor_.Result("textDocument/documentSymbol", {{"textDocument", {{"uri", script}}}});
  ASSERT_EQ(symbols.size(), 3u);
  EXPECT_EQ(symbols[0]["name"], "f");
  const Json folds = editor_.Result("textDocument/foldingRange", {{"textDocument", {{"uri", script}}}});
  EXPECT_EQ(folds,
            Json::parse(R"([{"startLine":0,"endLine":1,"kind":"comment"},{"startLine":2,"endLine":3}])"));
  const Json edits =
      editor_.Result("textDocument/formatting", {{"textDocument", {{"uri", script}}}, {"options", {}}});
  ASSERT_EQ(edits.size(), 1u);
  EXPECT_EQ(edits[0]["newText"], "f = function(double a) return (double b) {\n  b = a\n}\nx = f(1)\ny = 2\n");
  editor_.Change(script, "x = (\n", 2);
  EXPECT_EQ(
      editor_.Request("textDocument/formatting", {{"textDocument", {{"uri", script}}}})["error"]["message"],
      "the script is left as it is: line 1: expected an expression, found the end of the file");
}

// At 5,000 lines: what is wrong within 150 ms and completion within 50 ms behind a key. Processor time is
// measured, as other processes may keep the answers waiting, and the bounds here are twice as high: caches
// are shared, too. docs/editor.md has what was measured.
TEST_F(SessionTest, LargeScriptsAreAnsweredAtOnce) {
  std::string text = "X = rand(rows=1000, cols=10, seed=1)\ny = rand(rows=1000, cols=1, seed=2)\n";
  for (int i = 0; i < 700; ++i) {
    const std::string w = "w" + std::to_string(i);
    text += "# step\n" + w + " = matrix(0, rows=ncol(X), cols=1)\nfor (i in 1:10) {\n  g = t(X) %*% (X %*% " +
            w + " - y)\n  if (sum(g^2) > 1e-6)\n    " + w + " = " + w + " - 0.001 * g\n}\n";
  }
  const std::string script = Address("a.dml");
  editor_.Open(script, text);
  editor_.Diagnostics(script, 1);
  double best_completion = 1e9, best_key = 1e9;
  for (int key = 0; key < 5; ++key) {
    const int version = key + 2;
    const double pressed = editor_.ProcessorMilliseconds();
    const Json place = {{"line", 1}, {"character", key}};
    editor_.Notify(
        "textDocument/didChange",
        {{"textDocument", {{"uri", script}, {"version", version}}},
         {"contentChanges",
          Json::array({{{"range", {{"start", place}, {"end", place}}}, {"text", key == 0 ? "r" : "a"}}})}});
    editor_.Diagnostics(script, version);
    best_key = std::min(best_key, editor_.ProcessorMilliseconds() - pressed);
    const double asked = editor_.ProcessorMilliseconds();
    EXPECT_FALSE(Words(script, 1, 1).empty());
    best_completion = std::min(best_completion, editor_.ProcessorMilliseconds() - asked);
  }
  std::printf("completion %.1f ms, what is wrong %.1f ms of processor time\n", best_completion, best_key);
  EXPECT_LE(best_completion, 2 * 50 * testing_support::kPatience);
  EXPECT_LE(best_key, 2 * 150 * testing_support::kPatience);
}

}  // namespace
}  // namespace heddle
