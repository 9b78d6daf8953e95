// A table in memory of which most values are zero: only the others are kept, row by row.
#pragma once

#include "data/table.h"

namespace tutti {

struct SparseRows {
  std::vector<size_t> begins = {0};  // of each row in `columns` and `values`, and the end
  std::vector<uint32_t> columns;
  std::vector<float> values;
};

// Rows become dense when they are gathered.
std::shared_ptr<const Dataset> make_sparse_table(int64_t width, SparseRows rows, Answers answers);

}  // namespace tutti
