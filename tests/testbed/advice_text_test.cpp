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

bool is_one_machine(const Choice& choice) {
  return hosts_of(choice.job.cluster, choice.step.nodes) == 1;
}

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
  step.busiest_link = dice.seldom() ? 1.02 : dice.seldom() ? 0 : dice.share();
  if (is_one_machine(choice)) step.busiest_link = 0;
  if (dice.seldom()) choice.plan = "2 servers on nodes 8 and 9";
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
  if (dice.seldom()) cluster.nodes_per_host = 8;  // all of them share a machine
  if (dice.seldom()) cluster.speed_factors.assign(static_cast<size_t>(cluster.workers), 0.5);
  std::vector<Choice> choices;
  const int64_t count = dice.seldom() ? 1 : 1 + dice.up_to(9);
  for (int i = 0; i < count; ++i) choices.push_back(random_choice(dice, i, cluster));
  rank(choices);
  return choices;
}

json random_bandwidth(Dice& dice, const std::vector<Choice>& choices) {
  const auto name = [&] {
    return choices[static_cast<size_t>(dice.up_to(std::ssize(choices) - 1))].name;
  };
  json points = json::array(), flips = json::array();
  std::string before;
  for (int power = -4; power <= 4; ++power) {
    const double bandwidth = 1e8 * std::exp2(power);
    const std::string best = before.empty() || dice.seldom() ? name() : before;
    points.push_back({{"bandwidth", bandwidth}, {"best", best}, {"times_s", json::object()}});
    if (!before.empty() && before != best)
      flips.push_back({{"bandwidth", bandwidth / 1.4}, {"below", before}, {"above", best}});
    before = best;
  }
  if (dice.seldom()) points = flips = json::array();  // nobody to compare with
  return {{"points", points}, {"flips", flips}};
}

json random_workers(Dice& dice, const Choice& best) {
  json points = json::array();
  const int64_t most = dice.up_to(4);
  for (int64_t workers = 1; workers <= most; ++workers)
    if (dice.often())
      points.push_back({{"workers", workers},
                        {"best", workers == 1 ? "alone" : best.name},
                        {"time_s", dice.size(1e-6, 1e6)}});
  return points;
}

json random_batch(Dice& dice) {
  json points = json::array(), missed = json::array();
  double fastest = 64;
  for (const double batch : {16.0, 32.0, 64.0, 128.0, 256.0}) {
    if (batch != 64 && dice.seldom()) {
      missed.push_back(static_cast<int64_t>(batch));
      continue;
    }
    json point = {{"batch", batch}, {"steps", dice.size(1, 1e6)}, {"time_s", json()}};
    if (dice.often()) point["time_s"] = dice.size(1e-6, 1e6);
    if (point["time_s"].is_number() && dice.seldom()) fastest = batch;
    points.push_back(point);
  }
  return {{"points", points},
          {"missed", missed},
          {"fastest", static_cast<int64_t>(fastest)},
          {"time_s", json()},
          {"critical_batch", dice.often() ? json(dice.size(0.1, 1e5)) : json()},
          {"least_steps", dice.size(1, 1e3)},
          {"rate", "scaled with the batch (linear scaling rule), one seed each"}};
}

