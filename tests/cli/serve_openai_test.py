"""The openai Python package against `kvasir serve`: plain, asynchronous, streamed, and its error classes.

  serve_openai_test.py KVASIR MODEL    run by the Python that has the package (scripts/setup-sdk python)

Exit 77 (skipped) where the package or the model is missing.
"""
import asyncio
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from support.served import Served  # noqa: E402

try:
    import openai
except ImportError:
    print("skipped: no openai package (scripts/setup-sdk python)")
    sys.exit(77)

KVASIR, MODEL = sys.argv[1], sys.argv[2]
if not os.path.exists(MODEL):
    print(f"skipped: no model at {MODEL}")
    sys.exit(77)

MESSAGES = [{"role": "user", "content": "Name three colours."}]


class OpenAiClient(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Served(KVASIR, MODEL, "--max-model-len", "1024", "--max-num-seqs", "8", "-a", "small")
        cls.url = cls.server.url + "/v1"
        cls.client = openai.OpenAI(base_url=cls.url, api_key="none", max_retries=0)

    @classmethod
    def tearDownClass(cls):
        code = cls.server.end()
        assert code == 143, code

    def ask(self, **more):
        return self.client.chat.completions.create(
            model="small", messages=MESSAGES, max_completion_tokens=24, temperature=0, **more)

    def test_models(self):
        self.assertEqual([model.id for model in self.client.models.list()], ["small"])
        self.assertEqual(self.client.models.retrieve("small").id, "small")

    def test_plain_and_streamed_chat_agree(self):
        whole = self.ask(logprobs=True, top_logprobs=2)
        text = whole.choices[0].message.content
        self.assertTrue(text)
        self.assertEqual(whole.usage.total_tokens, whole.usage.prompt_tokens + whole.usage.completion_tokens)
        self.assertEqual(whole.usage.prompt_tokens_details.cached_tokens, 0)
        self.assertEqual(len(whole.choices[0].logprobs.content[0].top_logprobs), 2)
        chunks = list(self.ask(stream=True, stream_options={"include_usage": True}))
        self.assertEqual("".join(c.choices[0].delta.content or "" for c in chunks if c.choices), text)
        self.assertEqual(chunks[-1].usage.total_tokens, whole.usage.total_tokens)
        self.assertEqual(chunks[0].choices[0].delta.role, "assistant")

    def test_stream_helper(self):
        with self.client.chat.completions.stream(model="small", messages=MESSAGES, temperature=0, stop=[" "],
                                                 max_completion_tokens=24) as stream:
            for _ in stream:
                pass
            # The helper takes "length" for a failure.
            self.assertEqual(stream.get_final_completion().choices[0].finish_reason, "stop")

    def test_completions_of_every_shape(self):
        create = self.client.completions.create
        one = create(model="small", prompt="The sky is", max_tokens=4, temperature=0, logprobs=2, echo=True)
        self.assertTrue(one.choices[0].text.startswith("The sky is"))
        self.assertIsNone(one.choices[0].logprobs.token_logprobs[0])
        two = create(model="small", prompt=["The sky is", "Grass is"], max_tokens=4, temperature=0, n=2)
        self.assertEqual([choice.index for choice in two.choices], [0, 1, 2, 3])
        streamed = create(model="small", prompt="The sky is", max_tokens=4, temperature=0, stream=True)
        self.assertEqual("The sky is" + "".join(c.choices[0].text for c in streamed if c.choices), one.choices[0].text)
        ids = create(model="small", prompt=[[1, 2, 3], [4, 5]], max_tokens=2)
        self.assertEqual(len(ids.choices), 2)

    def test_seed_decides(self):
        draws = [self.client.completions.create(model="small", prompt="Once", max_tokens=12, temperature=1, seed=seed)
                 .choices[0].text for seed in (1, 1, 2)]
        self.assertEqual(draws[0], draws[1])
        self.assertNotEqual(draws[0], draws[2])

    def test_asynchronous_side_by_side(self):
        async def all_of_them():
            async with openai.AsyncOpenAI(base_url=self.url, api_key="none", max_retries=0) as client:
                async def one(stream):
                    answer = await client.chat.completions.create(
                        model="small", messages=MESSAGES, max_completion_tokens=16, temperature=0, stream=stream)
                    if not stream:
                        return answer.choices[0].message.content
                    return "".join([c.choices[0].delta.content or "" async for c in answer if c.choices])
                return await asyncio.gather(*(one(i % 2 == 1) for i in range(8)))
        self.assertEqual(len(set(asyncio.run(all_of_them()))), 1)

    def test_a_stream_left_early_leaves_the_server_well(self):
        stream = self.ask(stream=True)
        next(iter(stream))
        stream.close()
        self.assertTrue(self.ask().choices[0].message.content)

    def test_error_classes(self):
        with self.assertRaises(openai.NotFoundError):
            self.client.chat.completions.create(model="gpt-9", messages=MESSAGES)
        with self.assertRaises(openai.BadRequestError) as caught:
            self.ask(top_p=7)
        self.assertEqual(caught.exception.param, "top_p")
        with self.assertRaises(openai.BadRequestError) as caught:
            self.client.completions.create(model="small", prompt="word " * 4000, max_tokens=1)
        self.assertEqual(caught.exception.code, "context_length_exceeded")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=1)
