/** What of the model's earlier reasoning stands in later prompts: all of it, or what the template leaves. */
export type Retain = 'all' | 'template';

/** What a renderer's name stands for: a model's own chat template with these switches, kept as its conversations go on. */
export type RendererChoice = {
  /** Families of templates that the name may be given to; the gateway finds out which one a template is of. */
  readonly families: readonly string[];
  /** Switches of the template. */
  readonly switches: Readonly<Record<string, string | boolean>>;
  readonly retain: Retain;
};

type Options = Partial<Omit<RendererChoice, 'families'>>;

const QWEN = ['hermes'];
const TAGGED = ['function_tags'];
const OFF = { switches: { enable_thinking: false } } as const;

const chosen = (families: readonly string[], { switches = {}, retain = 'all' }: Options = {}): RendererChoice => ({
  families,
  switches,
  retain,
});

/** Renderer names a config may ask for: those of the training service's cookbook, and the verbatim ones. */
const CHOICES: Readonly<Record<string, RendererChoice>> = {
  qwen3: chosen(QWEN),
  qwen3_disable_thinking: chosen(QWEN, OFF),
  qwen3_instruct: chosen(QWEN),
  qwen3_5: chosen(TAGGED),
  qwen3_5_disable_thinking: chosen(TAGGED, OFF),
  nemotron3: chosen(TAGGED),
  nemotron3_disable_thinking: chosen(TAGGED, OFF),
  nemotron3_ultra: chosen(TAGGED),
  nemotron3_ultra_disable_thinking: chosen(TAGGED, OFF),
  // The short template of Llama 3 knows no tools, and is of no family that does.
  llama3: chosen(['llama3', 'plain']),
  deepseekv3: chosen(['deepseek', 'deepseek_dsml']),
  kimi_k2: chosen(['kimi']),
  gpt_oss_medium_reasoning: chosen(['harmony'], { switches: { reasoning_effort: 'medium' } }),
  'wmo/qwen3_5_strip_history': chosen(TAGGED, { retain: 'template' }),
  'wmo/nemotron3_ultra_verbatim': chosen(TAGGED),
  'wmo/nemotron3_verbatim': chosen(TAGGED),
  'wmo/qwen3_5_verbatim': chosen(TAGGED),
  'wmo/qwen3_verbatim': chosen(QWEN),
};

/** The tiny model's own. */
export const TINY_RENDERER = 'stillroom_tiny';
/** Of models without a chat template; files that have the name load. */
export const ROLE_COLON = 'role_colon';

export const RENDERER_NAMES: readonly string[] = [...Object.keys(CHOICES), TINY_RENDERER, ROLE_COLON];

export function isKnownRenderer(name: string): boolean {
  return RENDERER_NAMES.includes(name);
}

/** Models of the embedded service: they have a renderer of their own, and no files. */
export function isTinyModel(model: string): boolean {
  return model.startsWith('stillroom/');
}

/** Null for a name that stands for no model's own template. */
export function rendererChoice(name: string): RendererChoice | null {
  return Object.hasOwn(CHOICES, name) ? (CHOICES[name] ?? null) : null;
}

/** A model's own template as it is. */
export const OWN_TEMPLATE: Omit<RendererChoice, 'families'> = { switches: {}, retain: 'all' };

/** Verbatim: history cannot be summarised under it. */
export function isVerbatimRenderer(name: string): boolean {
  return name.endsWith('_verbatim');
}
