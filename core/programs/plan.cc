// SPDX-License-Identifier: Apache-2.0
#include "core/programs/plan.h"

#include <array>
#include <charconv>

#include "core/programs/text_format.h"
#include "core/text/quoted.h"

namespace heddle {
namespace {

constexpr std::array<std::string_view, 8> kTaskKinds = {"compute", "source",     "sink", "copy",
                                                        "repeat",  "accumulate", "pack", "unpack"};
constexpr std::array<std::string_view, 10> kPhases = {"",       "partial", "finish", "stage",  "slice",
                                                      "gather", "shape",   "ready",  "panels", "transfer"};
constexpr RegisterId kNoRegister = -1;

void AppendHexadecimal(uint64_t value, std::string* out) {
  char text[24];
  out->append("0x");
  out->append(text, std::to_chars(text, text + sizeof(text), value, 16).ptr);
}

// rank:stream:index, or all bits where the device is not the first CPU.
void AppendTaskId(TaskId id, std::string* out) {
  if (id != TaskId::Make(id.rank(), id.stream(), id.index())) {
    out->append("bits ");
    AppendHexadecimal(id.bits, out);
    return;
  }
  AppendInteger(id.rank(), out);
  out->push_back(':');
  AppendInteger(id.stream(), out);
  out->push_back(':');
  AppendInteger(id.index(), out);
}

TaskId ReadTaskId(TextReader& reader) {
  if (reader.AcceptWord("bits")) return {reader.Hexadecimal()};
  const auto part = [&reader](int64_t bound) {
    const int64_t value = reader.Integer();
    if (value < 0 || value >= bound) reader.Fail("a task id");
    return static_cast<uint32_t>(value);
  };
  const uint32_t rank = part(1 << 16);
  reader.Expect(":");
  const uint32_t stream = part(1 << 15);
  reader.Expect(":");
  const uint32_t index = part(1 << 21);
  return reader.ok() ? TaskId::Make(rank, stream, index) : TaskId();
}

// " on opencl 0"; nothing of the processor.
void AppendDevice(Device device, std::string* out) {
  if (device.IsHost()) return;
  out->append(" on ");
  out->append(Name(device.type));
  out->push_back(' ');
  AppendInteger(device.index, out);
}

Device ReadDevice(TextReader& reader) {
  const std::optional<DeviceType> type = ParseDeviceType(reader.Word());
  if (!type) reader.Fail("a type of device");
  const int64_t index = reader.Integer();
  if (index < 0 || index >= int64_t{kMostDevices}) reader.Fail("the index of a device");
  return {type.value_or(DeviceType::kCpu), static_cast<uint32_t>(index)};
}

void AppendRegisterId(RegisterId id, std::string* out) {
  if (id == kNoRegister)
    out->push_back('_');
  else
    AppendInteger(id, out);
}

RegisterId ReadRegisterId(TextReader& reader) {
  return reader.Accept("_") ? kNoRegister : reader.Integer32();
}

// " word(a, b)"; nothing for an empty list.
template <typename T>
void AppendList(std::string_view word, const std::vector<T>& list, void (*append)(T, std::string*),
                std::string* out) {
  if (list.empty()) return;
  out->push_back(' ');
  out->append(word);
  for (size_t i = 0; i < list.size(); ++i) {
    out->append(i == 0 ? "(" : ", ");
    append(list[i], out);
  }
  out->push_back(')');
}

template <typename T>
std::vector<T> ReadList(TextReader& reader, std::string_view word, T (*read)(TextReader&)) {
  std::vector<T> list;
  if (!reader.AcceptWord(word)) return list;
  reader.Expect("(");
  do {
    list.push_back(read(reader));
  } while (reader.ok() && reader.Accept(","));
  reader.Expect(")");
  return list;
}

// " word 3"; nothing for the default.
void AppendField(std::string_view word, int64_t value, int64_t default_value, std::string* out) {
  if (value == default_value) return;
  out->push_back(' ');
  out->append(word);
  out->push_back(' ');
  AppendInteger(value, out);
}

int64_t ReadField(TextReader& reader, std::string_view word, int64_t default_value) {
  return reader.AcceptWord(word) ? reader.Integer() : default_value;
}

template <typename T, size_t n>
T ReadNamed(TextReader& reader, const std::array<std::string_view, n>& names, std::string_view expected) {
  for (size_t i = 0; i < n; ++i)
    if (reader.AcceptWord(names[i])) return static_cast<T>(i);
  reader.Fail(expected);
  return T{};
}

Phase ReadPhase(TextReader& reader) {
  const std::string name = reader.Quoted();
  for (size_t i = 1; i < kPhases.size(); ++i)
    if (kPhases[i] == name) return static_cast<Phase>(i);
  reader.Fail("a phase of a task");
  return Phase::kWhole;
}

void AppendTask(const Task& task, std::string* out) {
  out->append("task ");
  AppendTaskId(task.id, out);
  out->push_back(' ');
  out->append(Name(task.kind));
  if (task.node != kNoNode) {
    out->push_back(' ');
    AppendNodeId(task.node, out);
  }
  if (task.phase != Phase::kWhole) {
    out->append(" phase ");
    AppendQuoted(Name(task.phase), out);
  }
  AppendList("consumed", task.consumed, AppendRegisterId, out);
  AppendList("produced", task.produced, AppendRegisterId, out);
  AppendList("control_in", task.control_in, AppendRegisterId, out);
  AppendField("stage", task.stage, 0, out);
  if (task.axis == Axis::kColumns) out->append(" columns");
  AppendField("row_begin", task.row_begin, 0, out);
  AppendField("row_end", task.row_end, 0, out);
  AppendField("total_rows", task.total_rows, 0, out);
  AppendField("panel_rows", task.panel_rows, 0, out);
  AppendField("count", task.count, 1, out);
  AppendField("rate", task.rate, 1, out);
  AppendField("cost_ns", task.cost_ns, 0, out);
  out->push_back('\n');
}

Task ReadTask(TextReader& reader) {
  Task task;
  task.id = ReadTaskId(reader);
  task.kind = ReadNamed<TaskKind>(reader, kTaskKinds, "a kind of task");
  if (reader.Peek() == '%') task.node = reader.Node();
  if (reader.AcceptWord("phase")) task.phase = ReadPhase(reader);
  task.consumed = ReadList(reader, "consumed", ReadRegisterId);
  task.produced = ReadList(reader, "produced", ReadRegisterId);
  task.control_in = ReadList(reader, "control_in", ReadRegisterId);
  if (reader.AcceptWord("stage")) task.stage = reader.Integer32();
  if (reader.AcceptWord("columns")) task.axis = Axis::kColumns;
  task.row_begin = ReadField(reader, "row_begin", 0);
  task.row_end = ReadField(reader, "row_end", 0);
  task.total_rows = ReadField(reader, "total_rows", 0);
  task.panel_rows = ReadField(reader, "panel_rows", 0);
  task.count = ReadField(reader, "count", 1);
  task.rate = ReadField(reader, "rate", 1);
  task.cost_ns = ReadField(reader, "cost_ns", 0);
  return task;
}

void AppendRegister(const Register& reg, std::string* out) {
  out->append("register ");
  AppendInteger(reg.id, out);
  out->append(" from ");
  AppendTaskId(reg.producer, out);
  AppendList("to", reg.consumers, AppendTaskId, out);
  AppendField("slots", reg.slots, 1, out);
  if (reg.control) out->append(" control");
  AppendField("bytes", reg.bytes, 0, out);
  AppendDevice(reg.device, out);
  AppendInfo(reg.info, out);
  out->push_back('\n');
}

Register ReadRegister(TextReader& reader) {
  Register reg;
  reg.id = reader.Integer32();
  reader.Expect("from");
  reg.producer = ReadTaskId(reader);
  reg.consumers = ReadList(reader, "to", ReadTaskId);
  if (reader.AcceptWord("slots")) reg.slots = reader.Integer32();
  reg.control = reader.AcceptWord("control");
  reg.bytes = ReadField(reader, "bytes", 0);
  if (reader.AcceptWord("on")) reg.device = ReadDevice(reader);
  reg.info = reader.Info();
  return reg;
}

void AppendBinding(std::string_view word, const Binding& binding, std::string* out) {
  out->append(word);
  out->push_back(' ');
  AppendQuoted(binding.variable, out);
  out->push_back(' ');
  out->append(binding.distribution.ToText());
  out->push_back(' ');
  AppendNodeId(binding.node, out);
  AppendDevice(binding.device, out);
  AppendInfo(binding.info, out);
  out->push_back('\n');
}

// staged %3 form 1 rows split rows(0, 5, 9) results split rows(0, 5, 9)
void AppendStagedNode(const StagedNode& staged, std::string* out) {
  out->append("staged ");
  AppendNodeId(staged.node, out);
  AppendField("form", staged.form, 0, out);
  out->append(" rows ");
  out->append(Distribution{.kind = Distribution::Kind::kSplit, .split = staged.rows}.ToText());
  out->append(" results ");
  out->append(Distribution{.kind = Distribution::Kind::kSplit, .split = staged.result_rows}.ToText());
  out->push_back('\n');
}

StagedNode ReadStagedNode(TextReader& reader) {
  StagedNode staged;
  staged.node = reader.Node();
  if (reader.AcceptWord("form")) staged.form = reader.Integer32();
  reader.Expect("rows");
  staged.rows = reader.Distribution().split;
  reader.Expect("results");
  staged.result_rows = reader.Distribution().split;
  return staged;
}

// stream cpu 0 compute "compute"
void AppendStream(const StreamDescription& stream, std::string* out) {
  out->append("stream ");
  out->append(Name(stream.device.type));
  out->push_back(' ');
  AppendInteger(stream.device.index, out);
  out->push_back(' ');
  out->append(Name(stream.kind));
  out->push_back(' ');
  AppendQuoted(stream.name, out);
  out->push_back('\n');
}

StreamDescription ReadStream(TextReader& reader) {
  StreamDescription stream;
  stream.device = ReadDevice(reader);
  const std::optional<StreamKind> kind = ParseStreamKind(reader.Word());
  if (!kind) reader.Fail("a kind of stream");
  stream.kind = kind.value_or(StreamKind::kCompute);
  stream.name = reader.Quoted();
  return stream;
}

void AppendBytesOfRanks(std::string_view word, const std::vector<int64_t>& ranks, std::string* out) {
  for (const int64_t bytes : ranks) {
    out->append(word);
    out->push_back(' ');
    AppendInteger(bytes, out);
    out->push_back('\n');
  }
}

Binding ReadBinding(TextReader& reader) {
  Binding binding;
  binding.variable = reader.Quoted();
  binding.distribution = reader.Distribution();
  binding.node = reader.Node();
  if (reader.AcceptWord("on")) binding.device = ReadDevice(reader);
  binding.info = reader.Info();
  return binding;
}

}  // namespace

std::string_view Name(TaskKind kind) { return kTaskKinds[static_cast<size_t>(kind)]; }
std::string_view Name(Phase phase) { return kPhases[static_cast<size_t>(phase)]; }

std::string Plan::ToText() const {
  std::string text = "plan ";
  AppendHexadecimal(key, &text);
  text.append(" ranks ");
  AppendInteger(ranks, &text);
  text.push_back('\n');
  for (const StreamDescription& stream : streams) AppendStream(stream, &text);
  text.append("graph {\n");
  AppendGraph(graph, 2, &text);
  text.append("}\n");
  for (const StagedNode& node : staged) AppendStagedNode(node, &text);
  for (const NodeId node : whole) {
    text.append("whole ");
    AppendNodeId(node, &text);
    text.push_back('\n');
  }
  for (const Task& task : tasks) AppendTask(task, &text);
  for (const Register& reg : registers) AppendRegister(reg, &text);
  for (const Binding& binding : live_in) AppendBinding("live_in", binding, &text);
  for (const Binding& binding : live_out) AppendBinding("live_out", binding, &text);
  AppendBytesOfRanks("peak_bytes", peak_bytes, &text);
  AppendBytesOfRanks("pool_bytes", pool_bytes, &text);
  if (device_room.bytes != INT64_MAX)
    text += fmt::format("device_room {} {} {}\n", device_room.bytes, device_room.is_host ? 1 : 0,
                        device_room.of_host);
  return text;
}

Result<Plan> Plan::Parse(std::string_view text) {
  TextReader reader(text, "plan");
  Plan plan;
  reader.Expect("plan");
  plan.key = reader.Hexadecimal();
  reader.Expect("ranks");
  plan.ranks = reader.Integer32();
  plan.streams.clear();
  while (reader.AcceptWord("stream")) plan.streams.push_back(ReadStream(reader));
  reader.Expect("graph");
  reader.Expect("{");
  plan.graph = ReadGraph(reader);
  reader.Expect("}");
  while (reader.AcceptWord("staged")) plan.staged.push_back(ReadStagedNode(reader));
  while (reader.AcceptWord("whole")) plan.whole.push_back(reader.Node());
  while (reader.AcceptWord("task")) plan.tasks.push_back(ReadTask(reader));
  while (reader.AcceptWord("register")) plan.registers.push_back(ReadRegister(reader));
  while (reader.AcceptWord("live_in")) plan.live_in.push_back(ReadBinding(reader));
  while (reader.AcceptWord("live_out")) plan.live_out.push_back(ReadBinding(reader));
  while (reader.AcceptWord("peak_bytes")) plan.peak_bytes.push_back(reader.Integer());
  while (reader.AcceptWord("pool_bytes")) plan.pool_bytes.push_back(reader.Integer());
  if (reader.AcceptWord("device_room")) {
    plan.device_room.bytes = reader.Integer();
    plan.device_room.is_host = reader.Integer() != 0;
    plan.device_room.of_host = reader.Integer();
  }
  if (!reader.AtEnd()) reader.Fail("a line of a plan");
  HEDDLE_RETURN_IF_ERROR(reader.status());
  return plan;
}

}  // namespace heddle
