// SPDX-License-Identifier: Apache-2.0
#include "python/module/engine_object.h"

#include <fmt/format.h>

#include <map>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "engine/engine.h"
#include "engine/interactive/complete_entry.h"
#include "engine/report/report.h"
#include "engine/session/statistics.h"
#include "python/module/errors.h"
#include "python/module/interruptible.h"
#include "python/module/release_queue.h"
#include "python/module/values.h"

namespace heddle::python {
namespace {

PyTypeObject* session_type = nullptr;  // set once, while the module is imported

struct EngineObject {
  PyObject_HEAD std::unique_ptr<engine::Engine> engine;
};
struct SessionObject {
  PyObject_HEAD std::unique_ptr<engine::InteractiveSession> session;
  int threads;           // of its engine
  Callbacks* callbacks;  // of the statement that runs; nullptr between statements
};

engine::Engine& EngineOf(PyObject* self) { return *reinterpret_cast<EngineObject*>(self)->engine; }
SessionObject& SessionOf(PyObject* self) { return *reinterpret_cast<SessionObject*>(self); }

PyObject* Allocate(PyTypeObject* type) {
  return reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc))(type, 0);
}
void Free(PyObject* self) {
  PyTypeObject* const type = Py_TYPE(self);
  reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
  Py_DECREF(type);
}

// --- arguments ---

// `convert` makes a text of each element: TextOf or PathOf.
bool TextsOf(PyObject* sequence, std::vector<std::string>* texts,
             bool (*convert)(PyObject*, std::string*) = TextOf) {
  const Py_ssize_t size = PySequence_Size(sequence);
  for (Py_ssize_t i = 0; i < size; ++i) {
    const Owned element(PySequence_GetItem(sequence, i));
    if (element == nullptr || !convert(element.get(), &texts->emplace_back())) return false;
  }
  return size >= 0;
}

// Calls `add(name, value)` for each entry of a dict until it returns false.
template <typename Add>
bool ForEachEntry(PyObject* dict, const Add& add) {
  PyObject *key = nullptr, *value = nullptr;
  Py_ssize_t position = 0;
  while (PyDict_Next(dict, &position, &key, &value) != 0) {
    std::string name;
    if (!TextOf(key, &name) || !add(name, value)) return false;
  }
  return true;
}

bool ValuesOf(PyObject* dict, engine::HostValues* values) {
  return ForEachEntry(
      dict, [&](const std::string& name, PyObject* value) { return FromPython(value, &(*values)[name]); });
}

bool ParametersOf(PyObject* dict, std::map<std::string, std::string>* parameters) {
  return ForEachEntry(
      dict, [&](const std::string& name, PyObject* value) { return TextOf(value, &(*parameters)[name]); });
}

bool OptionsOf(PyObject* dict, engine::EngineOptions* options) {
  engine::SessionOptions& session = options->session;
  return ForEachEntry(dict, [&](const std::string& name, PyObject* value) {
    if (name == "directory") return PathOf(value, &options->directory);
    if (name == "library") return TextsOf(value, &options->libraries, PathOf);
    if (name == "fusion") return TextOf(value, &session.fusion);
    if (name == "cpu") return TextOf(value, &session.cpu);
    if (name == "compress") {
      std::string mode;
      if (!TextOf(value, &mode)) return false;
      const Status status = engine::SetCompression(mode, &session);
      if (!status.ok()) Raise(status);
      return status.ok();
    }
    if (name == "devices") {
      std::string devices;
      if (!TextOf(value, &devices)) return false;
      const Status status = engine::SetDevices(devices, &session);
      if (!status.ok()) Raise(status);
      return status.ok();
    }
    if (name == "spill_folder") return PathOf(value, &session.spill_folder);
    if (name == "single_precision") {
      session.element_type = PyObject_IsTrue(value) == 1 ? ElementType::kFloat32 : ElementType::kFloat64;
    } else if (name == "times_operators") {
      session.times_operators = PyObject_IsTrue(value) == 1;
    } else if (name == "recorded_events") {
      session.recorded_events = PyLong_AsLongLong(value);
    } else if (name == "threads") {
      session.threads = static_cast<int>(PyLong_AsLong(value));
    } else if (name == "memory") {
      session.memory_bytes = PyLong_AsLongLong(value);
    } else if (name == "seed") {
      session.seed = PyLong_AsLongLong(value);
    } else {
      PyErr_Format(PyExc_TypeError, "no option is called %s", name.c_str());
    }
    return PyErr_Occurred() == nullptr;
  });
}

// --- Engine ---

