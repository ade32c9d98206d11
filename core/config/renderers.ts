/** Renderer names a config may ask for: those of the training service's cookbook and the verbatim ones, plus the tiny model's own. */
const PLAIN = [
  'qwen3',
  'qwen3_disable_thinking',
  'qwen3_instruct',
  'qwen3_5',
  'qwen3_5_disable_thinking',
  'nemotron3',
  'nemotron3_disable_thinking',
  'nemotron3_ultra',
  'nemotron3_ultra_disable_thinking',
  'llama3',
  'deepseekv3',
  'kimi_k2',
  'gpt_oss_medium_reasoning',
  'role_colon',
  'wmo/qwen3_5_strip_history',
  'stillroom_tiny',
];
/** Keep what was sampled word for word; history cannot be summarised under them. */
const VERBATIM = ['wmo/nemotron3_ultra_verbatim', 'wmo/nemotron3_verbatim', 'wmo/qwen3_5_verbatim', 'wmo/qwen3_verbatim'];

const known = new Set([...PLAIN, ...VERBATIM]);

export function isKnownRenderer(name: string): boolean {
  return known.has(name);
}

export function isVerbatimRenderer(name: string): boolean {
  return name.endsWith('_verbatim');
}
