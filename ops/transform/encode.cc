// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ops/base/arguments.h"
#include "ops/base/parallel.h"
#include "ops/base/stages.h"
#include "ops/catalog.h"
#include "ops/transform/arguments.h"
#include "ops/transform/assemble.h"
#include "ops/transform/encoders.h"

namespace heddle::ops {
namespace {

enum Input { kTarget, kSpec };  // transformapply: kTarget, kMetaOfApply, kSpecOfApply, kEmbedding.
constexpr int kMetaOfApply = 1, kSpecOfApply = 2, kEmbedding = 3;

// CSR where at most four columns of five stay what they are: of each dummy-coded one, a row has one entry at
// most, of a bag of words few. Before the run nobody knows how many columns they become. Vectors of an
// embedding are dense.
Format FormatOf(const TransformSpec& spec) {
  const auto count = [&](auto is_counted) {
    return static_cast<int64_t>(std::count_if(spec.columns.begin(), spec.columns.end(), is_counted));
  };
  const int64_t sparse =
      count([](const ColumnSpec& one) { return one.dummycode || one.encoder == Encoder::kBagOfWords; });
  const int64_t vectors = count([](const ColumnSpec& one) { return one.encoder == Encoder::kWordEmbedding; });
  return sparse > 0 && vectors == 0 && static_cast<int64_t>(spec.columns.size()) <= 5 * sparse
             ? Format::kSparse
             : Format::kDense;
}

ValueInfo EncodedInfo(const ValueInfo& target, const std::optional<TransformSpec>& spec) {
  if (!spec) return ValueInfo::OfMatrix({kUnknown, kUnknown});
  return ValueInfo::OfMatrix({spec->HasOmit() ? kUnknown : target.shape.rows,
                              spec->HasOneColumnEach() ? target.shape.columns : kUnknown},
                             FormatOf(*spec));
}

// What only the other operator can do, or the compiler has to.
Status CheckUse(const Node& node, const TransformSpec& spec, bool has_embedding) {
  if (!spec.function.empty() && node.FindAttribute("udf") == nullptr)
    return InvalidArgument(
               "{}: the spec names the function '{}', so it must be known when the script is "
               "compiled",
               node.op, spec.function)
        .WithNote("write it as one text in the script, or as texts joined by +");
  const bool embeds = std::any_of(spec.columns.begin(), spec.columns.end(), [](const ColumnSpec& one) {
    return one.encoder == Encoder::kWordEmbedding;
  });
  if (!embeds || has_embedding) return OkStatus();
  if (node.op == "transformapply")
    return InvalidArgument(
        "transformapply: the spec has 'word_embedding', but the argument embedding is missing");
  return InvalidArgument("{}: 'word_embedding' needs metadata and an embedding", node.op)
      .WithNote("transformapply(target=F, meta=M, spec=s, embedding=E) has them");
}

Result<std::vector<ValueInfo>> InferEncode(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireFrame(context, kTarget, "target"));
  const ValueInfo& target = context.inputs[kTarget];
  HEDDLE_ASSIGN_OR_RETURN(const std::optional<TransformSpec> spec, InferSpec(context, kSpec, target.schema));
  if (spec) HEDDLE_RETURN_IF_ERROR(CheckUse(context.node, *spec, /*has_embedding=*/false));
  std::shared_ptr<Schema> texts;
  if (target.schema != nullptr) {
    texts = std::make_shared<Schema>(*target.schema);
    std::fill(texts->types.begin(), texts->types.end(), ColumnType::kString);
  }
  return std::vector<ValueInfo>{EncodedInfo(target, spec), ValueInfo::OfFrame(kUnknown, std::move(texts))};
}

Result<ValueInfo> InferApply(const InferContext& context) {
  HEDDLE_RETURN_IF_ERROR(RequireFrame(context, kTarget, "target"));
  HEDDLE_RETURN_IF_ERROR(RequireFrame(context, kMetaOfApply, "meta"));
  const ValueInfo& target = context.inputs[kTarget];
  HEDDLE_ASSIGN_OR_RETURN(const std::optional<TransformSpec> spec,
                          InferSpec(context, kSpecOfApply, target.schema));
  if (IsGiven(context.node, kEmbedding))
    HEDDLE_RETURN_IF_ERROR(RequireMatrix(context, kEmbedding, "embedding"));
  if (spec) HEDDLE_RETURN_IF_ERROR(CheckUse(context.node, *spec, IsGiven(context.node, kEmbedding)));
  return EncodedInfo(target, spec);
}

Status Fit(const ColumnInput& input, ColumnMetadata* metadata) {
  HEDDLE_RETURN_IF_ERROR(FitImpute(input, metadata));
  if (input.spec.encoder == Encoder::kRecode) FitTokens(input, metadata);
  if (input.spec.encoder == Encoder::kBagOfWords) FitWords(input, metadata);
  if (input.spec.encoder == Encoder::kBin) return FitBins(input, metadata);
  return OkStatus();
}

Status Encode(const ColumnInput& input, const ColumnMetadata& metadata, std::span<double> codes,
              WordCounts* words) {
  switch (input.spec.encoder) {
    case Encoder::kPassThrough: return PassThrough(input, metadata, codes);
    case Encoder::kRecode:
    case Encoder::kWordEmbedding: return Recode(input, metadata, codes);
    case Encoder::kBin: return Bin(input, metadata, codes);
    case Encoder::kHash: return Hash(input, metadata, codes);
    case Encoder::kBagOfWords: *words = CountWords(input, metadata); return OkStatus();
  }
  HEDDLE_CHECK(false, "every encoder makes codes");
}

// The rows in which no cell of a column of omit is missing; nullopt: all.
std::optional<std::vector<int64_t>> RowsThatStay(const Frame& frame, const TransformSpec& spec) {
  if (!spec.HasOmit()) return std::nullopt;
  std::vector<uint8_t> stays(static_cast<size_t>(frame.rows()), 1);
  for (int64_t j = 0; j < frame.columns(); ++j) {
    const ColumnSpec& one = spec.columns[static_cast<size_t>(j)];
    if (!one.omit) continue;
    const Column cells = frame.column(j);
    const ColumnInput input{.op = {}, .name = {}, .cells = cells, .spec = one};
    for (int64_t i = 0; i < frame.rows(); ++i)
      if (input.IsMissing(i)) stays[static_cast<size_t>(i)] = 0;
  }
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < frame.rows(); ++i)
    if (stays[static_cast<size_t>(i)] != 0) rows.push_back(i);
  return rows;
}

