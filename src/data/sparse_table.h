// A table in memory of which most values are zero: only the others are kept, row by row.
#pragma once

#include "data/table.h"

namespace tutti {

// Rows become dense when they are gathered, unless with_sparse_rows() is asked for.
std::shared_ptr<const Dataset> make_sparse_table(int64_t width, SparseRows rows, Answers answers,
                                                 std::vector<std::string> column_names = {});

}  // namespace tutti
