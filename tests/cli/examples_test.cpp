// Every command that help and the documents show can be given as it stands there: its options
// exist, and its job passes the check.
#include <gtest/gtest.h>

#include <filesystem>

#include "fabric/outcome.h"
#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;

const Arguments kCommands = {"train", "compare", "check",  "join",   "predict", "show",  "report",
                             "list",  "doctor",  "advise", "survey", "bench",   "verify"};

Arguments words_of(const std::string& line) {
  std::istringstream stream(line);
  Arguments words;
  for (std::string word; stream >> word && word != "#";) words.push_back(word);
  return words;
}

// The commands in a text: lines that begin with one, perhaps after `before`.
std::vector<Arguments> commands_in(const std::string& text, const std::string& before) {
  std::vector<Arguments> commands;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    line.erase(0, line.find_first_not_of(' ') == std::string::npos ? line.size()
                                                                   : line.find_first_not_of(' '));
    if (line.starts_with(before)) line.erase(0, before.size());
    for (const char* program : {"$tutti ", "tutti ", "build/release/tutti "})
      if (line.starts_with(program)) {
        const Arguments words = words_of(line.substr(std::string(program).size()));
        const bool known = !words.empty() && std::find(kCommands.begin(), kCommands.end(),
                                                       words[0]) != kCommands.end();
        if (known) commands.push_back(words);
        break;
      }
  }
  return commands;
}

// Within the fences of a document alone: elsewhere a line may begin with a name by chance.
std::string code_in(const std::string& document) {
  std::istringstream lines(document);
  std::string code;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```"))
      inside = !inside;
    else if (inside)
      code += line + "\n";
  }
  return code;
}

class Examples : public testing::Test {
 protected:
  Examples() { write_text(folder_ / "job.toml", small_job()); }
  Ended run(const Arguments& arguments) {
    return run_tutti(arguments, {.folder = TUTTI_SOURCE}, kLate_s);
  }
  std::string help_of(const std::string& command) {
    std::string& help = help_[command];
    if (help.empty()) help = run({command, "--help"}).out;
    return help;
  }
  // All that can be said of a command without its taking hours, or runs that are not there.
  void expect_works(const Arguments& command, const std::string& where) {
    std::string shown;
    for (const std::string& word : command) shown += " " + word;
    SCOPED_TRACE(where + ": tutti" + shown);
    Arguments check = {"check"};
    bool names_a_recipe = false;
    for (size_t i = 1; i < command.size(); ++i) {
      const std::string& word = command[i];
      const bool known =
          !word.starts_with("-") || has(help_of(command[0]), word.substr(0, word.find('=')));
      EXPECT_TRUE(known) << word;
      if (word.starts_with("recipes/")) {
        check.push_back(word);
        names_a_recipe = true;
      }
      if (word == "--set") check = check + Arguments{word, command.at(i + 1)};
      if (word == "--cluster") expect_cluster(command.at(i + 1));
    }
    if (command[0] == "list" || command[0] == "doctor" || command[0] == "check")
      expect_done(command);
    else if (names_a_recipe)
      expect_done(check);
  }
  // By itself: who compares and advises makes the job fit it.
  void expect_cluster(const std::string& name) {
    expect_done(
        {"check", folder_ / "job.toml", "--set", "task.global_batch=100", "--cluster", name});
  }
  void expect_done(const Arguments& arguments) {
    const Ended ended = run(arguments);
    EXPECT_EQ(ended.exit_code, kExitDone) << ended.err;
    ++ran_;
  }
  TemporaryFolder folder_;
  size_t ran_ = 0;
  std::map<std::string, std::string> help_;
};

TEST_F(Examples, OfHelpWork) {
  for (const Arguments& command : commands_in(run({"--help"}).out, ""))
    expect_works(command, "--help");
  EXPECT_EQ(ran_, 5u);
  for (const std::string& command : kCommands) {
    const auto found = commands_in(help_of(command), "Example: ");
    EXPECT_FALSE(found.empty()) << command << " --help shows none";
    for (const Arguments& example : found) {
      EXPECT_EQ(example[0], command);
      expect_works(example, command + " --help");
    }
  }
}

TEST_F(Examples, OfTheReadmeWork) {
  const auto found = commands_in(code_in(content_of(TUTTI_SOURCE "/README.md")), "");
  for (const Arguments& command : found) expect_works(command, "README.md");
  EXPECT_GE(ran_, 4u);
}

TEST_F(Examples, OfTheDocumentsWork) {
  for (const auto& entry : std::filesystem::directory_iterator(TUTTI_SOURCE "/docs")) {
    if (entry.path().extension() != ".md") continue;
    for (const Arguments& command : commands_in(code_in(content_of(entry.path())), "")) {
      // A shell would have to read these.
      const bool plain = std::none_of(command.begin(), command.end(), [](const std::string& word) {
        return word.find_first_of("'\"\\|<>$*`;&") != std::string::npos;
      });
      if (plain) expect_works(command, entry.path().filename());
    }
  }
  EXPECT_GE(ran_, 5u);
}

}  // namespace
}  // namespace tutti
