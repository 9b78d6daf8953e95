// `tutti join`: workers that are started elsewhere, here over loopback.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>

#include "fabric/outcome.h"
#include "jobs/node_report.h"
#include "tests/fabric/impostors.h"
#include "tests/support/proc.h"
#include "tests/support/programs.h"

namespace tutti {
namespace {

using namespace testing_support;

// A launcher that waits for workers, and what it says they should be started with.
class Launcher {
 public:
  explicit Launcher(const std::string& job, const Arguments& settings) {
    write_text(folder_ / "job.toml", job);
    Arguments arguments = {"train", "job.toml", "--out", "run", "--quiet", "--json"};
    for (const std::string& setting : settings) arguments = arguments + Arguments{"--set", setting};
    process_ = std::make_unique<Subprocess>(arguments, SubprocessOptions{.folder = folder_.path()});
  }
  Subprocess& process() { return *process_; }
  std::string run() const { return folder_ / "run"; }

  // HOST:PORT and the token, as printed.
  bool invites() {
    return eventually([&] { return process_->err().find("--token ") != std::string::npos; },
                      kLate_s);
  }
  std::string word_after(const std::string& text) {
    const std::string all = process_->err();
    const size_t begin = all.find(text);
    if (begin == std::string::npos) return "";
    const size_t start = begin + text.size();
    return all.substr(start, all.find_first_of(" \n", start) - start);
  }
  std::string address() { return word_after("tutti join "); }
  std::string token() { return word_after("--token "); }
  std::unique_ptr<Subprocess> join(const std::string& token = "", const Arguments& more = {}) {
    return std::make_unique<Subprocess>(
        Arguments{"join", address(), "--token", token.empty() ? this->token() : token} + more);
  }

