/** Where the engine alone differs from Jinja2 on Python, by kind: a source, what Python makes of it, and the JSON that `v` is there. */

export type Row = readonly [source: string, said: string, json?: string];

export const SAYS: Readonly<Record<string, readonly Row[]>> = {
  'strip takes the characters it is given, and white space as Python knows it': [
    ['[{{ "\n  a \n".strip("\n") }}]', '[  a ]'],
    ['[{{ "xxaxx".lstrip("x") }}{{ "xxaxx".rstrip("x") }}]', '[axxxxa]'],
    ['[{{ "\u00a0\x1fa\ufeff".strip() }}]', '[a\ufeff]'],
    ['[{{ "xax" | trim("x") }}{{ none | trim }}{{ nothing | trim }}]', '[aNone]'],
    [
      '[{{ "  a b  c ".split() | join("|") }}][{{ " a b c".split(None, 1) | join("|") }}][{{ "a--b--c".split("--", 1) | join("|") }}]',
      '[a|b|c][a|b c][a|b--c]',
    ],
  ],

  'numbers keep their form': [
    [
      '{{ v | tojson }}',
      '{"f": 1.0, "big": 12345678901234567890, "e": 1e+20, "s": 1e-07, "z": -0.0, "n": 0}',
      '{"f":1.0,"big":12345678901234567890,"e":1e20,"s":0.0000001,"z":-0.0,"n":-0}',
    ],
    ['{{ v.f }} {{ v.i }} {{ v.x }}', '2.5 100000000000000000000 1e+16', '{"f":2.50,"i":100000000000000000000,"x":1E16}'],
    ['{{ 7 // 2 }} {{ 7 / 2 }} {{ 7 % 3 }} {{ 1 + 1.0 }} {{ 4 / 2 }}', '3 3.5 1 2.0 2.0'],
  ],

  'keys keep their order, numbers among them': [
    ['{% for k in v %}{{ k }} {% endfor %}', 'b 10 2 ', '{"b":1,"10":1,"2":1}'],
    ['{{ v | tojson }}', '{"a": 2, "b": 1}', '{"a":1,"b":1,"a":2}'],
  ],

  'values print as in Python': [
    ['{{ none }} {{ true }} {{ false }} {{ nothing }}|', 'None True False |'],
    ['{{ v.l }}', "['a', 1, 2.0, True, None, {'k': \"it's\"}]", '{"l":["a",1,2.0,true,null,{"k":"it\'s"}]}'],
    ['{{ none | string }}{{ true | string }}{{ v.t | string }}', "NoneTrue['string', 'null']", '{"t":["string","null"]}'],
    ['{{ ("a", 1) }} {% for k, x in v | items %}{{ k }}={{ x }}{% endfor %}', "('a', 1) k=None", '{"k":null}'],
    ['{{ v.s }} {{ [v.s] }}', "é\n\u200b😀 ['é\\n\\u200b😀']", '{"s":"é\\n\u200b😀"}'],
    ['{{ 1 ~ none ~ "x" ~ 1.0 ~ nothing }}', '1Nonex1.0'],
  ],

  'JSON is written as json.dumps does': [
    ['{{ v | tojson }}', '{"h": "<b>&\'é", "c": "\\u0001\\u001f\x7f\u2028"}', '{"h":"<b>&\'é","c":"\\u0001\\u001f\x7f\u2028"}'],
    ['{{ v | tojson(indent=2) }}', '{\n  "a": [\n    1,\n    {}\n  ],\n  "b": []\n}', '{"a":[1,{}],"b":[]}'],
    ['{{ v | tojson(ensure_ascii=true) }}', '{"a": "\\u00e9\\ud83d\\ude00"}', '{"a":"é😀"}'],
  ],

  'texts are sequences of characters, not of UTF-16 units': [
    ['{{ "a😀b" | length }} {{ "a😀b"[1] }} {{ "a😀b"[-1] }} {{ "a😀b"[1:] }}', '3 😀 b 😀b'],
    ['{% for c in "é😀" %}[{{ c }}]{% endfor %}', '[é][😀]'],
  ],

  'equality is by type and content': [
    [
      '{{ "1" == 1 }} {{ 1 == 1.0 }} {{ true == 1 }} {{ none == nothing }} {{ v.a == v.b }} {{ v.a != [1] }}',
      'False True True False True True',
      '{"a":[1,{"x":2}],"b":[1,{"x":2}]}',
    ],
    [
      '{{ [1] in [[1]] }} {{ none in [none] }} {{ "a" in v }} {{ "a" in nothing }} {{ 1 not in [1.0] }}',
      'True True True False False',
      '{"a":1}',
    ],
  ],

  'what is undefined is empty, until it is used': [
    ['{% for x in nothing %}x{% else %}none{% endfor %}{{ nothing | length }}{{ nothing | list }}{{ nothing | default("d") }}', 'none0[]d'],
    ['{{ none.x is defined }} {{ v.x is defined }} {{ "" | default("d", true) }}', 'False False d'],
  ],

  'a method goes before an entry after a dot, and an entry first in brackets': [
    [
      '{{ v["items"] }} {% for k, x in v.items() %}{{ k }}{{ x }}{% endfor %} {{ v.get("x", 0) }} {{ v.keys() | list }}',
      "1 items1 0 ['items']",
      '{"items":1}',
    ],
  ],

  'types are told apart as in Python': [
    [
      '{{ {} is iterable }} {{ "" is sequence }} {{ (1, 2) is iterable }} {{ true is integer }} {{ 1.0 is float }}',
      'True True True False True',
    ],
  ],

  'a loop has a scope of its own in each round': [
    ['{% for i in [1, 2] %}{% if i == 1 %}{% set x = "set" %}{% endif %}{{ x }}|{% endfor %}', 'set||'],
    ['{% for i in [1, 2, 3] %}{{ i }}{% if i == 2 %}!{% break %}{% endif %};{% endfor %}', '1;2!'],
    ['{% for i in [1, 2] %}a{% if i == 1 %}b{% continue %}{% endif %}c{% endfor %}', 'abac'],
    [
      '{% for k, x in v | items %}{{ loop.index }}/{{ loop.length }}{{ k }}{{ x }}{{ loop.previtem is defined }}{{ loop.last }} {% endfor %}',
      '1/2a1FalseFalse 2/2b2TrueTrue ',
      '{"a":1,"b":2}',
    ],
    ['{% for i in [1, 2, 3] if i != 2 %}{{ loop.index0 }}{{ i }}{% endfor %}', '0113'],
  ],

  'filters that templates use': [
    [
      '{{ v.l | map(attribute="n") | list }} {{ v.l | selectattr("n", "equalto", 2) | list | length }} {{ v.l | rejectattr("m") | list }}',
      "[1, 2] 1 [{'n': 1}, {'n': 2}]",
      '{"l":[{"n":1},{"n":2}]}',
    ],
    [
      '{{ ["b", "A", "b"] | map("upper") | unique | sort | join("") }} {% for k, x in v | dictsort %}{{ k }}{{ x }}{% endfor %}',
      'AB a1B2',
      '{"B":2,"a":1}',
    ],
    ['{{ [1, 2] | reject("in", [2]) | list }} {{ [1, 2] | last }} {{ [3, 1, 2] | min }}', '[1] 2 1'],
    ['{{ ["a", none] | map("upper") | list }} {{ none | select | list }}', "['A', 'NONE'] []"],
    [
      '{{ "a\nb\n\nc" | indent(2) }}|{{ "{}-{}".format(1, "x") }}|{{ "ab" * 2 }}|{{ "aXa" | replace("a", "b") }}|{{ "x" | int(3) }}',
      'a\n  b\n\n  c|1-x|abab|bXb|3',
    ],
    ['{{ "a<" + ("b" | safe) + "<" }}', 'a&lt;b&lt;'],
  ],

  'dict literals take numbers as keys, and lines may end in any way': [
    ['{% set d = {1: "a", "1": "b"} %}{{ d[1] }}{{ d["1"] }}{{ d }}', "ab{1: 'a', '1': 'b'}"],
    ['{% for k, x in {10: "b", 9: "a"} | dictsort %}{{ k + 1 }}{{ x }}{% endfor %}', '10a11b'],
    ['{% set x = 1 %}\r\nline\r\n', 'line'],
  ],
};