PyObject* NewEngine(PyTypeObject* type, PyObject* arguments, PyObject*) {
  PyObject* dict = nullptr;
  if (!PyArg_ParseTuple(arguments, "O!:Engine", &PyDict_Type, &dict)) return nullptr;
  engine::EngineOptions options;
  std::vector<std::string> warnings;
  options.warn = [&warnings](std::string_view text) { warnings.emplace_back(text); };
  options.argument_hint = [](std::string_view name) {
    const bool is_position = name[0] >= '0' && name[0] <= '9';
    return is_position ? "give it with args=[...], in order"
                       : fmt::format("give it with args={{\"{}\": ...}}", name);
  };
  if (!OptionsOf(dict, &options)) return nullptr;
  Result<std::unique_ptr<engine::Engine>> engine = engine::Engine::Create(std::move(options));
  if (!engine.ok()) return Raise(engine.status());
  for (const std::string& warning : warnings)
    if (PyErr_WarnEx(PyExc_UserWarning, warning.c_str(), 1) < 0) return nullptr;
  PyObject* const self = Allocate(type);
  if (self != nullptr) new (&reinterpret_cast<EngineObject*>(self)->engine) auto(std::move(*engine));
  return self;
}

void DeallocateEngine(PyObject* self) {
  std::destroy_at(&reinterpret_cast<EngineObject*>(self)->engine);
  Free(self);
}

// The page and the trace of a run that was recorded, else None.
Owned RecordOf(const engine::RunResults& results) {
  if (results.record == nullptr) return Share(Py_None);
  const Owned page = ToText(engine::ToHtml(*results.record)),
              trace = ToText(engine::ToTrace(*results.record));
  return page == nullptr || trace == nullptr ? nullptr
                                             : Owned(Py_BuildValue("(OO)", page.get(), trace.get()));
}

// run(text, name, parameters, inputs, outputs, print, warn) -> (outputs, statistics as JSON, record)
PyObject* Run(PyObject* self, PyObject* arguments) {
  ReleaseNow();
  const char *text = nullptr, *name = nullptr;
  Py_ssize_t text_size = 0;
  PyObject *parameters = nullptr, *inputs = nullptr, *outputs = nullptr, *print = nullptr, *warn = nullptr;
  if (!PyArg_ParseTuple(arguments, "s#sO!O!OOO:run", &text, &text_size, &name, &PyDict_Type, &parameters,
                        &PyDict_Type, &inputs, &outputs, &print, &warn))
    return nullptr;
  engine::Script script{.text = {text, static_cast<size_t>(text_size)}, .name = name};
  engine::HostValues values;
  std::vector<std::string> output_names;
  if (!ParametersOf(parameters, &script.parameters) || !ValuesOf(inputs, &values) ||
      !TextsOf(outputs, &output_names))
    return nullptr;

  Callbacks callbacks(print, warn);
  engine::RunResults results;
  const bool ended = RunInterruptibly(EngineOf(self).options().session.threads, &callbacks, [&]() -> Status {
    HEDDLE_ASSIGN_OR_RETURN(
        results, EngineOf(self).Run(script, values, output_names,
                                    {.print = [&](std::string_view printed) { callbacks.Print(printed); },
                                     .warn = [&](std::string_view warning) { callbacks.Warn(warning); },
                                     .cancellation = callbacks.cancellation()}));
    return OkStatus();
  });
  if (!ended) return nullptr;
  values.clear();  // an output that is alone with its cells may be written to
  Owned dict(PyDict_New());
  if (dict == nullptr) return nullptr;
  for (const std::string& output : output_names) {
    const auto found = results.outputs.find(output);
    if (found == results.outputs.end()) continue;  // named twice
    const Owned value = ToPython(std::move(found->second));
    results.outputs.erase(found);
    if (value == nullptr || PyDict_SetItemString(dict.get(), output.c_str(), value.get()) < 0) return nullptr;
  }
  const Owned statistics = ToText(engine::ToJson(results.statistics)), record = RecordOf(results);
  if (statistics == nullptr || record == nullptr) return nullptr;
  return Py_BuildValue("(OOO)", dict.get(), statistics.get(), record.get());
}

// check(text, name, parameters, inputs) -> (errors, warnings), as `heddle check` shows them
PyObject* Check(PyObject* self, PyObject* arguments) {
  const char *text = nullptr, *name = nullptr;
  Py_ssize_t text_size = 0;
  PyObject *parameters = nullptr, *inputs = nullptr;
  if (!PyArg_ParseTuple(arguments, "s#sO!O!:check", &text, &text_size, &name, &PyDict_Type, &parameters,
                        &PyDict_Type, &inputs))
    return nullptr;
  engine::Script script{.text = {text, static_cast<size_t>(text_size)}, .name = name};
  engine::HostValues values;
  if (!ParametersOf(parameters, &script.parameters) || !ValuesOf(inputs, &values)) return nullptr;
  const compiler::Diagnostics diagnostics = EngineOf(self).Check(script, values);
  const Owned errors = ToText(diagnostics.RenderAll(compiler::Severity::kError)),
              warnings = ToText(diagnostics.RenderAll(compiler::Severity::kWarning));
  if (errors == nullptr || warnings == nullptr) return nullptr;
  return Py_BuildValue("(OO)", errors.get(), warnings.get());
}

