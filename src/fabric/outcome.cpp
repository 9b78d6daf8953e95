#include "fabric/outcome.h"

#include <exception>

#include "core/error.h"
#include "core/whole_file.h"

namespace tutti {
namespace {

NodeOutcome failed(int exit_code, const std::exception& error) {
  NodeOutcome outcome;
  outcome.kind = NodeOutcome::Kind::kFailed;
  outcome.error = error.what();
  outcome.exit_code = exit_code;
  return outcome;
}

// A node that waits in vain exits like one whose peer was lost: to its user both mean that the
// cluster, not the job, failed.
int exit_code_of(FabricError::Kind kind) {
  switch (kind) {
    case FabricError::Kind::kPeerLost:
    case FabricError::Kind::kTimedOut:
    case FabricError::Kind::kDeadlock:
      return kExitPeerLost;
    case FabricError::Kind::kProtocol:
    case FabricError::Kind::kUnavailable:
      break;
  }
  return kExitInternal;
}

}  // namespace

NodeOutcome run_body(const Fabric::Body& body, Node& node) {
  NodeOutcome outcome;
  try {
    outcome.result = body(node);
    outcome.kind = NodeOutcome::Kind::kDone;
    outcome.exit_code = kExitDone;
  } catch (const PartialResult& partial) {
    outcome = run_body([&](Node&) -> std::string { std::rethrow_exception(partial.cause); }, node);
    outcome.result = partial.result;
  } catch (const InterruptedError& error) {
    outcome.kind = NodeOutcome::Kind::kInterrupted;
    outcome.error = error.what();
    outcome.exit_code = kExitInterrupted;
  } catch (const FabricError& error) {
    outcome = failed(exit_code_of(error.kind()), error);
    outcome.lost_peer = error.kind() == FabricError::Kind::kPeerLost ? error.peer() : kAnyRank;
  } catch (const DivergedError& error) {
    outcome = failed(kExitDiverged, error);
  } catch (const ConfigError& error) {
    outcome = failed(kExitBadJob, error);
  } catch (const DiskError& error) {
    outcome = failed(kExitInternal, error);
  } catch (const DataError& error) {
    outcome = failed(kExitBadJob, error);
  } catch (const std::exception& error) {
    outcome = failed(kExitInternal, error);
  }
  return outcome;
}

}  // namespace tutti
