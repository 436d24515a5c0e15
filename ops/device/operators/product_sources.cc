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
#define TILE_ROWS 64
#define DOWN 8
#if SINGLE
#define LANES 16
#define VECTORS 2
#define BLOCK 64
#define LOAD vload16
#define STORE vstore16
typedef float16 VECTOR;
#else
#define LANES 8
#define VECTORS 3
#define BLOCK 256
#define LOAD vload8
#define STORE vstore8
typedef double8 VECTOR;
#endif
#define STRIP (LANES * VECTORS)
#define STEP 256

#define EACH_CELL(statement)        \
  for (int i = 0; i < rows; ++i)    \
    for (int j = 0; j < width; ++j) \
      statement
#define CELL_OF_NODE(level) nodes[OF_NODE(level, row + i, column + j)]
#define JOIN(level) EACH_CELL(held[i * STRIP + j] = CELL_OF_NODE(level) + held[i * STRIP + j];)
#define KEEP(level) EACH_CELL(CELL_OF_NODE(level) = held[i * STRIP + j];)

__kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void heddle_product(const long m, const long n, const long terms, const long height, const long run,
                    const long first_tile, const long is_symmetric, const long begin, const long end,
                    __global const CELL* a, const long first_a, const long a_row, const long a_column,
                    __global const CELL* b, const long first_b, const long b_row, __global double* sums,
                    __global double* nodes, const long levels, __global CELL* out, const long is_last) {
  const long strips = (n + STRIP - 1) / STRIP, tiles_of_leaf = (m + TILE_ROWS - 1) / TILE_ROWS * strips;
  const long tile = first_tile + (long)get_group_id(0), run_of_all = tile / tiles_of_leaf;
  const long place = tile - run_of_all * tiles_of_leaf;
  const long first_row = place / strips * TILE_ROWS, column = place % strips * STRIP;
  if (is_symmetric != 0 && column + STRIP <= first_row) return;
  const long first_leaf = run_of_all * run, end_leaf = min(first_leaf + run, LEAVES);
  const long end_row = min(m, first_row + TILE_ROWS);
  const int width = (int)min((long)STRIP, n - column);
  CELL packed[STEP * STRIP];
  for (long leaf = first_leaf; leaf < end_leaf; ++leaf) {
    const long from = leaf * height + begin;
    const long to = min(min(terms, (leaf + 1) * height), leaf * height + end);
    // Once where there are no terms.
    for (long step = from; step == from || step < to; step += STEP) {
      const int count = (int)max((long)0, min((long)STEP, to - step));
      const int is_end = step + STEP >= to;
      __global const CELL* right = b + first_b + step * b_row + column;
      if (width == STRIP) {
        for (int k = 0; k < count; ++k)
          for (int v = 0; v < VECTORS; ++v)
            STORE(LOAD(0, right + k * b_row + v * LANES), 0, packed + k * STRIP + v * LANES);
      } else {
        for (int k = 0; k < count; ++k)
          for (int j = 0; j < STRIP; ++j) packed[k * STRIP + j] = j < width ? right[k * b_row + j] : (CELL)0;
      }
      for (long row = first_row; row < end_row; row += DOWN) {
        const int rows = (int)min((long)DOWN, end_row - row);
        __global const CELL* left[DOWN];
#pragma unroll
        for (int i = 0; i < DOWN; ++i)
          left[i] = a + first_a + min(row + i, m - 1) * a_row + step * a_column;
        double held[DOWN * STRIP];
        for (int i = 0; i < DOWN; ++i)
          for (int j = 0; j < STRIP; ++j) {
            held[i * STRIP + j] = 0.0;
            if ((begin > 0 || step > from) && i < rows && j < width)
              held[i * STRIP + j] = sums[(run_of_all * m + row + i) * n + column + j];
          }
        for (int block = 0; block < count; block += BLOCK) {
          VECTOR chain[DOWN][VECTORS];
#pragma unroll
          for (int i = 0; i < DOWN; ++i)
#pragma unroll
            for (int v = 0; v < VECTORS; ++v) {
#if SINGLE
              chain[i][v] = (VECTOR)(0.0f);
#else
              chain[i][v] = LOAD(0, held + i * STRIP + v * LANES);
#endif
            }
          const int end_block = min(count, block + BLOCK);
          for (int k = block; k < end_block; ++k) {
            VECTOR y[VECTORS];
#pragma unroll
            for (int v = 0; v < VECTORS; ++v) y[v] = LOAD(0, packed + k * STRIP + v * LANES);
#pragma unroll
            for (int i = 0; i < DOWN; ++i) {
              const VECTOR x = (VECTOR)(left[i][k * a_column]);
#pragma unroll
              for (int v = 0; v < VECTORS; ++v) chain[i][v] = fma(x, y[v], chain[i][v]);
            }
          }
#if SINGLE
          float cells[DOWN * STRIP];
#pragma unroll
          for (int i = 0; i < DOWN; ++i)
#pragma unroll
            for (int v = 0; v < VECTORS; ++v) STORE(chain[i][v], 0, cells + i * STRIP + v * LANES);
          for (int c = 0; c < DOWN * STRIP; ++c) held[c] = held[c] + (double)cells[c];
#else
#pragma unroll
          for (int i = 0; i < DOWN; ++i)
#pragma unroll
            for (int v = 0; v < VECTORS; ++v) STORE(chain[i][v], 0, held + i * STRIP + v * LANES);
#endif
        }
        if (is_end && run > 1) TREE
        if (is_end && leaf + 1 < end_leaf) continue;
        for (int i = 0; i < rows; ++i)
          for (int j = 0; j < width; ++j) {
            const long cell = (run_of_all * m + row + i) * n + column + j;
            if (is_end && is_last != 0) {
              out[cell] = ROUNDED(held[i * STRIP + j] + 0.0);
            } else {
              sums[cell] = held[i * STRIP + j];
            }
          }
      }
    }
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
