// The repository keeps the rules of the house, and each rule is able to find what it looks for.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/tidy/class_rules.h"
#include "tests/tidy/classes.h"
#include "tests/tidy/rules.h"

namespace tutti::tidy {
namespace {

std::vector<SourceFile> repository() {
  namespace fs = std::filesystem;
  std::vector<SourceFile> files;
  const fs::path top = TUTTI_SOURCE;
  for (const char* folder : {"src", "tests", "bench", "web"})
    for (const auto& entry : fs::recursive_directory_iterator(top / folder)) {
      if (!entry.is_regular_file()) continue;
      const std::string name = entry.path().filename().string();
      const std::string extension = entry.path().extension().string();
      if (extension != ".cpp" && extension != ".h" && extension != ".py" && extension != ".js" &&
          name != "CMakeLists.txt")
        continue;
      std::ifstream file(entry.path(), std::ios::binary);
      files.push_back(
          {fs::relative(entry.path(), top).string(), {std::istreambuf_iterator<char>(file), {}}});
    }
  return files;
}

Findings check(const std::string& rule, const SourceFile& file) {
  for (const Rule& each : rules())
    if (each.name == rule) return each.check(file);
  ADD_FAILURE() << "no rule " << rule;
  return {};
}

class Tidy : public testing::TestWithParam<Rule> {};

TEST_P(Tidy, IsKept) {
  const std::vector<SourceFile> files = repository();
  ASSERT_GT(files.size(), 100u);
  for (const SourceFile& file : files)
    for (const std::string& finding : GetParam().check(file)) ADD_FAILURE() << finding;
}

INSTANTIATE_TEST_SUITE_P(All, Tidy, testing::ValuesIn(rules()),
                         [](const auto& test) { return std::string(test.param.name); });

struct Example {
  const char* rule;
  SourceFile bad, good;
};

// A rule that cannot fail checks nothing.
TEST(TidyRules, FindWhatTheyLookFor) {
  const std::string long_line(101, 'x');
  std::string long_file;
  for (int i = 0; i <= 400; ++i) long_file += "\n";
  const std::vector<Example> examples = {
      {"Columns", {"src/core/a.cpp", long_line + "\n"}, {"src/core/a.cpp", long_line.substr(1)}},
      {"Columns", {"web/a.js", long_line + "\n"}, {"web/a.js", "import " + long_line + "\n"}},
      {"Length", {"tests/core/a.cpp", long_file}, {"tests/core/a.cpp", long_file.substr(1)}},
      {"Headers", {"src/core/a.h", "\n#pragma once\n"}, {"src/core/a.h", "// A.\n#pragma once\n"}},
      {"Headers", {"src/core/a.h", "// A.\n"}, {"src/core/a.cpp", ""}},
      {"NotesToSelf",
       {"src/core/a.cpp",
        "// FIX"
        "ME later\n"},
       {"src/core/a.cpp", "// fixed\n"}},
      {"IncludeOrder",
       {"src/fabric/a.cpp", "#include \"collectives/ring.h\"\n"},
       {"src/collectives/a.cpp", "#include \"fabric/node.h\"\n"}},
      {"IncludeOrder",
       {"src/data/a.cpp", "#include \"models/model.h\"\n"},
       {"src/models/a.cpp", "#include \"data/dataset.h\"\n"}},
      {"IncludeOrder",
       {"src/optimizers/a.cpp", "#include \"fabric/node.h\"\n"},
       {"src/optimizers/a.cpp", "#include <fmt/format.h>\n"}},
      {"IncludeOrder",
       {"src/unheard_of/a.cpp", ""},
       {"src/fabric/process/a.cpp", "#include \"fabric/process/b.h\"\n"}},
      {"FabricInsides",
       {"src/strategies/a.cpp", "#include \"fabric/virtual/virtual_node.h\"\n"},
       {"src/strategies/a.cpp", "#include \"fabric/node.h\"\n"}},
      {"Libraries",
       {"src/strategies/a.cpp", "#include <torch/torch.h>\n"},
       {"src/models/torch/a.cpp", "#include <torch/torch.h>\n"}},
      {"Libraries",
       {"src/jobs/a.cpp", "#include <simgrid/s4u.hpp>\n"},
       {"src/fabric/virtual/a.cpp", "#include <simgrid/s4u.hpp>\n"}},
      {"Libraries",
       {"src/fabric/a.cpp", "  # include <ucp/api/ucp.h>\n"},
       {"src/fabric/process/a.cpp", "#include <ucp/api/ucp.h>\n"}},
      {"Environment",
       {"src/jobs/a.cpp", "auto x = std::getenv(\"X\");\n"},
       {"src/jobs/a.cpp", "// never getenv here\nsetenv(\"X\", \"1\", 1);\n"}},
      {"NoThreads",
       {"src/fabric/process/a.cpp", "std::thread t;\n"},
       {"src/cli/a.cpp", "auto n = std::thread::hardware_concurrency();\n"}},
      {"NoThreads",
       {"src/jobs/a.cpp", "std::jthread t([] {});\n"},
       {"tests/jobs/a.cpp", "std::jthread t([] {});\n"}},
      {"StrategiesSeeNodesAlone",
       {"src/strategies/a.cpp", "std::thread t;\n"},
       {"src/fabric/process/a.cpp", "std::thread t;\n"}},
      {"StrategiesSeeNodesAlone",
       {"src/collectives/a.cpp", "auto t = std::chrono::steady_clock::now();\n"},
       {"src/collectives/a.cpp", "// synchronous, without std::chrono\n"}},
      {"StrategiesSeeNodesAlone",
       {"src/strategies/a.cpp", "std::random_device d;\n"},
       {"src/strategies/a.cpp", "Random random(seed, Stream::kFault);\n"}},
      {"WordsAreEnums",
       {"src/strategies/a.cpp", "if (config.mode == \"sync\") return;\n"},
       {"src/strategies/a.cpp", "if (config.mode == Pace::kLockstep) return;\n"}},
      {"WordsAreEnums",
       {"src/fabric/a.cpp", "const bool cut = \"crash\" != fault.kind;\n"},
       {"src/testbed/a.cpp", "if (magic == \"ustar\" || part == \"..\") return;\n"}},
      {"WordsAreEnums",
       {"src/testbed/a.cpp", "if (row.status == \"done\") return;\n"},
       {"src/testbed/a.cpp", "if (says(row.status, RunStatus::kDone)) return;\n"}},
      {"WordsAreEnums",
       {"src/cli/a.cpp", "if (kind == \"strategies\") return;\n"},
       {"src/cli/a.cpp", "if (kind == Listed::kStrategies) return;\n"}},
  };
  for (const Example& example : examples) {
    EXPECT_EQ(check(example.rule, example.bad).size(), 1u)
        << example.rule << ": " << example.bad.text;
    EXPECT_EQ(check(example.rule, example.good).size(), 0u)
        << example.rule << ": " << example.good.text;
  }
}

TEST(Tidy, ClassesHaveOneJob) {
  for (const std::string& finding : check_class_sizes(repository(), large_classes()))
    ADD_FAILURE() << finding;
}

TEST(Tidy, ClassesAreInOneFile) {
  for (const std::string& finding : check_one_file_per_class(repository(), spread_classes()))
    ADD_FAILURE() << finding;
}

TEST(TidyRules, CountFunctionsAndMembersOfClasses) {
  const std::vector<ClassSize> found = classes_in(R"(// class NotThis { int a_; };
struct Plain { int a = 0, b; };
enum class Word { kOne, kTwo };
class Forward;
template <class T>
class Many final : public Base<T>, private Other {
 public:
  explicit Many(T t) : t_{t}, more_(f(";{")) {}
  Many(const Many&) = delete;
  ~Many() override;
  int one_line() const { return 1; }
  void declared(std::map<int, int> m = {{1, 2}});
  T operator()(int x) const;
  template <class F>
  void longer(F f) {
    if (f()) { g(); }
  }
  void inherited() override {
    g();
  }
  static int made();

 private:
  struct Inner {
    int x;
    void f();
  };
  friend class Another;
  using Handler = std::function<void(int)>;
  static constexpr int kMost = 1 << 3;
  std::function<void(int, int)> call_;
  T t_{};
  int more_ = (1, 2), last_ = 1'000;
  std::map<int, std::pair<int, int>> map_{{1, {2, 3}}};
};
)");
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].name, "Plain");
  EXPECT_EQ(found[0].line, 2u);
  EXPECT_EQ(found[0].members, 2u);
  EXPECT_FALSE(found[0].has_hidden_state);
  EXPECT_EQ(found[1].name, "Many");
  EXPECT_EQ(found[1].line, 6u);
  EXPECT_EQ(found[1].functions, 4u);  // declared, operator(), longer, made
  EXPECT_EQ(found[1].members, 5u);
  EXPECT_TRUE(found[1].has_hidden_state);
  EXPECT_EQ(found[2].name, "Inner");
  EXPECT_EQ(found[2].functions, 1u);
}

