// `tutti predict`: what a trained model says of new samples, in every format of data.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "tests/cli/predict.h"

namespace tutti {
namespace {

using namespace predict_tests;

TEST_F(Predict, ClassesOfACsvFile) {
  train_on_flowers();
  Lines expected;
  for (size_t i = 0; i < 30; ++i) expected.push_back(kFlowers[i % 3]);
  write_text(folder_ / "new.csv", table("a,b,c,d,kind", flowers(30, true)));
  EXPECT_EQ(predictions({"--data", "new.csv"}, 30, true), expected);
  write_text(folder_ / "bare.csv", table("", flowers(30, false)));
  EXPECT_EQ(predictions({"--data", "bare.csv"}, 30, false), expected);

  const Ended ended = run({"predict", "run", "--data", "new.csv", "-o", "out.csv"});
  EXPECT_EQ(ended.out, "");
  EXPECT_TRUE(has(ended.err, "accuracy 1.0000 on 30 samples")) << ended.err;
  const Lines lines = lines_of(content_of(folder_ / "out.csv"));
  ASSERT_EQ(lines.size(), 31u);
  EXPECT_EQ(lines[0], "sample,prediction,probability,label,p_iris blue,p_rose red,p_tulip");
  for (size_t i = 1; i < lines.size(); ++i) {
    const Lines fields = fields_of(lines[i]);
    ASSERT_EQ(fields.size(), 7u);
    EXPECT_EQ(fields[3], kFlowers[(i - 1) % 3]);
    EXPECT_EQ(fields[2], fields[4 + (i - 1) % 3]);
    EXPECT_NEAR(std::stod(fields[4]) + std::stod(fields[5]) + std::stod(fields[6]), 1, 1e-4);
    EXPECT_GT(std::stod(fields[2]), 0.5);
  }
  EXPECT_EQ(lines_of(run({"predict", "run", "--data", "bare.csv"}).out)[0],
            "sample,prediction,probability,p_iris blue,p_rose red,p_tulip");

  const json labelled = json::parse(run({"predict", "run", "--data", "new.csv", "--json"}).out);
  EXPECT_EQ(labelled["samples"], 30);
  EXPECT_EQ(labelled["quality"], 1.0);
  EXPECT_EQ(labelled["metric"], "accuracy");
  const json bare = json::parse(run({"predict", "run", "--data", "bare.csv", "--json"}).out);
  EXPECT_TRUE(bare["quality"].is_null());
}

// Where both files name their columns, the names count and not the order.
TEST_F(Predict, ColumnsByTheirNames) {
  train_on_flowers();
  Lines expected, rows;
  for (size_t i = 0; i < 30; ++i) expected.push_back(kFlowers[i % 3]);
  for (const std::string& row : flowers(30, true)) {
    const Lines f = fields_of(row);
    rows.push_back(f[4] + "," + f[2] + "," + f[0] + "," + f[3] + "," + f[1]);
  }
  write_text(folder_ / "moved.csv", table("kind,c,a,d,b", rows));
  EXPECT_EQ(predictions({"--data", "moved.csv"}, 30, true), expected);
  write_text(folder_ / "other.csv", table("kind,c,a,d,e", rows));
  const Ended other = run({"predict", "run", "--data", "other.csv"});
  EXPECT_EQ(other.exit_code, kExitBadJob);
  EXPECT_TRUE(has(other.err, "other.csv: there is no column 'b'") ||
              has(other.err, "other.csv: there is no column \"b\""))
      << other.err;
}

// Two devices see a part of the measures each, below a cloud. Predictions equal the run's own
// answers for its test samples, and say who answered.
TEST_F(Predict, AsTheExitsOfARunAnswered) {
  write_text(folder_ / "flowers.csv", table("a,b,c,d,kind", flowers(300, true)));
  write_text(folder_ / "job.toml", job_for("{ kind = \"csv\", path = \"flowers.csv\" }", "mlp"));
  const Ended trained = run({"train", "job.toml", "--out", "run", "--json", "--quiet", "--set",
                             "task.epochs=2", "--set", "task.model.hidden=[8, 8]", "--set",
                             "strategy={kind=\"early_exit\", views=\"parts\", devices=2, cuts=[2], "
                             "thresholds=[0.8]}",
                             "--set", "cluster.workers=4", "--set", "optimizer.lr=0.01"});
  ASSERT_EQ(trained.exit_code, kExitDone) << trained.err;
  const json record = json::parse(content_of(folder_ / "run/run.json"));
  const json said = json::parse(run({"predict", "run", "--json", "-o", "out.csv"}).out);
  EXPECT_EQ(said["quality"], record["extra"]["figures"]["exit_accuracy"]);
  const Lines lines = lines_of(content_of(folder_ / "out.csv"));
  ASSERT_EQ(lines.size(), 1 + 30u);
  const Lines header = fields_of(lines[0]);
  const auto column = std::find(header.begin(), header.end(), "exit") - header.begin();
  ASSERT_LT(column, static_cast<ptrdiff_t>(header.size())) << lines[0];
  double left = 0;
  for (size_t i = 1; i < lines.size(); ++i)
    left += fields_of(lines[i]).at(static_cast<size_t>(column)) == "device" ? 1 : 0;
  EXPECT_EQ(left / 30, record["extra"]["figures"]["device_exit_share"]);

  std::filesystem::remove(folder_ / "run/exits.safetensors");
  const Ended lost = run({"predict", "run"});
  EXPECT_EQ(lost.exit_code, kExitBadJob) << lost.err;
  EXPECT_TRUE(has(lost.err, "without exits.safetensors")) << lost.err;
}

// Standard output by its names, and a link, which stays one.
TEST_F(Predict, IntoWhatIsNoRegularFile) {
  train_on_flowers();
  const std::string printed = run({"predict", "run"}).out;
  ASSERT_FALSE(printed.empty());
  EXPECT_EQ(run({"predict", "run", "-o", "-"}).out, printed);
  std::filesystem::create_symlink("/proc/self/fd/1", folder_ / "output");
  EXPECT_EQ(run({"predict", "run", "-o", "output"}).out, printed);
  write_text(folder_ / "target.csv", "old");
  std::filesystem::create_symlink("target.csv", folder_ / "link.csv");
  EXPECT_EQ(run({"predict", "run", "-o", "link.csv"}).out, "");
  EXPECT_EQ(content_of(folder_ / "target.csv"), printed);
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "link.csv"));
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "output"));
}

