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

/** What an agent takes besides; null where any kwarg may mean something. */
const KNOWN: Readonly<Record<HarnessDocument['runtime'], readonly string[] | null>> = {
  turn: ['stop_word', 'observation_max_chars', 'command_timeout_sec'],
  'terminus-2': terminusKnown(),
  pi: terminusKnown(),
  import: null,
  installed: null,
};

/** Kwargs that are Stillroom's, or that the agent does not know: harbor would drop some of them without a word. */
export function kwargsProblems({ runtime, kwargs }: HarnessDocument): FieldProblem[] {
  return Object.keys(kwargs).flatMap((name) => {
    const refused = Object.hasOwn(REFUSED[runtime], name) ? REFUSED[runtime][name] : undefined;
    if (refused !== undefined) return [{ path: ['kwargs', name], message: refused }];
    const known = KNOWN[runtime];
    if (known === null || known.includes(name)) return [];
    return [{ path: ['kwargs', name], message: `is not known to ${runtime}; it takes ${known.join(', ')}` }];
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

function terminusKnown(): readonly string[] {
  return [
    'parser_name',
    'proactive_summarization_threshold',
    'store_all_messages',
    'tmux_pane_height',
    'tmux_pane_width',
    'trajectory_config',
  ];
}

function all(names: readonly string[], why: string): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, why]));
}
