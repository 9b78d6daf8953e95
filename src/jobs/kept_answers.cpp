#include "jobs/kept_answers.h"

#include <fmt/format.h>

#include <filesystem>

#include "core/error.h"
#include "jobs/parameters_file.h"

namespace tutti {

std::unique_ptr<Answerer> load_answerer(const std::string& folder, const Job& job, Model& model) {
  const auto load = [&](const std::string& name) {
    const std::string path = fmt::format("{}/{}.safetensors", folder, name);
    std::error_code failed;
    if (!std::filesystem::exists(path, failed))
      throw ConfigError(
          "RUN",
          fmt::format("{}: is a run of strategy.kind = \"{}\" without {}.safetensors, which "
                      "it answers with: the file is lost, or the run is older than it; train "
                      "it again with `tutti train {}/job.toml`",
                      folder, job.strategy_kind, name, folder));
    return load_attachment(path);
  };
  return job.strategy->answerer({job.task, job.cluster, job.optimizer, model.architecture()}, model,
                                load);
}

}  // namespace tutti
