// The text of an advice never contradicts itself, whatever came of the simulations: it is written
// from random results, and searched for what must not be there.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <regex>

#include "core/described_json.h"
#include "core/random.h"
#include "testbed/advice.h"
#include "testbed/places.h"
#include "tests/support/thorough.h"

namespace tutti {
namespace {

using nlohmann::json;

class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed, Stream::kTest) {}
  double share() { return random_.uniform(); }
  bool often() { return share() < 0.7; }
  bool seldom() { return share() < 0.2; }
  int64_t up_to(int64_t most) {
    return static_cast<int64_t>(share() * static_cast<double>(most + 1));
  }
  // Over many orders of magnitude.
  double size(double least, double most) { return least * std::pow(most / least, share()); }

 private:
  Random random_;
};

Choice random_choice(Dice& dice, int number, const ClusterConfig& cluster) {
  Choice choice;
  choice.name =
      fmt::format("{}-{}", dice.seldom() ? "strategy-with-a-name-that-is-long" : "s", number);
  choice.job.cluster = cluster;
  choice.job.cluster.workers = 1 + dice.up_to(cluster.workers - 1);
  choice.job.task.epochs = 1 + dice.up_to(3);
  choice.step.nodes = choice.job.cluster.workers + (dice.seldom() ? dice.up_to(4) : 0);
  choice.equivalence = dice.often() ? "synchronous" : "";
  StepFigures& step = choice.step;
  step.step_s = dice.size(1e-6, 100);
  step.watts = dice.size(1, 1e4);
  step.messages = dice.seldom() ? 1 : dice.seldom() ? 0 : dice.size(0.1, 1e4);
  step.bytes = step.messages * dice.size(1, 1e7);
  double left = 1;
  for (double* share : {&step.compute, &step.communicate, &step.wait}) {
    *share = dice.seldom() ? left : dice.share() * left;
    left -= *share;
  }
  step.aggregate = left;
  step.busiest_link = dice.seldom() ? 1.02 : dice.share();
  step.busiest_receives = dice.often();
  choice.fits = !dice.seldom();
  choice.memory_bytes = dice.size(1e3, 1e12);
  choice.cost_error = dice.seldom() ? 0 : dice.share() / 3;
  Learning& learning = choice.learning;
  learning.method = choice.equivalence.empty() ? "gradients of all 4 workers" : "gradients of one";
  learning.runs = 3;
  learning.best_quality = dice.share();
  if (dice.seldom()) return choice;  // it does not get there
  learning.reached = 1 + static_cast<int>(dice.up_to(2));
  learning.steps = dice.size(1, 1e5);
  learning.evaluations = 1;
  learning.error = dice.seldom() ? 0 : dice.share() / 2;
  const double time_s = dice.size(1, 3) * (dice.seldom() ? 1e-3 : 10);
  for (int seed = 0; seed < learning.reached; ++seed) {
    learning.reached_at.emplace_back(seed, 1);
    choice.times_s.push_back(time_s * (1 + 0.1 * dice.share()));
  }
  if (dice.seldom()) choice.assumed = "it learns like solo";
  if (!choice.assumed.empty() && dice.often()) choice.left_out = "its learning was left out";
  return choice;
}

std::vector<Choice> random_choices(Dice& dice) {
  ClusterConfig cluster;
  cluster.fabric = FabricKind::kVirtual;
  cluster.workers = 1 + dice.up_to(7);
  if (dice.seldom()) cluster.speed_factors.assign(static_cast<size_t>(cluster.workers), 0.5);
  std::vector<Choice> choices;
  const int64_t count = dice.seldom() ? 1 : 1 + dice.up_to(9);
  for (int i = 0; i < count; ++i) choices.push_back(random_choice(dice, i, cluster));
  rank(choices);
  return choices;
}

