// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/module/link_object.h"

#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/ExecutorProcessControl.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/Support/MemoryBuffer.h>

#include <atomic>

#include "compiler/codegen/module/lower_region.h"

namespace heddle::codegen {
namespace {

namespace orc = llvm::orc;

Status FromLlvm(llvm::Error error) { return Internal("codegen: {}", llvm::toString(std::move(error))); }

/// The process as ORC sees it; lives as long as the process.
struct Session {
  explicit Session(std::unique_ptr<orc::ExecutorProcessControl> control)
      : session(std::move(control)), layer(session, session.getExecutorProcessControl().getMemMgr()) {}
  orc::ExecutionSession session;
  orc::ObjectLinkingLayer layer;
  std::atomic<uint64_t> objects = 0;
};

Result<Session*> TheSession() {
  static Result<Session*>* const opened = [] {
    auto control = orc::SelfExecutorProcessControl::Create();
    if (!control) return new Result<Session*>(FromLlvm(control.takeError()));
    return new Result<Session*>(new Session(std::move(*control)));
  }();
  return *opened;
}

class OrcObject : public LinkedObject {
 public:
  OrcObject(Session& session, orc::JITDylib& library, void* entry_point)
      : session_(session), library_(library), entry_point_(entry_point) {}
  ~OrcObject() override { llvm::consumeError(session_.session.removeJITDylib(library_)); }
  void* entry_point() const override { return entry_point_; }

 private:
  Session& session_;
  orc::JITDylib& library_;
  void* entry_point_;
};

llvm::Expected<void*> Link(Session& session, orc::JITDylib& library, std::string_view object,
                           std::span<const HeddleSymbol> symbols) {
  orc::SymbolMap addresses;
  for (const HeddleSymbol& symbol : symbols)
    addresses[session.session.intern(symbol.name)] = {orc::ExecutorAddr::fromPtr(symbol.address),
                                                      llvm::JITSymbolFlags::Exported};
  if (llvm::Error error = library.define(orc::absoluteSymbols(std::move(addresses)))) return error;
  auto buffer =
      llvm::MemoryBuffer::getMemBufferCopy(llvm::StringRef(object.data(), object.size()), library.getName());
  if (llvm::Error error = session.layer.add(library, std::move(buffer))) return error;
  auto found = session.session.lookup({&library}, session.session.intern(kEntryPoint));
  if (!found) return found.takeError();
  return found->getAddress().toPtr<void*>();
}

}  // namespace

Result<std::unique_ptr<LinkedObject>> LinkObject(std::string_view object,
                                                 std::span<const HeddleSymbol> symbols) {
  HEDDLE_ASSIGN_OR_RETURN(Session* const session, TheSession());
  orc::JITDylib& library = session->session.createBareJITDylib(fmt::format("region{}", session->objects++));
  llvm::Expected<void*> entry_point = Link(*session, library, object, symbols);
  if (!entry_point) {
    llvm::consumeError(session->session.removeJITDylib(library));
    return FromLlvm(entry_point.takeError());
  }
  return std::unique_ptr<LinkedObject>(std::make_unique<OrcObject>(*session, library, *entry_point));
}

}  // namespace heddle::codegen
