// Names, files and records may hold anything. A terminal shows it and does not obey it: no control
// character of theirs is printed as it is.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>

#include <filesystem>

#include "fabric/outcome.h"
#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;
using nlohmann::json;

// Clears the screen, rings, and begins a command by the byte that some terminals take for ESC [.
const std::string kEvil = "\x1b[2J\a\xc2\x9b";
constexpr const char* kEvilToml = "\\u001b[2J\\u0007\\u009b";

std::string in_ascii(const json& text) {
  return text.dump(-1, ' ', true, json::error_handler_t::replace);
}

// The first control character that is neither the end of a line nor a tab, with what is around it.
std::string first_control(const std::string& text) {
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : 0);
    const bool control = byte < 0x20 && byte != '\n' && byte != '\t';
    if (control || byte == 0x7f || (byte == 0xc2 && next >= 0x80 && next <= 0x9f))
      return "at " + std::to_string(i) + " of " + in_ascii(text);
  }
  return "";
}

class OnTheTerminal : public testing::Test {
 protected:
  OnTheTerminal() {
    write_text(folder_ / "job.toml", small_job());
    write_text(folder_ / (kEvil + ".toml"), small_job());
    const Ended ended = run({"train", "job.toml", "--quiet", "--out", "run"});
    EXPECT_EQ(ended.exit_code, kExitDone) << ended.err;
  }
  Ended run(const Arguments& arguments) {
    return run_tutti(arguments, {.folder = folder_.path()});
  }
  // Copies the run to a folder of an evil name, with these changes to its record.
  void copy_run(const json& changes) {
    std::filesystem::remove_all(folder_ / kEvil);
    std::filesystem::copy(folder_ / "run", folder_ / kEvil);
    json record = json_in(folder_ / "run/run.json");
    record.merge_patch(changes);
    write_text(folder_ / (kEvil + "/run.json"), record.dump());
  }
  // Runs the program, which is to print `word` and nothing that a terminal obeys.
  void expect_shown(const Arguments& arguments, const std::string& word) {
    const Ended ended = run(arguments);
    const std::string all = ended.out + ended.err;
    const std::string command = in_ascii(arguments);
    EXPECT_EQ(first_control(ended.out), "") << command;
    EXPECT_EQ(first_control(ended.err), "") << command;
    EXPECT_TRUE(has(all, word)) << command << ": " << in_ascii(all);
  }
  TemporaryFolder folder_;
};

constexpr const char* kShown = "\\x1b[2J\\x07";

TEST_F(OnTheTerminal, CommandLinesAndJobFilesAreShown) {
  const std::vector<Arguments> all = {
      {kEvil},
      {"train", "job.toml", "--" + kEvil},
      {"train", kEvil},
      {"train", "job.toml", "--set", kEvil},
      {"train", "job.toml", "--set", kEvil + "=1"},
      {"train", "job.toml", "--set", "strategy.kind=" + kEvil},
      {"train", "job.toml", "--set", "name=" + kEvil},
      {"train", "job.toml", "--set", "name=a/" + kEvil},
      {"train", "job.toml", "--set", "task.data={kind=\"csv\", path=\"" + std::string(kEvilToml) +
                                         "\"}"},
      {"train", "job.toml", "--out", "/proc/" + kEvil},
      {"train", kEvil + ".toml", "--quiet", "--out", kEvil + "1"},
      {"check", kEvil + ".toml", "--diff", "job.toml"},
      {"check", "job.toml", "--diff", kEvil + ".toml"},
      {"compare", "job.toml", "--strategies", kEvil},
      {"compare", "job.toml", "--strategies", "solo", "--quiet", "--set", "cluster.fabric=virtual",
       "--out", kEvil + "2"},
      {"survey", kEvil},
      {"survey", "--cluster", kEvil},
      {"advise", "job.toml", "--set", "task.target=0.5", "--cluster", kEvil},
      {"join", kEvil, "--token", "a"},
      {"list", kEvil},
  };
  for (const Arguments& arguments : all) expect_shown(arguments, kShown);
}