Advice random_advice(Dice& dice, const std::vector<Choice>& choices) {
  Advice advice;
  advice.task = {"job", "data", "model", "accuracy", 0.9, 64, 1 + dice.up_to(100), 100};
  advice.cluster = {.workers = 1 + dice.up_to(8), .speed = 1e9, .bandwidth = 1e6};
  advice.simulation_error = {0.026, "measured"};
  advice.model_cost.obtained = dice.often() ? "measured" : "declared";
  advice.model_cost.layers = 1 + dice.up_to(2);
  advice.model_cost.least_sample = dice.seldom();
  advice.model_cost.fixed_share = dice.share();
  advice.model_cost.fixed_share_spread = dice.share();
  if (dice.often()) advice.model_cost.timed = {{1, "gradient", 0.1}, {64, "gradient", 0.2}};
  advice.choices = described(choices);
  if (dice.seldom()) advice.refused = {{"direct", "it needs one host"}};
  if (dice.seldom()) advice.not_asked = {"batch"};
  advice.status = dice.seldom()   ? AdviceStatus::kInterrupted
                  : dice.seldom() ? AdviceStatus::kBudget
                                  : AdviceStatus::kComplete;
  if (dice.often()) advice.memory = {{"text", "data and model fit one node"}};
  if (dice.seldom()) advice.bandwidth = json{{"points", json::array()}, {"flips", json::array()}};
  if (dice.seldom()) advice.workers = json::array();
  if (dice.often())
    advice.compression = json{{"saves", dice.share() * 2 - 1}, {"pays", dice.often()}};
  if (dice.seldom()) (*(advice.compression = json::object()))["saves"] = -1e-9;
  if (advice.compression) (*advice.compression)["pays"] = (*advice.compression)["saves"] > 0.05;
  advice.sentence = sentence_of(advice);
  return advice;
}

// An expression takes longer to be read than to be looked for, so it is read once.
std::string found(const std::string& text, const char* pattern) {
  static std::map<std::string, std::regex> expressions;
  const std::regex& expression =
      expressions.try_emplace(pattern, pattern, std::regex::optimize).first->second;
  std::smatch match;
  return std::regex_search(text, match, expression) ? match.str() : "";
}

void expect_well_formed(const std::string& text) {
  EXPECT_EQ(found(text, R"((^|[^a-z])(nan|inf)([^a-z]|$))"), "");
  EXPECT_EQ(found(text, R"((^|[ (])-0(\.0*)?( |$|%|\n))"), "");
  EXPECT_EQ(found(text, R"((^|[ (])1 (node|worker|message|layer|epoch|other|server|seed)s)"), "");
  EXPECT_EQ(found(text, R"(  \n\n)"), "") << "a line of nothing";
  EXPECT_EQ(found(text, R"(\n\n\n)"), "");
  EXPECT_EQ(found(text, R"(\n(Why|What to change|How this was found|Not possible here)\n(\n|$))"),
            "")
      << "a section of nothing";
  EXPECT_TRUE(text.ends_with(".\n")) << "it ends with a sentence";
}

// Of the time, and of a step: nothing is more than all of it.
void expect_shares(const std::string& text) {
  static const std::regex share(R"((\d+) %( of the time| of a step|,|;|$))");
  for (auto match = std::sregex_iterator(text.begin(), text.end(), share);
       match != std::sregex_iterator(); ++match)
    EXPECT_LE(std::stoi((*match)[1]), 100) << match->str();
}

void expect_no_contradiction(const AdvisedChoice& choice, bool even_cluster) {
  std::string all;
  for (const std::string& reason : choice.reasons) all += reason + "\n";
  EXPECT_FALSE(choice.reasons.empty()) << choice.name;
  if (all.find("hardly matters") != std::string::npos) {
    EXPECT_EQ(all.find(" is busy "), std::string::npos) << all;
  }
  if (even_cluster) {
    EXPECT_EQ(all.find("slower nodes"), std::string::npos) << all;
  }
  if (all.find("the link of node") != std::string::npos) {
    EXPECT_EQ(all.find("nodes wait"), std::string::npos) << "they wait for the link: " << all;
  }
  expect_shares(all);
}