// Encodes column j, by the metadata that are there or, with `fit`, by what it learns of the column first.
Status EncodeColumn(const KernelCall& call, const ColumnSpec& spec, int64_t j, bool fit,
                    ColumnMetadata* metadata, EncodedCells* encoded) {
  const Frame& frame = call.inputs[kTarget]->frame();
  const Column cells = frame.column(j);
  DistinctCells distinct;
  if (ColumnInput::NeedsDistinct(spec)) {
    HEDDLE_ASSIGN_OR_RETURN(distinct, FindDistinctCells(cells, call.context.cancelled));
  }
  CellWords words;
  if (spec.encoder == Encoder::kBagOfWords) {
    HEDDLE_ASSIGN_OR_RETURN(words, FindWords(cells));
  }
  const ColumnInput input{.op = call.node.op,
                          .name = frame.schema()->NameOf(j),
                          .cells = cells,
                          .spec = spec,
                          .distinct = &distinct,
                          .words = &words};
  if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
  if (fit) HEDDLE_RETURN_IF_ERROR(Fit(input, metadata));
  if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
  return Encode(input, *metadata,
                {encoded->codes.mutable_data() + j * frame.rows(), static_cast<size_t>(frame.rows())},
                &encoded->words[static_cast<size_t>(j)]);
}

Result<Matrix> EncodeFrame(const KernelCall& call, const TransformSpec& spec, bool fit, Format format,
                           std::vector<ColumnMetadata>* metadata) {
  const Frame& frame = call.inputs[kTarget]->frame();
  const Value* const embedding =
      call.node.op == "transformapply" && IsGiven(call.node, kEmbedding) ? call.inputs[kEmbedding] : nullptr;
  Status fits = CheckUse(call.node, spec, embedding != nullptr);
  if (!fits.ok()) return fits.WithCode(StatusCode::kFailedPrecondition);
  if (fit) metadata->resize(spec.columns.size());
  EncodedCells encoded;
  if (embedding != nullptr) encoded.embedding = &embedding->matrix();
  encoded.words.resize(spec.columns.size());
  HEDDLE_ASSIGN_OR_RETURN(encoded.codes, Matrix::Dense(frame.columns(), frame.rows()));
  std::vector<Status> outcomes(spec.columns.size());
  ParallelFor(frame.columns(), 1, [&](int64_t begin, int64_t end) {
    for (auto j = static_cast<size_t>(begin); j < static_cast<size_t>(end); ++j)
      if (!IsCancelled(call.context.cancelled))
        outcomes[j] =
            EncodeColumn(call, spec.columns[j], static_cast<int64_t>(j), fit, &(*metadata)[j], &encoded);
  });
  if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
  for (const Status& outcome : outcomes) HEDDLE_RETURN_IF_ERROR(outcome);
  HEDDLE_ASSIGN_OR_RETURN(const EncodedLayout layout,
                          EncodedLayout::Of(call.node.op, spec, *metadata,
                                            embedding == nullptr ? 0 : embedding->matrix().columns()));
  return AssembleEncoded(encoded, layout, RowsThatStay(frame, spec), format);
}