 private:
  TemporaryFolder folder_;
  std::unique_ptr<Subprocess> process_;
};

// Where these processes have TCP sockets in a state of /proc/net/tcp: local addresses, in its
// words.
constexpr const char* kDialling = "02";
constexpr const char* kListening = "0A";
std::set<std::string> sockets_of(const std::vector<pid_t>& pids, const std::string& wanted) {
  std::set<std::string> owned, found;
  for (const pid_t pid : pids) {
    std::error_code failed;
    const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
    for (const auto& entry : std::filesystem::directory_iterator(folder, failed)) {
      std::error_code closed;
      const std::string name = std::filesystem::read_symlink(entry.path(), closed).string();
      if (name.starts_with("socket:[")) owned.insert(name.substr(8, name.size() - 9));
    }
  }
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    for (std::string line; std::getline(file, line);) {
      std::istringstream fields(line);
      std::string number, local, remote, state, skipped, inode;
      fields >> number >> local >> remote >> state;
      for (int i = 0; i < 5; ++i) fields >> skipped;
      fields >> inode;
      if (state == wanted && owned.contains(inode)) found.insert(local);
    }
  }
  return found;
}

// 127/8 and ::1, and the former as the latter's kind; each word in the machine's own byte order.
bool is_loopback(const std::string& local) {
  const std::string address = local.substr(0, local.find(':'));
  if (address.size() == 8) return address.ends_with("7F");
  return address == "00000000000000000000000001000000" ||
         (address.starts_with("0000000000000000FFFF0000") && address.ends_with("7F"));
}

// Plays a worker that has shown the token, and says it is done without having done anything.
void join_and_report(Launcher& launcher, const std::string& report) {
  using Type = ControlMessage::Type;
  const auto where = process::parse_host_port(launcher.address(), "test");
  ControlSocket control(process::dial(where, kLate_s));
  control.post({Type::kJoin, kAnyRank, 0, process::kProtocol, launcher.token()});
  const auto accepted = hear(control, kLate_s);
  ASSERT_TRUE(accepted && accepted->type == Type::kAccepted);
  const Rank rank = accepted->rank;
  control.post({Type::kHello, rank, 0, 0, {}});
  const std::string result =
      process::encode_outcome({NodeOutcome::Kind::kDone, report, "", kExitDone, kAnyRank});
  control.post({Type::kResult, rank, 0, 0, result});
  ASSERT_TRUE(control.drain(kLate_s));
}

nlohmann::json record_of(const Ended& ended) {
  return nlohmann::json::parse(ended.out, nullptr, false);
}

TEST(Join, TrainsTheSameParametersAsForkedWorkers) {
  const Arguments settings = {"task.deterministic=true", "cluster.workers=3"};
  Launcher forked(small_job(), settings);
  const Ended alone = forked.process().wait(kLate_s);
  ASSERT_EQ(alone.exit_code, kExitDone) << alone.err;

  Launcher launcher(small_job(), settings + Arguments{"cluster.remote=1"});
  ASSERT_TRUE(launcher.invites()) << launcher.process().err();
  const auto joined = launcher.join();
  const Ended ended = launcher.process().wait(kLate_s);
  const Ended left = joined->wait(kLate_s);
  EXPECT_EQ(ended.exit_code, kExitDone) << ended.err;
  EXPECT_EQ(left.exit_code, kExitDone) << left.err;
  EXPECT_TRUE(has(left.err, "as rank 2 of 3")) << left.err;
  const auto record = record_of(ended), expected = record_of(alone);
  ASSERT_TRUE(record.is_object() && expected.is_object()) << ended.out << alone.out;
  EXPECT_EQ(record["parameters_sha256"], expected["parameters_sha256"]);
  EXPECT_EQ(record["workers"], 3);
}

// The servers of a parameter server stay with the launcher, and so do schedulers.
TEST(Join, GuestsAreWorkers) {
  Launcher launcher(small_job(), {"cluster.workers=2", "cluster.remote=1",
                                  "strategy={kind=\"parameter_server\", servers=1}"});
  ASSERT_TRUE(launcher.invites()) << launcher.process().err();
  const auto joined = launcher.join();
  const Ended ended = launcher.process().wait(kLate_s);
  const Ended left = joined->wait(kLate_s);
  EXPECT_EQ(ended.exit_code, kExitDone) << ended.err;
  EXPECT_EQ(left.exit_code, kExitDone) << left.err;
  EXPECT_TRUE(has(left.err, "as rank 1 of 3")) << left.err;
}

// The table lies elsewhere on the guest's machine; another one is not trained on.
TEST(Join, ReadsItsOwnCopyOfTheData) {
  std::string table = "a,b,kind\n";
  for (int i = 0; i < 100; ++i)
    table += std::to_string(i % 7) + "," + std::to_string(i % 5) + (i % 2 ? ",odd\n" : ",even\n");
  for (const bool same : {true, false}) {
    TemporaryFolder here, there;
    write_text(here / "table.csv", table);
    write_text(there / "table.csv", same ? table : table + "3,3,odd\n");
    Launcher launcher(small_job(),
                      {"cluster.workers=2", "cluster.remote=1",
                       "task.data={kind=\"csv\", path=\"" + (here / "table.csv") + "\"}"});
    ASSERT_TRUE(launcher.invites()) << launcher.process().err();
    std::filesystem::remove(here / "table.csv");  // the guest's machine does not have it
    const auto joined = launcher.join("", {"--data-dir", there.path()});
    const Ended ended = launcher.process().wait(kLate_s);
    const Ended left = joined->wait(kLate_s);
    EXPECT_EQ(left.exit_code, same ? kExitDone : kExitBadJob) << left.err;
    if (same) {
      EXPECT_EQ(ended.exit_code, kExitDone) << ended.err;
    } else {
      EXPECT_TRUE(has(left.err, "the data here is not the launcher's")) << left.err;
      EXPECT_NE(ended.exit_code, kExitDone);
    }
  }
}

// One server joins after the worker; the parameters are those of nodes that are all forked.
TEST(Join, ServersMayJoinToo) {
  const Arguments settings = {"task.deterministic=true", "cluster.workers=2",
                              "strategy={kind=\"parameter_server\", servers=2}"};
  Launcher forked(small_job(), settings);
  const Ended alone = forked.process().wait(kLate_s);
  ASSERT_EQ(alone.exit_code, kExitDone) << alone.err;
  Launcher launcher(small_job(),
                    settings + Arguments{"cluster.remote=1", "cluster.remote_servers=true"});
  ASSERT_TRUE(launcher.invites()) << launcher.process().err();
  EXPECT_TRUE(has(launcher.process().err(), "3 nodes")) << launcher.process().err();
  const auto first = launcher.join(), second = launcher.join(), third = launcher.join();
  const Ended ended = launcher.process().wait(kLate_s);
  EXPECT_EQ(ended.exit_code, kExitDone) << ended.err;
  for (const auto& guest : {&first, &second, &third})
    EXPECT_EQ((*guest)->wait(kLate_s).exit_code, kExitDone);
  const auto record = record_of(ended), expected = record_of(alone);
  ASSERT_TRUE(record.is_object() && expected.is_object()) << ended.out << alone.out;
  EXPECT_EQ(record["parameters_sha256"], expected["parameters_sha256"]);
  TemporaryFolder folder;
  write_text(folder / "job.toml", small_job());
  const Ended kept =
      run_tutti({"check", folder / "job.toml", "--set", "cluster.remote_servers=true", "--set",
                 "strategy={kind=\"parameter_server\", snapshot_every=5}"});
  EXPECT_EQ(kept.exit_code, kExitBadJob) << kept.err;
  EXPECT_TRUE(has(kept.err, "strategy.snapshot_every")) << kept.err;
}

TEST(Join, AWrongTokenEndsThatConnectionOnly) {
  Launcher launcher(small_job(), {"cluster.workers=2", "cluster.remote=1"});
  ASSERT_TRUE(launcher.invites()) << launcher.process().err();
  const Ended refused = launcher.join(std::string(32, '0'))->wait(kLate_s);
  EXPECT_EQ(refused.exit_code, kExitPeerLost);
  EXPECT_TRUE(has(refused.err, "the token is wrong")) << refused.err;
  const auto joined = launcher.join();
  EXPECT_EQ(launcher.process().wait(kLate_s).exit_code, kExitDone);
  EXPECT_EQ(joined->wait(kLate_s).exit_code, kExitDone);
}

TEST(Join, WhoKillsAJoinedWorkerEndsTheRunByName) {
  Launcher launcher(endless_job(), {"cluster.workers=3", "cluster.remote=1"});
  ASSERT_TRUE(launcher.invites()) << launcher.process().err();
  const auto joined = launcher.join();
  ASSERT_TRUE(eventually([&] { return evaluations_in(launcher.run()) > 0; }, kLate_s))
      << launcher.process().err() << joined->err();
  joined->signal(SIGKILL);
  const Ended ended = launcher.process().wait(10);
  EXPECT_FALSE(ended.late) << "nobody noticed";
  EXPECT_EQ(ended.exit_code, kExitPeerLost) << ended.err;
  for (const char* who : {"rank 0 at step ", "rank 1 at step "}) {
    const size_t line = ended.err.find(who);
    ASSERT_NE(line, std::string::npos) << who << "is not in\n" << ended.err;
    EXPECT_TRUE(has(ended.err.substr(line, ended.err.find('\n', line) - line), "rank 2"))
        << ended.err;
  }
}

TEST(Join, LeavesWhenTheLauncherIsKilledOrStopped) {
  for (const int signal : {SIGKILL, SIGINT}) {
    Launcher launcher(endless_job(), {"cluster.workers=2", "cluster.remote=1"});
    ASSERT_TRUE(launcher.invites()) << launcher.process().err();
    const auto joined = launcher.join();
    ASSERT_TRUE(eventually([&] { return evaluations_in(launcher.run()) > 0; }, kLate_s))
        << launcher.process().err() << joined->err();
    launcher.process().signal(signal);
    const Ended left = joined->wait(10);
    EXPECT_FALSE(left.late) << signal;
    EXPECT_EQ(left.exit_code, signal == SIGKILL ? kExitPeerLost : kExitInterrupted) << left.err;
    const Ended ended = launcher.process().wait(10);
    if (signal == SIGINT) {
      EXPECT_EQ(ended.exit_code, kExitInterrupted) << ended.err;
    }
  }
}

TEST(Join, SaysWhoIsMissing) {
  Launcher launcher(small_job(),
                    {"cluster.workers=3", "cluster.remote=2", "cluster.join_timeout=0.5"});
  const Ended ended = launcher.process().wait(kLate_s);
  EXPECT_EQ(ended.exit_code, kExitPeerLost);
  EXPECT_TRUE(has(ended.err, "0 of 2 nodes joined within 0.5 s")) << ended.err;
  EXPECT_TRUE(has(ended.err, "cluster.join_timeout")) << ended.err;
}

TEST(Join, RefusesWhatNeedsOneHost) {
  TemporaryFolder folder;
  write_text(folder / "job.toml", small_job());
  const auto check = [&](const Arguments& settings) {
    Arguments arguments = {"check", "job.toml"};
    for (const std::string& setting : settings) arguments = arguments + Arguments{"--set", setting};
    return Subprocess(arguments, SubprocessOptions{.folder = folder.path()}).wait(kLate_s);
  };
  const Ended direct = check({"cluster.remote=1", "strategy.topology=direct"});
  EXPECT_EQ(direct.exit_code, kExitBadJob);
  EXPECT_TRUE(has(direct.err, "cluster.remote")) << direct.err;
  const Ended all = check({"cluster.remote=2"});
  EXPECT_EQ(all.exit_code, kExitBadJob);
  EXPECT_TRUE(has(all.err, "rank 0")) << all.err;
  EXPECT_EQ(check({"cluster.remote=1"}).exit_code, kExitDone);
}

TEST(Join, ABadReportIsItsNodesFailureAndTheRecordIsKept) {
  NodeReport of_another;
  of_another.role = "worker";
  NodeReport impossible = of_another;
  impossible.rank = 1;
  impossible.steps = -1;
  for (const std::string& report :
       {std::string("garbage"), std::string(), to_text(of_another), to_text(impossible)}) {
    Launcher launcher(small_job(), {"cluster.workers=2", "cluster.remote=1"});
    ASSERT_TRUE(launcher.invites()) << launcher.process().err();
    join_and_report(launcher, report);
    const Ended ended = launcher.process().wait(kLate_s);
    EXPECT_FALSE(ended.late);
    EXPECT_EQ(ended.exit_code, kExitInternal) << ended.err;
    EXPECT_TRUE(has(ended.err, "rank 1: ")) << ended.err;
    const auto record = json_in(launcher.run() + "/run.json");
    ASSERT_TRUE(record.is_object()) << ended.err;
    EXPECT_EQ(record["status"], "failed");
    EXPECT_TRUE(has(record["error"], "rank 1: ")) << record["error"];
    EXPECT_EQ(record["nodes"].size(), 1u) << "what rank 0 did counts";
  }
}

TEST(Join, NothingListensBeyondLoopback) {
  const auto expect_loopback = [](const std::vector<pid_t>& pids) {
    const std::set<std::string> places = sockets_of(pids, kListening);
    EXPECT_FALSE(places.empty()) << "the launcher must be found, or the test sees nothing";
    for (const std::string& place : places) EXPECT_TRUE(is_loopback(place)) << place;
  };
  for (const bool remote : {false, true}) {
    Launcher launcher(endless_job(),
                      {"cluster.workers=3", remote ? "cluster.remote=1" : "cluster.remote=0"});
    std::vector<pid_t> pids = {launcher.process().pid()};
    std::unique_ptr<Subprocess> joined;
    if (remote) {
      ASSERT_TRUE(launcher.invites()) << launcher.process().err();
      expect_loopback(pids);
      joined = launcher.join();
      pids.push_back(joined->pid());
    }
    ASSERT_TRUE(eventually([&] { return evaluations_in(launcher.run()) > 0; }, kLate_s))
        << launcher.process().err();
    for (const pid_t node : children_of(launcher.process().pid())) pids.push_back(node);
    EXPECT_EQ(pids.size(), 4u);
    if (remote)
      expect_loopback(pids);
    else
      EXPECT_EQ(sockets_of(pids, kListening), std::set<std::string>()) << "nobody is to come";
  }
}

// A launcher that is none gives a job which is refused with words of its own.
TEST(Join, ShowsTheWordsOfALauncherAndDoesNotObeyThem) {
  using Type = ControlMessage::Type;
  const process::FileDescriptor door = process::listen_on({"127.0.0.1", 0});
  Subprocess joined({"join", to_text(process::local_address(door)), "--token", "t"});
  pollfd wait{door.get(), POLLIN, 0};
  ASSERT_EQ(poll(&wait, 1, static_cast<int>(kLate_s * 1e3)), 1);
  ControlSocket control(
      process::FileDescriptor(accept4(door.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)));
  ASSERT_TRUE(hear(control));
  const nlohmann::json job = {{"version", "\x1b[2J"}, {"job", ""}, {"plan", ""}, {"data", ""}};
  control.post({Type::kAccepted, 1, 0, 0,
                process::encode_invitation({{"a", "b"}, {0, 1}, kLate_s, job.dump()})});
  control.post({Type::kWelcome, 1, 0, 0, process::encode_roster({{false, 0}, {true, 0}})});
  control.post({Type::kStart, 1, 0, 0, {}});
  control.post({Type::kBye, 1, 0, 0, {}});
  control.drain(kLate_s);
  while (hear(control)) {
  }
  control.close();
  const Ended ended = joined.wait(kLate_s);
  EXPECT_EQ(ended.exit_code, kExitBadJob) << ended.err;
  EXPECT_TRUE(has(ended.err, "the launcher is tutti \\x1b[2J")) << ended.err;
  EXPECT_FALSE(has(ended.err, "\x1b"));
}

// The launcher's machine does not answer: its queue of those who knock is full.
TEST(Join, CanBeInterruptedWhileItDials) {
  const process::FileDescriptor deaf = process::listen_on({"127.0.0.1", 0});
  ASSERT_EQ(listen(deaf.get(), 0), 0);
  const process::HostPort where = process::local_address(deaf);
  const process::FileDescriptor queued = process::dial(where, kLate_s);
  Subprocess joined({"join", to_text(where), "--token", "t"});
  ASSERT_TRUE(eventually([&] { return !sockets_of({joined.pid()}, kDialling).empty(); }, kLate_s))
      << joined.err();
  joined.signal(SIGINT);
  const Ended ended = joined.wait(kSoonS);
  EXPECT_FALSE(ended.late);
  EXPECT_EQ(ended.exit_code, kExitInterrupted) << ended.err;
  EXPECT_TRUE(has(ended.err, "interrupted")) << ended.err;
}

}  // namespace
}  // namespace tutti