// explain(text, name, parameters, level) -> str
PyObject* Explain(PyObject* self, PyObject* arguments) {
  const char *text = nullptr, *name = nullptr, *level = nullptr;
  Py_ssize_t text_size = 0;
  PyObject* parameters = nullptr;
  if (!PyArg_ParseTuple(arguments, "s#sO!s:explain", &text, &text_size, &name, &PyDict_Type, &parameters,
                        &level))
    return nullptr;
  engine::Script script{.text = {text, static_cast<size_t>(text_size)}, .name = name};
  if (!ParametersOf(parameters, &script.parameters)) return nullptr;
  const Result<std::string> explained = EngineOf(self).Explain(script, level);
  return explained.ok() ? ToText(*explained).release() : Raise(explained.status());
}

// session(parameters) -> Session
PyObject* NewSession(PyObject* self, PyObject* arguments) {
  PyObject* dict = nullptr;
  std::map<std::string, std::string> parameters;
  if (!PyArg_ParseTuple(arguments, "O!:session", &PyDict_Type, &dict) || !ParametersOf(dict, &parameters))
    return nullptr;
  Owned object(Allocate(session_type));
  if (object == nullptr) return nullptr;
  SessionObject& session = SessionOf(object.get());
  const auto print = [&session](std::string_view text) {
    if (session.callbacks != nullptr) session.callbacks->Print(text);
  };
  const auto warn = [&session](std::string_view text) {
    if (session.callbacks != nullptr) session.callbacks->Warn(text);
  };
  new (&session.session) std::unique_ptr<engine::InteractiveSession>();
  session.threads = EngineOf(self).options().session.threads;
  session.session = EngineOf(self).NewSession({.print = print, .warn = warn}, parameters);
  return object.release();
}

// --- Session ---

void DeallocateSession(PyObject* self) {
  std::destroy_at(&SessionOf(self).session);
  Free(self);
}

// While it lives the session runs a statement, with these callbacks.
class Statement {
 public:
  Statement(SessionObject* session, Callbacks* callbacks) : session_(session) {
    session_->callbacks = callbacks;
  }
  ~Statement() { session_->callbacks = nullptr; }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

 private:
  SessionObject* const session_;
};

bool MayUse(const SessionObject& session) {
  ReleaseNow();
  if (session.callbacks == nullptr) return true;
  Raise(Usage("this session runs a statement; it takes one at a time"));
  return false;
}

// run(entry, print, warn)
PyObject* RunStatements(PyObject* self, PyObject* arguments) {
  std::string entry;
  PyObject *text = nullptr, *print = nullptr, *warn = nullptr;
  if (!PyArg_ParseTuple(arguments, "UOO:run", &text, &print, &warn) || !TextOf(text, &entry)) return nullptr;
  SessionObject& session = SessionOf(self);
  if (!MayUse(session)) return nullptr;
  Callbacks callbacks(print, warn);
  const Statement statement(&session, &callbacks);
  if (!RunInterruptibly(session.threads, &callbacks,
                        [&] { return session.session->Run(entry, callbacks.cancellation()); }))
    return nullptr;
  Py_RETURN_NONE;
}

// set(name, input)
PyObject* Set(PyObject* self, PyObject* arguments) {
  const char* name = nullptr;
  PyObject* input = nullptr;
  if (!PyArg_ParseTuple(arguments, "sO:set", &name, &input) || !MayUse(SessionOf(self))) return nullptr;
  engine::HostValue value;
  if (!FromPython(input, &value)) return nullptr;
  if (Status status = SessionOf(self).session->Set(name, value); !status.ok()) return Raise(status);
  Py_RETURN_NONE;
}

// get(name) -> value
PyObject* Get(PyObject* self, PyObject* arguments) {
  const char* name = nullptr;
  if (!PyArg_ParseTuple(arguments, "s:get", &name) || !MayUse(SessionOf(self))) return nullptr;
  Result<engine::HostValue> value = SessionOf(self).session->Get(name);
  return value.ok() ? ToPython(std::move(*value)).release() : Raise(value.status());
}

// variables() -> names
PyObject* Variables(PyObject* self, PyObject*) {
  if (!MayUse(SessionOf(self))) return nullptr;
  Owned names(PyList_New(0));
  for (const auto& [name, variable] : SessionOf(self).session->variables().variables()) {
    const Owned text = ToText(name);
    if (text == nullptr || PyList_Append(names.get(), text.get()) < 0) return nullptr;
  }
  return names.release();
}