Status RunEncode(const KernelCall& call, std::span<Value> results) {
  const Schema& schema = *call.inputs[kTarget]->frame().schema();
  HEDDLE_ASSIGN_OR_RETURN(const TransformSpec spec, GivenSpec(call, kSpec, schema));
  std::vector<ColumnMetadata> metadata;
  HEDDLE_ASSIGN_OR_RETURN(results[0],
                          EncodeFrame(call, spec, /*fit=*/true, ResultsOf(call.node)[0].format, &metadata));
  if (IsCancelled(call.context.cancelled)) return Cancelled("cancelled");
  HEDDLE_ASSIGN_OR_RETURN(results[1], MetadataFrame(spec, schema, metadata));
  return OkStatus();
}

Result<Value> RunApply(const KernelCall& call) {
  const Schema& schema = *call.inputs[kTarget]->frame().schema();
  HEDDLE_ASSIGN_OR_RETURN(const TransformSpec spec, GivenSpec(call, kSpecOfApply, schema));
  HEDDLE_ASSIGN_OR_RETURN(std::vector<ColumnMetadata> metadata,
                          ReadMetadataFrame(call.node.op, spec, schema, call.inputs[kMetaOfApply]->frame()));
  HEDDLE_ASSIGN_OR_RETURN(Matrix encoded,
                          EncodeFrame(call, spec, /*fit=*/false, call.node.info.format, &metadata));
  return Value(std::move(encoded));
}

// Every rank encodes its rows; those of omit leave where they are.
Status RunApplyStage(const StageCall& call, std::span<Value> outputs) {
  HEDDLE_ASSIGN_OR_RETURN(outputs[0], RunApply(call.WholeCall()));
  return OkStatus();
}

bool IsSized(const Node& node, std::span<const ValueInfo>) { return node.info.IsSized(); }
bool IsUnsized(const Node& node, std::span<const ValueInfo>) { return !node.info.IsSized(); }
constexpr Stage kApplyStages[] = {{.reads_inputs = true}};
constexpr StagedForm kApplyUneven = {
    .stages = kApplyStages, .result = StagedResult::kUneven, .applies = IsUnsized, .run = RunApplyStage};
constexpr StagedForm kApplyStaged = {.stages = kApplyStages,
                                     .result = StagedResult::kSameRows,
                                     .other = &kApplyUneven,
                                     .applies = IsSized,
                                     .run = RunApplyStage};

// Codes of all columns, and the numbers of the distinct cells of one.
double EncodeWorkingBytes(const Node&, std::span<const ValueInfo> inputs) {
  const Shape& target = inputs[kTarget].shape;
  return static_cast<double>(target.rows) * (8 * static_cast<double>(target.columns) + 4);
}

}  // namespace

/// [X, M] = transformencode(target=F, spec=text): the cells of a frame as numbers, and how they were made.
///
/// Shapes:  F is m x n; X has a column for each column of F, or one for each code of a column of dummies, and
///          m rows but those of omit. M is a frame of strings (ops/transform/metadata.h).
/// Errors:  in the spec; a text where numbers must be.
/// Format:  dense; CSR where at least one column of five is dummy-coded or a bag of words.
/// Order:   tokens are numbered as they appear; sums are compensated in row order: one result for any number
///          of threads.
/// Cost:    a hash of each cell that is recoded or hashed; a sort of columns that are binned by height.
extern constexpr Operator kTransformEncode = {.name = "transformencode",
                                              .form = CallForm::kNamed,
                                              .parameters = "target spec",
                                              .min_inputs = 2,
                                              .max_inputs = 2,
                                              .results = 2,
                                              .infer_several = InferEncode,
                                              .run_several = RunEncode,
                                              .may_fail = true,
                                              .takes_frames = true,
                                              .working_bytes = EncodeWorkingBytes};

/// transformapply(target=F, meta=M, spec=text [, embedding=E]): the cells of a frame as the numbers that
/// transformencode would have made of them. A column of word_embedding becomes the rows of E that the codes
/// of its tokens number.
///
/// Shapes:  as of transformencode; E has a row for each token, its columns take the place of the frame's.
/// Errors:  those of transformencode, and metadata that are not those of the spec. What the metadata do not
///          know is no error: a token NaN or a row of zeros, a number beyond the bins the first or last bin.
/// Rows:    every rank encodes its own.
extern constexpr Operator kTransformApply = {.name = "transformapply",
                                             .form = CallForm::kNamed,
                                             .parameters = "target meta spec embedding?",
                                             .min_inputs = 3,
                                             .max_inputs = 4,
                                             .infer = InferApply,
                                             .input_use = FirstByRows,
                                             .staged = &kApplyStaged,
                                             .run = RunApply,
                                             .may_fail = true,
                                             .takes_frames = true,
                                             .working_bytes = EncodeWorkingBytes};

}  // namespace heddle::ops
