// SPDX-License-Identifier: Apache-2.0
#include "ops/device/operators/product_sources.h"

// Chains are those of docs/numerics.md, sections 3 and 9: of doubles one fma after the other; of floats the
// same for 64 terms, whose sums are added in doubles. Rows, columns and terms that are missing are zeros,
// which change no chain.
namespace heddle::ops {

const std::string_view kTreeOfLeaves = R"(
#define LEAVES (height >= terms ? 1 : (terms + height - 1) / height)
#define OF_NODE(level, r, c) (((run_of_all * levels + level) * m + r) * n + c)
#define TREE                                                    \
  {                                                             \
    const long number = leaf - first_leaf;                      \
    int level = 0;                                              \
    for (; (number >> level & 1) != 0; ++level) JOIN(level)     \
    if (leaf + 1 < end_leaf) {                                  \
      KEEP(level)                                               \
    } else {                                                    \
      for (++level; number >> level != 0; ++level)              \
        if ((number >> level & 1) != 0) JOIN(level)             \
    }                                                           \
  }
)";

const std::string_view kProductInLocalMemory = R"(
#define TILE_ROWS 128
#define TILE_COLUMNS 64
#define STEP 16
#define DOWN 8
#define ACROSS 4
#if SINGLE
#define BLOCK 64
#define CHAIN chain
#else
#define BLOCK STEP
#define CHAIN held
#endif

#define EACH_CELL(statement)                                            \
  for (int i = 0; i < DOWN; ++i)                                        \
    for (int j = 0; j < ACROSS; ++j) {                                  \
      const long r = row + down + 16 * i, c = column + across + 16 * j; \
      if (r < m && c < n) statement                                     \
    }
#define JOIN(level) EACH_CELL(held[i][j] = nodes[OF_NODE(level, r, c)] + held[i][j];)
#define KEEP(level) EACH_CELL(nodes[OF_NODE(level, r, c)] = held[i][j];)

__kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void heddle_product(const long m, const long n, const long terms, const long height, const long run,
                    const long first_tile, const long is_symmetric, const long begin, const long end,
                    __global const CELL* restrict a, const long first_a, const long a_row,
                    const long a_column, __global const CELL* restrict b, const long first_b,
                    const long b_row, __global double* sums, __global double* nodes, const long levels,
                    __global CELL* out, const long is_last) {
  const int item = (int)get_local_id(0), across = item % 16, down = item / 16;
  const long tiles_across = (n + TILE_COLUMNS - 1) / TILE_COLUMNS;
  const long tiles_of_leaf = (m + TILE_ROWS - 1) / TILE_ROWS * tiles_across;
  const long tile = first_tile + (long)get_group_id(0), run_of_all = tile / tiles_of_leaf;
  const long place = tile - run_of_all * tiles_of_leaf;
  const long row = place / tiles_across * TILE_ROWS, column = place % tiles_across * TILE_COLUMNS;
  const int is_wanted = is_symmetric == 0 || column + TILE_COLUMNS > row;
  const long first_leaf = run_of_all * run;
  const long end_leaf = is_wanted ? min(first_leaf + run, LEAVES) : first_leaf;
  __local CELL left[STEP][TILE_ROWS + 1];
  __local CELL right[STEP][TILE_COLUMNS];
  double held[DOWN][ACROSS];
#if SINGLE
  float chain[DOWN][ACROSS];
#endif
  for (long leaf = first_leaf; leaf < end_leaf; ++leaf) {
    const long from = leaf * height + begin;
    const long to = min(min(terms, (leaf + 1) * height), leaf * height + end);
    for (int i = 0; i < DOWN; ++i)
      for (int j = 0; j < ACROSS; ++j) {
        const long r = row + down + 16 * i, c = column + across + 16 * j;
        held[i][j] = 0.0;
        if (begin > 0 && r < m && c < n) held[i][j] = sums[(run_of_all * m + r) * n + c];
      }
    for (long block = from; block < to; block += BLOCK) {
#if SINGLE
      for (int i = 0; i < DOWN; ++i)
        for (int j = 0; j < ACROSS; ++j) chain[i][j] = 0.0f;
#endif
      for (long step = block; step < block + BLOCK; step += STEP) {
        barrier(CLK_LOCAL_MEM_FENCE);
        // Work-items that follow each other read cells that do.
        if (a_column == 1) {
          for (int i = 0; i < DOWN; ++i) {
            const long r = row + down + 16 * i, k = step + across;
            left[across][down + 16 * i] = r < m && k < to ? a[first_a + r * a_row + k] : (CELL)0;
          }
        } else {
          for (int i = 0; i < DOWN; ++i) {
            const long r = row + item % TILE_ROWS, k = step + item / TILE_ROWS + 2 * i;
            left[item / TILE_ROWS + 2 * i][item % TILE_ROWS] =
                r < m && k < to ? a[first_a + r * a_row + k * a_column] : (CELL)0;
          }
        }
        for (int j = 0; j < ACROSS; ++j) {
          const long c = column + item % TILE_COLUMNS, k = step + item / TILE_COLUMNS + 4 * j;
          right[item / TILE_COLUMNS + 4 * j][item % TILE_COLUMNS] =
              c < n && k < to ? b[first_b + k * b_row + c] : (CELL)0;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < STEP; ++k) {
          CELL x[DOWN], y[ACROSS];
#pragma unroll
          for (int i = 0; i < DOWN; ++i) x[i] = left[k][down + 16 * i];
#pragma unroll
          for (int j = 0; j < ACROSS; ++j) y[j] = right[k][across + 16 * j];
#pragma unroll
          for (int i = 0; i < DOWN; ++i)
#pragma unroll
            for (int j = 0; j < ACROSS; ++j) CHAIN[i][j] = fma(x[i], y[j], CHAIN[i][j]);
        }
      }
#if SINGLE
      for (int i = 0; i < DOWN; ++i)
        for (int j = 0; j < ACROSS; ++j) held[i][j] = held[i][j] + (double)chain[i][j];
#endif
    }
    if (run > 1) TREE
  }
  for (int i = 0; i < DOWN; ++i)
    for (int j = 0; j < ACROSS; ++j) {
      const long r = row + down + 16 * i, c = column + across + 16 * j;
      const long cell = (run_of_all * m + r) * n + c;
      if (is_wanted && r < m && c < n) {
        if (is_last != 0) {
          out[cell] = ROUNDED(held[i][j] + 0.0);
        } else {
          sums[cell] = held[i][j];
        }
      }
    }
}
)";

