// The catalog of strategies: what a comparison runs of each must be settings that it has.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "jobs/job.h"

namespace tutti {
namespace {

TEST(StrategyCatalog, EveryVariantLoadsUnderANameOfItsOwn) {
  std::set<std::string> names;
  for (const StrategyEntry& entry : strategy_catalog())
    for (const Variant& variant : entry.variants()) {
      std::vector<std::string> settings = {"strategy.kind=" + std::string(entry.name)};
      for (const std::string& setting : variant.settings) settings.push_back("strategy." + setting);
      EXPECT_NO_THROW(load_job("", settings)) << variant.name;
      EXPECT_TRUE(names.insert(variant.name).second) << variant.name << " is there twice";
    }
}

// Where the field puts each of them; their timing is a matter of settings, of which comparisons
// show all that there are.
struct Place {
  std::string_view structure, parallelism, optimisation;
  std::set<std::string_view> timings;
};

const std::map<std::string_view, Place> kPlaces = {
    {"solo", {"single node", "none", "centralised", {"synchronous"}}},
    {"allreduce", {"peer-to-peer", "data", "centralised", {"synchronous"}}},
    {"early_exit", {"client-server", "model", "centralised", {"synchronous"}}},
    {"elastic_averaging",
     {"peer-to-peer", "data", "decentralised", {"synchronous", "asynchronous"}}},
    {"federated_averaging", {"client-server", "data", "decentralised", {"synchronous"}}},
    {"gossip", {"peer-to-peer", "data", "decentralised", {"synchronous", "asynchronous"}}},
    {"hogwild", {"single node", "data", "centralised", {"asynchronous"}}},
    {"hybrid", {"peer-to-peer", "hybrid", "centralised", {"synchronous"}}},
    {"local_sgd", {"peer-to-peer", "data", "decentralised", {"synchronous"}}},
    {"model_averaging", {"client-server", "data", "decentralised", {"synchronous"}}},
    {"parameter_server",
     {"client-server", "data", "centralised", {"synchronous", "asynchronous", "bounded"}}},
    {"pipeline", {"peer-to-peer", "model", "centralised", {"synchronous", "bounded"}}},
    {"pipeline_servers", {"client-server", "model", "centralised", {"synchronous"}}},
    {"scheduled", {"client-server", "model", "centralised", {"synchronous"}}},
    {"tensor", {"peer-to-peer", "model", "centralised", {"synchronous"}}},
};

TEST(StrategyCatalog, EveryStrategyHasItsPlaceInTheTaxonomy) {
  for (const StrategyEntry& entry : strategy_catalog()) {
    ASSERT_TRUE(kPlaces.contains(entry.name)) << entry.name << ": say where it belongs";
    const Place& place = kPlaces.at(entry.name);
    std::set<std::string_view> timings;
    for (const Variant& variant : entry.variants()) {
      std::vector<std::string> settings = {"strategy.kind=" + std::string(entry.name)};
      for (const std::string& setting : variant.settings) settings.push_back("strategy." + setting);
      const Taxonomy t = load_job("", settings).strategy->taxonomy();
      // Asynchronously one worker serves the centre of elastic averaging.
      if (variant.name != "elastic-averaging-async") {
        EXPECT_EQ(t.structure, place.structure) << variant.name;
      }
      // A pipeline with copies is a hybrid, and says so.
      if (entry.name != "pipeline") {
        EXPECT_EQ(t.parallelism, place.parallelism) << variant.name;
      }
      EXPECT_EQ(t.optimisation, place.optimisation) << variant.name;
      EXPECT_FALSE(t.pattern.empty()) << variant.name;
      timings.insert(word_of(t.timing));
    }
    EXPECT_EQ(timings, place.timings) << entry.name;
  }
}

}  // namespace
}  // namespace tutti