std::vector<TriedNodes> random_nodes(Dice& dice, const std::vector<Choice>& choices) {
  std::vector<TriedNodes> tried;
  for (size_t i = 0; i < std::min<size_t>(3, choices.size()); ++i)
    for (const char* where : {"on 1 node", "on 4 nodes", "on the 2 fastest nodes"})
      if (dice.often()) tried.push_back({choices[i].name, where, dice.size(0.1, 10) - 1, false});
  if (!tried.empty() && dice.seldom()) tried.back().taken = true;
  return tried;
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
  if (dice.seldom()) advice.refused = {{"direct", "allreduce", "it needs one host; use another"}};
  if (dice.seldom()) advice.not_simulated = {"gossip-async", "fedavg"};
  if (dice.often()) advice.tried_nodes = random_nodes(dice, choices);
  if (dice.often()) advice.learned_before = "/home/somebody/.cache/tutti/lessons";
  advice.status = dice.seldom()   ? AdviceStatus::kInterrupted
                  : dice.seldom() ? AdviceStatus::kBudget
                                  : AdviceStatus::kComplete;
  if (dice.often()) advice.memory = {{"text", "data and model fit one node"}};
  if (dice.often()) advice.bandwidth = random_bandwidth(dice, choices);
  if (dice.often()) advice.workers = random_workers(dice, choices.front());
  if (dice.often())
    advice.batch = random_batch(dice);
  else
    advice.not_asked = {"batch"};
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

void expect_no_contradiction(const AdvisedChoice& choice, const ClusterConfig& cluster) {
  const bool even_cluster = cluster.speed_factors.empty();
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
  if (choice.machines <= 1) {
    EXPECT_EQ(all.find("link"), std::string::npos) << "of one machine: " << all;
  }
  for (const char* nothing : {"busy more than 0 %", "busy sending 0 %", "busy receiving 0 %"})
    EXPECT_EQ(all.find(nothing), std::string::npos) << all;
  EXPECT_EQ(choice.misses_some(), all.find(" seeds missed the target") != std::string::npos) << all;
  expect_shares(all);
}

// A seed that misses is told of, and its strategy stands behind those that always get there.
void expect_steady_ones_first(const Advice& advice) {
  bool missed = false;
  for (const AdvisedChoice& choice : advice.choices) {
    if (!choice.is_judged()) continue;
    EXPECT_FALSE(missed && !choice.misses_some()) << choice.name;
    missed = missed || choice.misses_some();
    EXPECT_GT(*choice.least_s, 0);
    EXPECT_LE(*choice.least_s, *choice.time_s);
  }
  const AdvisedChoice& best = advice.choices.front();
  if (best.is_judged()) {
    const size_t said = advice.sentence.find("; it missed the target with ");
    EXPECT_EQ(best.misses_some(), said != std::string::npos) << advice.sentence;
  }
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
    EXPECT_EQ(found(text, R"(\+-(2[1-9]|[3-9]\d|\d{3,}) % +\d of)"), "") << "no time is negative";
    expect_steady_ones_first(advice);
    for (const std::string& name : advice.not_simulated)
      EXPECT_NE(text.find(name), std::string::npos) << name;
    for (const AdvisedChoice& choice : advice.choices) {
      expect_no_contradiction(choice, choices.front().job.cluster);
      EXPECT_NE(text.find(choice.name), std::string::npos) << "names are never cut";
    }
    EXPECT_TRUE(described_by<Advice>(json_of(advice)).sentence == advice.sentence);
  }
}

// Two whose places do not overlap are told apart: by their difference, or because one of them
// misses the target with some seeds.
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
        const bool steadier = choices[i].always_reaches() && !choices[k].always_reaches();
        EXPECT_TRUE(overlap || steadier || difference(choices[i], choices[k]).is_decided())
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
  AdvisedChoice misses = choice("gossip", 3, 20);
  misses.reached = true;
  misses.runs = 3;
  misses.runs_reached = 2;
  advice.choices = {choice("ring", 1, 41), misses};
  EXPECT_EQ(
      sentence_of(advice),
      "Use ring on 8 nodes: 41 s +- 4.1 s; gossip would take 20 s, but missed the target with "
      "1 of 3 seeds.");
  EXPECT_NE(advice_text(advice).find(" 2 of 3 "), std::string::npos) << advice_text(advice);
  advice.choices = {misses};
  advice.choices[0].place_first = 1;
  advice.choices[0].error = 1.16;
  EXPECT_EQ(
      sentence_of(advice),
      "Use gossip on 8 nodes: 20 s, 9.26 s to 43.2 s; it missed the target with 1 of 3 seeds.");
  AdvisedChoice unknown = choice("gossip", 1, 20);
  unknown.place_first = unknown.place_last = std::nullopt;
  unknown.assumed = "it learns like ring";
  advice.choices = {choice("ring", 1, 41), unknown};
  EXPECT_EQ(sentence_of(advice),
            "Use ring on 8 nodes: 41 s +- 4.1 s; how fast gossip learns is not known yet.");
  advice.status = AdviceStatus::kBudget;
  advice.choices.back().time_s = 50;
  advice.not_simulated = {"tree", "butterfly"};
  EXPECT_EQ(sentence_of(advice),
            "Use ring on 8 nodes: 41 s +- 4.1 s; that is of 1 of 4 strategies: the budget did not "
            "last for the others.");
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