// Without --data: the test samples that training kept aside, to the quality that it reported.
TEST_F(Predict, TheTestSamplesByDefault) {
  train_on_flowers();
  const Ended ended = run({"predict", "run"});
  EXPECT_EQ(ended.exit_code, kExitDone);
  EXPECT_EQ(lines_of(ended.out).size(), 1 + 15u);
  const json result = json::parse(run({"predict", "run", "--json"}).out);
  EXPECT_EQ(result["quality"], json_in(folder_ / "run/run.json")["quality"]["final"]);
}

TEST_F(Predict, NumbersOfARegression) {
  Random random(3, Stream::kTest);
  Lines labelled, bare;
  std::vector<double> targets;
  for (int i = 0; i < 100; ++i) {
    const double x = random.uniform(), y = random.uniform();
    targets.push_back(2 * x - y + 0.5);
    bare.push_back(std::to_string(x) + "," + std::to_string(y));
    labelled.push_back(bare.back() + "," + std::to_string(targets.back()));
  }
  write_text(folder_ / "line.csv", table("x,y,z", labelled));
  write_text(folder_ / "bare.csv", table("x,y", bare));
  train("{ kind = \"csv\", path = \"line.csv\", regression = true }", "linear");
  const Lines found = predictions({"--data", "bare.csv"}, 100, false);
  ASSERT_EQ(found.size(), 100u);
  for (size_t i = 0; i < 100; ++i) EXPECT_NEAR(std::stod(found[i]), targets[i], 0.02);
  EXPECT_EQ(lines_of(run({"predict", "run", "--data", "bare.csv"}).out)[0], "sample,prediction");
  const Lines rows = lines_of(run({"predict", "run", "--data", "line.csv"}).out);
  EXPECT_EQ(rows[0], "sample,prediction,target");
  EXPECT_NEAR(std::stod(fields_of(rows[1]).at(2)), targets[0], 1e-5);
  EXPECT_EQ(predictions({"--data", "line.csv"}, 100, true), found);
  EXPECT_LT(json::parse(run({"predict", "run", "--data", "line.csv", "--json"}).out)["quality"],
            1e-3);
}

std::string idx_file(const std::vector<int>& extents, const std::string& values) {
  std::string text = {0, 0, 8, static_cast<char>(extents.size())};
  for (const int extent : extents) text += std::string(3, '\0') + static_cast<char>(extent);
  return text + values;
}

TEST_F(Predict, ImagesOfAnIdxFile) {
  // Images of 3 x 2 whose bright column is their class.
  std::string pixels, labels;
  for (char i = 0; i < 120; ++i) {
    const int kind = i % 2;
    for (int pixel = 0; pixel < 6; ++pixel)
      pixels.push_back(static_cast<char>(pixel % 2 == kind ? 200 : i % 7));
    labels.push_back(static_cast<char>(kind));
  }
  write_text(folder_ / "images", idx_file({120, 3, 2}, pixels));
  write_text(folder_ / "labels", idx_file({120}, labels));
  train("{ kind = \"idx\", path = \"images\", labels_path = \"labels\" }", "logistic");
  write_text(folder_ / "new", idx_file({20, 3, 2}, pixels.substr(0, 120)));
  write_text(folder_ / "new_labels", idx_file({20}, labels.substr(0, 20)));
  Lines expected;
  for (int i = 0; i < 20; ++i) expected.push_back(std::to_string(i % 2));
  EXPECT_EQ(predictions({"--data", "new"}, 20, false), expected);
  EXPECT_EQ(predictions({"--data", "new", "--labels", "new_labels"}, 20, true), expected);
  // Labels without images, or beside a table that brings its own, would have no effect.
  EXPECT_EQ(run({"predict", "run", "--labels", "new_labels"}).exit_code, kExitBadJob);
}

