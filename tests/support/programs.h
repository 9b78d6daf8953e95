// Jobs for the program: a small one that is over at once, and a long one to be disturbed.
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/jobs.h"
#include "tests/support/subprocess.h"

namespace tutti::testing_support {

// Much more than anything that a test waits for takes, also on a busy machine.
inline constexpr double kLate_s = 150;

inline std::string content_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline nlohmann::json json_in(const std::string& path) {
  return nlohmann::json::parse(content_of(path), nullptr, false);
}

// Each setting on a line of its own, so that a test knows which line it changes.
inline std::string small_job() {
  return "name = \"small\"\n"  // 1
         "[task]\n"            // 2
         "data = { kind = \"synthetic-classes\", samples = 200, features = 8, classes = 3 }\n"
         "model = \"logistic\"\n"  // 4
         "global_batch = 20\n"     // 5
         "epochs = 2\n"            // 6
         "[optimizer]\n"           // 7
         "kind = \"sgd\"\n"        // 8
         "lr = 0.1\n"              // 9
         "[strategy]\n"            // 10
         "kind = \"allreduce\"\n"  // 11
         "topology = \"ring\"\n"   // 12
         "[cluster]\n"             // 13
         "fabric = \"process\"\n"  // 14
         "workers = 2\n";          // 15
}

// Trains until it is stopped, and shows by its evaluations how far it has come.
inline std::string endless_job() {
  return "name = \"endless\"\n"
         "[task]\n"
         "data = { kind = \"synthetic-classes\", samples = 4000, features = 40, classes = 5 }\n"
         "model = { kind = \"mlp\", hidden = [200] }\n"
         "global_batch = 100\n"
         "epochs = 1000000\n"
         "eval_every = 0.25\n"
         "[optimizer]\n"
         "kind = \"sgd\"\n"
         "lr = 0.01\n"
         "[cluster]\n"
         "workers = 4\n"
         "timeout = 60\n";
}

// How soon a run is over that was told to stop or lost a node: milliseconds, and on a machine that
// is busy with other things more. Below the 10 s after which a node that does not react is
// killed.
inline constexpr double kSoonS = 9;

// How many times a run that goes on has measured its quality.
inline size_t evaluations_in(const std::string& folder) {
  const std::string text = content_of(folder + "/evaluations.csv");
  const auto lines = static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  return lines > 0 ? lines - 1 : 0;
}

}  // namespace tutti::testing_support