/** What Python raises at. */
export const RAISES: readonly (readonly [source: string, json?: string])[] = [
  ['{{ "x" + none }}'],
  ['{{ none + "x" }}'],
  ['{{ "x" + 1 }}'],
  ['{{ "x" + v }}'],
  ['{{ nothing + "x" }}'],
  ['{{ nothing.x }}'],
  ['{{ nothing["x"] }}'],
  ['{{ nothing() }}'],
  ['{{ none.strip() }}'],
  ['{{ "x" in none }}'],
  ['{{ none in "x" }}'],
  ['{{ 1 < "x" }}'],
  ['{{ nothing | tojson }}'],
  ['{{ [] | items | list }}'],
  ['{{ v.l.append(1) }}', '{"l":[]}'],
  ['{{ v.update(v) }}'],
  ['{% for x in none %}{% endfor %}'],
  ['{% for a, b in [[1]] %}{% endfor %}'],
  ['{{ 1 | no_such_filter }}'],
  ['{{ 1 is no_such_test }}'],
];

/** What Python takes and the layer does not: it says so instead of passing over a part. */
export const NOT_KNOWN: typeof RAISES = [
  ['{{ [1] | join(d=",") }}'],
  ['{{ [v] | join(",", attribute="x") }}'],
  ['{{ [[1]] | map("join", ",") | list }}'],
  ['{{ v | tojson(sort_keys=true) }}'],
  ['{{ "{0}".format(1) }}'],
  ['{{ "a".isdigit() }}'],
  ['{{ strftime_now("%j") }}'],
];
