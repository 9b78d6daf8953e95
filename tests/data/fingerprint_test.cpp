#include "data/fingerprint.h"

#include "tests/data/files.h"

namespace tutti {
namespace {

Data read_as(const char* kind, const std::string& path, double test = 0.25) {
  DataConfig config(kind);
  try_set(config, "standardise", false);  // means and deviations would depend on the split
  set(config, "path", path);
  config.test = test;
  try_set(config, "context", 2);
  config.validation = 0.25;
  if (config.kind() == "series") set(config, "label", "a");
  return load_data(config, 1, "");
}

// One changed value changes the fingerprint, in whatever form the samples are kept in memory.
TEST(Fingerprint, FollowsEveryValue) {
  struct Case {
    const char *kind, *text;
    std::vector<std::pair<std::string, std::string>> changes;
  };
  const TemporaryDirectory folder;
  for (const Case& c : std::vector<Case>{
           {"csv", "a,b,c\n1,2,x\n3,4,y\n5,6,x\n7,8,y\n", {{"8", "9"}, {"7,8,y", "7,8,x"}}},
           {"libsvm", "1 1:2 2:3\n0 1:5\n1 2:8\n0 1:7\n", {{"2:8", "2:9"}, {"2:8", "1:8"}}},
           {"text", "abcabcabbacc", {{"bba", "bbb"}}},
           {"tokens", "abcabcabbacc", {{"bba", "bbb"}}},
           {"series", "a,b\n1,2\n2,3\n3,4\n4,5\n5,6\n6,7\n7,8\n8,9\n", {{"4,5", "4.5,5"}}},
           {"ratings", "1 1 3\n1 2 4\n2 1 5\n2 2 1\n", {{"5", "4"}}}}) {
    const std::string text = c.text;
    const Data data = read_as(c.kind, folder.write("data", text));
    EXPECT_EQ(fingerprint(data), fingerprint(read_as(c.kind, folder.write("other", text))));
    for (const auto& [from, to] : c.changes) {
      std::string changed = text;
      changed.replace(changed.rfind(from), from.size(), to);
      const Data other = read_as(c.kind, folder.write("changed", changed));
      EXPECT_NE(contents_fingerprint(*data.dataset), contents_fingerprint(*other.dataset))
          << c.kind << ": " << changed;
    }
  }
}

TEST(Fingerprint, KnowsTheSplitApartFromTheSamples) {
  const TemporaryDirectory folder;
  const std::string file = folder.write("data.csv", "1,2,0\n3,4,1\n5,6,0\n7,8,1\n9,1,0\n2,2,1\n");
  const Data one = read_as("csv", file, 0.2), other = read_as("csv", file, 0.5);
  EXPECT_EQ(contents_fingerprint(*one.dataset), contents_fingerprint(*other.dataset));
  EXPECT_NE(split_fingerprint(one.splits), split_fingerprint(other.splits));
  EXPECT_NE(fingerprint(one), fingerprint(other));
}

// Sparse rows use the default visit_contents(), which gathers samples. It must give the same result
// as that of the table.
TEST(Fingerprint, SparseRowsHaveThatOfTheirTable) {
  const TemporaryDirectory folder;
  const Data data = read_as("libsvm", folder.write("data", "1 1:2 2:3\n0 1:5\n1 2:8\n0 1:7\n"));
  EXPECT_EQ(contents_fingerprint(*data.dataset),
            contents_fingerprint(*data.dataset->with_sparse_rows()));
}

}  // namespace
}  // namespace tutti
