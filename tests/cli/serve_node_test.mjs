// The openai Node package against `kvasir serve`: plain, streamed, its helpers and its error classes.
//
//   node serve_node_test.mjs KVASIR MODEL FOLDER     the folder can require the package (scripts/setup-sdk node)
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [kvasir, model, folder] = process.argv.slice(2);
const entry = createRequire(folder + "/").resolve("openai");
const { default: OpenAI } = await import(pathToFileURL(entry));

const server = spawn(kvasir, ["serve", model, "--port", "0", "--max-model-len", "1024", "--max-num-seqs", "8", "-a", "small"],
  { stdio: ["ignore", "ignore", "pipe"] });
const ended = new Promise((resolve) => server.on("exit", resolve));
const lines = createInterface({ input: server.stderr });
const url = await new Promise((resolve, reject) => {
  lines.on("line", (line) => { const found = /ready on (http:\/\/\S+)/.exec(line); if (found) resolve(found[1]); });
  server.on("exit", () => reject(new Error("the server ended before it was ready")));
});

try {
  const client = new OpenAI({ baseURL: url + "/v1", apiKey: "none", maxRetries: 0 });
  const messages = [{ role: "user", content: "Name three colours." }];
  const ask = (more) => client.chat.completions.create({ model: "small", messages, max_completion_tokens: 24, temperature: 0, ...more });

  const listed = [];
  for await (const one of client.models.list()) listed.push(one.id);
  assert.deepEqual(listed, ["small"]);

  const whole = await ask({ logprobs: true, top_logprobs: 2 });
  const text = whole.choices[0].message.content;
  assert.ok(text);
  assert.equal(whole.usage.total_tokens, whole.usage.prompt_tokens + whole.usage.completion_tokens);
  assert.equal(whole.choices[0].logprobs.content[0].top_logprobs.length, 2);

  let streamed = "", usage = null;
  for await (const chunk of await ask({ stream: true, stream_options: { include_usage: true } })) {
    streamed += chunk.choices[0]?.delta.content ?? "";
    usage = chunk.usage ?? usage;
  }
  assert.equal(streamed, text);
  assert.deepEqual(usage.total_tokens, whole.usage.total_tokens);

  const helper = client.chat.completions.stream({ model: "small", messages, max_completion_tokens: 24, temperature: 0 });
  let deltas = "";
  helper.on("content", (delta) => { deltas += delta; });
  assert.equal((await helper.finalChatCompletion()).choices[0].message.content, text);
  assert.equal(deltas, text);

  const one = await client.completions.create({ model: "small", prompt: "The sky is", max_tokens: 4, temperature: 0, echo: true });
  assert.ok(one.choices[0].text.startsWith("The sky is"));
  const many = await client.completions.create({ model: "small", prompt: [[1, 2, 3], [4, 5]], max_tokens: 2, n: 2 });
  assert.deepEqual(many.choices.map((choice) => choice.index), [0, 1, 2, 3]);

  const left = await ask({ stream: true });
  for await (const chunk of left) { assert.ok(chunk.id); break; }   // leaves the stream: the package hangs up
  const answers = await Promise.all(Array.from({ length: 8 }, () => ask({})));
  for (const answer of answers) assert.equal(answer.choices[0].message.content, text);

  await assert.rejects(client.chat.completions.create({ model: "gpt-9", messages }), OpenAI.NotFoundError);
  await assert.rejects(ask({ top_p: 7 }), (error) => error instanceof OpenAI.BadRequestError && error.param === "top_p");
  await assert.rejects(client.completions.create({ model: "small", prompt: "word ".repeat(4000), max_tokens: 1 }),
    (error) => error.code === "context_length_exceeded");
  console.log("the openai Node package is content");
} finally {
  server.kill("SIGTERM");
}
assert.equal(await ended, 143);
