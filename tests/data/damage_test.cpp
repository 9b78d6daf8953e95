// Truncated and bit-flipped files: an error or a valid set, never a crash and never more memory
// than the file can account for.
#include <sys/resource.h>

#include <cmath>
#include <functional>

#include "core/random.h"
#include "tests/data/files.h"

namespace tutti {
namespace {

// Loads and, when that works, reads every sample.
bool is_usable(const DataConfig& config) {
  try {
    const Data data = load_all(config);
    const Batch batch = gather_all(*data.dataset);
    EXPECT_EQ(batch.size(), data.dataset->size());
    // One check of them all: zero times what is not finite is not a number.
    float zero = 0;
    const float* const end = batch.features.data() + batch.features.size();
    for (const float* value = batch.features.data(); value != end; ++value) zero += 0 * *value;
    EXPECT_EQ(zero, 0);
    for (const int32_t label : batch.labels) {
      EXPECT_GE(label, 0);
      EXPECT_LT(label, data.dataset->classes());
    }
    return true;
  } catch (const Error& error) {
    EXPECT_FALSE(std::string(error.what()).empty());
    return false;
  }
}

struct Outcome {
  int usable = 0, refused = 0;
};

Outcome damage(const TemporaryDirectory& directory, const std::string& name,
               const std::string& content, const std::function<DataConfig(std::string)>& config) {
  Outcome outcome;
  const auto attempt = [&](const std::string& damaged) {
    is_usable(config(directory.write(name, damaged))) ? ++outcome.usable : ++outcome.refused;
  };
  for (size_t size = 0; size < content.size(); size += 1 + content.size() / 200)
    attempt(content.substr(0, size));
  Random random(1, Stream::kTest);
  for (int i = 0; i < 600; ++i) {
    std::string damaged = content;
    // The first bytes hold the promises: hit them often.
    const size_t reach = i % 2 == 0 ? std::min<size_t>(24, content.size()) : content.size();
    for (uint64_t flips = 1 + random.below(3); flips > 0; --flips)
      damaged[random.below(reach)] ^= static_cast<char>(1u << random.below(8));
    attempt(damaged);
  }
  return outcome;
}

class Damage : public testing::Test {
 protected:
  static double peak_memory_mib() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_maxrss) / 1024;
  }
  void SetUp() override { before_mib_ = peak_memory_mib(); }
  void TearDown() override {
#ifndef __SANITIZE_ADDRESS__  // which keeps freed memory for a while
    EXPECT_LT(peak_memory_mib() - before_mib_, 64);
#endif
  }
  TemporaryDirectory directory_;
  double before_mib_ = 0;
};

TEST_F(Damage, IdxImages) {
  const std::string labels = directory_.write("labels", idx(8, {50}, ramp(50)));
  const auto config = [&](const std::string& path) {
    DataConfig c("idx");
    set(c, "path", path);
    set(c, "labels_path", labels);
    return c;
  };
  const std::string content = idx(8, {50, 6, 7}, ramp(50 * 6 * 7));
  EXPECT_TRUE(is_usable(config(directory_.write("images", content))));
  const Outcome plain = damage(directory_, "images", content, config);
  EXPECT_GT(plain.usable, 100);   // flips among the pixels go unnoticed
  EXPECT_GT(plain.refused, 300);  // every truncation and most of the flips in the header
  const std::string packed = read_all(directory_.write_gzip("packed.gz", content));
  const Outcome gzip = damage(directory_, "images.gz", packed, config);
  // The checksum finds nearly everything; what is left are flips of the name and time stamp fields.
  EXPECT_GT(gzip.refused, 9 * gzip.usable);
}

TEST_F(Damage, IdxLabels) {
  const std::string images = directory_.write("images", idx(8, {50, 6}, ramp(300)));
  damage(directory_, "labels", idx(8, {50}, ramp(50)), [&](const std::string& path) {
    DataConfig c("idx");
    set(c, "path", images);
    set(c, "labels_path", path);
    return c;
  });
}

TEST_F(Damage, Csv) {
  std::string content = "a,b,\"c, third\",kind\n";
  Random random(2, Stream::kTest);
  for (int i = 0; i < 60; ++i)
    content += std::to_string(random.normal()) + "," + std::to_string(random.below(100)) + ",\"" +
               std::to_string(random.uniform()) + "\"," + (i % 3 == 0 ? "x" : "y") + "\n";
  const auto config = [](const std::string& path) {
    DataConfig c("csv");
    set(c, "path", path);
    return c;
  };
  EXPECT_TRUE(is_usable(config(directory_.write("t.csv", content))));
  const Outcome plain = damage(directory_, "t.csv", content, config);
  EXPECT_GT(plain.refused, 100);
  const std::string packed = read_all(directory_.write_gzip("packed.gz", content));
  const Outcome gzip = damage(directory_, "t.csv.gz", packed, config);
  EXPECT_GT(gzip.refused, 2 * gzip.usable);
}

