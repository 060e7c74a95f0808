// The Vidur form: lengths of requests as CSV, without arrivals.
#include <fmt/format.h>

#include "trace/csv_cells.hpp"
#include "trace/row_reader.hpp"

namespace kvasir::trace {
namespace {

class VidurRows final : public RowReader {
 public:
  Result<std::optional<TraceRequest>> read(std::string_view line, const Place& place) override {
    if (!has_header_) {
      if (line != kVidurHeader)
        return bad_row(place, fmt::format("the header is '{}'; valid: {}", line.substr(0, 80), kVidurHeader));
      has_header_ = true;
      return std::optional<TraceRequest>();
    }
    KV_ASSIGN(const auto cells, split_cells(line, kVidurHeader, place));
    TraceRequest request;
    KV_ASSIGN(request.input_tokens, parse_tokens(cells[0], "num_prefill_tokens", place));
    KV_ASSIGN(request.output_tokens, parse_tokens(cells[1], "num_decode_tokens", place));
    const std::string total = fmt::format("{}", request.input_tokens + request.output_tokens);
    if (cells[2] != total)
      return bad_value(place, "num_total_tokens", fmt::format("'{}'", cells[2]), total + ", the sum of both");
    return std::optional(std::move(request));
  }

  std::uint32_t block_tokens() const override { return 0; }
  bool timed() const override { return false; }

 private:
  bool has_header_ = false;
};

}  // namespace

std::unique_ptr<RowReader> vidur_rows() { return std::make_unique<VidurRows>(); }

}  // namespace kvasir::trace