TEST_F(Predict, EveryKindOfFileWithoutTheTrainingData) {
  std::string text, numbers = "t,v\n", sparse, fann = "60 2 1\n";
  for (int i = 0; i < 60; ++i) {
    text += i % 3 ? "abc" : "ba\n";
    numbers += std::to_string(i) + "," + std::to_string(i % 4) + "\n";
    sparse += std::to_string(i % 3) + " 1:0.5 " + std::to_string(2 + i % 3) + ":1\n";
    fann += "0.5 " + std::to_string(i % 2) + "\n" + std::to_string(i % 2) + "\n";
  }
  for (const auto& [data, model, content] : std::vector<std::array<std::string, 3>>{
           {"text\", context = 3", "logistic", text},
           {"tokens\", context = 8", "transformer", text},
           {"series\", label = \"v\", standardise = true", "linear", numbers},
           {"libsvm\"", "sparse_logistic", sparse},
           {"libsvm\", standardise = true", "logistic", sparse},
           {"fann\"", "logistic", fann}}) {
    for (const char* name : {"file", "new"}) write_text(folder_ / name, content);
    write_text(folder_ / "job.toml", job_for("{ path = \"file\", kind = \"" + data + " }", model));
    const Arguments short_run = {"--out", "run", "--quiet", "--set", "task.max_steps=2"};
    ASSERT_EQ(run(Arguments{"train", "job.toml"} + short_run).exit_code, kExitDone) << data;
    std::filesystem::remove(folder_ / "file");
    const Ended ended = run({"predict", "run", "--data", "new"});
    EXPECT_GT(lines_of(ended.out).size(), 10u) << data << ended.err;
    std::filesystem::remove_all(folder_ / "run");
  }
}

// The file of a sparse model has only some rows; they are checked too. Users keep their numbers.
TEST_F(Predict, RatingsByTheNamesOfTheRun) {
  Lines rows;
  for (int i = 0; i < 60; ++i)
    rows.push_back("u" + std::to_string(i % 6) + ",i" + std::to_string(i % 5) + "," +
                   std::to_string(1 + (i % 6) / 2));
  write_text(folder_ / "ratings.csv", table("user,item,rating", rows));
  write_text(folder_ / "job.toml",
             job_for("{ kind = \"ratings\", path = \"ratings.csv\" }", "factorization") +
                 "[strategy]\nkind = \"parameter_server\"\n");
  ASSERT_EQ(run({"train", "job.toml", "--out", "run", "--quiet"}).exit_code, kExitDone);
  std::filesystem::remove(folder_ / "ratings.csv");
  write_text(folder_ / "new.csv", "u5,i0\nu0,i0\n");
  const Lines found = predictions({"--data", "new.csv"}, 2, false);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_GT(std::stod(found[0]), std::stod(found[1]));
  const std::string path = folder_ / "run/parameters.safetensors";
  std::string changed = content_of(path);
  changed[changed.size() - 2] ^= 1;
  write_text(path, changed);
  const Ended refused = run({"predict", "run", "--data", "new.csv"});
  EXPECT_TRUE(has(refused.err, "parameters.safetensors: was changed")) << refused.err;
}

TEST_F(Predict, WhatDoesNotFitIsRefused) {
  train_on_flowers();
  write_text(folder_ / "wide.csv", "1,2,3,4,5,6\n");
  write_text(folder_ / "unknown.csv", "1,2,3,4,daisy\n");
  write_text(folder_ / "empty.csv", "");
  for (const std::string file : {"wide.csv", "unknown.csv", "empty.csv", "none.csv"}) {
    const Ended ended = run({"predict", "run", "--data", file});
    EXPECT_EQ(ended.exit_code, kExitBadJob) << file;
    EXPECT_TRUE(has(ended.err, file)) << ended.err;
    EXPECT_EQ(ended.out, "");
  }
  const Ended ended = run({"predict", "run", "--data", "flowers.csv", "--labels", "flowers.csv"});
  EXPECT_EQ(ended.exit_code, kExitBadJob);
  EXPECT_TRUE(has(ended.err, "--labels")) << ended.err;
  const Ended nowhere = run({"predict", "run", "-o", "no/such/folder.csv"});
  EXPECT_EQ(nowhere.exit_code, kExitBadJob);
  EXPECT_TRUE(has(nowhere.err, "no/such/folder.csv")) << nowhere.err;
}

}  // namespace
}  // namespace tutti