TEST(AdviceText, NeverContradictsItself) {
  const uint64_t cases = seeds(1000, 20000);
  for (uint64_t seed = 1; seed <= cases && !testing::Test::HasFailure(); ++seed) {
    Dice dice(seed);
    const std::vector<Choice> choices = random_choices(dice);
    const Advice advice = random_advice(dice, choices);
    const std::string text = advice_text(advice);
    SCOPED_TRACE(fmt::format("seed {}\n{}", seed, text));
    expect_well_formed(text);
    expect_shares(text);
    const bool even = choices.front().job.cluster.speed_factors.empty();
    for (const AdvisedChoice& choice : advice.choices) {
      expect_no_contradiction(choice, even);
      EXPECT_NE(text.find(choice.name), std::string::npos) << "names are never cut";
    }
    EXPECT_TRUE(described_by<Advice>(json_of(advice)).sentence == advice.sentence);
  }
}

// Two have places that overlap exactly where nothing tells them, or somebody between them, apart.
TEST(AdviceText, RanksNobodyWithinTheErrorOfAnother) {
  for (uint64_t seed = 1; seed <= seeds(1000, 20000); ++seed) {
    Dice dice(seed);
    const std::vector<Choice> choices = random_choices(dice);
    const std::vector<Place> where = places(choices);
    for (size_t i = 0; i < where.size(); ++i) {
      EXPECT_GE(i + 1, where[i].first);
      EXPECT_LE(i + 1, where[i].last);
      for (size_t k = i + 1; k < where.size(); ++k) {
        const bool overlap = where[k].first <= where[i].last;
        EXPECT_TRUE(overlap || difference(choices[i], choices[k]).is_decided())
            << seed << ": " << choices[i].name << " and " << choices[k].name;
      }
    }
  }
}

TEST(AdviceText, SaysWhatIsAsGood) {
  Dice dice(1);
  Advice advice = random_advice(dice, random_choices(dice));
  const auto choice = [](const char* name, int64_t first, double time_s) {
    AdvisedChoice result;
    result.name = name;
    result.where = "on 8 nodes";
    result.place_first = result.place_last = first;
    result.time_s = time_s;
    result.error = 0.1;
    result.reached = true;
    return result;
  };
  advice.choices = {choice("ring", 1, 41)};
  EXPECT_EQ(sentence_of(advice), "Use ring on 8 nodes: 41 s +- 4.1 s.");
  advice.choices.push_back(choice("local-sgd-16", 1, 42));
  EXPECT_EQ(sentence_of(advice),
            "Use ring on 8 nodes: 41 s +- 4.1 s; local-sgd-16 is as good within the error.");
  advice.choices.push_back(choice("tree", 1, 43));
  advice.choices.push_back(choice("solo", 4, 90));
  EXPECT_EQ(sentence_of(advice),
            "Use ring on 8 nodes: 41 s +- 4.1 s; local-sgd-16 and tree are as good within the "
            "error.");
  advice.choices[2].behind = 0.21;  // somebody else is tied with it and with the first
  advice.choices[2].behind_error = 0.06;
  EXPECT_EQ(sentence_of(advice),
            "Use ring on 8 nodes: 41 s +- 4.1 s; local-sgd-16 is as good within the error.");
  AdvisedChoice unknown = choice("gossip", 1, 20);
  unknown.place_first = unknown.place_last = std::nullopt;
  unknown.assumed = "it learns like ring";
  advice.choices = {choice("ring", 1, 41), unknown};
  EXPECT_EQ(sentence_of(advice),
            "Use ring on 8 nodes: 41 s +- 4.1 s; how fast gossip learns is not known yet.");
  advice.choices = {unknown};
  EXPECT_EQ(sentence_of(advice), "Use gossip on 8 nodes: 20 s +- 2 s, if it learns like ring.");
}

// Sixteen steps that compute, and an average after them that takes twice as long.
TEST(AdviceText, KnowsWhatHappensNowAndThen) {
  Choice choice;
  choice.step.step_s = 1;
  choice.step.compute = 1;
  choice.learning.reached = 1;
  choice.learning.steps = 16;
  choice.learning.reached_at = {{0, 1}};
  choice.times_s = {48};
  const std::vector<std::string> said = reasons(choice);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_EQ(said[0].find("hardly matters"), std::string::npos) << said[0];
  EXPECT_NE(said[0].find("computes 33 %"), std::string::npos) << said[0];
  EXPECT_NE(said[0].find("the other 67 %"), std::string::npos) << said[0];
}

}  // namespace
}  // namespace tutti
