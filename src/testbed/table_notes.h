// What is said below the table of a comparison.
#pragma once

#include <string>

#include "testbed/table_layout.h"

namespace tutti {

// Plans where the table has no column for them, failures, what is shared, and what is not possible
// here: a line for each reason, or with `verbose` all of each. With `verbose` definitions, too.
std::string table_notes(const Comparison& comparison, const TableRows& rows, bool plans_in_table,
                        const TableOptions& options);

}  // namespace tutti
