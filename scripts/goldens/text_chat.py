#!/usr/bin/env python3
"""Makes tests/data/text/chat.jsonl: chat templates rendered by Python's `transformers` (Jinja2).

usage: text_chat.py MODEL.gguf...

The templates are those of the given files and the ones below; one line a rendering:
{"name", "template", "bos", "eos", "messages", "add_generation_prompt", "text"}, or "error" instead of "text" where the
template raises.
"""
import json
import pathlib
import sys

import gguf
import jinja2
from transformers.utils.chat_template_utils import _compile_jinja_template

OUT = pathlib.Path(__file__).resolve().parents[2] / "tests/data/text/chat.jsonl"

# What real templates use, one feature or two a template.
TEMPLATES = {
    "chatml": "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}",
    "llama-2": "{% if messages[0]['role'] == 'system' %}{% set loop_messages = messages[1:] %}{% set system_message = messages[0]['content'] %}{% else %}{% set loop_messages = messages %}{% set system_message = false %}{% endif %}{% for message in loop_messages %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('Conversation roles must alternate user/assistant/user/assistant/...') }}{% endif %}{% if loop.index0 == 0 and system_message != false %}{% set content = '<<SYS>>\\n' + system_message + '\\n<</SYS>>\\n\\n' + message['content'] %}{% else %}{% set content = message['content'] %}{% endif %}{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}{% elif message['role'] == 'assistant' %}{{ ' '  + content.strip() + ' ' + eos_token }}{% endif %}{% endfor %}",
    "gemma": "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}{% for message in messages %}{% if (message['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = message['role'] %}{% endif %}{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}{% endfor %}{% if add_generation_prompt %}{{'<start_of_turn>model\n'}}{% endif %}",
    "llama-3": "{% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}",
    "blocks": "\n{%- for m in messages %}\n    {% if m.role == 'user' %}\nU:{{ m.content }}\n    {% else %}\nO:{{- m.content -}}\n    {% endif %}\n{% endfor %}\n  {# a comment #}\nend\n",
    "think": "{% for m in messages %}{% if '</think>' in m.content %}{{ m.content.split('</think>')[-1].lstrip('\\n') }}{% else %}{{ m.content }}{% endif %}<|im_end|>{% endfor %}",
    "tojson": "{{ messages | tojson }}{{ messages[0].content | tojson }}{{ {'b': [1, 2.5, none, true], 'a': {}} | tojson(indent=2) }}{{ {'b': 1, 'a': []} | tojson(sort_keys=true) }}",
    "python": "{{ messages[0].content.upper() }}{{ messages[0]['content'].title() }}{{ messages[0].content.replace('a', 'b') }}{{ messages[0].content.startswith('H') }}{{ none }}{{ true }}{{ [1, 'x', none] }}{{ {'k': 'it\\'s'} }}{{ messages|length }}{{ 7 // 2 }}{{ 7 / 2 }}{{ messages[-1].role }}{{ 'a,b'.split(',') }}",
    "namespace": "{% set ns = namespace(n=0, last='') %}{% for m in messages %}{% set ns.n = ns.n + 1 %}{% if m.role == 'user' %}{% set ns.last = m.content %}{% endif %}{% endfor %}{{ ns.n }}:{{ ns.last }}",
    "loops": "{% for m in messages %}{% if loop.index > 2 %}{% break %}{% endif %}{% if m.role == 'system' %}{% continue %}{% endif %}{{ loop.index }}{{ loop.first }}{{ loop.last }}{{ m.content }}{% endfor %}{% for m in messages[::-1] %}{{ m.role }}{% endfor %}",
    "macro": "{% macro turn(m, mark='>') %}{{ mark }}{{ m.role }}:{{ m.content }}{% endmacro %}{% for m in messages %}{{ turn(m) }}{{ turn(m, mark='#') }}{% endfor %}",
    "tests": "{{ tools is defined }}{{ tools is none }}{{ nothing is defined }}{{ messages is iterable }}{{ messages[0] is mapping }}{{ messages[0].content is string }}{% if not tools %}no tools{% endif %}{{ messages[0].tool_calls is defined }}{{ messages | map(attribute='role') | join(',') }}{{ messages | selectattr('role', 'equalto', 'user') | list | length }}",
    "generation": "{% for m in messages %}{% if m.role == 'assistant' %}{%- generation -%} {{ m.content }} {%- endgeneration -%}{% else %}{{ m.content }}{% endif %}\n{% endfor %}",
    "raises": "{{ raise_exception('no ' + messages[0].role) }}",
}
CONVERSATIONS = [
    [("user", "Hello")],
    [("system", "Be brief."), ("user", "  Hi there \n"), ("assistant", "Hello!"), ("user", "What's 2+2?")],
    [("user", "a \"quoted\" <b>bold</b> & 'single'\n\tline\u00e9\u4e2d\U0001f600"), ("assistant", "<think>\nhm\n</think>\n\nHa"), ("user", "aha")],
]


def main():
    sources = {name: (source, "<s>", "</s>") for name, source in TEMPLATES.items()}
    for path in sys.argv[1:]:
        fields = gguf.GGUFReader(path).fields
        tokens = fields["tokenizer.ggml.tokens"]
        text = lambda key: bytes(tokens.parts[tokens.data[int(fields[key].contents())]]).decode()
        name = pathlib.Path(path).stem
        sources[name] = (fields["tokenizer.chat_template"].contents(), text("tokenizer.ggml.bos_token_id"), text("tokenizer.ggml.eos_token_id"))
    lines = []
    for name, (source, bos, eos) in sources.items():
        for conversation in CONVERSATIONS:
            messages = [{"role": role, "content": content} for role, content in conversation]
            for prompt in (False, True):
                line = {"name": name, "template": source, "bos": bos, "eos": eos, "messages": conversation, "add_generation_prompt": prompt}
                try:
                    line["text"] = _compile_jinja_template(source).render(
                        messages=messages, tools=None, documents=None, add_generation_prompt=prompt, bos_token=bos, eos_token=eos)
                except jinja2.exceptions.TemplateError as error:
                    line["error"] = str(error)
                lines.append(json.dumps(line))
    OUT.write_text("\n".join(lines) + "\n")
    print(len(lines), "renderings")


if __name__ == "__main__":
    main()
