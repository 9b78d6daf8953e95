// What a comparison has consumed in all, kept in its folder: one that was ended and goes on adds to
// what it had consumed before.
#pragma once

#include <string>

#include "jobs/spending.h"

namespace tutti {

class Account {
 public:
  // `folder` is that of the comparison.
  Account(const std::string& folder, const FootprintConfig& config);

  // Reads the counters, and writes the account when `write` says that something has been achieved.
  void keep_up(bool write);
  // Writes the account and returns all of it.
  Spent close();

 private:
  std::string path_;
  Spent before_;
  Spending spending_;
};

}  // namespace tutti
