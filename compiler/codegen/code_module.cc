// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/code_module.h"

#include <vector>

#include "core/environment/modules.h"
#include "ops/simd/cellwise/elementwise.h"

namespace heddle::codegen {
namespace {

constexpr char kFileName[] = "libheddle_codegen.so";

std::string TakeText(const HeddleCodegenModule& functions, HeddleBytes bytes) {
  std::string text(bytes.data, bytes.size);
  functions.free_bytes(&bytes);
  return text;
}

class LoadedCode : public ops::RegionCode {
 public:
  LoadedCode(const HeddleCodegenModule& functions, void* entry_point, void* handle)
      : functions_(functions),
        function_(reinterpret_cast<ops::RegionFunction>(entry_point)),
        handle_(handle) {}
  ~LoadedCode() override { functions_.release(handle_); }
  LoadedCode(const LoadedCode&) = delete;
  LoadedCode& operator=(const LoadedCode&) = delete;
  void Run(const ops::RegionCall& call) const override { function_(&call); }

 private:
  const HeddleCodegenModule& functions_;
  ops::RegionFunction function_;
  void* handle_;
};

}  // namespace

Result<const CodeModule*> CodeModule::Find() {
  const Result<const void*> functions = OpenModule(kFileName, "HeddleOpenCodegen", kHeddleModuleAbi);
  if (!functions.ok()) return Unavailable("codegen: {}", functions.status().message());
  return new CodeModule(static_cast<const HeddleCodegenModule*>(*functions));
}

Result<const CodeModule*> CodeModule::Open() {
  static const auto* const found = new Result<const CodeModule*>(Find());
  return *found;
}

Result<std::string> CodeModule::Compile(const std::string& region_text, ops::Cpu cpu,
                                        HeddleProduct product) const {
  HeddleBytes out{}, error{};
  if (functions_->compile(region_text.c_str(), static_cast<int32_t>(cpu), product, &out, &error) != 0)
    return Internal("{}", TakeText(*functions_, error));
  return TakeText(*functions_, out);
}

Result<std::shared_ptr<const ops::RegionCode>> CodeModule::Load(std::string_view object, ops::Cpu cpu) const {
  const ops::ElementwiseKernels& kernels =
      cpu == ops::Cpu::kAvx512 ? ops::kElementwiseKernelsAvx512 : ops::kElementwiseKernelsAvx2;
  const HeddleSymbol symbols[] = {
      {"heddle_sine", reinterpret_cast<const void*>(kernels.Of(ops::UnaryCode::kSine))},
      {"heddle_cosine", reinterpret_cast<const void*>(kernels.Of(ops::UnaryCode::kCosine))},
      {"heddle_tangent", reinterpret_cast<const void*>(kernels.Of(ops::UnaryCode::kTangent))},
  };
  void* entry_point = nullptr;
  void* handle = nullptr;
  HeddleBytes error{};
  if (functions_->load(object.data(), object.size(), symbols, std::size(symbols), &entry_point, &handle,
                       &error) != 0)
    return Internal("{}", TakeText(*functions_, error));
  return std::shared_ptr<const ops::RegionCode>(
      std::make_shared<LoadedCode>(*functions_, entry_point, handle));
}

}  // namespace heddle::codegen
