// SPDX-License-Identifier: Apache-2.0
// heddle._engine: what the package `heddle` is built on. Users call the package.
#include "compiler/help/function_help.h"
#include "python/module/boundary.h"
#include "python/module/engine_object.h"
#include "python/module/errors.h"
#include "python/module/interruptible.h"
#include "python/module/values.h"

namespace heddle::python {
namespace {

// set_error_maker(make)
PyObject* TakeErrorMaker(PyObject*, PyObject* make) {
  SetErrorMaker(make);
  Py_RETURN_NONE;
}

Owned ParametersOf(const std::vector<compiler::FunctionHelp::Parameter>& parameters) {
  Owned list(PyList_New(0));
  for (const compiler::FunctionHelp::Parameter& parameter : parameters) {
    const Owned entry(Py_BuildValue("(sss)", parameter.name.c_str(), parameter.type.c_str(),
                                    parameter.default_value.c_str()));
    if (entry == nullptr || PyList_Append(list.get(), entry.get()) < 0) return nullptr;
  }
  return list;
}

// library_function(name) -> (help, arguments, results), None for another name; an argument or result is
// (name, type, default)
PyObject* LibraryFunction(PyObject*, PyObject* argument) {
  std::string name;
  if (!TextOf(argument, &name)) return nullptr;
  const compiler::LibraryFile* const file = compiler::FindLibraryFunction(name);
  if (file == nullptr) Py_RETURN_NONE;
  const Result<compiler::FunctionHelp> help = compiler::HelpOf(*file);
  if (!help.ok()) return Raise(help.status());
  const Owned text = ToText(compiler::Render(*help)), arguments = ParametersOf(help->arguments),
              results = ParametersOf(help->results);
  if (text == nullptr || arguments == nullptr || results == nullptr) return nullptr;
  return Py_BuildValue("(OOO)", text.get(), arguments.get(), results.get());
}

// library_functions() -> names
PyObject* LibraryFunctions(PyObject*, PyObject*) {
  Owned names(PyList_New(0));
  for (const auto& function : compiler::LibraryFunctionNames()) {
    const Owned text = ToText(function);
    if (text == nullptr || PyList_Append(names.get(), text.get()) < 0) return nullptr;
  }
  return names.release();
}

// help_of(name) -> a screen of text, "" for a name that nothing has
PyObject* HelpOfName(PyObject*, PyObject* argument) {
  std::string name;
  if (!TextOf(argument, &name)) return nullptr;
  return ToText(compiler::HelpOfName(name)).release();
}

// end_runs()
PyObject* EndRunsOfOtherThreads(PyObject*, PyObject*) {
  EndRuns();
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"end_runs", Guarded<EndRunsOfOtherThreads>, METH_NOARGS, "end_runs(): before the interpreter ends"},
    {"set_error_maker", TakeErrorMaker, METH_O, "set_error_maker(make)"},
    {"library_function", Guarded<LibraryFunction>, METH_O,
     "library_function(name) -> (help, arguments, results)"},
    {"library_functions", Guarded<LibraryFunctions>, METH_NOARGS, "library_functions() -> names"},
    {"help_of", Guarded<HelpOfName>, METH_O, "help_of(name) -> str"},
    {nullptr, nullptr, 0, nullptr},
};

int Fill(PyObject* module) {
  return AddValueType(module) && AddBoundaryType(module) && AddEngineTypes(module) ? 0 : -1;
}

}  // namespace
}  // namespace heddle::python

extern "C" __attribute__((visibility("default"))) PyObject* PyInit__engine() {
  static PyModuleDef_Slot slots[] = {{Py_mod_exec, reinterpret_cast<void*>(heddle::python::Fill)},
                                     {0, nullptr}};
  static PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                                   "heddle._engine",
                                   nullptr,
                                   0,
                                   heddle::python::functions,
                                   slots,
                                   nullptr,
                                   nullptr,
                                   nullptr};
  return PyModuleDef_Init(&definition);
}
