// Products of dense row-major matrices.
#pragma once

#include <cstdint>

namespace tutti {

enum class Turn { kNo, kYes };  // whether a factor is stored transposed

// c = a b, or c = c + a b when `add`. After turning, a is m x k and b is k x n; c is m x n.
void multiply(int64_t m, int64_t n, int64_t k, Turn turn_a, const float* a, Turn turn_b,
              const float* b, float* c, bool add = false);

}  // namespace tutti
