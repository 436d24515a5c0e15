// SPDX-License-Identifier: Apache-2.0
// A step of the build: reads the descriptors of proto/ (protoc --descriptor_set_out) and writes the table of
// rules, one for each method of each service, as a header of C++. A method without a rule, or with a role
// that is none, ends the build.
//
//   heddle-write-rules DESCRIPTORS HEADER
#include <google/protobuf/descriptor.pb.h>

#include <fstream>
#include <iostream>
#include <string>

#include "cluster/security/role.h"
#include "proto/access.pb.h"

namespace {

// "" and a message where the method may not be built.
std::string Line(const google::protobuf::FileDescriptorProto& file, const std::string& service,
                 const google::protobuf::MethodDescriptorProto& method) {
  const std::string place = file.name() + ": " + service + "." + method.name();
  if (!method.options().HasExtension(heddle::may_call)) {
    std::cerr
        << place
        << " has no rule: who may call it? option (may_call) = {roles: [...]}, see proto/access.proto\n";
    return "";
  }
  const heddle::CallRule& rule = method.options().GetExtension(heddle::may_call);
  std::string roles;
  for (const std::string& name : rule.roles()) {
    if (!heddle::cluster::ParseRole(name)) {
      std::cerr << place << ": '" << name << "' is no role\n";
      return "";
    }
    roles += (roles.empty() ? "*ParseRole(\"" : ", *ParseRole(\"") + name + "\")";
  }
  if (roles.empty()) {
    std::cerr << place << ": its rule names no role\n";
    return "";
  }
  return "    {\"/" + file.package() + "." + service + "/" + method.name() + "\", {" + roles + "}, " +
         (rule.changes() ? "true" : "false") + ", \"" + rule.object() + "\"},\n";
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) return 2;
  google::protobuf::FileDescriptorSet set;
  std::ifstream in(words[1], std::ios::binary);
  if (!set.ParseFromIstream(&in)) {
    std::cerr << words[1] << ": no descriptors\n";
    return 1;
  }
  std::string text =
      "// Written by cluster/security/main/write_rules.cc.\n#pragma once\n\n"
      "#include \"cluster/security/rpc_rules.h\"\n\nnamespace heddle::cluster {\n\n"
      "inline constexpr RpcRule kRpcRules[] = {\n";
  bool is_sound = true;
  for (const auto& file : set.file())
    for (const auto& service : file.service())
      for (const auto& method : service.method()) {
        const std::string line = Line(file, service.name(), method);
        is_sound &= !line.empty();
        text += line;
      }
  if (!is_sound) return 1;
  std::ofstream(words[2]) << text << "};\n\n}  // namespace heddle::cluster\n";
  return 0;
}
