// How much memory a model needs, and how many sequences fit: the planner as a library, public headers only.
//   example_plan MODEL [GIGABYTES]        MODEL: a GGUF, a config.json or a known name (llama-3-8b)
#include <kvasir/plan.hpp>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: %s MODEL [GIGABYTES]\n", argv[0]);
    return 2;
  }
  kvasir::api::PlanRequest request;
  request.model = argv[1];
  request.kv_cache_dtype = "bf16";
  request.length = 4096;
  request.memory = argc == 3 ? std::strtoull(argv[2], nullptr, 10) << 30 : 0;

  const auto outcome = kvasir::api::plan_memory(request);
  if (const auto* error = std::get_if<kvasir::api::PlanError>(&outcome)) {
    std::fprintf(stderr, "%s\n", error->message.c_str());
    return 1;
  }
  const auto& plan = std::get<kvasir::api::PlanAnswer>(outcome);
  for (const auto& line : plan.lines)
    std::printf("%16llu  %s\n", static_cast<unsigned long long>(line.bytes), line.name.c_str());
  std::printf("%16llu  total\n", static_cast<unsigned long long>(plan.total_bytes));
  if (plan.fit) std::printf("%llu sequences fit\n", static_cast<unsigned long long>(plan.fit->max_sequences));
  for (const auto& warning : plan.warnings) std::printf("warning: %s\n", warning.c_str());
  return 0;
}
