import { z } from 'zod';
import type { HarnessDocument } from './harness-document.ts';

/** A field that must not be as it is. */
export type FieldProblem = { readonly path: readonly string[]; readonly message: string };

/** What Stillroom itself tells every agent: it follows from the run's config and the trial. */
const WIRING = ['api_base', 'api_key', 'base_url', 'model', 'model_name', 'temperature', 'max_tokens', 'max_turns'];
const SET_HERE = "is set by Stillroom, from the run's config and for each trial: leave it out";

/** Kwargs by runtime that are said elsewhere in the document or not at all, with the reason. */
const REFUSED: Readonly<Record<HarnessDocument['runtime'], Readonly<Record<string, string>>>> = {
  turn: {
    ...all(WIRING, SET_HERE),
    system_prompt: 'write it as the field prompt',
    collect_rollout_details: 'is not needed: the gateway records every token',
  },
  'terminus-2': terminus(),
  pi: terminus(),
  import: {
    ...all(WIRING, SET_HERE),
    prompt: 'write it as the field prompt',
    extra_env: 'write it as the field env',
    logs_dir: 'is given by harbor',
  },
  installed: {
    ...all(['base_url', 'model_api_key_name', 'model_api_format'], 'is no kwarg in harbor: tell the agent by its variables, in env'),
    model_name: 'write it as the field model',
    prompt_template_path: 'write the text itself as the field prompt',
    extra_env: 'write it as the field env',
  },
};

const Count = z.int().min(1);
const TERMINUS: Options = {
  parser_name: z.enum(['json', 'xml']),
  proactive_summarization_threshold: z.int().min(0),
  store_all_messages: z.boolean(),
  tmux_pane_height: Count,
  tmux_pane_width: Count,
  trajectory_config: z.strictObject({ raw_content: z.boolean().optional(), linear_history: z.boolean().optional() }),
};

type Options = Readonly<Record<string, z.ZodType>>;

/** What an agent takes besides; null where only the agent itself can tell. */
const KNOWN: Readonly<Record<HarnessDocument['runtime'], Options | null>> = {
  turn: { stop_word: z.string().min(1), observation_max_chars: Count, command_timeout_sec: Count },
  'terminus-2': TERMINUS,
  pi: TERMINUS,
  import: null,
  installed: null,
};

/** Kwargs that are Stillroom's, or that the agent does not know: harbor would drop some of them without a word. */
export function kwargsProblems({ runtime, kwargs }: HarnessDocument): FieldProblem[] {
  return Object.entries(kwargs).flatMap(([name, value]) => {
    const path = ['kwargs', name];
    const refused = Object.hasOwn(REFUSED[runtime], name) ? REFUSED[runtime][name] : undefined;
    if (refused !== undefined) return [{ path, message: refused }];
    const known = KNOWN[runtime];
    if (known === null) return [];
    const option = Object.hasOwn(known, name) ? known[name] : undefined;
    if (!option) return [{ path, message: `is not known to ${runtime}; it takes ${Object.keys(known).join(', ')}` }];
    const read = option.safeParse(value);
    return read.success ? [] : read.error.issues.map((issue) => ({ path: [...path, ...issue.path.map(String)], message: issue.message }));
  });
}

function terminus() {
  const own = [
    'model_info',
    'llm_backend',
    'llm_kwargs',
    'llm_call_kwargs',
    'use_responses_api',
    'session_id',
    'suppress_max_turns_warning',
  ];
  return {
    ...all([...WIRING, ...own], SET_HERE),
    enable_summarize: 'is rollout.compaction of the run',
    collect_rollout_details: 'is always on',
    record_terminal_session: 'is always off: it would need asciinema in the sandbox',
    interleaved_thinking: 'is always off: the gateway keeps the reasoning in the history',
  };
}

function all(names: readonly string[], why: string): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, why]));
}
