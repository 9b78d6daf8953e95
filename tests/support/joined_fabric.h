// A process fabric whose last nodes join over loopback: forks them, as `tutti join` would be
// started elsewhere, and waits for them to go.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fabric/process/process_fabric.h"

namespace tutti::testing_support {

class JoinedFabric : public Fabric {
 public:
  JoinedFabric(std::vector<std::string> roles, ProcessOptions options)
      : roles_(std::move(roles)), options_(std::move(options)) {}

  std::vector<NodeOutcome> run(const Body& body, const std::atomic<bool>& stop) override {
    ProcessOptions options = options_;
    JoinOptions join;
    options.invite = [&](const std::string& address, const std::string& token) {
      join.address = address;
      join.token = token;
      for (int i = 0; i < options_.remote; ++i) start_joiner(join, body);
    };
    options.may_restart = [&](Rank rank) {
      const bool may = !options_.may_restart || options_.may_restart(rank);
      const bool joins = rank >= static_cast<Rank>(roles_.size()) - options_.remote;
      if (may && joins) start_joiner(join, body);
      return may;
    };
    fabric_ = make_process_fabric(roles_, options);
    std::vector<NodeOutcome> outcomes = fabric_->run(body, stop);
    for (const pid_t joiner : std::exchange(joiners_, {})) {
      // They leave by themselves; a test must not hang if one does not.
      int tries = 0;
      while (waitpid(joiner, nullptr, WNOHANG) == 0 && tries++ < 1000) usleep(10'000);
      EXPECT_LT(tries, 1000) << "a joined process did not exit";
      if (tries >= 1000) kill(joiner, SIGKILL);
    }
    return outcomes;
  }
  FabricFigures figures() const override { return fabric_->figures(); }

 private:
  void start_joiner(const JoinOptions& join, const Body& body) {
    std::fflush(nullptr);
    const pid_t pid = fork();
    ASSERT_GE(pid, 0);
    if (pid > 0) return joiners_.push_back(pid);
    // Nothing of the launcher's: a copy of its connections would keep them open.
    close_range(3, ~0U, 0);
    signal(SIGPIPE, SIG_IGN);
    static const std::atomic<bool> never{false};
    try {
      join_process_fabric(
          join, [&](const Joined&) { return body; }, [](const NodeOutcome&) {}, never);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "a joiner was not let in: %s\n", error.what());
    }
    _exit(99);
  }

  std::vector<std::string> roles_;
  ProcessOptions options_;
  std::unique_ptr<Fabric> fabric_;
  std::vector<pid_t> joiners_;
};

}  // namespace tutti::testing_support