const std::string_view kProductOfVectors = R"(
#define TILE_ROWS 120
#define TILE_COLUMNS 64
#define STEP 128
#if SINGLE
#define LANES 16
#define VECTORS 2
#define DOWN 8
#define BLOCK 64
#define LOAD vload16
#define STORE vstore16
#define STARTS(place) (VECTOR)(0.0f)
#define ENDS(chain, place) vstore16(vload16(0, place) + convert_double16(chain), 0, place)
typedef float16 VECTOR;
#else
#define LANES 8
#define VECTORS 4
#define DOWN 6
#define BLOCK STEP
#define LOAD vload8
#define STORE vstore8
#define STARTS(place) vload8(0, place)
#define ENDS(chain, place) vstore8(chain, 0, place)
typedef double8 VECTOR;
#endif
#define STRIP (LANES * VECTORS)

#define EACH_CELL(statement)        \
  for (int i = 0; i < rows; ++i)    \
    for (int j = 0; j < width; ++j) \
      statement
#define HELD held[i * TILE_COLUMNS + j]
#define CELL_OF(array) array[(run_of_all * m + first_row + i) * n + column + j]
#define CELL_OF_NODE(level) nodes[OF_NODE(level, first_row + i, column + j)]
#define JOIN(level) EACH_CELL(HELD = CELL_OF_NODE(level) + HELD;)
#define KEEP(level) EACH_CELL(CELL_OF_NODE(level) = HELD;)

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void heddle_product(const long m, const long n, const long terms, const long height, const long run,
                    const long first_tile, const long is_symmetric, const long begin, const long end,
                    __global const CELL* restrict a, const long first_a, const long a_row,
                    const long a_column, __global const CELL* restrict b, const long first_b,
                    const long b_row, __global double* sums, __global double* nodes, const long levels,
                    __global CELL* out, const long is_last) {
  const long tiles_across = (n + TILE_COLUMNS - 1) / TILE_COLUMNS;
  const long tiles_of_leaf = (m + TILE_ROWS - 1) / TILE_ROWS * tiles_across;
  const long tile = first_tile + (long)get_group_id(0), run_of_all = tile / tiles_of_leaf;
  const long place = tile - run_of_all * tiles_of_leaf;
  const long first_row = place / tiles_across * TILE_ROWS, column = place % tiles_across * TILE_COLUMNS;
  if (is_symmetric != 0 && column + TILE_COLUMNS <= first_row) return;
  const long first_leaf = run_of_all * run, end_leaf = min(first_leaf + run, LEAVES);
  const int rows = (int)min((long)TILE_ROWS, m - first_row);
  const int width = (int)min((long)TILE_COLUMNS, n - column);
  // Blocks of DOWN rows, whose terms follow each other either in a row or across the rows of the block, as in
  // `a`; and strips of columns. Rows and columns that are missing are zeros.
  CELL left[TILE_ROWS * STEP], right[TILE_COLUMNS * STEP];
  double held[TILE_ROWS * TILE_COLUMNS];
  if (rows < TILE_ROWS)
    for (int c = 0; c < TILE_ROWS * STEP; ++c) left[c] = (CELL)0;
  if (width < TILE_COLUMNS)
    for (int c = 0; c < TILE_COLUMNS * STEP; ++c) right[c] = (CELL)0;
  const int is_across = a_column != 1, by_row = is_across ? 1 : STEP, by_term = is_across ? DOWN : 1;
  const int whole_rows = rows / DOWN * DOWN;
  for (long leaf = first_leaf; leaf < end_leaf; ++leaf) {
    const long from = leaf * height + begin;
    const long to = min(min(terms, (leaf + 1) * height), leaf * height + end);
    for (int c = 0; c < TILE_ROWS * TILE_COLUMNS; ++c) held[c] = 0.0;
    if (begin > 0) EACH_CELL(HELD = CELL_OF(sums);)
    for (long step = from; step < to; step += STEP) {
      const int count = (int)min((long)STEP, to - step);
      __global const CELL* x = a + first_a + first_row * a_row + step * a_column;
      if (is_across) {
        for (int k = 0; k < count; ++k) {
          for (int row = 0; row < whole_rows; row += DOWN)
#pragma unroll
            for (int i = 0; i < DOWN; ++i)
              left[row * STEP + k * DOWN + i] = x[(row + i) * a_row + k * a_column];
          for (int i = 0; i < rows - whole_rows; ++i)
            left[whole_rows * STEP + k * DOWN + i] = x[(whole_rows + i) * a_row + k * a_column];
        }
      } else {
        for (int i = 0; i < rows; ++i)
          for (int k = 0; k < count; ++k) left[i * STEP + k] = x[i * a_row + k];
      }
      __global const CELL* y = b + first_b + step * b_row + column;
      for (int strip = 0; strip < width; strip += STRIP)
        for (int k = 0; k < count; ++k) {
          CELL* const row = right + strip * STEP + k * STRIP;
          if (width - strip >= STRIP) {
#pragma unroll
            for (int v = 0; v < VECTORS; ++v)
              STORE(LOAD(0, y + k * b_row + strip + v * LANES), 0, row + v * LANES);
          } else {
            for (int j = 0; j < width - strip; ++j) row[j] = y[k * b_row + strip + j];
          }
        }
      for (int strip = 0; strip < width; strip += STRIP)
        for (int row = 0; row < rows; row += DOWN) {
          if (is_symmetric != 0 && column + strip + STRIP <= first_row + row) continue;
          const CELL* const xs = left + row * STEP;
          const CELL* const ys = right + strip * STEP;
          double* const sum = held + row * TILE_COLUMNS + strip;
          for (int block = 0; block < count; block += BLOCK) {
            VECTOR chain[DOWN][VECTORS];
#pragma unroll
            for (int i = 0; i < DOWN; ++i)
#pragma unroll
              for (int v = 0; v < VECTORS; ++v) chain[i][v] = STARTS(sum + i * TILE_COLUMNS + v * LANES);
            const int end_block = min(count, block + BLOCK);
            for (int k = block; k < end_block; ++k) {
              VECTOR terms_of_columns[VECTORS];
#pragma unroll
              for (int v = 0; v < VECTORS; ++v) terms_of_columns[v] = LOAD(0, ys + k * STRIP + v * LANES);
#pragma unroll
              for (int i = 0; i < DOWN; ++i) {
                const VECTOR term = (VECTOR)(xs[i * by_row + k * by_term]);
#pragma unroll
                for (int v = 0; v < VECTORS; ++v) chain[i][v] = fma(term, terms_of_columns[v], chain[i][v]);
              }
            }
#pragma unroll
            for (int i = 0; i < DOWN; ++i)
#pragma unroll
              for (int v = 0; v < VECTORS; ++v) ENDS(chain[i][v], sum + i * TILE_COLUMNS + v * LANES);
          }
        }
    }
    if (run > 1) TREE
  }
  if (is_last != 0) {
    EACH_CELL(CELL_OF(out) = ROUNDED(HELD + 0.0);)
  } else {
    EACH_CELL(CELL_OF(sums) = HELD;)
  }
}
)";

const std::string_view kNodesOfProducts = R"(
__kernel void heddle_add(const long cells, __global double* a, __global const double* b) {
  for (long c = (long)get_global_id(0); c < cells; c += (long)get_global_size(0)) a[c] = a[c] + b[c];
}

__kernel void heddle_pack(const long n, __global const double* root, __global double* packed) {
  for (long c = (long)get_global_id(0); c < n * n; c += (long)get_global_size(0)) {
    const long i = c / n, j = c - i * n;
    if (j >= i) packed[i * n - i * (i - 1) / 2 + j - i] = root[c];
  }
}
)";

}  // namespace heddle::ops
