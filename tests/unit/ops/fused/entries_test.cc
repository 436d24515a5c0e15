// SPDX-License-Identifier: Apache-2.0
// Sums and products along the entries of a CSR driver have the bytes of the operators one by one: wide
// payloads, small leaves, long rows, large factors.
#include <random>

#include "body_builder.h"

namespace heddle::ops::testing {
namespace {

// Of a wide payload few entries touch few places.
TEST(EntriesTest, WidePayloadsOfFewEntries) {
  for (const double density : {0.0, 0.0005, 0.0015, 0.05}) {
    for (const int64_t k : {1, 2, 3, 8}) {
      for (const std::string what :
           {"t(X)%*%(w*(X%*%V))", "t(X*Y)%*%W", "colSums(X*Y)", "t(X)%*%(X%*%V), special"}) {
        const int64_t m = 1'000, n = 1'001;
        const bool special = what.ends_with("special");
        BodyBuilder body;
        const NodeId x = body.Input(Value(*ToSparse(Cells(m, n, 80, special, density)))),
                     y = body.Input(Value(*ToSparse(Cells(m, n, 81, false, 0.3))));
        const NodeId v = body.Input(Value(Cells(n, k, 82, special))), w = body.Input(Value(Cells(m, k, 83)));
        NodeId root = kNoNode;
        if (what.starts_with("t(X*Y)"))
          root = body.Op("t%*%", {body.Op("*", {x, y}), w});
        else if (what.starts_with("colSums"))
          root = body.Op("colSums", {body.Op("*", {x, y})});
        else
          root = body.Op("t%*%",
                         {x, special ? body.Op("%*%", {x, v}) : body.Op("*", {w, body.Op("%*%", {x, v})})});
        body.Finish({root});
        body.ExpectSame(fmt::format("{}, {} columns, density {}", what, k, density));
      }
    }
  }
}

// Zeros that are made at entries count as absent beside infinities, in doubles and in floats.
TEST(EntriesTest, ZerosMadeAtEntriesBesideInfinities) {
  BodyBuilder body;
  const NodeId rounded = body.Op("round", {body.Input(Value(*ToSparse(Cells(130, 40, 1, false, 0.2))))});
  body.Finish({body.Op("t%*%", {rounded, body.Input(Value(Cells(130, 12, 2, true)))})});
  body.ExpectSame("t(round(X)) Y");
  body.Finish({body.Op("%*%", {rounded, body.Input(Value(Cells(40, 12, 3, true)))})});
  body.ExpectSame("round(X) V");
}

// A tile has several leaves of a sum, the last of which may have fewer rows, or a part of one.
TEST(EntriesTest, SumsAtEntriesOfManyLeaves) {
  for (const int64_t m : {31, 64, 65, 777}) {
    for (const int64_t n : {4'096, 4'104, 4'099}) {
      for (const double density : {0.0, 0.0005, 0.01, 0.1}) {
        for (const bool two : {false, true}) {
          BodyBuilder body;
          const NodeId x = body.Input(Value(*ToSparse(Cells(m, n, 50, false, density))));
          const NodeId u = body.Input(Value(Cells(m, 3, 51))), v = body.Input(Value(Cells(n, 3, 52)));
          const NodeId product = body.Op("*", {x, body.Op("sampledProduct", {x, u, v})});
          std::vector<NodeId> roots = {body.Op("sum", {product})};
          if (two) roots.push_back(body.Op("sum", {body.Op("*", {product, x})}));
          body.Finish(roots);
          body.ExpectSame(
              fmt::format("sum(X*(U%*%t(V))) of {}x{}, {}{}", m, n, density, two ? ", two sums" : ""));
        }
      }
    }
  }
}

// V of more than four megabytes: tiles of many entries; leaves of 8 rows and, where rows are no whole eights,
// of others.
TEST(EntriesTest, SumsAtEntriesThatReadVByBlocks) {
  for (const int64_t m : {7, 260, 1'501}) {
    for (const int64_t n : {8'200, 8'203}) {
      const Matrix x = *ToSparse(Cells(m, n, 70, false, 0.015)), u = Cells(m, 66, 71), v = Cells(n, 66, 72);
      for (const char* aggregate : {"sum", "colSums", "rowSums", ""}) {
        BodyBuilder body;
        const NodeId w = body.Input(Value(x));
        const NodeId product =
            body.Op("*", {w, body.Op("sampledProduct", {w, body.Input(Value(u)), body.Input(Value(v))})});
        body.Finish({*aggregate == '\0' ? body.Op("*", {product, body.Literal(Scalar(2.0))})
                                        : body.Op(aggregate, {product})});
        body.ExpectSame(fmt::format("{}(X*(U%*%t(V))) of {}x{}", aggregate, m, n));
      }
    }
  }
}

// So many entries in each row, spread over its columns.
Matrix FewEntries(int64_t m, int64_t n, int64_t of_row, uint32_t seed) {
  const Matrix values = Cells(m, of_row, seed);
  Matrix x = *Matrix::Sparse(m, n, m * of_row);
  std::mt19937_64 random(seed);
  for (int64_t i = 0; i < m; ++i) {
    x.mutable_row_offsets()[i + 1] = (i + 1) * of_row;
    for (int64_t e = 0; e < of_row; ++e) {
      const int64_t first = n * e / of_row, last = n * (e + 1) / of_row;
      x.mutable_column_indexes()[i * of_row + e] =
          static_cast<int32_t>(first + static_cast<int64_t>(random() % static_cast<uint64_t>(last - first)));
      x.mutable_values()[i * of_row + e] = values.data()[i * of_row + e];
    }
  }
  return x;
}

// Products with more than eight columns are chains along all of a row, whatever its length.
TEST(EntriesTest, SampledProductOfVeryManyColumns) {
  const int64_t m = 6'000, n = 70'001, rank = 12;
  BodyBuilder body;
  const NodeId x = body.Input(Value(FewEntries(m, n, 5, 44)));
  const NodeId u = body.Input(Value(Cells(m, rank, 45))), v = body.Input(Value(Cells(n, rank, 46)));
  const NodeId present = body.Op("!=", {x, body.Literal(Scalar(0.0))});
  body.Finish({body.Op("%*%", {body.Op("*", {present, body.Op("sampledProduct", {x, u, v})}), v})});
  body.ExpectSame("((X!=0)*(U%*%t(V)))%*%V");
}

// Rows of several leaves of which most have no entry; tasks begin and end within rows.
TEST(EntriesTest, SumsAtEntriesOfLongRows) {
  for (const auto& [m, n, entries] :
       {std::tuple(3'000, 70'001, 5), {700, 1'200'000, 3}, {3, 140'000, 2'000}}) {
    const Matrix cells = FewEntries(m, n, entries, 44);
    for (const bool two : {false, true}) {
      BodyBuilder body;
      const NodeId x = body.Input(Value(cells)), u = body.Input(Value(Cells(m, 1, 45)));
      const NodeId product = body.Op("*", {x, u});
      std::vector<NodeId> roots = {body.Op("sum", {product})};
      if (two) roots.push_back(body.Op("sum", {body.Op("*", {product, x})}));
      body.Finish(roots);
      body.ExpectSame(fmt::format("sum(X*u) of {}x{}, {}", m, n, two ? "and sum(X*u*X)" : ""));
    }
  }
}

// So many columns that terms are sorted by blocks of them.
TEST(EntriesTest, PayloadsOfVeryManyColumns) {
  const int64_t m = 700;
  for (const auto& [k, n] : {std::pair(1, 250'001), {3, 80'001}}) {
    for (const bool sums : {false, true}) {
      BodyBuilder body;
      const NodeId x = body.Input(Value(FewEntries(m, n, 7, 44))), u = body.Input(Value(Cells(m, 1, 45)));
      const NodeId product = body.Op("*", {x, u});
      body.Finish({sums ? body.Op("colSums", {product})
                        : body.Op("t%*%", {product, body.Input(Value(Cells(m, k, 46)))})});
      body.ExpectSame(fmt::format("{} {}", sums ? "colSums(X*u)" : "t(X*u)%*%W", k));
    }
  }
}

// V does not fit the second-level cache: where rows are fetched there, those of the next tile are, up to the
// last entry.
TEST(EntriesTest, RightProductsThatFetchRowsOfALargeFactor) {
  constexpr int64_t kColumns = 20000;
  for (const int64_t rank : {9, 20, 50}) {
    BodyBuilder body;
    const NodeId x = body.Input(Value(*ToSparse(Cells(300, kColumns, 31, false, 0.01)))),
                 u = body.Input(Value(Cells(300, rank, 32, false, 1))),
                 v = body.Input(Value(Cells(kColumns, rank, 33, false, 1)));
    body.Finish({body.Op("%*%", {body.Op("*", {x, body.Op("sampledProduct", {x, u, v})}), v})});
    body.ExpectSame("rank " + std::to_string(rank));
  }
}

}  // namespace
}  // namespace heddle::ops::testing
