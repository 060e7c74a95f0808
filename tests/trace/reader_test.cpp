#include "trace/reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace kvasir::trace {
namespace {

const std::string kData = std::string(KVASIR_SOURCE_DIR) + "/tests/data/trace/";
const std::string kHead = R"({"format":"kvasir-trace","version":1,"block_tokens":16})"
                          "\n";

Result<Trace> read(const std::string& text, ReadOptions options = {}) {
  std::istringstream in(text);
  return read_trace(in, "t", options);
}

std::string error_of(const std::string& text) {
  const Result<Trace> trace = read(text);
  return trace.ok() ? "accepted" : trace.error().message;
}

TEST(TraceReader, ReadsTheKvasirForm) {
  const auto trace =
      read(kHead + R"({"arrival_s":0.25,"input_tokens":17,"output_tokens":3,"block_ids":[7,18446744073709551615]})"
                   "\r\n\n"
                   R"({"arrival_s":1,"input_tokens":5,"output_tokens":1})");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  ASSERT_EQ(trace->requests.size(), 2u);
  EXPECT_EQ(trace->block_tokens, 16u);
  EXPECT_EQ(trace->requests[0].arrival_s, 0.25);
  EXPECT_EQ(trace->requests[0].input_tokens, 17u);
  EXPECT_EQ(trace->requests[0].output_tokens, 3u);
  EXPECT_THAT(trace->requests[0].block_ids, testing::ElementsAre(7u, 18446744073709551615u));
  EXPECT_EQ(trace->requests[1].arrival_s, 1.0);
  EXPECT_TRUE(trace->requests[1].block_ids.empty());
}

TEST(TraceReader, ReadsMooncake) {
  const auto trace = read_trace_file(kData + "mooncake_conversation_first8.jsonl");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  ASSERT_EQ(trace->requests.size(), 8u);
  EXPECT_EQ(trace->block_tokens, 512u);
  EXPECT_EQ(trace->requests[3].input_tokens, 2290u);
  EXPECT_EQ(trace->requests[3].output_tokens, 316u);
  EXPECT_THAT(trace->requests[3].block_ids, testing::ElementsAre(0u, 42u, 43u, 44u, 45u));
}

TEST(TraceReader, ReadsAzureFromItsFirstRequestOn) {
  const auto trace = read_trace_file(kData + "azure_code_first8.csv");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  ASSERT_EQ(trace->requests.size(), 8u);
  EXPECT_EQ(trace->block_tokens, 0u);
  EXPECT_EQ(trace->requests[0].arrival_s, 0.0);
  EXPECT_DOUBLE_EQ(trace->requests[1].arrival_s, 0.052);     // 18:17:03.9799600 to 18:17:04.0319600
  EXPECT_DOUBLE_EQ(trace->requests[7].arrival_s, 1.016041);  // ... to 18:17:04.9960010
  EXPECT_EQ(trace->requests[7].input_tokens, 34u);
  EXPECT_EQ(trace->requests[7].output_tokens, 23u);
}

TEST(TraceReader, ReadsVidurLengthsWithoutArrivals) {
  const auto trace = read_trace_file(kData + "vidur_arxiv_first200.csv");
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  ASSERT_EQ(trace->requests.size(), 200u);
  EXPECT_FALSE(trace->timed);
  EXPECT_EQ(trace->requests[0].input_tokens, 3772u);
  EXPECT_EQ(trace->requests[0].output_tokens, 54u);
  EXPECT_EQ(trace->requests[199].arrival_s, 0.0);
}

TEST(TraceReader, ReadsOnlyAsManyRequestsAsAsked) {
  const auto trace = read(kHead + R"({"arrival_s":0,"input_tokens":1,"output_tokens":1})"
                                  "\nnonsense\n",
                          {.limit = 1});
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_EQ(trace->requests.size(), 1u);
}

TEST(TraceReader, WhatIsWrittenReadsBackTheSame) {
  for (const char* file : {"mooncake_conversation_first8.jsonl", "azure_code_first8.csv"}) {
    const auto trace = read_trace_file(kData + file);
    ASSERT_TRUE(trace.ok()) << trace.error().message;
    std::stringstream text;
    write_trace(text, *trace);
    const auto again = read_trace(text, "written", {.format = TraceFormat::kvasir});
    ASSERT_TRUE(again.ok()) << again.error().message;
    EXPECT_EQ(again->block_tokens, trace->block_tokens);
    ASSERT_EQ(again->requests.size(), trace->requests.size());
    for (std::size_t i = 0; i < trace->requests.size(); ++i) {
      EXPECT_EQ(again->requests[i].arrival_s, trace->requests[i].arrival_s);
      EXPECT_EQ(again->requests[i].input_tokens, trace->requests[i].input_tokens);
      EXPECT_EQ(again->requests[i].output_tokens, trace->requests[i].output_tokens);
      EXPECT_EQ(again->requests[i].block_ids, trace->requests[i].block_ids);
    }
  }
}

struct BadTrace {
  const char* name;
  std::string text;
  std::string says;
};

class BadTraceTest : public testing::TestWithParam<BadTrace> {};

TEST_P(BadTraceTest, IsExplained) { EXPECT_EQ(error_of(GetParam().text), GetParam().says); }

const std::string kMooncake = R"({"timestamp":0,"input_length":3,"output_length":1,"hash_ids":[1]})"
                              "\n";
const std::string kAzure = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n";
const std::string kVidur = "num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio\n";
const std::string kCount = "a whole number from 1 to 16777216";

INSTANTIATE_TEST_SUITE_P(
    Table, BadTraceTest,
    testing::Values(
        BadTrace{"Empty", "", "'t' holds no requests"}, BadTrace{"HeaderAlone", kHead, "'t' holds no requests"},
        BadTrace{"NotJson", "hello\n", "t:1: the line is no JSON object"},
        BadTrace{"ForeignJson", "{\"a\":1}\n",
                 "t:1: no known trace begins like this; valid: {\"format\":\"kvasir-trace\",\"version\":1}, a Mooncake "
                 "line (timestamp, "
                 "input_length, output_length, hash_ids) or the Azure header TIMESTAMP,ContextTokens,GeneratedTokens"},
        BadTrace{"LaterVersion", R"({"format":"kvasir-trace","version":2})",
                 "t:1: 'version' is 2; valid: a whole number from 1 to 1"},
        BadTrace{"UnknownKey", kHead + R"({"arrival_s":0,"input_tokens":1,"output_tokens":1,"prio":1})",
                 "t:2: the key 'prio' is not known; valid: arrival_s, input_tokens, output_tokens, block_ids"},
        BadTrace{"MissingKey", kHead + R"({"arrival_s":0,"input_tokens":1})",
                 "t:2: the key 'output_tokens' is missing"},
        BadTrace{"NegativeArrival", kHead + R"({"arrival_s":-1,"input_tokens":1,"output_tokens":1})",
                 "t:2: 'arrival_s' is -1; valid: a number from 0 to 1e+09"},
        BadTrace{"ArrivalNotANumber", kHead + R"({"arrival_s":"now","input_tokens":1,"output_tokens":1})",
                 "t:2: 'arrival_s' is \"now\"; valid: a number from 0 to 1e+09"},
        BadTrace{"ZeroLength", kHead + R"({"arrival_s":0,"input_tokens":0,"output_tokens":1})",
                 "t:2: 'input_tokens' is 0; valid: " + kCount},
        BadTrace{"HugeLength", kHead + R"({"arrival_s":0,"input_tokens":1,"output_tokens":99999999})",
                 "t:2: 'output_tokens' is 99999999; valid: " + kCount},
        BadTrace{"FractionalLength", kHead + R"({"arrival_s":0,"input_tokens":1.5,"output_tokens":1})",
                 "t:2: 'input_tokens' is 1.5; valid: " + kCount},
        BadTrace{"BlockIdNegative", kHead + R"({"arrival_s":0,"input_tokens":17,"output_tokens":1,"block_ids":[1,-2]})",
                 "t:2: 'block_ids[1]' is -2; valid: a list of whole numbers from 0 to 2^64 - 1"},
        BadTrace{"BlockIdsTooFew", kHead + R"({"arrival_s":0,"input_tokens":17,"output_tokens":1,"block_ids":[1]})",
                 "t:2: 1 block ids for 17 input tokens; valid: 2, one for each 16 tokens"},
        BadTrace{
            "BlockIdsWithoutSize",
            "{\"format\":\"kvasir-trace\",\"version\":1}\n{\"arrival_s\":0,\"input_tokens\":1,\"output_tokens\":1,"
            "\"block_ids\":[1]}",
            "t:2: the request has block ids, but the first line has no 'block_tokens' that says what they stand for"},
        BadTrace{"OutOfOrder",
                 kHead + R"({"arrival_s":2,"input_tokens":1,"output_tokens":1})"
                         "\n"
                         R"({"arrival_s":1,"input_tokens":1,"output_tokens":1})",
                 "t:3: the request arrives at 1 s, before the one above it at 2 s; valid: arrivals in order"},
        BadTrace{"MooncakeLength", kMooncake + R"({"timestamp":1,"input_length":"3","output_length":1,"hash_ids":[1]})",
                 "t:2: 'input_length' is \"3\"; valid: " + kCount},
        BadTrace{"MooncakeCutLine", kMooncake + R"({"timestamp":1,"input_le)", "t:2: the line is no JSON object"},
        BadTrace{"MooncakeHashIds",
                 kMooncake + R"({"timestamp":1,"input_length":513,"output_length":1,"hash_ids":[1]})",
                 "t:2: 1 block ids for 513 input tokens; valid: 2, one for each 512 tokens"},
        BadTrace{"AzureHeader", "TIMESTAMP,Context\n",
                 "t:1: the header is 'TIMESTAMP,Context'; valid: TIMESTAMP,ContextTokens,GeneratedTokens"},
        BadTrace{"AzureColumns", kAzure + "2023-11-16 18:17:03.9799600,4808\r\n",
                 "t:2: 2 columns; valid: the 3 of TIMESTAMP,ContextTokens,GeneratedTokens"},
        BadTrace{"AzureTime", kAzure + "2023-02-30 18:17:03,1,1\r\n",
                 "t:2: 'TIMESTAMP' is '2023-02-30 18:17:03'; valid: a time as 2023-11-16 18:17:03.9799600"},
        BadTrace{"AzureTimeShort", kAzure + "now,1,1\r\n",
                 "t:2: 'TIMESTAMP' is 'now'; valid: a time as 2023-11-16 18:17:03.9799600"},
        BadTrace{"AzureOrder", kAzure + "2023-11-16 18:17:03,1,1\r\n2023-11-16 18:17:02,1,1\r\n",
                 "t:3: 'TIMESTAMP' is '2023-11-16 18:17:02'; valid: arrivals in order"},
        BadTrace{"AzureTokens", kAzure + "2023-11-16 18:17:03,1,-4\r\n",
                 "t:2: 'GeneratedTokens' is '-4'; valid: " + kCount},
        BadTrace{"VidurHeader", "num_prefill_tokens,x\n",
                 "t:1: the header is 'num_prefill_tokens,x'; valid: " + kVidur.substr(0, kVidur.size() - 1)},
        BadTrace{"VidurTokens", kVidur + "10,0,10,1\n", "t:2: 'num_decode_tokens' is '0'; valid: " + kCount},
        BadTrace{"VidurSum", kVidur + "10,5,16,2\n", "t:2: 'num_total_tokens' is '16'; valid: 15, the sum of both"},
        BadTrace{"AzureTokensEmpty", kAzure + "2023-11-16 18:17:03,,4\r\n",
                 "t:2: 'ContextTokens' is ''; valid: " + kCount}),
    [](const testing::TestParamInfo<BadTrace>& entry) { return entry.param.name; });

TEST(TraceReader, AMissingFileAndADirectoryAreNamed) {
  EXPECT_EQ(read_trace_file("no/such.jsonl").error().message, "the trace 'no/such.jsonl' does not exist");
  EXPECT_EQ(read_trace_file(kData).error().message, "the trace '" + kData + "' is a directory");
  EXPECT_EQ(parse_format("csv").error().message, "'csv' is no trace format; valid: auto, kvasir, mooncake, azure, vidur");
}

// The whole public traces, where this machine has them: their known totals.
TEST(TraceReader, WholePublicTracesHaveTheirKnownNumbers) {
  const char* shared = std::getenv("KVASIR_SHARED");
  if (shared == nullptr) GTEST_SKIP() << "KVASIR_SHARED is not set";
  const std::string data = std::string(shared) + "/data/";
  struct Known {
    const char* file;
    std::size_t requests;
    double mean_in, mean_out;
  };
  for (const Known& known : {Known{"mooncake-fast25/conversation_first5000.jsonl", 5000, 13066.2, 346.1},
                             Known{"mooncake-fast25/synthetic_trace.jsonl", 3993, 15325.5, 149.1},
                             Known{"azure-llm-2023/AzureLLMInferenceTrace_code.csv", 8819, 2047.8, 27.9},
                             Known{"azure-llm-2023/AzureLLMInferenceTrace_conv.csv", 19366, 1154.7, 211.1}}) {
    const auto trace = read_trace_file(data + known.file);
    ASSERT_TRUE(trace.ok()) << trace.error().message;
    ASSERT_EQ(trace->requests.size(), known.requests);
    double in = 0, out = 0;
    for (const TraceRequest& request : trace->requests) in += request.input_tokens, out += request.output_tokens;
    EXPECT_NEAR(in / static_cast<double>(known.requests), known.mean_in, 0.051);
    EXPECT_NEAR(out / static_cast<double>(known.requests), known.mean_out, 0.051);
  }
}

}  // namespace
}  // namespace kvasir::trace