// A class of so many functions and members.
SourceFile class_of(size_t functions, size_t members, const char* access = " private:\n") {
  std::string text = "class Large {\n public:\n";
  for (size_t i = 0; i < functions; ++i) text += "  void f" + std::to_string(i) + "();\n";
  text += access;
  for (size_t i = 0; i < members; ++i) text += "  int m" + std::to_string(i) + "_ = 0;\n";
  return {"src/core/large.h", text + "};\n"};
}

TEST(TidyRules, FindLargeClasses) {
  const auto found = [](const SourceFile& file, const std::vector<LargeClass>& list = {}) {
    return check_class_sizes({file}, list).size();
  };
  EXPECT_EQ(found(class_of(kMostFunctions, kMostMembers)), 0u);
  EXPECT_EQ(found(class_of(kMostFunctions + 1, 1)), 1u);
  EXPECT_EQ(found(class_of(1, kMostMembers + 1)), 1u);
  EXPECT_EQ(found(class_of(1, kMostMembers + 1, " protected:\n")), 1u);
  EXPECT_EQ(found(class_of(kMostFunctions + 1, kMostMembers + 1, "")), 0u) << "a record";
  const std::vector<LargeClass> list = {{"src/core/large.h", "Large", 21, 16, "why"}};
  EXPECT_EQ(found(class_of(21, 16), list), 0u);
  EXPECT_EQ(found(class_of(22, 16), list), 1u) << "it may not grow";
  EXPECT_EQ(found(class_of(21, 15), list), 1u) << "the list says so when it shrinks";
  EXPECT_EQ(found(class_of(1, 1), list), 1u) << "it is not too large any more";
}