TEST_F(OnTheTerminal, KeysAndNamesOfJobFilesAreShown) {
  const std::string evil = "\"" + std::string(kEvilToml) + "\"";
  const std::string entry = "[[compare]]\nname = \"fine\"\nstrategy = {kind = \"solo\"}\n";
  for (const std::string& more :
       {"[" + evil + "]\n", "[cluster." + evil + "]\n",
        "[[compare]]\nname = \"a\"\n" + evil + "=1\n",
        "[[compare]]\nname = " + evil + "\n[[compare]]\nname = " + evil + "\n"}) {
    write_text(folder_ / "more.toml", small_job() + more);
    expect_shown({"compare", "more.toml", "--strategies", "listed"}, kShown);
  }
  // One that is refused is named beside the others.
  write_text(folder_ / "more.toml", small_job() + entry + "[[compare]]\nname = " + evil + "\n");
  expect_shown({"compare", "more.toml", "--strategies", "listed", "--out", "compared"}, kShown);
  // A setting that is dropped is said with its value.
  std::string job = small_job();
  job.replace(job.find("\"ring\""), 6, evil);
  write_text(folder_ / "dropped.toml", job);
  expect_shown({"check", "dropped.toml", "--set", "strategy.kind=gossip"}, "was dropped");
}

TEST_F(OnTheTerminal, RecordsAndFoldersOfRunsAreShown) {
  copy_run({{"name", kEvil}});
  expect_shown({"show", kEvil}, kShown);
  copy_run({{"fabric", kEvil}});
  expect_shown({"show", kEvil}, kShown);
  copy_run({{"obtained", kEvil}});
  expect_shown({"show", kEvil}, kShown);
  copy_run({{"status", kEvil}});
  expect_shown({"show", kEvil}, kShown);
  expect_shown({"report", kEvil}, kShown);
  expect_shown({"report", "run", "--out", kEvil + ".html"}, kShown);
  copy_run({{kEvil, 1}, {"steps", kEvil}});
  expect_shown({"show", kEvil}, kShown);
  expect_shown({"report", kEvil}, kShown);
  copy_run({{"parameters_sha256", nullptr}});
  expect_shown({"predict", kEvil, "--output", "p.csv"}, "has no parameters_sha256");
  std::filesystem::remove(folder_ / (kEvil + "/data.json"));
  expect_shown({"predict", kEvil, "--output", "p.csv"}, "has no data.json");
  copy_run({{"status", kEvil}});
  std::filesystem::remove(folder_ / (kEvil + "/parameters.safetensors"));
  expect_shown({"predict", kEvil}, kShown);
  write_text(folder_ / (kEvil + "/run.json"), "{\"" + kEvil);
  expect_shown({"show", kEvil}, kShown);
}

// Predictions are CSV, which a file or a pipe gets as it is: only a terminal would obey it.
TEST_F(OnTheTerminal, NamesOfClassesAreShown) {
  std::string table = "a,b,kind\n";
  for (int i = 0; i < 100; ++i)
    table += fmt::format("{},{},{}\n", i % 7, i % 2, i % 2 ? "x" + kEvil : "y");
  write_text(folder_ / "classes.csv", table);
  std::string job = small_job();
  const size_t begin = job.find("{ kind"), end = job.find('\n', begin);
  write_text(folder_ / "classes.toml",
             job.replace(begin, end - begin, "{ kind = \"csv\", path = \"classes.csv\" }"));
  expect_shown({"train", "classes.toml", "--quiet", "--out", "classes"}, "classes");
  expect_shown({"train", "classes.toml", "--set", "task.data.label=" + kEvil},
               "there is no column");
  EXPECT_TRUE(has(run({"predict", "classes", "--quiet"}).out, "x" + kEvil));
  for (const Arguments& arguments :
       {Arguments{"predict", "classes", "--quiet"},
        Arguments{"predict", "classes", "--quiet", "--output", "-"}}) {
    int master = -1, slave = -1;
    ASSERT_EQ(openpty(&master, &slave, nullptr, nullptr, nullptr), 0);
    Subprocess process(arguments, {.folder = folder_.path(), .out = slave});
    std::string text;
    char buffer[4096];
    while (!has(text, "accuracy") && process.err().empty()) {
      pollfd ready{master, POLLIN, 0};
      if (poll(&ready, 1, 20) == 1)
        text.append(buffer, static_cast<size_t>(std::max<ssize_t>(0, read(master, buffer, 4096))));
    }
    EXPECT_EQ(process.wait(kLate_s).exit_code, kExitDone) << process.err();
    for (pollfd ready{master, POLLIN, 0}; poll(&ready, 1, 50) == 1;)
      text.append(buffer, static_cast<size_t>(std::max<ssize_t>(0, read(master, buffer, 4096))));
    std::erase(text, '\r');  // the terminal's own end of a line
    EXPECT_EQ(first_control(text), "");
    EXPECT_TRUE(has(text, std::string("x") + kShown)) << text;
    close(slave);
    close(master);
  }
}

}  // namespace
}  // namespace tutti
