#include "testbed/account.h"

#include <filesystem>

#include "core/described_json.h"
#include "core/error.h"
#include "jobs/run_folder.h"
#include "jobs/run_record.h"

namespace tutti {
namespace {

// A file that is damaged costs its figures and nothing else.
Spent spent_before(const std::string& path) {
  if (!std::filesystem::exists(path)) return {};
  try {
    return described_by<Spent>(nlohmann::json::parse(read_file(path)));
  } catch (const nlohmann::json::exception&) {
  } catch (const Mismatch&) {
  } catch (const DataError&) {
  }
  return {};
}

}  // namespace

Account::Account(const std::string& folder, const FootprintConfig& config)
    : path_(folder + "/spent.json"), before_(spent_before(path_)), spending_(config) {}

void Account::keep_up(bool write) {
  spending_.sample();
  if (write) close();
}

Spent Account::close() {
  Spent all = before_ + spending_.so_far();
  write_file(path_, json_text(json_of(all), 1) + "\n");
  return all;
}

}  // namespace tutti
