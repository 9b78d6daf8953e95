// Helpers for the tests of `tutti predict`: small tables, and a folder with a run in it.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "core/random.h"
#include "fabric/outcome.h"
#include "tests/support/programs.h"

namespace tutti::predict_tests {

using namespace testing_support;
using nlohmann::json;
using Lines = std::vector<std::string>;

inline Lines lines_of(const std::string& text) {
  std::istringstream stream(text);
  Lines lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

inline Lines fields_of(const std::string& line) {
  std::istringstream stream(line);
  Lines fields;
  for (std::string field; std::getline(stream, field, ',');) fields.push_back(field);
  return fields;
}

inline const Lines kFlowers = {"iris blue", "rose red", "tulip"};

// Four measures of flowers; kinds differ by more than their members do, so all can be told apart.
inline Lines flowers(size_t count, bool labelled) {
  Random random(7, Stream::kTest);
  Lines rows;
  for (size_t i = 0; i < count; ++i) {
    const size_t kind = i % 3;
    std::string row;
    for (size_t j = 0; j < 4; ++j) {
      const double value = (j == kind ? 3.0 : 0.5) + 0.2 * random.uniform();
      row += (j ? "," : "") + std::to_string(value);
    }
    rows.push_back(labelled ? row + "," + kFlowers[kind] : row);
  }
  return rows;
}

inline std::string table(const std::string& header, const Lines& rows) {
  std::string text = header.empty() ? "" : header + "\n";
  for (const std::string& row : rows) text += row + "\n";
  return text;
}

inline std::string job_for(const std::string& data, const std::string& model) {
  return "[task]\ndata = " + data + "\nmodel = \"" + model +
         "\"\nglobal_batch = 10\nepochs = 30\n"
         "[optimizer]\nkind = \"adam\"\nlr = 0.1\n[cluster]\nworkers = 2\n";
}

class Predict : public testing::Test {
 protected:
  void train(const std::string& data, const std::string& model) {
    write_text(folder_ / "job.toml", job_for(data, model));
    const Ended ended = run({"train", "job.toml", "--out", "run", "--quiet"});
    ASSERT_EQ(ended.exit_code, kExitDone) << ended.err;
  }
  void train_on_flowers() {
    write_text(folder_ / "flowers.csv", table("a,b,c,d,kind", flowers(150, true)));
    train("{ kind = \"csv\", path = \"flowers.csv\" }", "logistic");
  }
  Ended run(const Arguments& arguments) { return run_tutti(arguments, {.folder = folder_.path()}); }
  // Predictions of `arguments`, checked to be one for each of `count` samples in order.
  Lines predictions(const Arguments& arguments, size_t count, bool labelled) {
    const Ended ended = run(Arguments{"predict", "run"} + arguments);
    EXPECT_EQ(ended.exit_code, kExitDone) << ended.err;
    EXPECT_EQ(has(ended.err, "accuracy") || has(ended.err, "mse"), labelled) << ended.err;
    const Lines lines = lines_of(ended.out);
    if (lines.size() != count + 1) {
      ADD_FAILURE() << lines.size() << " lines for " << count << " samples";
      return {};
    }
    Lines found;
    for (size_t i = 0; i < count; ++i) {
      const Lines fields = fields_of(lines[i + 1]);
      EXPECT_EQ(fields[0], std::to_string(i));
      found.push_back(fields.at(1));
    }
    return found;
  }
  TemporaryFolder folder_;
};

}  // namespace tutti::predict_tests