TEST(TidyRules, FindClassesOfSeveralFiles) {
  const SourceFile header{"src/core/a.h",
                          "namespace tutti {\nclass A {\n  void f(), g();\n};\n}\n"};
  const SourceFile first{"src/core/a.cpp", "namespace tutti {\nA::A() {}\nint A::f() {\n}\n}\n"};
  const SourceFile second{"src/core/a_more.cpp",
                          "namespace tutti {\nstd::vector<B> A::g(int x) {\n}\n}\n"};
  const SourceFile other{"src/data/a.cpp", "namespace tutti::data {\nvoid A::g() {\n}\n}\n"};
  const SourceFile user{"src/core/b.cpp", "namespace tutti {\nvoid b() {\n  A::g();\n}\n}\n"};
  EXPECT_EQ(check_one_file_per_class({header, first, other, user}, {}).size(), 0u);
  const Findings findings = check_one_file_per_class({header, first, second}, {});
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0],
            "tutti::A is one class in src/core/a.cpp and src/core/a_more.cpp: split the concept, "
            "not the file");
  EXPECT_EQ(check_one_file_per_class({header, first, second}, {{"tutti::A", "why"}}).size(), 0u);
  EXPECT_EQ(check_one_file_per_class({header, first}, {{"tutti::A", "why"}}).size(), 1u);
}

TEST(TidyRules, SayWhere) {
  const Findings findings = check("Environment", {"src/core/a.cpp", "\n\n  getenv(\"X\");\n"});
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_TRUE(findings[0].starts_with("src/core/a.cpp:3: getenv ")) << findings[0];
}

}  // namespace
}  // namespace tutti::tidy
