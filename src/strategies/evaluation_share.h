// What is told of a share of an evaluation, to whoever measures it and back.
#pragma once

#include <cstdint>

namespace tutti {

// A share of an evaluation: chunks [begin, end) of the validation samples.
struct EvaluationTask {
  int64_t id = 0;  // 0: none
  uint32_t begin = 0, end = 0;
  uint32_t on_snapshot = 0;  // on the parameters the servers kept for it, not on the current ones
  uint32_t unused = 0;
};

struct EvaluationShare {
  int64_t id = 0;
  uint32_t begin = 0, end = 0;
  uint64_t loss[2] = {};  // sums as 128-bit integers, low half first
  uint64_t correct[2] = {};
  uint64_t invalid[2] = {};  // samples whose loss is not a number
};

}  // namespace tutti
