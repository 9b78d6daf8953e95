// The catalog of strategies: what a comparison runs of each must be settings that it has.
#include <gtest/gtest.h>

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

TEST(StrategyCatalog, EveryTaxonomyIsComplete) {
  for (const StrategyEntry& entry : strategy_catalog()) {
    const Taxonomy t = entry.make()->taxonomy();
    for (const std::string_view word :
         {t.structure, t.parallelism, t.optimisation, t.timing, t.pattern})
      EXPECT_FALSE(word.empty()) << entry.name;
  }
}

}  // namespace
}  // namespace tutti
