// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "core/values/schema.h"
#include "core/values/shape.h"
#include "ops/io/formats/stored_cell.h"

// Formats that need a large library: what knows it is a module of its own (ops/io/formats/module/), which is
// loaded when the first file of such a format is met. So no other run pays for it, and Heddle can be built
// and run where the library is not.
namespace heddle::ops {

/// Change it with any of the interfaces of modules.
constexpr int32_t kFormatModuleAbi = 3;

/// Who reads the arrays of a file, in a process of its own (array_process.h).
enum class ArrayLibrary : uint8_t { kHdf5, kMat4, kMat5 };
std::string_view NameOf(ArrayLibrary library);    ///< "HDF5", "libmatio"
std::string_view ModuleOf(ArrayLibrary library);  ///< "libheddle_hdf5.so"
/// "cannot VERB WHAT: this Heddle was built without HDF5", kUnimplemented; with `why`, unless that is that
/// there is no module.
Status WithoutLibrary(ArrayLibrary library, std::string_view verb, std::string_view what, const Status& why);

/// A file that a module reads. `read` puts `count` bytes from `begin` on into `out`.
struct ModuleInput {
  std::string path;
  int64_t size = 0;
  std::function<Status(int64_t begin, int64_t count, char* out)> read;
};

/// Which array of a file is meant.
struct ArrayChoice {
  std::string dataset;      ///< Its name; "": the default one or the only one.
  bool transposed = false;  ///< With its indexes in the other order: the last one counts rows.
};

/// An array of numbers in a file. All functions may be called by any thread; a library does one thing at a
/// time.
class StoredArray {
 public:
  virtual ~StoredArray() = default;
  /// One size for each index, in the order in which it is read; none of a single number. A sparse array has
  /// two.
  virtual const std::vector<int64_t>& sizes() const = 0;
  /// How many of the first index are stored together.
  virtual int64_t rows_of_chunk() const { return 1; }
  /// Memory that the library takes to read some of it, beside what it gives.
  virtual int64_t bytes_of_read() const { return 0; }
  /// How many cells a sparse array stores; kUnknown: it is dense.
  virtual int64_t stored() const { return kUnknown; }
  /// Who wrote it, of a tool that keeps matrices column by column in a format that keeps them row by row, so
  /// that there this array is the transpose of what is read. "": nobody of whom that is known, or it was
  /// asked for transposed.
  virtual const std::string& column_major_writer() const = 0;
  /// Of a dense array: everything below the first index's values [begin, end), the last index fastest.
  virtual Status Read(int64_t begin, int64_t end, double* out) = 0;
  /// Of a sparse array: its stored cells [begin, end) in the order of the file, each inside of its sizes.
  virtual Status ReadStored(int64_t begin, int64_t end, StoredCell* out) = 0;
};

/// A file with one array of doubles, but for its cells, which stand between.
struct Hdf5Image {
  std::string before;
  std::string behind;
};

struct Hdf5Module {
  /// The array that is meant, by default systemdsh5. kDataLoss says what is wrong.
  Result<std::unique_ptr<StoredArray>> (*open)(const ModuleInput& input, const ArrayChoice& choice);
  Result<Hdf5Image> (*make_image)(int64_t rows, int64_t columns, const std::string& dataset);
};
/// Fails as OpenModule does (core/environment/modules.h).
Result<const Hdf5Module*> OpenHdf5Module();

/// Files of MATLAB, versions 4 and 5.
struct MatModule {
  /// The library opens a file at a `place` by itself; messages call it `path`.
  Result<std::unique_ptr<StoredArray>> (*open)(const std::string& place, const std::string& path,
                                               const ArrayChoice& choice);
};
/// Fails as OpenModule does (core/environment/modules.h).
Result<const MatModule*> OpenMatModule();

/// Cells of one column of a table: the array that its type has. Missing ones are 0 or empty, and marked.
struct ModuleColumn {
  std::vector<double> doubles;
  std::vector<int64_t> integers;  ///< Of texts where each one ends.
  std::vector<uint8_t> booleans;
  std::string texts;
  std::vector<uint8_t> missing;  ///< A byte a row; empty where none is.
};

/// A table in a file of Parquet or Arrow, in groups of rows. Any thread.
class ArrowTable {
 public:
  virtual ~ArrowTable() = default;
  virtual const Schema& schema() const = 0;
  /// What Arrow calls the type of each column: "decimal128(5, 1)".
  virtual const std::vector<std::string>& types() const = 0;
  /// The names of columns that the schema leaves out: they are the index of a frame of pandas.
  virtual const std::vector<std::string>& left_out() const = 0;
  /// Where each group begins; one more for the end.
  virtual const std::vector<int64_t>& begins() const = 0;
  /// Gives the columns of a group, one after the other. `as_doubles`: numbers and booleans of every type are
  /// doubles, the nearest ones; else each column has what its type has. kDataLoss says what is wrong,
  /// kResourceExhausted that memory was refused; what `take` says.
  virtual Status Read(size_t group, bool as_doubles,
                      const std::function<Status(size_t column, const ModuleColumn& cells)>& take) const = 0;
};

/// A table that is written: `cells` gives those of rows [begin, end) of one column.
struct ArrowSource {
  Schema schema;
  int64_t rows = 0;
  int64_t rows_of_group = 1;
  std::function<ModuleColumn(int64_t column, int64_t begin, int64_t end)> cells;
};

enum class ArrowKind : uint8_t { kParquet, kArrow };

struct ArrowModule {
  /// `begins`: what they were when the same file was opened before; empty: not known.
  Result<std::unique_ptr<ArrowTable>> (*open)(ArrowKind kind, const ModuleInput& input,
                                              const std::vector<int64_t>& begins);
  Status (*write)(ArrowKind kind, const ArrowSource& source,
                  const std::function<Status(std::string_view bytes)>& sink);
};
/// Fails as OpenModule does (core/environment/modules.h).
Result<const ArrowModule*> OpenArrowModule();

}  // namespace heddle::ops
