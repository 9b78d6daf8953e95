// Keys that several kinds of data have, with one meaning.
#pragma once

#include "core/schema.h"

namespace tutti {

inline void visit_path(Visitor& v, std::string& path) {
  v.field("path", path, "the file; gzip is read directly");
}
inline void visit_test_path(Visitor& v, std::string& path) {
  v.field("test_path", path, "the file of the test set; empty: a share of the samples");
}
inline void visit_regression(Visitor& v, bool& regression) {
  v.field("regression", regression, "predict a number, not a class");
}
// Numbers in files have units, and gradients follow the largest number, so standardising is the
// default of most kinds.
inline void visit_standardise(Visitor& v, bool& standardise) {
  v.field("standardise", standardise,
          "give each feature mean 0 and deviation 1, measured on the training samples");
}

}  // namespace tutti