// type_of(expression) -> str
PyObject* TypeOfExpression(PyObject* self, PyObject* arguments) {
  const char* expression = nullptr;
  if (!PyArg_ParseTuple(arguments, "s:type_of", &expression) || !MayUse(SessionOf(self))) return nullptr;
  const Result<std::string> type = SessionOf(self).session->TypeOf(expression);
  return type.ok() ? ToText(*type).release() : Raise(type.status());
}

// explain(entry) -> str
PyObject* ExplainStatements(PyObject* self, PyObject* arguments) {
  const char* entry = nullptr;
  if (!PyArg_ParseTuple(arguments, "s:explain", &entry) || !MayUse(SessionOf(self))) return nullptr;
  const Result<std::string> text = SessionOf(self).session->Explain(entry);
  return text.ok() ? ToText(*text).release() : Raise(text.status());
}

// complete(text) -> (where the word begins, words)
PyObject* CompleteStatements(PyObject* self, PyObject* argument) {
  std::string text;
  if (!TextOf(argument, &text) || !MayUse(SessionOf(self))) return nullptr;
  const engine::Completions found = engine::CompleteEntry(text, *SessionOf(self).session);
  Owned words(PyList_New(0));
  for (const std::string& word : found.words) {
    const Owned element = ToText(word);
    if (element == nullptr || PyList_Append(words.get(), element.get()) < 0) return nullptr;
  }
  // Python counts characters.
  const Owned before = ToText(std::string_view(text).substr(0, found.begin));
  if (before == nullptr) return nullptr;
  return Py_BuildValue("(nO)", PyUnicode_GetLength(before.get()), words.get());
}

// clear()
PyObject* ClearSession(PyObject* self, PyObject*) {
  if (!MayUse(SessionOf(self))) return nullptr;
  SessionOf(self).session->Clear();
  Py_RETURN_NONE;
}

PyMethodDef engine_methods[] = {
    {"run", Guarded<Run>, METH_VARARGS,
     "run(text, name, parameters, inputs, outputs, print, warn) -> (outputs, statistics, record)"},
    {"check", Guarded<Check>, METH_VARARGS, "check(text, name, parameters, inputs) -> (errors, warnings)"},
    {"explain", Guarded<Explain>, METH_VARARGS, "explain(text, name, parameters, level) -> str"},
    {"session", Guarded<NewSession>, METH_VARARGS, "session(parameters) -> Session"},
    {nullptr, nullptr, 0, nullptr},
};
PyMethodDef session_methods[] = {
    {"run", Guarded<RunStatements>, METH_VARARGS, "run(entry, print, warn)"},
    {"set", Guarded<Set>, METH_VARARGS, "set(name, input)"},
    {"get", Guarded<Get>, METH_VARARGS, "get(name) -> value"},
    {"variables", Guarded<Variables>, METH_NOARGS, "variables() -> names"},
    {"type_of", Guarded<TypeOfExpression>, METH_VARARGS, "type_of(expression) -> str"},
    {"complete", Guarded<CompleteStatements>, METH_O, "complete(text) -> (where the word begins, words)"},
    {"clear", Guarded<ClearSession>, METH_NOARGS, "clear()"},
    {"explain", Guarded<ExplainStatements>, METH_VARARGS, "explain(entry) -> str"},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool AddEngineTypes(PyObject* module) {
  static PyType_Slot engine_slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(Guarded<NewEngine>)},
      {Py_tp_dealloc, reinterpret_cast<void*>(DeallocateEngine)},
      {Py_tp_methods, engine_methods},
      {Py_tp_doc, const_cast<char*>("Compiles and runs scripts in this process.")},
      {0, nullptr},
  };
  static PyType_Slot session_slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(DeallocateSession)},
      {Py_tp_methods, session_methods},
      {Py_tp_doc, const_cast<char*>("Variables and functions that live on from one statement to the next.")},
      {0, nullptr},
  };
  static PyType_Spec engine_spec = {"heddle._engine.Engine", sizeof(EngineObject), 0, Py_TPFLAGS_DEFAULT,
                                    engine_slots};
  static PyType_Spec session_spec = {"heddle._engine.Session", sizeof(SessionObject), 0,
                                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, session_slots};
  const Owned engine_object(PyType_FromSpec(&engine_spec));
  Owned session_object(PyType_FromSpec(&session_spec));
  if (engine_object == nullptr || session_object == nullptr ||
      PyModule_AddObjectRef(module, "Engine", engine_object.get()) < 0 ||
      PyModule_AddObjectRef(module, "Session", session_object.get()) < 0)
    return false;
  session_type = reinterpret_cast<PyTypeObject*>(session_object.release());
  return true;
}

}  // namespace heddle::python