TEST_F(Damage, Text) {
  const auto config = [](const std::string& path) {
    DataConfig c("text");
    set(c, "path", path);
    set(c, "context", 4);
    return c;
  };
  damage(directory_, "t", ramp(300), config);
  const std::string packed = read_all(directory_.write_gzip("packed.gz", ramp(300)));
  damage(directory_, "t.gz", packed, config);
}

TEST_F(Damage, Libsvm) {
  std::string content;
  Random random(4, Stream::kTest);
  for (int i = 0; i < 60; ++i) {
    content += i % 2 == 0 ? "+1" : "-1";
    for (int index = 1; index < 20; index += 1 + static_cast<int>(random.below(4)))
      content += " " + std::to_string(index) + ":" + std::to_string(random.normal());
    content += "\n";
  }
  const auto config = [](const std::string& path) {
    DataConfig c("libsvm");
    set(c, "path", path);
    set(c, "standardise", true);
    return c;
  };
  EXPECT_TRUE(is_usable(config(directory_.write("t.svm", content))));
  const Outcome plain = damage(directory_, "t.svm", content, config);
  EXPECT_GT(plain.usable, 50);
  EXPECT_GT(plain.refused, 100);
  const std::string packed = read_all(directory_.write_gzip("packed.gz", content));
  const Outcome gzip = damage(directory_, "t.svm.gz", packed, config);
  EXPECT_GT(gzip.refused, 2 * gzip.usable);
}

TEST_F(Damage, Fann) {
  std::string content = "50 6 2\n";
  Random random(5, Stream::kTest);
  for (int i = 0; i < 50; ++i) {
    for (int j = 0; j < 6; ++j) content += std::to_string(random.normal()) + " ";
    content += i % 2 == 0 ? "\n0 1\n" : "\n1 0\n";
  }
  const auto config = [](const std::string& path) {
    DataConfig c("fann");
    set(c, "path", path);
    return c;
  };
  EXPECT_TRUE(is_usable(config(directory_.write("t.train", content))));
  const Outcome plain = damage(directory_, "t.train", content, config);
  EXPECT_GT(plain.usable, 50);
  EXPECT_GT(plain.refused, 250);  // every truncation, and what hits the header
}

TEST_F(Damage, Series) {
  std::string content = "day,value,other\n";
  Random random(6, Stream::kTest);
  for (int i = 0; i < 80; ++i)
    content += std::to_string(i) + "," + std::to_string(random.normal()) + ",1\n";
  const Outcome outcome = damage(directory_, "t.csv", content, [](const std::string& path) {
    DataConfig c("series");
    set(c, "path", path);
    set(c, "label", "value");
    set(c, "columns", "value,other");
    set(c, "standardise", true);
    return c;
  });
  EXPECT_GT(outcome.usable, 50);
  EXPECT_GT(outcome.refused, 50);
}

TEST_F(Damage, Tokens) {
  const auto config = [](const std::string& path) {
    DataConfig c("tokens");
    set(c, "path", path);
    set(c, "context", 4);
    return c;
  };
  damage(directory_, "t", ramp(600), config);
  const std::string packed = read_all(directory_.write_gzip("packed.gz", ramp(600)));
  damage(directory_, "t.gz", packed, config);
}

// A header that promises terabytes is refused by arithmetic, not by trying.
TEST_F(Damage, PromisesBeyondTheFileAreRefused) {
  DataConfig config("idx");
  set(config, "labels_path", "unused");
  for (const std::vector<uint32_t>& extents :
       std::vector<std::vector<uint32_t>>{{0xffffffff},
                                          {0xffffffff, 0xffffffff},
                                          {0x10000, 0x10000, 0x10000, 0x10000},
                                          {1u << 30, 28, 28}})
    for (const bool gzip : {false, true}) {
      const std::string content = idx(8, extents, ramp(1000));
      set(config, "path",
          gzip ? directory_.write_gzip("i.gz", content) : directory_.write("i", content));
      expect_data_error(config, {"more values than the file can hold"});
    }
}

// Within what deflate can expand to, memory still follows the content.
TEST_F(Damage, APromiseThatGzipCouldKeepTakesNoMemoryUntilItDoes) {
  DataConfig config("idx");
  set(config, "labels_path", "unused");
  std::string noise;
  Random random(3, Stream::kTest);
  for (int i = 0; i < 1000000; ++i) noise.push_back(static_cast<char>(random.below(256)));
  set(config, "path", directory_.write_gzip("i.gz", idx(8, {1000000, 1000}, noise)));
  expect_data_error(config, {"promises 1000000000 bytes", "there are 1000000;"});
}

}  // namespace
}  // namespace tutti
